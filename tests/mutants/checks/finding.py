"""Finds every check of the listed files by its form, and takes one away.

A check is: a `raise`; a call of something named `check...`; in files whose checks tell instead of
raising, what they `yield` or return as words; and each condition of a compound `if` that leads to
one of these. Its id is file, function and place within that function.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.catalogue import ROOT

FILES = tuple(
    f"cma/{version}/{name}.py"
    for version, names in (
        (
            "orion",
            (
                "store opening connection anchor transition verification agreement audit records"
                " writing revising linking erasing erased cleaning references"
            ),
        ),
        (
            "rosette",
            "snapshotting snapshot_form restoring topology coherence erasure_faults blanks",
        ),
    )
    for name in names.split()
)
TELLING = ("agreement.py", "topology.py", "coherence.py", "references.py", "erasure_faults.py")
"""Files whose checks yield what is wrong."""
_CHECKING = re.compile(r"_?check(ed)?_\w+")
_REASON = re.compile(r"Reason\.(\w+)")
LONGEST = 110


class Check(NamedTuple):
    """One check: where it stands (byte offsets in its file) and what stands there without it."""

    id: str
    file: str
    was: str
    start: int
    end: int
    without: str

    def patched(self, text: str) -> str:
        """Return the file's text with the check taken away."""
        data = text.encode()
        return (data[: self.start] + self.without.encode() + data[self.end :]).decode()


def every_check(root: Path = ROOT) -> list[Check]:
    """Return the checks of all files, file by file, in the order of their text."""
    return [
        check
        for file in FILES
        for check in checks_of(file, (root / file).read_text(encoding="utf-8"))
    ]


def checks_of(file: str, text: str) -> list[Check]:
    """Return the checks of one file."""
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    module = file.removeprefix("cma/").removesuffix(".py").replace("/", ".")
    counts: Counter[str] = Counter()
    found = []
    telling = file.endswith(TELLING)
    for function, node, without, was in _found(ast.parse(text), telling):
        counts[function] += 1
        found.append(
            Check(
                id=f"{module}:{function}:{counts[function]}",
                file=file,
                was=was if len(was) <= LONGEST else was[: LONGEST - 3] + "...",
                start=lines[node.lineno - 1] + node.col_offset,
                end=lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0),
                without=without,
            )
        )
    return found


Found = tuple[str, ast.stmt | ast.expr, str, str]


def _found(tree: ast.Module, telling: bool) -> Iterator[Found]:
    def walk(body: list[ast.stmt], function: str, why: str) -> Iterator[Found]:
        for statement in body:
            yield from _of_statement(statement, function, why, telling)
            inner, because = function, why
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                inner = f"{function}.{statement.name}".lstrip(".")
            elif isinstance(statement, ast.If):
                because = f"if {ast.unparse(statement.test)}: "
                yield from _of_condition(statement, function, telling)
            for name in ("body", "orelse", "finalbody"):
                blocks = getattr(statement, name, [])
                told = because if name == "body" else (why if name == "finalbody" else "")
                yield from walk(blocks, inner, told)
            for handler in getattr(statement, "handlers", []):
                kind = "" if handler.type is None else f" {ast.unparse(handler.type)}"
                yield from walk(handler.body, inner, f"except{kind}: ")

    yield from walk(tree.body, "", "")


def _of_statement(statement: ast.stmt, function: str, why: str, telling: bool) -> Iterator[Found]:
    if not _refuses(statement, telling):
        return
    without = "pass"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
        without = "if False: yield"
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.YieldFrom):
        without = "yield from ()"
    yield function, statement, without, f"{why}{_told(statement)}"


def _refuses(statement: ast.stmt, telling: bool) -> bool:
    if isinstance(statement, ast.Raise):
        return True
    if isinstance(statement, ast.Return):
        words = statement.value
        return telling and isinstance(words, ast.Constant) and isinstance(words.value, str)
    if not isinstance(statement, ast.Expr):
        return False
    if isinstance(statement.value, ast.Call):
        return _CHECKING.fullmatch(ast.unparse(statement.value.func).rpartition(".")[2]) is not None
    return telling and isinstance(statement.value, ast.Yield | ast.YieldFrom)


def _of_condition(statement: ast.If, function: str, telling: bool) -> Iterator[Found]:
    """Yield each part of a compound condition, as what makes no difference to the others."""
    test = statement.test
    if not isinstance(test, ast.BoolOp):
        return
    if not any(_refuses(each, telling) for each in statement.body):
        return
    without = "False" if isinstance(test.op, ast.Or) else "True"
    joint = "or" if isinstance(test.op, ast.Or) else "and"
    for part in test.values:
        yield function, part, without, f"{joint} {ast.unparse(part)}"


def _told(statement: ast.stmt) -> str:
    """Return a refusal in a few words: its reason code where it has one."""
    told = ast.unparse(statement)
    reason = _REASON.search(told)
    word = told.split()[0]
    return f"{word} {reason[1]}" if reason and word in ("raise", "yield") else told
