"""`python docs/generate.py`: write the reference pages from the code; `--check` only compares.

Commands come from the command line itself, reason codes and settings from the sources with the
words that stand beside them there, findings from the doctor's catalogue, configs from their files.
Exit status: 0 written or up to date, 1 out of date (`--check`).
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from omegaconf import MISSING

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
sys.path.insert(0, str(ROOT))

from cma.cli import app  # noqa: E402 (the checkout's, wherever this is run from)
from cma.doctor.findings import CATALOGUE, Code  # noqa: E402
from cma.values import errors  # noqa: E402
from experiments import dispatch, settings  # noqa: E402

NOTE = "<!-- Written by docs/generate.py from the code. Change it there, then run: make docs -->\n"


def commands() -> str:
    """Return the page of `cma` and all its commands."""
    lines = [
        "# Commands",
        "",
        (
            "`cma` looks into a store. Exit status: 0 done, 1 refused or not found (the reason "
            "code is printed), 2 wrong usage. [Reason codes](reason-codes.md) say what each means."
        ),
    ]
    root = typer.main.get_command(app)
    for words, command in _walk(root, ("cma",)):
        lines += ["", f"## {' '.join(words)}", "", *_paragraphs(command.help or ""), ""]
        shown = [each for each in command.params if each.name != "help"]
        if not shown:
            continue
        lines += ["| option or argument | what it is | default |", "|---|---|---|"]
        lines += [_parameter(each) for each in shown]
    return "\n".join(lines) + "\n"


def reason_codes() -> str:
    """Return the page of reason codes, with the words that stand beside each in the source."""
    said = _documented(errors, "Reason")
    lines = [
        "# Reason codes",
        "",
        (
            "Every refusal carries one: `error.code` in Python and in the JSON that a command "
            "prints, `reason` of the failure record in the audit chain. A code is never renamed "
            "and never used for something else."
        ),
        "",
        "| code | meaning |",
        "|---|---|",
    ]
    lines += [f"| `{each.value}` | {_cell(said[each.name])} |" for each in errors.Reason]
    return "\n".join(lines) + "\n"


def findings() -> str:
    """Return the page of what `cma doctor` can find."""
    lines = [
        "# Findings of the doctor",
        "",
        (
            "`cma doctor` ends with status 1 where it found damage or something that needs "
            "attention. Information alone is status 0."
        ),
        "",
        "| code | severity | what it means | what to do |",
        "|---|---|---|---|",
    ]
    for code in Code:
        told = CATALOGUE[code]
        lines.append(
            f"| `{code.value}` | {told.severity.value} | {_cell(told.meaning)} "
            f"| {_cell(told.remedy)} |"
        )
    return "\n".join(lines) + "\n"


def configs() -> str:
    """Return the page of experiments and of the files in `configs/`."""
    lines = [
        "# Experiments and configs",
        "",
        (
            "`python -m experiments experiment=NAME [group=OPTION ...] [key=value ...]`. A file of "
            "`configs/` is one option of its group; [settings](settings.md) explains the keys."
        ),
        "",
        "| experiment | sections that it reads |",
        "|---|---|",
    ]
    lines += [
        f"| `{name}` | {', '.join(dispatch.lookup(name).sections) or 'none'} |"
        for name in sorted(_options("experiment"))
    ]
    for group in sorted(each.name for each in (ROOT / "configs").iterdir() if each.is_dir()):
        if group.startswith("_") or not _options(group):
            continue
        lines += ["", f"## {group}"]
        for option in sorted(_options(group)):
            text = (ROOT / "configs" / group / f"{option}.yaml").read_text(encoding="utf-8")
            lines += ["", f"### {group}={option}", "", "```yaml", text.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def setting_keys() -> str:
    """Return the page of every key with its default and the words beside it in the source."""
    lines = [
        "# Settings",
        "",
        (
            "Every key of `python -m experiments` with the default of the schema; the files of "
            "[`configs/`](configs.md) choose others. `python -m experiments --help` shows the "
            "values that apply."
        ),
    ]
    lines += _section(settings.Settings, "")
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "reason-codes": reason_codes,
    "findings": findings,
    "configs": configs,
    "settings": setting_keys,
}


def page(name: str) -> str:
    """Return the whole text of one reference page."""
    return NOTE + PAGES[name]()


def main(arguments: Sequence[str]) -> int:
    """Write or compare the pages; return the exit status."""
    stale = []
    for name in PAGES:
        place, text = FOLDER / f"{name}.md", page(name)
        if place.is_file() and place.read_text(encoding="utf-8") == text:
            continue
        stale.append(place.relative_to(ROOT).as_posix())
        if "--check" not in arguments:
            place.parent.mkdir(exist_ok=True)
            place.write_text(text, encoding="utf-8")
    if "--check" in arguments and stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run: python docs/generate.py\n")
        return 1
    return 0


def _walk(group: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _walk(command, (*words, name))
        else:
            yield (*words, name), command


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        told = " ".join(paragraph.split())
        example = told.removeprefix("Example: ")
        yield from ("```text", example, "```") if example != told else (told, "")


def _parameter(each: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
    if not each.opts[0].startswith("-"):
        names = f"`{(each.name or '').upper()}`"
    default = each.default
    told = "" if default is None or default is False or callable(default) else f"`{default}`"
    if each.required:
        told = "required"
    return f"| {names} | {_cell(getattr(each, 'help', '') or '')} | {told} |"


def _section(kind: type[Any], prefix: str) -> list[str]:
    said = _documented(settings, kind.__name__)
    rows, nested = [], []
    for each in dataclasses.fields(kind):
        default = each.default
        if each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        if dataclasses.is_dataclass(default):
            nested.append((type(default), f"{prefix}{each.name}."))
            continue
        told = "must be given" if default == MISSING else f"`{_shown(default)}`"
        rows.append(f"| `{prefix}{each.name}` | {told} | {_cell(said.get(each.name, ''))} |")
    lines = []
    if rows:
        title = prefix.rstrip(".") or "for every experiment"
        intro = " ".join((kind.__doc__ or "").split())
        lines += [
            "",
            f"## {title}",
            "",
            intro,
            "",
            "| key | default | what it is |",
            "|---|---|---|",
        ]
        lines += rows
    for inner, place in nested:
        lines += _section(inner, place)
    return lines


def _documented(module: ModuleType, name: str) -> dict[str, str]:
    """Return what the source says below each field of a class."""
    tree = ast.parse(inspect.getsource(module))
    [found] = [
        node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name
    ]
    said = {}
    for before, after in zip(found.body, found.body[1:], strict=False):
        named = before.targets[0] if isinstance(before, ast.Assign) else None
        named = before.target if isinstance(before, ast.AnnAssign) else named
        text = after.value if isinstance(after, ast.Expr) else None
        if isinstance(named, ast.Name) and isinstance(text, ast.Constant):
            said[named.id] = " ".join(str(text.value).split())
    return said


def _options(group: str) -> list[str]:
    return [path.stem for path in (ROOT / "configs" / group).glob("*.yaml")]


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value) or '""'


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
