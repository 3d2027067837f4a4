"""Rows about what is given to memory: times, letters, blanks, batches, limits, sizes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from cma import FixedClock, Memory
from cma.orion.cells import MAX_CONTENT_LENGTH
from cma.values.errors import Reason
from experiments.injections.bench import (
    CALLER,
    START,
    Bench,
    answer,
    child,
    claim,
    episodes,
    remember,
)
from experiments.injections.row import Attempt, Injection, Required, expect, keep, refuse
from experiments.injections.semantics import GROUP, TEA

BATCH, BAD = 100, 56
CUT = 3
NO_NUMBERS: tuple[Any, ...] = (0, -1, None)
BLANKS = ("", "   ", "\u200b\u2060")
NAIVE = datetime(2026, 3, 1, 12, 0)  # noqa: DTZ001 - the fault is that it has no zone


def naive_time(bench: Bench) -> Sequence[Attempt]:
    """A time without a zone; and a write at 02:00Z on hosts of two zones."""
    naive = partial(
        bench.memory.write, "at noon", kind="episodic", origin="matrix", observed_at=NAIVE
    )

    def written() -> str:
        told = []
        for number, zone in enumerate(("UTC", "US/Pacific")):
            path = bench.folder / f"zone{number}.cma"
            process = child("zone", path, TZ=zone)
            if process.stdin is not None:
                process.stdin.write("go\n")
                process.stdin.flush()
            told.append(answer(process))
        expect(told[0] == told[1], "the host's zone changed what was stored")
        return "the same digest and chain whatever the host's zone"

    return [refuse(naive, Reason.TIME_NAIVE, names="observed_at"), keep(written)]


def other_letters(bench: Bench) -> Sequence[Attempt]:
    """A query in Chinese, one in another Unicode form, and one without a single term."""
    rate = remember(bench.memory, "外币汇率换算")
    place = remember(bench.memory, unicodedata.normalize("NFC", "the café at the corner"))

    def found() -> str:
        for query, wanted in (("汇率", rate), (unicodedata.normalize("NFD", "café"), place)):
            hits = [hit.cell.id for hit in bench.memory.recall(query).hits]
            expect(hits == [wanted], f"{len(hits)} hits for {query!a}")
        return "found in Chinese, and in either Unicode form"

    nothing = partial(bench.memory.recall, "?!")
    return [keep(found), refuse(nothing, Reason.QUERY_EMPTY, recorded=False)]


def equal_scores(bench: Bench) -> Sequence[Attempt]:
    """Ten cells of one score, written in three orders, cut off after three."""
    texts = [f"equal cell {letter}" for letter in "abcdefghij"]
    orders = [texts, texts[::-1], texts[5:] + texts[:5]]
    ids = sorted(remember(bench.memory, text) for text in orders[0])

    def cut() -> str:
        for number, order in enumerate(orders):
            path = bench.folder / f"order{number}.cma"
            with Memory.open(path, caller=CALLER, clock=FixedClock(START)) as other:
                for text in order:
                    remember(other, text)
                hits = other.recall("equal cell", limit=CUT).hits
                expect([hit.cell.id for hit in hits] == ids[:CUT], "the order of writing shows")
                expect(len({hit.score for hit in hits}) == 1, "the scores differ")
        hits = bench.memory.recall("equal cell", limit=CUT).hits
        expect([hit.cell.id for hit in hits] == ids[:CUT], "the order of writing shows")
        return f"the first {CUT} by id, whatever the order of writing"

    return [keep(cut)]


def empty_input(bench: Bench) -> Sequence[Attempt]:
    """Nothing, spaces, and characters without width."""
    return [
        refuse(partial(remember, bench.memory, text), Reason.CONTENT_EMPTY, names="content")
        for text in BLANKS
    ]


def partial_batch(bench: Bench) -> Sequence[Attempt]:
    """A batch of a hundred of which the 57th is bad."""
    drafts: list[dict[str, Any]] = [
        {"kind": "episodic", "content": f"event {n}", "origin": "matrix", "observed_at": START}
        for n in range(BATCH)
    ]
    drafts[BAD]["confidence"] = 2
    named = f"drafts[{BAD}].confidence"
    return [refuse(partial(bench.memory.write_many, drafts), Reason.FIELD_INVALID, names=named)]


def rank_as_id(bench: Bench) -> Sequence[Attempt]:
    """The rank of a hit where an id belongs."""
    view = bench.ann
    claim(view, episodes(view, "drinks tea"), says=TEA)
    expect(len(view.recall("drinks tea").hits) > 1, "nothing is recalled, so there are no ranks")
    number: Any = 1
    return [
        refuse(partial(view.get, "1"), Reason.CELL_NOT_FOUND, recorded=False),
        refuse(partial(view.get, number), Reason.FIELD_INVALID, recorded=False),
        refuse(partial(view.update, "1", summary="x"), Reason.CELL_NOT_FOUND),
        refuse(partial(view.link, "task", "1", "2"), Reason.LINK_ENDPOINT_MISSING),
        refuse(partial(view.approve, "1", approval_id="CR-1"), Reason.PROPOSAL_NOT_FOUND),
    ]


def zero_is_no_limit(bench: Bench) -> Sequence[Attempt]:
    """Nought, a negative number and nothing as limit and as budget."""
    remember(bench.memory, "Ann drinks tea")
    recalled = bench.memory.recall("tea")
    attempts = []
    for number in NO_NUMBERS:
        limited = partial(bench.memory.recall, "tea", limit=number)
        packed = partial(bench.memory.packet, recalled, budget=number)
        attempts += [
            refuse(limited, Reason.LIMIT_INVALID, names="limit", recorded=False),
            refuse(packed, Reason.BUDGET_INVALID, names="budget", recorded=False),
        ]
    return attempts


def large_input(bench: Bench) -> Sequence[Attempt]:
    """A text at the documented cap, and one a letter longer."""
    text = ("word " * (MAX_CONTENT_LENGTH // 5))[:MAX_CONTENT_LENGTH]

    def kept() -> str:
        cell = remember(bench.memory, text)
        expect(bench.memory.get(cell).content == text, "the text was cut")
        return f"{MAX_CONTENT_LENGTH:,} characters kept whole"

    longer = partial(remember, bench.memory, text + "x")
    return [keep(kept, cells=1), refuse(longer, Reason.CONTENT_TOO_LARGE, names="content")]


_Rows = tuple[tuple[Callable[[Bench], Sequence[Attempt]], str, Required], ...]
_ROWS: _Rows = (
    (naive_time, "a time without a zone; hosts of two zones", Required.REJECT),
    (other_letters, "queries in Chinese, in another Unicode form, without a term",
     Required.PRESERVE),
    (equal_scores, "ten equal cells written in three orders, cut off after three",
     Required.PRESERVE),
    (empty_input, "nothing, spaces, characters without width", Required.REJECT),
    (partial_batch, "the 57th draft of a hundred is bad", Required.REJECT),
    (rank_as_id, "a rank is given where an id belongs", Required.REJECT),
    (zero_is_no_limit, "0, -1 and nothing as limit and as budget", Required.REJECT),
    (large_input, "a text at the cap, and one a letter longer", Required.REJECT),
)  # fmt: skip

INPUTS = tuple(
    Injection(GROUP, inject.__name__, injected, required, inject)
    for inject, injected, required in _ROWS
)
