"""An index kept beside its store: the same answers, followed from there, refused in doubt."""

from __future__ import annotations

from pathlib import Path

import pytest

from cma import CmaError, FixedClock, Memory, Reason
from cma.orion.index_file import NotAnImageError, read_image
from cma.orion.index_keeping import kept_files, place_of

CALLER = {"name": "Ann", "authority": "user"}
EVENT = "2026-07-01T09:00:00Z"


def opened(path: Path) -> Memory:
    return Memory.open(path, caller=CALLER, clock=FixedClock("2026-07-02T09:00:00Z"))


def told(memory: Memory, text: str, *, scope: str = "session:s1", **more: object) -> str:
    own = memory.within(scope) if scope else memory
    written = own.write(text, kind="episodic", origin="talk", observed_at=EVENT, **more)
    return written.id


def answers(memory: Memory) -> list[object]:
    own = memory.within("session:s1")
    found = [
        own.recall(text, limit=5, include_inactive=every)
        for text in ("green tea", "cake", "tea cake rain")
        for every in (False, True)
    ]
    return [
        (
            [(hit.cell.id, hit.score, tuple(hit.parts.items())) for hit in each.hits],
            each.trace.index_digest,
            each.trace.exclusions,
        )
        for each in found
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "m.cma"
    with opened(path) as memory:
        first = told(memory, "Ann drinks green tea")
        second = told(memory, "Bob bakes a cake", confidence=0.25)
        third = told(memory, "It may rain on the cake")
        told(memory, "Somebody else drinks green tea", scope="session:s2")
        own = memory.within("session:s1")
        own.link("temporal", first, second)
        own.update(third, summary="weather")
        own.update(second, lifecycle="retracted")
    return path


@pytest.fixture
def kept(store: Path) -> Path:
    with opened(store) as memory:
        return memory.keep_index()


def test_a_kept_index_answers_as_one_that_is_built(store: Path) -> None:
    with opened(store) as memory:
        before = answers(memory)
        place = memory.keep_index()
    assert place == place_of(store, "unicode")
    assert place.stat().st_mode & 0o077 == 0
    image = place.read_bytes()
    with opened(store) as memory:
        assert answers(memory) == before
        told(memory, "More green tea for Bob")
        told(memory, "In a new session", scope="session:s3")
        after = answers(memory)
    assert after != before
    assert place.read_bytes() == image  # what a process appends stays its own
    place.unlink()
    with opened(store) as memory:
        assert answers(memory) == after


def test_it_is_kept_again_over_the_earlier_one(store: Path, kept: Path) -> None:
    first = kept.read_bytes()
    with opened(store) as memory:
        told(memory, "More green tea for Bob")
        memory.keep_index()
        before = answers(memory)
    assert kept.read_bytes() != first
    with opened(store) as memory:
        assert answers(memory) == before
    assert [path.name for path in store.parent.iterdir() if path.name.startswith(".")] == []


def test_an_empty_store_has_an_index_too(tmp_path: Path) -> None:
    with opened(tmp_path / "e.cma") as memory:
        memory.keep_index()
    with opened(tmp_path / "e.cma") as memory:
        assert memory.recall("tea").hits == ()
        told(memory, "Ann drinks green tea")
        assert len(memory.within("session:s1").recall("tea").hits) == 1


def refused(store: Path) -> CmaError:
    with opened(store) as memory, pytest.raises(CmaError) as found:
        memory.recall("tea")
    return found.value


def test_every_flip_and_every_cut_is_refused_or_changes_nothing(store: Path, kept: Path) -> None:
    data = kept.read_bytes()
    for place in [*range(16, len(data), 97), len(data) - 1]:
        kept.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(NotAnImageError):
            read_image(kept)
        kept.write_bytes(data[:place])
        with pytest.raises(NotAnImageError):
            read_image(kept)
    error = refused(store)
    assert error.reason is Reason.INDEX_DISAGREES
    assert f"remove {kept.name}" in str(error)
    kept.unlink()
    with opened(store) as memory:
        memory.recall("tea")


def test_that_of_another_store_is_refused(store: Path, kept: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.cma"
    with opened(other) as memory:
        told(memory, "Ann drinks green tea")
    place_of(other, "unicode").write_bytes(kept.read_bytes())
    assert refused(other).reason is Reason.INDEX_DISAGREES


def test_that_of_another_history_is_refused(store: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "copy.cma.jsonl"
    with opened(store) as memory:
        memory.snapshot(snapshot)
        told(memory, "More green tea for Bob")
        place = memory.keep_index()
    image = place.read_bytes()
    again = tmp_path / "again.cma"
    Memory.restore(snapshot, again, caller=CALLER).close()
    place_of(again, "unicode").write_bytes(image)
    assert refused(again).reason is Reason.INDEX_DISAGREES


def test_another_version_of_the_form_is_passed_over(store: Path, kept: Path) -> None:
    kept.write_bytes(kept.read_bytes().replace(b"cma.index/1", b"cma.index/9", 1))
    with opened(store) as memory:
        memory.recall("tea")


def test_an_erasure_removes_it(store: Path, kept: Path) -> None:
    assert b"green" in kept.read_bytes()
    assert kept_files(store) == [kept]
    with opened(store) as memory:
        own = memory.within("session:s1")
        own.erase(own.recall("green tea").hits[0].cell.id, reason="person-request")
        assert kept_files(store) == []
        memory.keep_index()
        assert own.recall("drinks").hits == ()
