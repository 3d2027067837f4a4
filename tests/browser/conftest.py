"""A report with every kind of section, and a real browser where this machine has one.

A browser is, in this order: the program that CMA_BROWSER names; a Chromium or Chrome on the path;
the Chromium inside the package PySide6_WebEngine (extra `browser`). Where there is none, the tests
that need one are skipped, and say why.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.overrides import composed
from experiments.running import run
from reports.__main__ import main
from reproductions.__main__ import main as judge_main
from tests.harness.sample_runs import write_retrieval, write_tally

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOST = Path(__file__).with_name("webengine.py")
PATIENCE_SECONDS = 30


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a report made from small runs, some of them real."""
    base = tmp_path_factory.mktemp("report")
    runs = base / "runs"
    write_tally(runs, failed=["O07"])
    write_retrieval(runs, run_id="b" * 16)
    for experiment in ("explain", "graph_fixture", "failure_matrix"):
        run(composed([f"experiment={experiment}", f"paths.runs={runs}"]))
    judge_main(["--runs", str(runs)])
    assert main(["--runs", str(runs), "--out", str(base / "out")]) == 0
    return base / "out" / "index.html"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A page of a running browser; skips where there is none."""
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("no playwright here: pip install '.[browser]'")
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CMA_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None and importlib.util.find_spec("PySide6.QtWebEngineCore") is None:
        pytest.skip("no browser here: no Chromium on the path, no PySide6_WebEngine")
    with sync_playwright() as playwright:
        if program is not None:
            started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            yield started.new_page()
            started.close()
            return
        with _webengine() as address:
            found = playwright.chromium.connect_over_cdp(address, no_defaults=True)
            yield found.contexts[0].pages[0]


class _webengine:  # noqa: N801 (used as a function is)
    """Run the package's Chromium in a process of its own and end that process afterwards."""

    def __enter__(self) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, str(HOST), str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{address}/json/version", timeout=2):
                    return address
            except OSError:
                time.sleep(0.1)
        self.__exit__()
        pytest.skip("PySide6_WebEngine did not start: it needs libraries of the system (see ldd)")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_SECONDS)
