"""`python -m reports` on missing and hostile input: status 2, the file named, nothing deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.__main__ import main
from reproductions.__main__ import main as judge_main
from reproductions.inputs import CorruptInputError
from reproductions.results import read_runs
from tests.harness.sample_runs import write_retrieval


def test_a_runs_folder_that_is_not_there_is_status_two_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--runs", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert f"--runs {tmp_path / 'none'}: there is no such folder" in said
    assert "python -m experiments" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "listed",
    [
        ["../victim.txt"],
        ["tables/../../victim.txt"],
        ["{base}/victim.txt"],
        ["tables/.."],
        ["link/victim.txt"],
        ["tables/link.csv"],
        [7],
        {"tables/x.csv": 1},
    ],
    ids=str,
)
def test_a_listing_that_names_other_files_is_refused_and_deletes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], listed: object
) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    (out / "tables").mkdir(parents=True)
    runs.mkdir()
    (tmp_path / "victim.txt").write_text("x")
    (out / "link").symlink_to(tmp_path)
    (out / "tables" / "link.csv").symlink_to(tmp_path / "victim.txt")
    text = json.dumps(listed).replace("{base}", str(tmp_path))
    (out / "written.json").write_text(text)
    assert main(["--runs", str(runs), "--out", str(out)]) == 2
    assert "written.json" in capsys.readouterr().err
    assert (tmp_path / "victim.txt").read_text() == "x"
    assert (out / "tables" / "link.csv").is_symlink()
    assert not (out / "index.html").exists()


def test_a_linked_folder_of_tables_is_left_alone(tmp_path: Path) -> None:
    runs, out, other = tmp_path / "runs", tmp_path / "out", tmp_path / "other"
    for folder in (runs, out, other):
        folder.mkdir()
    (other / "x.csv").write_text("x")
    (out / "tables").symlink_to(other)
    (out / "written.json").write_text('["tables/x.csv"]')
    assert main(["--runs", str(runs), "--out", str(out)]) == 2
    assert (other / "x.csv").is_file()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", "[" * 100_000),
        ("config.yaml", "[" * 100_000),
        ("config.yaml", 'data: {name: "\\uD800"}'),
        ("config.yaml", "at: 2026-99-99"),
        ("result.json", '{"notes": ["\\ud800"]}'),
        ("result.json", '{"figures": {"a": {"value": 1' + "0" * 400 + "}}}"),
        ("result.json", '{"figures": {"a": {"value": 1' + "0" * 5000 + "}}}"),
        ("result.json", '{"figures": {"a": {"value": ' + "[" * 500 + "]" * 500 + "}}}"),
    ],
    ids=lambda text: text[:40],
)
def test_hostile_content_is_status_two_and_named(
    tmp_path: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    path = write_retrieval(runs, data_set="generated") / name
    if name == "result.json" and text.startswith("{"):
        text = path.read_text().rstrip().removesuffix("}") + ", " + text[1:]
    path.write_text(text)
    assert main(["--runs", str(runs), "--out", str(tmp_path / "out")]) == 2
    assert str(path) in capsys.readouterr().err
    assert judge_main(["--runs", str(runs)]) == 2
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize("number", ["1e999", "inf"])
def test_a_count_beyond_all_numbers_is_status_two(
    tmp_path: Path, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_retrieval(tmp_path / "runs") / "recall.csv"
    head, first, *rest = path.read_text().splitlines()
    cells = first.split(",")
    cells[head.split(",").index("n")] = number
    path.write_text("\n".join([head, ",".join(cells), *rest]))
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 2
    assert "recall.csv" in capsys.readouterr().err


def test_a_table_whose_name_no_file_can_have_is_refused(tmp_path: Path) -> None:
    write_retrieval(tmp_path)
    [run] = read_runs(tmp_path)
    with pytest.raises(CorruptInputError, match="cannot be read"):
        run.table("t" * 5_000 + ".csv")
