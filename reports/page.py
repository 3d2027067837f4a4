"""The page: one HTML file that asks the network for nothing.

Style, script and drawings lie inside the file; its content policy forbids every other source, so
even a hostile note of a run could load nothing. Every text from a run or a claim is escaped by the
template. The page is a function of the runs: the same runs give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.figures import Gathered
from reports.plots import DARK, LIGHT, Plot
from reports.sections import Section
from reports.tables import Table, table
from reports.tally import VERSIONS
from reproductions.judge import Judgement, Verdict
from reproductions.judged import JudgedClaims, shown_measured, shown_value

FOLDER = Path(__file__).parent / "template"
CLASSES = {
    Verdict.REPRODUCED: ("good", "✓"),
    Verdict.BY_CONSTRUCTION: ("good", "✓"),
    Verdict.STRUCTURE: ("part", "◐"),
    Verdict.NOT_RUN: ("none", "○"),
    Verdict.FAILED: ("bad", "✕"),
}
RECALL_CARDS = (
    ("overlap", "The paper's lexical part alone (overlap)"),
    ("hand_set.unicode.cma", "The whole hand-set score (our coefficients)"),
    ("bm25", "BM25 at its best"),
)


@dataclass(frozen=True)
class Card:
    """One headline number: what, how much, out of how many, with its interval where it has one."""

    label: str
    value: str
    detail: str
    key: str
    bar: tuple[float, float, float] | None = None
    """Value and interval as percent of the whole, for a small bar."""


def render(
    sections: Sequence[Section],
    gathered: Gathered,
    judged: JudgedClaims | None,
    stale: Sequence[str],
) -> str:
    """Return the page. `stale` names runs that the claims were judged on but the page lacks."""
    environment = _environment()
    style, script = _inline("page.css"), _inline("page.js")
    return environment.get_template("page.html.j2").render(
        style=style,
        script=script,
        policy=_policy(style, script),
        cards=[*_claims_card(judged), *cards(gathered.figures, _other_settings(sections))],
        headlines=_headlines(sections),
        sections=sections,
        claims=_claims(judged, sections) if judged else None,
        counts=_counts(judged) if judged else [],
        stale=stale,
        figures=figure_table(gathered.figures),
        problems=gathered.problems,
    )


def render_table(item: Table) -> str:
    """Return one table as a page of its own, as quiet and as closed as the report's."""
    style, script = _inline("page.css"), _inline("page.js")
    return (
        _environment()
        .get_template("alone.html.j2")
        .render(style=style, script=script, policy=_policy(style, script), table=item)
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["picture"] = _picture
    return environment


def cards(
    figures: Mapping[str, Mapping[str, Any]], other_settings: Mapping[str, str]
) -> list[Card]:
    """Return the headline cards of those figures that were measured.

    `other_settings` holds the overrides of runs that were made with other settings, by run.
    """
    found = _contracts_card(figures, other_settings)
    data = next(
        (name for name in ("locomo", "generated") if f"{name}.recall10.overlap" in figures), ""
    )
    names = {"locomo": "LoCoMo", "generated": "generated conversations"}
    for row, label in RECALL_CARDS:
        key = f"{data}.recall10.{row}"
        if key not in figures:
            continue
        entry = figures[key]
        detail = f"{names[data]}, {entry['n']:,} questions" if "n" in entry else names[data]
        bar = None
        if "interval" in entry:
            low, high = entry["interval"]
            detail = f"95% interval {100 * low:.1f} to {100 * high:.1f}; {detail}"
            bar = (100 * entry["value"], 100 * low, 100 * high)
        detail += _with(other_settings, entry)
        found.append(Card(f"{label}, recall@10", f"{100 * entry['value']:.1f}%", detail, key, bar))
    return found


def _contracts_card(
    figures: Mapping[str, Mapping[str, Any]], other_settings: Mapping[str, str]
) -> list[Card]:
    """Return one card of all contracts, its detail by version."""
    entries = {
        name: figures[f"contracts.{name}"]
        for name in VERSIONS
        if f"contracts.{name}" in figures and "n" in figures[f"contracts.{name}"]
    }
    if not entries:
        return []
    passed, whole = (sum(entry[key] for entry in entries.values()) for key in ("value", "n"))
    told = ", ".join(
        f"{name.capitalize()} {entry['value']:g} of {entry['n']:g}"
        for name, entry in entries.items()
    )
    detail = told + _with(other_settings, next(iter(entries.values())))
    return [Card("Contract tests passed", f"{passed:g} / {whole:g}", detail, "contracts")]


def _other_settings(sections: Sequence[Section]) -> dict[str, str]:
    return {
        dict(section.facts).get("Run", ""): section.other_settings
        for section in sections
        if section.other_settings
    }


def _with(other_settings: Mapping[str, str], entry: Mapping[str, Any]) -> str:
    given = other_settings.get(entry.get("run", ""))
    return f"; with other settings: {given}" if given else ""


def _claims_card(judged: JudgedClaims | None) -> list[Card]:
    """Return the card of the claims that were seen to hold, with how each kind was seen."""
    if judged is None:
        return []
    counts = Counter(row.verdict for row in judged.claims)
    total = len(judged.claims)
    held = total - counts[Verdict.NOT_RUN] - counts[Verdict.FAILED]
    shown = (verdict for verdict in Verdict if counts[verdict] or verdict is Verdict.FAILED)
    detail = ", ".join(f"{counts[verdict]} {verdict}" for verdict in shown)
    return [Card("The paper's claims that hold here", f"{held} / {total}", detail, "claims.total")]


def figure_table(figures: Mapping[str, Mapping[str, Any]]) -> Table | None:
    """Return every headline figure as a table, None where there is none."""
    if not figures:
        return None
    rows = []
    for key, entry in sorted(figures.items()):
        interval = entry.get("interval")
        rows.append(
            {
                "key": key,
                **{name: entry.get(name) for name in ("value", "unit", "n", "control", "run")},
                "interval": f"{interval[0]:.4f} to {interval[1]:.4f}" if interval else "",
            }
        )
    heads = {
        "key": "Figure",
        "value": "Value",
        "interval": "Interval",
        "unit": "Unit",
        "n": "Out of",
    }
    if any("control" in entry for entry in figures.values()):
        heads["control"] = "Control"
    return table("figures", "Headline figures", rows, heads | {"run": "Run"})


def claim_table(judged: JudgedClaims) -> Table:
    """Return the claims with their verdicts, as the page orders them."""
    rows = _claims(judged, ())
    heads = {"id": "Id", "statement": "Claim", "section": "Section", "paper": "Paper"}
    heads |= {"measured": "Measured here", "verdict": "Verdict", "why": "Why", "run": "Run"}
    return table("claims", "The paper's claims, judged", rows, heads | {"device": "Device"})


def _headlines(sections: Sequence[Section]) -> list[tuple[str, str, str]]:
    """Return what to open with: anchor, title, finding; one an experiment, of its first data."""
    first: dict[str, tuple[str, str, str]] = {}
    for section in sections:
        if section.finding:
            other = section.other_settings
            finding = section.finding + (f" With other settings: {other}." if other else "")
            first.setdefault(section.experiment, (section.anchor, section.title, finding))
    return list(first.values())


def _claims(judged: JudgedClaims, sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Return the rows of the claim table: failures first, what was not run last."""
    order = [Verdict.FAILED, *(v for v in Verdict if v not in (Verdict.FAILED, Verdict.NOT_RUN))]
    order.append(Verdict.NOT_RUN)
    rows = sorted(judged.claims, key=lambda row: order.index(row.verdict))
    return [_claim(row, sections) for row in rows]


def _claim(row: Judgement, sections: Sequence[Section]) -> dict[str, Any]:
    kind, mark = CLASSES[row.verdict]
    runs = {dict(section.facts).get("Run"): section.anchor for section in sections}
    return {
        "id": row.id,
        "statement": row.statement,
        "section": row.section,
        "paper": shown_value(row.paper_value, row.unit),
        "measured": shown_measured(row),
        "verdict": str(row.verdict),
        "kind": kind,
        "mark": mark,
        "why": row.why,
        "run": row.run,
        "device": row.device,
        "anchor": runs.get(row.run),
    }


def _counts(judged: JudgedClaims) -> list[tuple[str, int, str, str]]:
    counts = Counter(row.verdict for row in judged.claims)
    return [(str(verdict), counts[verdict], *CLASSES[verdict]) for verdict in Verdict]


def _picture(plot: Plot) -> Markup:
    """Return a drawing for light and for dark, both inside the page."""
    return Markup(  # `format` escapes the alternative text; the rest is base64
        '<picture><source media="(prefers-color-scheme: dark)" srcset="{}"><img src="{}" alt="{}">'
        "</picture>"
    ).format(_address(plot.svg(DARK)), _address(plot.svg(LIGHT)), plot.alternative)


def _address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _inline(name: str) -> Markup:
    """Return one of our own files as it is; it holds nothing from a run."""
    return Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704 (our own file)


def _policy(style: str, script: str) -> str:
    """Return the content policy: this style, this script, drawings in the page, no more."""
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'"
    )
