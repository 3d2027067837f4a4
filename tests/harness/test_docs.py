"""The documentation: examples run, the reference is what the code says, promises have tests.

- ```python and ```console blocks run, in order, in one folder a page. Lines below `$ command` are
  the output that is expected, `...` standing for anything.
- ```sh blocks are not run (they need data, minutes or machines): their commands and settings exist.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from cma.cli import app
from cma.eagle.skills import MAX_EXECUTIONS
from cma.lagoon.claims import MAX_FRAMES
from cma.orion.cells import MAX_CONTENT_LENGTH, MAX_TTL_SECONDS
from cma.orion.recall import MAX_QUERY_LENGTH
from cma.trifid.frames import MAX_SOURCES
from cma.values.identity import MAX_BYTES, MAX_DEPTH
from cma.values.validation import MAX_ID_LENGTH
from experiments.overrides import problems

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if path.parent.name != "reference"
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ASKING = re.compile(r"""(?:src=|<link[^>]*href=|url\(|@import )["']?(?:https?:)?//""")
RUN = {"python", "console"}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def blocks(page: str) -> list[tuple[str, str]]:
    return FENCE.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.fixture
def generator() -> ModuleType:
    """The program that writes the reference."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(kind in RUN for kind, _ in blocks(page))]
)
def test_every_example_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, text in blocks(page):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, page, "exec"), {"__name__": "__main__"})
            assert not re.search(r"\bprint\(", text) or out.getvalue().strip(), text
        elif kind == "console":
            for command, wanted in commands(text):
                said = run(command, tmp_path)
                matches = doctest.OutputChecker().check_output(
                    wanted, said, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
                )
                assert matches, f"{command}\nwanted:\n{wanted}\nsaid:\n{said}"


def test_the_whole_path_delivers_a_claim_and_proves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    [example] = [text for _, text in blocks("index.md") if "session.propose(" in text]
    exec(compile(example, "index.md", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert "The server runs in Oslo" in said
    receipt, verified = said.splitlines()[-1].split()
    assert receipt.startswith("receipt-")
    assert verified == "True"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output that is expected of it."""
    for part in text.split("$ ")[1:]:
        command, _, wanted = part.partition("\n")
        yield command, wanted


def run(command: str, folder: Path) -> str:
    """Run a command; one of `cma` alone within this process, which is quicker."""
    words = shlex.split(command)
    if words[0] == "cma" and not set(words) & {"||", "|", "&&"}:
        return CliRunner().invoke(app, words[1:]).output
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
    }
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_not_run_exist(page: str) -> None:
    for kind, text in blocks(page):
        assert kind in RUN | {"sh", "yaml", "text"}, kind
        if kind != "sh":
            continue
        for line in text.splitlines():
            words = shlex.split(line)
            if words[:3] == ["python", "-m", "experiments"]:
                given = [each for each in words[3:] if each != "-m"]
                assert problems([each for each in given if "hydra/" not in each]) == [], line
            elif words[:2] == ["python", "-m"]:
                assert (ROOT / words[2].replace(".", "/") / "__main__.py").is_file(), line
            elif words[0] == "make":
                assert re.search(rf"^{words[1]}:", MAKEFILE, flags=re.MULTILINE), line
            else:
                assert words[0] == "cma", line
                named = [word for word in words[1:3] if word.isalpha()]
                assert CliRunner().invoke(app, [*named, "--help"]).exit_code == 0, line


def test_the_reference_is_what_the_code_says(generator: ModuleType) -> None:
    for name in generator.PAGES:
        written = (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")
        assert written == generator.page(name), "run: python docs/generate.py"
    assert {path.stem for path in (DOCS / "reference").glob("*.md")} == set(generator.PAGES)


def test_a_stale_reference_is_status_one(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "FOLDER", tmp_path / "reference")
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    monkeypatch.setattr(generator, "PAGES", {"one": lambda: "# One\n"})
    assert generator.main(["--check"]) == 1
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0


@pytest.mark.parametrize("page", [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")])
def test_every_link_leads_to_a_page(page: str) -> None:
    text = FENCE.sub("", (DOCS / page).read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert "://" not in target, target
        assert ((DOCS / page).parent / target.partition("#")[0]).is_file(), target


def test_every_page_is_in_the_menu() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    menu = "\n".join(re.findall(r"^```\{toctree\}\n(.*?)^```$", index, re.DOTALL | re.MULTILINE))
    named = {line for line in menu.splitlines() if line and not line.startswith(":")}
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert named == pages - {"index"}


def test_the_pages_build_and_ask_the_network_for_nothing(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="no sphinx here: pip install '.[docs]'")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html",
         "-d", str(tmp_path / "trees"), str(DOCS), str(tmp_path / "site")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    built = {path.relative_to(tmp_path / "site").as_posix() for path in tmp_path.rglob("*.html")}
    assert {page.replace(".md", ".html") for page in PAGES} <= built
    for path in (tmp_path / "site").rglob("*"):
        if path.suffix in (".html", ".css"):
            text = path.read_text(encoding="utf-8")
            asked = re.findall(
                r"""(?:src=|<link[^>]*href=|url\(|@import )["']?(?:https?:)?//""", text
            )
            assert asked == [], path


def test_every_promise_names_a_test_that_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (DOCS / "threats.md").read_text())
    assert len(named) >= 18
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"


def test_the_caps_are_those_of_the_code() -> None:
    text = (DOCS / "threats.md").read_text(encoding="utf-8")
    for cap in (
        f"| content of a cell | {MAX_CONTENT_LENGTH:,} characters |",
        f"| one stored record | {MAX_BYTES:,} bytes, nested {MAX_DEPTH} deep |",
        f"| a query | {MAX_QUERY_LENGTH:,} characters |",
        f"| names, origins and ids | {MAX_ID_LENGTH} characters |",
        f"| sources of a frame; frames of a claim | {MAX_SOURCES:,} |",
        f"| executions of a skill | {MAX_EXECUTIONS:,} |",
    ):
        assert cap in text, cap
    assert MAX_SOURCES == MAX_FRAMES
    assert MAX_TTL_SECONDS == 10 * 366 * 86_400  # "ten years"
