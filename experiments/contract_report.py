"""A pytest plugin: writes one JSON line for each test, with the contract that the test states.

Given to the child process of `contract_tally` by `-p experiments.contract_report`. Imports nothing
but pytest, so that it cannot change what is tested.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

OPTION = "--contract-report"
MARKER = "contract"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file to write."""
    parser.addoption(OPTION, help="write one JSON line for each test to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Write only where a file was asked for."""
    config.addinivalue_line("markers", "contract(id): the one contract that this test states")
    path = config.getoption(OPTION)
    if path:
        config.pluginmanager.register(Recorder(Path(path)), "contract-recorder")


class Recorder:
    """Follows every test through its three phases; the worst of them is its outcome."""

    def __init__(self, path: Path) -> None:
        """Start with an empty report at `path`."""
        self._path = path
        self._contracts: dict[str, list[str]] = {}
        self._outcomes: dict[str, str] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember which contract each collected test names."""
        for item in session.items:
            self._contracts[item.nodeid] = [
                str(mark.args[0]) if mark.args else "" for mark in item.iter_markers(MARKER)
            ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one phase into account."""
        seen = self._outcomes.get(report.nodeid, "passed")
        if report.failed:
            seen = "failed"
        elif report.skipped and seen != "failed":
            seen = "skipped"
        self._outcomes[report.nodeid] = seen

    def pytest_sessionfinish(self) -> None:
        """Write the lines: every collected test, run or not."""
        lines: list[dict[str, Any]] = [
            {
                "test": test,
                "contracts": contracts,
                "outcome": self._outcomes.get(test, "not run"),
            }
            for test, contracts in self._contracts.items()
        ]
        self._path.write_text("".join(json.dumps(line) + "\n" for line in lines))
