"""The report: a page that asks for nothing, figures of runs alone, plain words where none ran."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reports.__main__ import main
from reproductions.__main__ import main as judge_main
from tests.harness.sample_runs import figure, write_retrieval, write_run, write_tally

HOSTILE = "</script><script>alert('note')</script><img src=http://example.org/x.png>"
ASSETS = {"src", "srcset", "data", "poster", "background", "action", "formaction"}


class Page(HTMLParser):
    """Collects elements, links and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> Iterator[dict[str, str]]:
        return (attributes for name, attributes in self.elements if name == tag)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Page, str]:
    base = tmp_path_factory.mktemp("report")
    runs, out = base / "runs", base / "out"
    write_tally(runs, notes=[HOSTILE], machine={"device": HOSTILE, "git_dirty": True})
    write_retrieval(runs, run_id="b" * 16)
    (runs / "bench").mkdir()
    bench = {"figures": {"recall_100k.ratio_to_bm25s": {**figure(1.5, "ratio", 300), "run": "b-1"}}}
    (runs / "bench" / "orion.json").write_text(json.dumps(bench))
    assert judge_main(["--runs", str(runs)]) == 0
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    text = (out / "index.html").read_text(encoding="utf-8")
    return out, Page(text), text


def test_the_page_loads_nothing_from_outside(whole: tuple[Path, Page, str]) -> None:
    out, page, text = whole
    for _, attributes in page.elements:
        for name in ASSETS & attributes.keys():
            assert attributes[name].startswith("data:"), attributes[name][:80]
    assert not [a for a in page.all("script") if "src" in a]
    assert [a["href"] for a in page.all("link")] == ["data:,"]
    assert "@import" not in text
    assert not re.search(r"url\(", text)
    policy = next(a["content"] for a in page.all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for link in (a["href"] for a in page.all("a")):
        assert link.startswith("#") or (out / link).is_file(), link


def test_every_anchor_has_its_target_once(whole: tuple[Path, Page, str]) -> None:
    _, page, _ = whole
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in page.all("a") if a["href"].startswith("#")} <= set(ids)
    labelled = [a["aria-labelledby"] for _, a in page.elements if "aria-labelledby" in a]
    assert set(labelled) <= set(ids)


def test_what_a_run_says_is_text_and_never_markup(whole: tuple[Path, Page, str]) -> None:
    _, page, text = whole
    assert text.count("<script>") == 1
    assert "example.org" not in str(page.elements)
    assert any("alert('note')" in shown for shown in page.texts)


def test_the_page_opens_with_what_cma_is_and_what_was_measured(
    whole: tuple[Path, Page, str],
) -> None:
    _, page, _ = whole
    said = " ".join(" ".join(page.texts).split())
    for earlier, later in (
        ("CMA is a governed memory", "40 / 40"),
        ("40 / 40", "41.0%"),
        ("41.0%", "The paper's claims, judged"),
        ("The paper's claims, judged", "Evidence labels that needed reading"),
    ):
        assert said.index(earlier) < said.index(later)
    assert "95% interval 37.0 to 45.0; LoCoMo, 60 questions" in said
    assert "Contract tests passed 40 / 40 Orion 40 of 40" in said
    assert re.search(r"hold here \d+ / \d+ (\d+ [a-z ]+, )+\d+ failed", said)
    assert "Contract tests. Contracts passed: Orion 40 of 40" in said  # each finding by its title
    assert "CC BY-NC 4.0" in said
    assert "efefefef" in said
    assert "python -m experiments experiment=retrieval data=locomo" in said


def test_every_drawing_has_words(whole: tuple[Path, Page, str]) -> None:
    _, page, _ = whole
    pictures = list(page.all("img"))
    assert len(pictures) == 3
    assert all(len(each["alt"]) > 40 for each in pictures)
    assert "Orion 40 of 40" in pictures[0]["alt"]


def test_every_table_and_plot_lies_beside_the_page(whole: tuple[Path, Page, str]) -> None:
    out, _, _ = whole
    tables = {path.stem for path in (out / "tables").iterdir()}
    assert {"contract-tally-tally", "retrieval-locomo-overview-published", "figures"} <= tables
    for stem in tables:
        assert {path.suffix for path in (out / "tables").glob(f"{stem}.*")} == {
            ".csv",
            ".md",
            ".tex",
        }
    plots = {path.name for path in (out / "plots").iterdir()}
    assert len(plots) == 6
    svg = (out / "plots" / "retrieval-locomo-curves.svg").read_text()
    assert "<dc:date>" not in svg
    for place in plots:
        assert {path.suffix for path in (out / "plots").glob(f"{Path(place).stem}.*")} == {
            ".png",
            ".svg",
        }


def test_every_table_of_the_page_offers_its_files(whole: tuple[Path, Page, str]) -> None:
    out, page, text = whole
    offered = [each["href"] for each in page.all("a") if each["href"].startswith("tables/")]
    assert len(offered) == 3 * text.count("<table>")
    assert all((out / name).is_file() for name in offered)
    assert {Path(name).stem for name in offered} == {
        path.stem for path in (out / "tables").iterdir()
    }
    assert "tables/claims.csv" in offered


def test_the_figures_for_a_paper_are_the_plots(whole: tuple[Path, Page, str]) -> None:
    out, _, _ = whole
    plots = {path.stem for path in (out / "plots").iterdir()}
    assert {path.stem for path in (out / "figures").glob("*.pdf")} == plots
    listing = (out / "figures" / "figures.tex").read_text()
    for name in plots:
        assert (out / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF-1.")
        assert rf"\includegraphics[width=\linewidth]{{{name}.pdf}}" in listing
        assert rf"\label{{fig:{name}}}" in listing
    assert listing.count(r"\begin{figure}") == listing.count(r"\end{figure}") == len(plots)


def test_figures_come_from_runs_alone(whole: tuple[Path, Page, str]) -> None:
    out, _, _ = whole
    figures = json.loads((out / "figures.json").read_text())
    assert figures["contracts.orion"]["run"] == "0123456789abcdef"
    assert figures["locomo.recall10.overlap"]["interval"] == [0.37, 0.45]
    assert figures["recall_100k.ratio_to_bm25s"]["run"] == "b-1"
    assert figures["claims.failed"]["value"] == 0
    assert all(set(entry) >= {"value", "unit", "n", "run"} for entry in figures.values())
    assert set(figures) == {
        "contracts.orion", "locomo.recall10.overlap", "locomo.recall10.bm25",
        "recall_100k.ratio_to_bm25s", "claims.total", "claims.failed", "claims.not_run",
    }  # fmt: skip


def test_the_same_runs_make_the_same_report(whole: tuple[Path, Page, str], tmp_path: Path) -> None:
    out, _, _ = whole
    assert main(["--runs", str(out.parent / "runs"), "--out", str(tmp_path)]) == 0
    names = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert len(names) > 20
    for name in names:
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes(), name


def said_by(out: Path) -> str:
    return " ".join(" ".join(Page((out / "index.html").read_text()).texts).split())


def test_without_runs_the_page_says_so_and_holds_no_number(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert main(["--runs", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 0
    said = said_by(tmp_path / "out")
    assert said.count("Not run yet, so nothing is shown.") == 2
    assert "python -m experiments experiment=contract_tally" in said
    assert "The claims were not judged yet" in said
    assert "40 / 40" not in said
    assert json.loads((tmp_path / "out" / "figures.json").read_text()) == {}


def test_a_failed_run_shows_its_reason_and_no_value(tmp_path: Path) -> None:
    error = {"type": "ExperimentError", "message": "pytest ended with status 2"}
    write_tally(tmp_path / "runs", status="failed", error=error)
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    assert "pytest ended with status 2" in said_by(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "figures.json").read_text()) == {}


def test_a_stale_run_gives_no_headline_figure(tmp_path: Path) -> None:
    write_tally(tmp_path / "runs")
    write_tally(
        tmp_path / "runs", run_id="f" * 16, status="failed", source_digest="ff" * 32,
        finished="2026-07-03T00:00:00+00:00",
    )  # fmt: skip
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    assert "of the earlier sources" in said_by(tmp_path / "out")
    assert "contracts.orion" not in json.loads((tmp_path / "out" / "figures.json").read_text())


def test_an_unusable_figure_is_left_out_and_named(tmp_path: Path) -> None:
    bad = {"a.nan": figure(float("nan"), n=1), "a.text": figure("many", n=1), "a.good": figure(2)}
    write_run(tmp_path / "runs", "odd_one", figures=bad, tables={"x.csv": [{"k": "v<b>"}]})
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    assert set(json.loads((tmp_path / "out" / "figures.json").read_text())) == {"a.good"}
    said = said_by(tmp_path / "out")
    assert "a.text of 0123456789abcdef is 'many': left out" in said
    assert "Odd one" in said
    assert "v<b>" in said


def test_generated_data_are_the_headline_where_no_other_are(tmp_path: Path) -> None:
    write_retrieval(tmp_path / "runs", data_set="generated")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    said = said_by(tmp_path / "out")
    assert "generated conversations, 60 questions" in said
    assert "Evidence retrieval: LoCoMo Given" in said


def test_claims_judged_on_other_runs_are_marked(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write_tally(runs)
    judge_main(["--runs", str(runs)])
    write_tally(runs, run_id="e" * 16, finished="2026-07-04T00:00:00+00:00")
    assert main(["--runs", str(runs), "--out", str(tmp_path / "out")]) == 0
    assert "judged on runs that this page does not show (0123456789abcdef)" in said_by(
        tmp_path / "out"
    )


def test_claims_judged_on_a_failed_run_that_the_page_names_are_not_marked(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    error = {"type": "ExperimentError", "message": "pytest ended with status 2"}
    write_tally(runs, status="failed", error=error)
    judge_main(["--runs", str(runs)])
    assert main(["--runs", str(runs), "--out", str(tmp_path / "out")]) == 0
    said = said_by(tmp_path / "out")
    assert "Run 0123456789abcdef failed" in said
    assert "judged on runs that this page does not show" not in said


def test_leftovers_of_an_earlier_report_go_and_other_files_stay(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    write_tally(runs)
    main(["--runs", str(runs), "--out", str(out)])
    assert (out / "tables" / "contract-tally-tally.csv").is_file()
    (out / "tables" / "mine.csv").write_text("x")
    (tmp_path / "none").mkdir()
    assert main(["--runs", str(tmp_path / "none"), "--out", str(out)]) == 0
    assert [path.name for path in (out / "tables").iterdir()] == ["mine.csv"]
    assert list((out / "plots").iterdir()) == []


@pytest.mark.parametrize("name", ["recall.csv", "differences.csv", "result.json"])
def test_unreadable_input_is_status_two(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (write_retrieval(tmp_path / "runs") / name).write_text("labels\nx\n")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 2
    assert "retrieval" in capsys.readouterr().err


def test_a_bench_file_that_holds_no_figures_is_status_two(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "x.json").write_text("[1]")
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "out")]) == 2


def test_a_report_that_would_be_the_same_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    write_tally(runs)
    asked = ["--runs", str(runs), "--out", str(out)]
    assert main(asked) == 0
    page = out / "index.html"
    before, text = page.stat().st_mtime_ns, page.read_text()
    assert main(asked) == 0
    assert "unchanged" in capsys.readouterr().out
    assert page.stat().st_mtime_ns == before
    page.write_text("something else")
    assert main(asked) == 0
    assert page.read_text() == text
    write_run(runs, "unheard_of")
    assert main(asked) == 0
    assert "unchanged" not in capsys.readouterr().out.splitlines()[-1]
