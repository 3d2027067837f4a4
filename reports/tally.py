"""The section of `contract_tally`: contracts passed by version, and each contract's outcome."""

from __future__ import annotations

from reports.plots import Plot, tally_bars
from reports.tables import Table, table
from reproductions.results import Run

OUTCOMES = {"missing": "not run"}
VERSIONS = ("orion", "trifid", "lagoon", "eagle", "rosette")


def build(run: Run, anchor: str) -> tuple[str, tuple[Table, ...], tuple[Plot, ...]]:
    """Return the finding, the tables and the plot."""
    rows = run.needed("contracts.csv", "a contract tally")
    outcomes: dict[str, dict[str, int]] = {}
    for row in rows:
        version = outcomes.setdefault(row["version"], {"passed": 0, "failed": 0, "missing": 0})
        version[row["outcome"]] = version.get(row["outcome"], 0) + 1
    names = sorted(outcomes, key=lambda name: (_place(name), name))
    bars = [
        (name.capitalize(), outcomes[name]["passed"], outcomes[name]["failed"],
         outcomes[name]["missing"])
        for name in names
    ]  # fmt: skip
    words = [
        f"{name} {passed} of {passed + failed + missing}" if passed + failed else f"{name} not run"
        for name, passed, failed, missing in bars
    ]
    summary = [
        {"version": name, "passed": passed, "failed": failed, "missing": missing,
         "all": passed + failed + missing}
        for name, passed, failed, missing in bars
    ]  # fmt: skip
    tables = (
        table(
            f"{anchor}-tally", "Contracts by version", summary,
            {"version": "Version", "passed": "Passed", "failed": "Failed", "missing": "Not run",
             "all": "Contracts"},
            caption="Not run: no test of the contract ran.",
        ),
        table(
            f"{anchor}-contracts", "Every contract",
            [{**row, "version": row["version"].capitalize(),
              "outcome": OUTCOMES.get(row["outcome"], row["outcome"])} for row in rows],
            {"contract": "Contract", "version": "Version", "title": "Rule", "outcome": "Outcome"},
        ),
    )  # fmt: skip
    alternative = "Bars of contracts passed by version: " + "; ".join(words) + "."
    plot = tally_bars(f"{anchor}-tally", bars, alternative)
    return f"Contracts passed: {', '.join(words)}.", tables, (plot,)


def _place(version: str) -> int:
    return VERSIONS.index(version) if version in VERSIONS else len(VERSIONS)
