"""Where data is looked for, in which order, and that nothing but the pinned version is taken."""

import functools
import hashlib
import http.server
import threading
from dataclasses import replace

import pytest

from experiments.data.loading import load
from experiments.data.sources import Found, Missing, find
from experiments.failures import DataError, MissingDataError, UsageError
from experiments.settings import DataSettings, PinnedFile

CONTENT = b"[]"
PINNED = PinnedFile(
    path="set/file.json",
    url="http://127.0.0.1:9/file.json",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="none",
)
OFFLINE = DataSettings(name="locomo", download=False)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    monkeypatch.delenv("CMA_DATA_DIR", raising=False)
    monkeypatch.setenv("CMA_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def put(tmp_path):
    def put(folder, content=CONTENT):
        path = tmp_path / folder / PINNED.path
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        return tmp_path / folder

    return put


@pytest.fixture
def server(tmp_path):
    """A web server on this machine that serves the folder `web`."""
    (tmp_path / "web").mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield tmp_path / "web", f"http://127.0.0.1:{served.server_port}/file.json"
        served.shutdown()
        thread.join()


def test_config_goes_before_environment_before_cache(put, monkeypatch):
    given, named = put("given"), put("named")
    cached = put("cache")
    assert find(PINNED, OFFLINE) == Found(cached / PINNED.path, "cache")
    monkeypatch.setenv("CMA_DATA_DIR", str(named))
    assert find(PINNED, OFFLINE) == Found(named / PINNED.path, "CMA_DATA_DIR")
    asked = replace(OFFLINE, path=str(given))
    assert find(PINNED, asked) == Found(given / PINNED.path, "config")


def test_the_files_own_folder_is_refused_with_the_folder_to_give(put, monkeypatch):
    folder = put("given") / "set"
    with pytest.raises(DataError, match=r"holds file\.json itself; give the folder above it"):
        find(PINNED, replace(OFFLINE, path=str(folder)))
    monkeypatch.setenv("CMA_DATA_DIR", str(folder))
    found = find(PINNED, OFFLINE)
    assert isinstance(found, Missing)
    assert (
        f"CMA_DATA_DIR={folder} holds file.json itself; give the folder above it" in found.tried[0]
    )


def test_data_dir_that_does_not_exist_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("CMA_DATA_DIR", str(tmp_path / "nowhere"))
    found = find(PINNED, OFFLINE)
    assert isinstance(found, Missing)
    assert f"CMA_DATA_DIR={tmp_path / 'nowhere'} does not exist" in found.tried[0]


def test_optional_file_may_lack_in_the_given_folder_and_be_found_elsewhere(put, tmp_path):
    asked = replace(OFFLINE, path=str(tmp_path))
    found = find(PINNED, asked, optional=True)
    assert isinstance(found, Missing)
    assert found.tried[0].startswith(f"data.path={tmp_path} holds no set/file.json")
    assert find(PINNED, asked, optional=True) != find(PINNED, OFFLINE)
    assert find(PINNED, replace(asked, path=str(put("given"))), optional=True).origin == "config"


@pytest.mark.parametrize("named_by", ["data.path", "CMA_DATA_DIR"])
def test_conversations_without_the_audit_run_on_published_labels(
    named_by, put, monkeypatch, caplog
):
    folder = put("given")
    asked = replace(OFFLINE, conversations=PINNED, corrections=replace(PINNED, path="no/audit"))
    if named_by == "data.path":
        asked = replace(asked, path=str(folder))
    else:
        monkeypatch.setenv("CMA_DATA_DIR", str(folder))
    corpus, _ = load(asked)
    assert corpus.name == "locomo"
    assert not corpus.corrected_labels
    assert "labels as published only" in " ".join(corpus.notes)
    assert named_by in caplog.text


def test_folder_that_does_not_exist_is_an_error_though_others_have_the_file(put, monkeypatch):
    monkeypatch.setenv("CMA_DATA_DIR", str(put("named")))
    with pytest.raises(DataError, match="does not exist"):
        find(PINNED, replace(OFFLINE, path="nowhere/at/all"))


def test_given_folder_without_the_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"holds no set/file\.json"):
        find(PINNED, replace(OFFLINE, path=str(tmp_path)))


@pytest.mark.parametrize("where", ["given", "named", "cache"])
def test_other_bytes_are_an_error_wherever_they_lie(put, monkeypatch, where):
    folder = put(where, b"[ ]")
    settings = replace(OFFLINE, path=str(folder)) if where == "given" else OFFLINE
    if where == "named":
        monkeypatch.setenv("CMA_DATA_DIR", str(folder))
    with pytest.raises(DataError, match=f"expected {PINNED.sha256}"):
        find(PINNED, settings)


def test_nothing_found_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("CMA_DATA_DIR", str(tmp_path))
    found = find(PINNED, OFFLINE)
    assert isinstance(found, Missing)
    assert f"CMA_DATA_DIR={tmp_path} holds no set/file.json" in " ".join(found.tried)
    assert "data.download=false" in " ".join(found.tried)


def test_download_fills_the_cache_and_is_not_repeated(server):
    web, url = server
    (web / "file.json").write_bytes(CONTENT)
    pinned = replace(PINNED, url=url)
    asked = replace(OFFLINE, download=True)
    found = find(pinned, asked)
    assert isinstance(found, Found)
    assert found.origin == "cache"
    (web / "file.json").unlink()
    assert find(pinned, asked) == found


def test_download_of_other_bytes_is_an_error_and_is_not_kept(server, tmp_path):
    web, url = server
    (web / "file.json").write_bytes(b"[1]")
    with pytest.raises(DataError, match="no longer the pinned version"):
        find(replace(PINNED, url=url), replace(OFFLINE, download=True))
    assert not (tmp_path / "cache" / PINNED.path).exists()


def test_failed_download_is_no_error_but_is_told(server):
    _, url = server  # the server answers 404
    found = find(replace(PINNED, url=url), replace(OFFLINE, download=True))
    assert isinstance(found, Missing)
    assert "the download failed" in " ".join(found.tried)


def test_without_locomo_no_other_data_take_its_place_and_it_is_said():
    with pytest.raises(MissingDataError, match=r"LoCoMo was not found.*CMA_DATA_DIR.*=generated"):
        load(replace(OFFLINE, conversations=PINNED))


def test_unknown_data_set_names_those_there_are():
    with pytest.raises(UsageError, match="locomo, cranfield, beir, generated"):
        load(DataSettings(name="lokomo"))
