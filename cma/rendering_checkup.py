"""How a store's check-up looks on a terminal."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cma.doctor.findings import Checkup, Finding, Severity
from cma.rendering import counted, quoted

SHOWN_PLACES = 10
_STYLES = {Severity.DAMAGE: "red", Severity.ATTENTION: "yellow", Severity.INFORMATION: "dim"}


def checkup(console: Console, answer: Checkup) -> None:
    """Show findings, the gravest first, those of one code together, and what was looked at."""
    if answer.findings:
        table = Table(title=counted(len(answer.findings), "finding"), expand=False)
        table.add_column("severity", no_wrap=True)
        table.add_column("code, where, what it means, what to do", overflow="fold")
        ordered = sorted(answer.findings, key=lambda each: (_rank(each), each.code))
        for _, same in groupby(ordered, key=lambda each: each.code):
            _add_row(table, list(same))
        console.print(table)
    damaged = any(each.severity is Severity.DAMAGE for each in answer.findings)
    verdict = "the store is healthy" if answer.healthy else "the store needs attention"
    verdict = "the store is damaged" if damaged else verdict
    console.print(Text(verdict, style="bold"))
    console.print(Text(f"looked at: {', '.join(answer.looked_at) or 'nothing'}", style="dim"))
    if answer.skipped:
        console.print(Text(f"not looked at, or not to the end: {', '.join(answer.skipped)}"))
    held = ", ".join(f"{number} {name}" for name, number in answer.records.items())
    if held:
        console.print(Text(f"records held against the chain: {held}", style="dim"))


def _add_row(table: Table, same: list[Finding]) -> None:
    first = same[0]
    told = Text(first.code.value, style="bold")
    for each in same[:SHOWN_PLACES]:
        told.append(f"\n{quoted(each.place)[1:-1]}: {quoted(each.message)[1:-1]}", style="not bold")
    if len(same) > SHOWN_PLACES:
        told.append(f"\nand {len(same) - SHOWN_PLACES} more: --json names them all", "not bold")
    told.append(f"\n{first.meaning}\ndo: {first.remedy}", style="not bold dim")
    table.add_row(Text(first.severity.value, style=_STYLES[first.severity]), told)


def _rank(each: Finding) -> int:
    return list(Severity).index(each.severity)
