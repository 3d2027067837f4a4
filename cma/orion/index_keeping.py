"""Keeping an index beside its store, so that the next process maps it in place of building it.

`STORE.index-ANALYSER` belongs to one point of one store's audit chain: it names the store, the
number and hash of a record, and is followed from there. A file that is damaged or of another store
or history is refused, never mended; one of another version of the form is passed over. It is no
authority: removing it costs the time to build the index anew.
"""

from __future__ import annotations

import contextlib
import re
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np

from cma.orion.analysis import ANALYSERS
from cma.orion.index import Index
from cma.orion.index_file import MAGIC, NotAnImageError, read_image, write_image
from cma.values.errors import Reason, StoreRefusedError

__all__ = [
    "Mark",
    "drafts_of_kept",
    "find_kept",
    "kept_files",
    "place_of",
    "remove_kept",
    "write_kept",
]


class Mark(NamedTuple):
    """Up to where a kept index follows its store."""

    store_id: str
    seq: int
    head: bytes
    generation: int
    last_cell: int
    last_link: int


def place_of(store: Path, analyser: str) -> Path:
    """Return where the index of one analyser is kept."""
    return store.with_name(f"{store.name}.index-{analyser}")


def kept_files(store: Path) -> list[Path]:
    """Return the kept indexes that are there."""
    places = [place_of(store, analyser) for analyser in sorted(ANALYSERS)]
    return [place for place in places if place.exists()]


def drafts_of_kept(store: Path) -> list[Path]:
    """Return the drafts of kept indexes: of a process that writes one now, or was stopped at it."""
    named = re.compile(re.escape(f".{store.name}.index-") + r"[a-z]+\.[0-9a-f]{8}")
    return sorted(place for place in store.parent.iterdir() if named.fullmatch(place.name))


def remove_kept(store: Path) -> None:
    """Remove every kept index of a store and every draft: they hold the terms of its cells."""
    for place in (*kept_files(store), *drafts_of_kept(store)):
        with contextlib.suppress(FileNotFoundError):
            place.unlink()


def write_kept(
    store: Path,
    analyser: str,
    mark: Mark,
    scopes: list[str],
    rows: array[int],
    saved: tuple[dict[str, Any], dict[str, Any]],
) -> Path:
    """Write an index's facts and arrays, with its mark, and return the place."""
    facts, arrays = saved
    place = place_of(store, analyser)
    told = mark._asdict() | {"head": mark.head.hex(), "analyser": analyser, "scopes": scopes}
    write_image(place, facts | {"kept": told}, arrays | {"rows": np.array(rows, np.int64)})
    return place


def find_kept(
    connection: apsw.Connection,
    store: Path,
    store_id: str,
    analyser: str,
    code: Callable[[str], int],
) -> tuple[Index, Mark, array[int]] | None:
    """Return a kept index of this very history, its mark and rows; None where none is.

    code: what each scope's code is now.

    Raises StoreRefusedError (`index-disagrees`).
    """
    place = place_of(store, analyser)
    try:
        with place.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return None
        image = read_image(place)
        told = image.facts["kept"]
        mark = Mark(
            str(told["store_id"]), int(told["seq"]), bytes.fromhex(told["head"]),
            int(told["generation"]), int(told["last_cell"]), int(told["last_link"]),
        )  # fmt: skip
        same = told["analyser"] == analyser
        index = Index.loaded(image, [code(str(scope)) for scope in told["scopes"]])
        rows = array("q", image.numbers("rows", 1, mark.last_cell + 1).tobytes())
        if len(rows) != image.facts["postings"]["sealed"]:
            raise ValueError("not a row for each cell")
    except FileNotFoundError:
        return None
    except (NotAnImageError, KeyError, IndexError, TypeError, ValueError) as error:
        raise _refused(place, f"the kept index is damaged: {error}") from error
    row = connection.execute("SELECT hash FROM audit WHERE seq = ?", (mark.seq,)).fetchone()
    if not same or mark.store_id != store_id or row is None or row[0] != mark.head:
        raise _refused(place, "the kept index is not of this store's history")
    return index, mark, rows


def _refused(place: Path, message: str) -> StoreRefusedError:
    return StoreRefusedError(
        Reason.INDEX_DISAGREES,
        message,
        field="index",
        value=place.name,
        remedy=f"remove {place.name}: it is built anew from the store",
    )
