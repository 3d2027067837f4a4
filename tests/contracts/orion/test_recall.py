"""Recall and its record: O32 to O40."""

from __future__ import annotations

import hashlib
import json
import random
from datetime import timedelta

import apsw
import pytest

from cma import CmaError, FixedClock, Reason

PARTS = ("lexical", "confidence", "importance", "recency", "link")
LEXICAL = ("overlap", "idf_overlap", "jaccard", "bm25")


def ids(recollection):
    return [hit.cell.id for hit in recollection.hits]


def by_text(recollection):
    return {hit.cell.content: hit for hit in recollection.hits}


@pytest.mark.contract("O32")
def test_the_lexical_part_is_the_published_overlap(memory, remember, weighing):
    """The lexical part is the published overlap: shared distinct terms over the question's."""
    expected = {
        "red": 1 / 4,
        "red red red red": 1 / 4,
        "RED and Green": 2 / 4,
        "green, blue; RED! and much more besides that nobody asked for": 3 / 4,
        "blue green red violet": 4 / 4,
        "violet": 1 / 4,
        "\uff52\uff45\uff44 in wide letters": 1 / 4,
    }
    for text in (*expected, "yellow", "reddish greens", "bluer"):
        remember(memory, text, importance=0.9)
    settings = weighing(lexical=1.0)
    for question in ("red green blue violet", "Violet, RED red red? (blue) GREEN green"):
        hits = by_text(memory.recall(question, limit=20, retrieval=settings))
        assert {text: hit.parts["lexical"] for text, hit in hits.items()} == expected
        assert {text: hit.score for text, hit in hits.items()} == expected
    (hit,) = memory.recall("nobody and nothing", retrieval=settings, limit=1).hits
    assert hit.parts["lexical"] == 2 / 3
    assert memory.retrieval.lexical == "overlap"
    assert by_text(memory.recall("yellow"))["yellow"].parts["lexical"] == 1.0


@pytest.mark.contract("O33")
def test_a_score_is_the_sum_of_its_parts(memory, ann, remember, hold, weighing, start):
    """A score is the sum of its weighted, reported parts."""
    hour = 60.0
    before = remember(memory, "tea tea", minutes=-2 * hour, confidence=0.5, importance=0.25)
    middle = remember(memory, "tea and cake", minutes=-hour, confidence=1.0, importance=0.0)
    after = remember(memory, "cake and milk with bread", minutes=0, confidence=0.0, importance=1.0)
    future = remember(memory, "milk", minutes=hour, confidence=0.125, importance=0.125)
    lone = remember(memory, "coffee", minutes=-3 * hour)
    note = hold(ann, "milk note", confidence=0.75, importance=0.5)
    for one, two in ((before, middle), (middle, after), (after, future), (lone, before)):
        memory.link("temporal", one.id, two.id)
    memory.link("causal", before.id, future.id)
    ann.link("similarity", note.id, middle.id)
    # question: tea cake milk, three terms; recency with a half-life of one hour
    expected = {
        before.id: (1 / 3, 0.5, 0.25, 0.25, 2 / 3),
        middle.id: (2 / 3, 1.0, 0.0, 0.5, 2 / 3),
        after.id: (2 / 3, 0.0, 1.0, 1.0, 2 / 3),
        future.id: (1 / 3, 0.125, 0.125, 1.0, 2 / 3),
        lone.id: (0.0, 1.0, 0.5, 0.125, 1 / 3),
        note.id: (1 / 3, 0.75, 0.5, 1.0, 0.0),
    }
    for weights in (
        (0.6, 0.1, 0.1, 0.1, 0.1),
        (1.0, 0.0, 0.0, 0.0, 0.5),
        (0.3, 2.0, 0.0, 0.0, 0.25),
        (0.3, 0.0, 2.0, 0.0, 0.25),
        (0.3, 0.0, 0.0, 2.0, 0.25),
        (7.0, -1.0, 0.5, -0.25, 3.0),
    ):
        settings = weighing(half_life=3600.0, **dict(zip(PARTS, weights, strict=True)))
        recollection = ann.recall("tea cake milk", retrieval=settings)
        assert set(ids(recollection)) == set(expected)
        for hit in recollection.hits:
            parts = dict(zip(PARTS, expected[hit.cell.id], strict=True))
            assert hit.parts == pytest.approx(parts, abs=1e-9)
            assert set(hit.parts) == set(PARTS)
            by_hand = sum(
                weight * part for weight, part in zip(weights, expected[hit.cell.id], strict=True)
            )
            assert hit.score == pytest.approx(by_hand, abs=1e-9)
            told = 0.0  # one after the other: from Python 3.12 on `sum` keeps what floats lose
            for name, weight in zip(PARTS, weights, strict=True):
                told += weight * hit.parts[name]
            assert hit.score == told
        scores = [hit.score for hit in recollection.hits]
        assert scores == sorted(scores, reverse=True)
    defaults = memory.retrieval.coefficients.model_dump()
    told = dict(zip(PARTS, (0.6, 0.1, 0.1, 0.1, 0.1), strict=True))
    assert defaults == dict.fromkeys(defaults, 0.0) | told


@pytest.mark.contract("O34")
def test_coefficients_change_the_order(memory, remember, weighing, start):
    """Changing a coefficient changes the order as computed by hand."""
    day = 24 * 60.0
    cells = {
        # lexical of "tea cake milk": 1, 2/3, 1/3, 1/3; the others as given
        "whole": remember(memory, "tea cake milk", minutes=-3 * day, confidence=0.1, importance=0),
        "most": remember(memory, "tea cake", minutes=-2 * day, confidence=0.2, importance=0.9),
        "sure": remember(memory, "tea", minutes=-day, confidence=0.9, importance=0.1),
        "fresh": remember(memory, "milk", minutes=0, confidence=0.3, importance=0.2),
        "near": remember(memory, "nothing of it", minutes=-2.5 * day, confidence=0, importance=0),
    }
    memory.link("temporal", cells["whole"].id, cells["near"].id)
    names = {cell.id: name for name, cell in cells.items()}
    orders = {
        # 1, .667, and two of .333 that confidence sets apart
        (1.0, 0.01, 0.0, 0.0, 0.0): ["whole", "most", "sure", "fresh"],
        # .1+.1, .2+.067, .9+.033, .3+.033
        (0.1, 1.0, 0.0, 0.0, 0.0): ["sure", "fresh", "most", "whole"],
        # 0+.1, .9+.067, .1+.033, .2+.033
        (0.1, 0.0, 1.0, 0.0, 0.0): ["most", "fresh", "sure", "whole"],
        # 1/8+.1, 1/4+.067, 1/2+.033, 1+.033
        (0.1, 0.0, 0.0, 1.0, 0.0): ["fresh", "sure", "most", "whole"],
        # near is lent 1 by whole: .5; whole .1; most .067; sure .033+.009; fresh .033+.003
        (0.1, 0.01, 0.0, 0.0, 0.5): ["near", "whole", "most", "sure", "fresh"],
        # 1-.4, .667-.8, .333-3.6, .333-1.2
        (1.0, -4.0, 0.0, 0.0, 0.0): ["whole", "most", "fresh", "sure"],
        # .1+0+.125, .067+.9+.25, .033+.1+.5, .033+.2+1
        (0.1, 0.0, 1.0, 1.0, 0.0): ["fresh", "most", "sure", "whole"],
    }
    for weights, order in orders.items():
        settings = weighing(half_life=86_400.0, **dict(zip(PARTS, weights, strict=True)))
        recollection = memory.recall("tea cake milk", retrieval=settings)
        assert [names[cell_id] for cell_id in ids(recollection)] == order
        (best,) = memory.recall("tea cake milk", retrieval=settings, limit=1).hits
        assert names[best.cell.id] == order[0]
    assert len({tuple(order) for order in orders.values()}) == len(orders)
    # Many more cells than are asked for: each coefficient brings its own ones to the top.
    drafts, parts = [], []
    for place in range(200):
        told, confidence, importance = (
            place % 7 == 3,
            place * 37 % 200 / 200,
            place * 61 % 200 / 200,
        )
        hours = place * 83 % 200
        parts.append((1.0 if told else 0.5, confidence, importance, 2 ** (-hours / 24)))
        drafts.append(
            {
                "kind": "episodic",
                "content": f"{'orange ' if told else ''}juice {place}",
                "origin": "test",
                "confidence": confidence,
                "importance": importance,
                "observed_at": start - timedelta(hours=hours),
            }
        )
    found = dict(zip(memory.write_many(drafts).ids, parts, strict=True))
    for leading in (*PARTS[:4], *PARTS[:4]):
        for sign in (1.0, -1.0):
            weights = {name: sign * (1.0 if name == leading else 1e-5) for name in PARTS[:4]}
            by_hand = sorted(
                found,
                key=lambda cell_id, weights=weights: sum(
                    weight * part
                    for weight, part in zip(weights.values(), found[cell_id], strict=True)
                ),
                reverse=True,
            )
            settings = weighing(half_life=86_400.0, **weights)
            assert ids(memory.recall("orange juice", limit=5, retrieval=settings)) == by_hand[:5]


@pytest.mark.contract("O35")
def test_equal_scores_are_ordered_by_id(open_memory, remember, weighing, start):
    """Equal scores are ordered by id."""
    texts = [f"tea number{place}" for place in range(40)]
    better, worse = "tea and cake", "milk or cake"
    for seed in range(3):
        memory = open_memory(f"{seed}.cma")
        shuffled = [*texts, better]
        random.Random(seed).shuffle(shuffled)
        remember(memory, worse)
        memory.write_many(
            {"kind": "episodic", "content": text, "origin": "test", "observed_at": start}
            for text in shuffled
        )
        for settings in (weighing(lexical=1.0), memory.retrieval, weighing(lexical=-1.0)):
            full = memory.recall("tea cake", limit=100, retrieval=settings)
            tied = [hit for hit in full.hits if hit.cell.content in texts]
            assert len({hit.score for hit in tied}) == 1
            order = [hit.cell.id for hit in tied]
            assert order == sorted(order)
            assert len(order) == len(texts)
            keys = [(-hit.score, hit.cell.id) for hit in full.hits]
            assert keys == sorted(keys)
            for limit in (1, 2, 7, 20, 41):
                cut = memory.recall("tea cake", limit=limit, retrieval=settings)
                assert ids(cut) == ids(full)[:limit]


@pytest.mark.contract("O36")
def test_insertion_order_has_no_say(open_memory, remember, weighing, start):
    """Insertion order does not change ranking or scores."""
    words = ("tea", "cake", "milk", "bread", "jam")
    drafts = []
    for place in range(60):
        chosen = [word for bit, word in enumerate(words) if (place * 7 + 3) >> bit & 1]
        drafts.append(
            {
                "kind": "episodic",
                "content": " ".join([*chosen, *chosen[: place % 3], f"x{place // 2}"]),
                "origin": f"line {place}",
                "confidence": (place % 4) / 4,
                "importance": (place % 3) / 2,
                "observed_at": start - timedelta(hours=place % 5),
            }
        )
    questions = ("tea cake jam", "milk x7", "bread bread tea x3")
    seen = []
    for seed in range(4):
        memory = open_memory(f"{seed}.cma")
        order = list(drafts)
        random.Random(seed).shuffle(order)
        size = (60, 5, 7, 25)[seed]
        cells = {}
        for at in range(0, len(order), size):
            receipt = memory.write_many(order[at : at + size])
            cells.update(zip(receipt.ids, order[at : at + size], strict=True))
            if seed % 2:
                memory.recall("tea")  # the index follows the store from here on
        names = sorted(cells)
        links = list(zip(names[:30], names[30:], strict=True))
        random.Random(seed).shuffle(links)
        pairs = [sorted(pair, key=lambda name: cells[name]["observed_at"]) for pair in links]
        memory.link_many(
            {"kind": "temporal", "source_id": one, "target_id": two} for one, two in pairs
        )
        told = []
        for lexical in LEXICAL:
            for weights in ({"lexical": 1.0}, dict.fromkeys(PARTS, 0.2)):
                settings = weighing(lexical_by=lexical, **weights)
                for question in questions:
                    for limit in (5, 100):
                        found = memory.recall(question, limit=limit, retrieval=settings)
                        told.append([(hit.cell.id, hit.score, hit.parts) for hit in found.hits])
                        told.append(found.trace.exclusions)
        told.append(memory.recall("tea").trace.index_digest)
        seen.append(told)
    assert all(told == seen[0] for told in seen)
    assert all(hits for hits in seen[0][::2])


@pytest.mark.contract("O37")
def test_the_limit_is_honoured(memory, remember, weighing):
    """The limit is honoured; a limit below one is rejected."""
    for place in range(12):
        remember(memory, f"tea {place}", importance=place / 100)
    full = memory.recall("tea", limit=50)
    assert len(full.hits) == 12
    assert len(memory.recall("tea").hits) == 10
    for limit in (1, 2, 11, 12, 13, 10**9):
        found = memory.recall("tea", limit=limit)
        assert len(found.hits) == min(limit, 12)
        assert ids(found) == ids(full)[:limit]
        assert found.trace.limit == limit
        assert found.trace.excluded.get("below_limit", 0) == 12 - len(found.hits)
    digest = memory.digest()
    for limit in (0, -1, -(10**9), True, False, 1.0, 2.5, "3", None):
        with pytest.raises(CmaError) as info:
            memory.recall("tea", limit=limit)
        assert info.value.reason is Reason.LIMIT_INVALID
        assert info.value.field == "limit"
        assert info.value.remedy
    assert memory.digest() == digest


@pytest.mark.contract("O38")
def test_no_shared_term_gives_no_hit(memory, remember, weighing):
    """No shared term gives no hit; an empty query is rejected."""
    tea = remember(memory, "tea")
    strong = remember(memory, "cake", confidence=1.0, importance=1.0, minutes=1)
    linked = remember(memory, "milk", minutes=2)
    remember(memory, "!!! ... ☕")
    memory.link("temporal", tea.id, linked.id)
    memory.link("causal", tea.id, strong.id)
    for settings in (
        weighing(lexical=1.0),
        weighing(confidence=1.0),
        weighing(lexical=0.1, importance=1.0, recency=1.0),
        weighing(lexical=1.0, link=-1.0),
        *(weighing(lexical_by=name, lexical=1.0) for name in LEXICAL),
    ):
        assert ids(memory.recall("tea", retrieval=settings)) == [tea.id]
        for question in ("coffee", "te", "teas", "t e a"):
            found = memory.recall(question, retrieval=settings)
            assert (found.hits, found.trace.excluded) == ((), {})
    supported = memory.recall("tea", retrieval=weighing(lexical=1.0, link=0.5))
    assert ids(supported) == [tea.id, linked.id]
    for analyser, questions in (
        ("unicode", ("", " ", "\n\t", "?!, ...", "\u200b\u200d", "☕")),
        ("english", ("", "the", "of and to")),
    ):
        settings = memory.retrieval.model_copy(update={"analyser": analyser})
        for question in questions:
            with pytest.raises(CmaError) as info:
                memory.recall(question, retrieval=settings)
            assert info.value.reason is Reason.QUERY_EMPTY
            assert info.value.field == "query"


def sentence_parts(sentence):
    """The parts that a sentence names, with what each one adds."""
    told = sentence.split(": ", 1)[1].split(", ")
    return {name: float(gain) for name, gain in (part.split(" ") for part in told)}


@pytest.mark.contract("O39")
def test_a_recall_is_recorded_and_explained(
    memory, ann, bob, remember, hold, weighing, audit, clock, open_memory
):
    """A recall is recorded; its trace tells why one is above another and others were left out."""
    sure = remember(ann, "tea with cake", confidence=0.9, importance=0.25)
    unsure = remember(ann, "tea with milk", confidence=0.5, importance=0.75)
    twins = sorted(remember(memory, f"tea {word}", confidence=0.25).id for word in ("one", "two"))
    note = hold(ann, "tea is brewing", ttl=60)
    clock.advance(timedelta(seconds=60))
    digest, generation, known = memory.digest(), memory.generation, len(audit(memory))
    settings = weighing(lexical=0.5, confidence=1.0, importance=0.25)
    found = ann.recall("Tea cake?", limit=3, retrieval=settings)
    trace = found.trace
    assert ids(found) == [sure.id, unsure.id, twins[0]]
    (record,) = audit(memory)[known:]
    assert (record["operation"], record["subjects"]) == ("read", [trace.id])
    assert (record["actor"], record["reason"]) == ("tester", None)
    assert (memory.digest(), memory.generation) == (digest, generation)
    assert (trace.query, trace.terms, trace.scope) == ("Tea cake?", ("tea", "cake"), "session:ann")
    assert (trace.limit, trace.at, trace.generation) == (3, clock.now(), generation)
    assert trace.retrieval == settings
    assert [(hit.cell, hit.revision, hit.score, hit.parts) for hit in trace.hits] == [
        (hit.cell.id, hit.cell.revision, hit.score, hit.parts) for hit in found.hits
    ]
    assert {item.cell: item.reason for item in trace.exclusions} == {
        note.id: "inactive",
        twins[1]: "below_limit",
    }
    assert trace.excluded == {"inactive": 1, "below_limit": 1}
    # .5*1 + .9 + .0625 against .5*.5 + .5 + .1875
    why = trace.why(sure.id, unsure.id)
    assert why.startswith("1.462500 against 0.937500: ")
    assert sentence_parts(why) == {"confidence": 0.4, "lexical": 0.25, "importance": -0.125}
    whole = ann.recall("tea", retrieval=settings)
    assert "comes first by its id" in whole.trace.why(*twins)
    with pytest.raises(KeyError):
        trace.why(sure.id, note.id)
    changed = ann.update(sure.id, confidence=0.1)
    memory.close()
    ann = open_memory(clock=FixedClock(clock.now())).within("session:ann")
    told = ann.explain(trace.id)
    assert told.trace == trace
    assert told.verified
    assert told.recall.recorded is not None
    assert told.recall.recorded.operation == "read"
    assert told.recall.comparisons[0] == why
    assert [hit.cell for hit in told.hits][:2] == [sure, unsure]
    history = [item.operation for item in told.hits[0].history]
    assert history == ["write", "update"]
    assert ann.get(sure.id) == changed
    with pytest.raises(CmaError) as info:
        ann.explain("trace-" + "0" * 40)
    assert info.value.reason is Reason.TRACE_NOT_FOUND
    assert ann.verify().traces == 2


def framed(*parts):
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def seal_by_hand(store_id, seq, previous, data):
    """The hash of an audit record as the documentation has it, made without the library."""
    prefix = framed(b"cma:audit:1", store_id.encode(), (1).to_bytes(4, "big"))
    return hashlib.sha256(
        prefix + seq.to_bytes(8, "big") + previous + len(data).to_bytes(8, "big") + data
    ).digest()


def canonical_by_hand(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def rehashed(rows, store_id, *, of, **changes):
    """Statements that change one record and seal it and all behind it anew."""
    statements, previous = [], rows[of - 2][5]
    for seq, _, _, _, data, _ in rows[of - 1 :]:
        record = json.loads(data) | (changes if seq == of else {})
        record["previous_hash"] = previous.hex()
        data = canonical_by_hand(record)
        previous = seal_by_hand(store_id, seq, previous, data)
        statements.append(
            ("UPDATE audit SET record = ?, hash = ? WHERE seq = ?", (data, previous, seq))
        )
    return statements


@pytest.mark.contract("O40")
def test_the_audit_sequence_is_append_only(open_memory, remember, hold, audit, tamper, tmp_path):
    """The audit sequence is append-only: an altered, dropped or reordered record is found."""

    def begin(name):
        memory = open_memory(name, store_id="store-1")
        ann = memory.within("session:ann")
        one = remember(memory, "tea")
        two = remember(memory, "cake", minutes=1)
        memory.link("temporal", one.id, two.id)
        memory.update(one.id, confidence=0.5)
        hold(ann, "note")
        ann.recall("tea")
        with pytest.raises(CmaError):
            memory.update("cell-" + "0" * 40, confidence=0.5)
        return memory

    memory = begin("whole.cma")
    report = memory.verify()
    rows = list(memory.store.audit_rows())
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    previous = bytes(32)
    for seq, operation, subject, generation, data, sealed in rows:
        record = json.loads(data)
        assert canonical_by_hand(record) == data
        assert (record["seq"], record["operation"]) == (seq, operation)
        assert (record["subjects"][:1] or [None])[0] == subject
        assert record["generation"] == generation
        assert record["previous_hash"] == previous.hex()
        assert seal_by_hand("store-1", seq, previous, data) == sealed
        previous = sealed
    assert (report.audit_records, report.audit_head) == (len(rows), previous.hex())
    assert report.tail_pinned
    connection = apsw.Connection(str(memory.store.path))
    for statement in (
        "UPDATE audit SET operation = 'read' WHERE seq = 3",
        "DELETE FROM audit WHERE seq = 3",
        "DELETE FROM audit",
    ):
        with pytest.raises(apsw.ConstraintError):
            connection.execute(statement)
    connection.close()
    assert list(memory.store.audit_rows()) == rows
    last = len(rows)
    swap = [
        ("UPDATE audit SET seq = -1 WHERE seq = 3", ()),
        ("UPDATE audit SET seq = 3 WHERE seq = 4", ()),
        ("UPDATE audit SET seq = 4 WHERE seq = -1", ()),
    ]
    altered = rows[2][4].replace(b'"tester"', b'"Tester"')
    assert altered != rows[2][4]
    chain, anchor = Reason.CHAIN_BROKEN, Reason.ANCHOR_DISAGREES
    cases = {
        "altered": ([("UPDATE audit SET record = ? WHERE seq = 3", (altered,))], chain, None),
        "column": ([("UPDATE audit SET operation = 'read' WHERE seq = 3", ())], chain, None),
        "subject": ([("UPDATE audit SET subject = 'cell-x' WHERE seq = 3", ())], chain, None),
        "generation": ([("UPDATE audit SET generation = 7 WHERE seq = 3", ())], chain, None),
        "hash": ([("UPDATE audit SET hash = zeroblob(32) WHERE seq = 3", ())], chain, None),
        "spaced": (
            [("UPDATE audit SET record = CAST(record || ' ' AS BLOB) WHERE seq = 3", ())],
            chain,
            None,
        ),
        "dropped": ([("DELETE FROM audit WHERE seq = 3", ())], chain, None),
        "first dropped": ([("DELETE FROM audit WHERE seq = 1", ())], chain, None),
        "reordered": (swap, chain, None),
        "tail dropped": ([("DELETE FROM audit WHERE seq = ?", (last,))], anchor, anchor),
        "all dropped": ([("DELETE FROM audit", ())], anchor, anchor),
        "rehashed": (rehashed(rows, "store-1", of=3, actor="someone"), anchor, anchor),
        "rehashed last": (rehashed(rows, "store-1", of=last, reason="none"), anchor, anchor),
        "appended": (
            [
                (
                    "INSERT INTO audit SELECT ?, 'write', NULL, 1, record, hash FROM audit LIMIT 1",
                    (last + 1,),
                )
            ],
            chain,
            chain,
        ),
    }
    for name, (statements, found, on_opening) in cases.items():
        victim = begin(f"{name}.cma")
        victim.verify()
        rows = list(victim.store.audit_rows())
        assert len(rows) == last
        tamper(victim.store.path, *statements)
        with pytest.raises(CmaError) as info:
            victim.verify()
        assert info.value.reason is found, name
        assert info.value.remedy
        if name in ("altered", "column", "dropped", "reordered"):
            assert info.value.field == "audit[3]", name
        victim.close()
        if on_opening is None:
            with (
                open_memory(f"{name}.cma") as again,
                pytest.raises(CmaError) as info,
            ):
                again.verify()
            assert info.value.reason is found, name
        else:
            with pytest.raises(CmaError) as info:
                open_memory(f"{name}.cma")
            assert info.value.reason is on_opening, name
    # Records that agree with each other, with the anchor moved along: memory itself disagrees.
    victim = begin("anchored.cma")
    rows = list(victim.store.audit_rows())
    statements = rehashed(rows, "store-1", of=3, after="0" * 64)
    victim.close()
    tamper(tmp_path / "anchored.cma", *statements)
    head = statements[-1][1][1].hex()
    body = f"cma-anchor/1 store-1 {last} {head}"
    line = f"{body} {hashlib.sha256(body.encode()).hexdigest()[:32]}\n"
    (tmp_path / "anchored.cma.head").write_bytes(line.encode().ljust(256, b"\n"))
    with open_memory("anchored.cma") as again, pytest.raises(CmaError) as info:
        again.verify()
    assert info.value.reason is Reason.STATE_DISAGREES
