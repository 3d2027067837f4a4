"""Cranfield: abstracts of aerodynamics and queries, after Cleverdon (1967).

Queries carry numbers with gaps (1 to 365), judgements count them from 1 to 225 in file order: so
the id of a query is its place. Documents repeat their title as the first words of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from experiments.data.documents import Judgement, Written, titled
from experiments.failures import DataError

_DOCUMENT = re.compile(
    r"<doc>\s*<docno>\s*(?P<id>[^<]*?)\s*</docno>\s*<title>(?P<title>[^<]*)</title>"
    r"\s*<author>[^<]*</author>\s*<bib>[^<]*</bib>\s*<text>(?P<text>[^<]*)</text>\s*</doc>"
)
_QUERY = re.compile(
    r"<top>\s*<num>\s*(?P<id>\d+)\s*</num>\s*<title>(?P<text>[^<]*)</title>\s*</top>"
)
_JUDGEMENT = re.compile(r"(\S+)\s+0\s+(\S+)\s+(-?\d{1,6})")


def read_documents(path: Path) -> list[Written]:
    """Read every abstract."""
    text = _text(path)
    return [
        Written(match["id"], titled(match["title"], match["text"]), _place(path, text, match))
        for match in _all(_DOCUMENT, "<doc>", path, text)
    ]


def read_queries(path: Path) -> list[Written]:
    """Read every query; its id is its place, counted from 1."""
    text = _text(path)
    return [
        Written(str(number), " ".join(match["text"].split()), _place(path, text, match))
        for number, match in enumerate(_all(_QUERY, "<top>", path, text), start=1)
    ]


def read_judgements(path: Path) -> list[Judgement]:
    """Read lines of query, 0, document and grade."""
    found = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        match = _JUDGEMENT.fullmatch(line.strip())
        if match is None:
            raise DataError(
                f"{path.name}, line {number}: {line[:60]!r} is not 'QUERY 0 DOCUMENT GRADE'"
            )
        place = f"{path.name}, line {number}"
        found.append(Judgement(match[1], match[2], int(match[3]), place))
    return found


def grades_note(judgements: Sequence[Judgement]) -> str:
    """Say how often each grade is given; nDCG takes them as gains."""
    counts = Counter(each.grade for each in judgements)
    told = ", ".join(f"{grade} ({count:,})" for grade, count in sorted(counts.items()))
    return f"Grades of the judgements and how often each is given: {told}; above 0 is relevant."


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} is not UTF-8: {error}") from error


def _place(path: Path, text: str, match: re.Match[str]) -> str:
    line = text.count("\n", 0, match.start()) + 1
    return f"{path.name}, line {line}"


def _all(pattern: re.Pattern[str], opening: str, path: Path, text: str) -> list[re.Match[str]]:
    """Return every entry; an entry that does not have the form is an error, never left out."""
    found = list(pattern.finditer(text))
    starts = {match.start() for match in found}
    for opened in re.finditer(re.escape(opening), text):
        if opened.start() not in starts:
            raise DataError(
                f"{_place(path, text, opened)}: what begins here is no whole entry {opening}"
            )
    return found
