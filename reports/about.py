"""What is fixed about each experiment: its title, question, limits, and place on the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class About:
    """What is fixed about an experiment: its question, its limits, how to run it."""

    title: str
    asked: str
    limits: tuple[str, ...]
    order: int


ABOUT: Mapping[str, About] = {
    "contract_tally": About(
        title="Contract tests",
        asked="Do the contracts hold that the paper's text states? Each contract is one test, "
        "which goes red when its rule is broken; the tests run in a process of their own and are "
        "counted by contract id.",
        limits=("A passed contract shows the stated behaviour in small, deterministic cases.",),
        order=0,
    ),
    "retrieval": About(
        title="Evidence retrieval",
        asked="Given a question about a long conversation, which scorer recalls the turns that "
        "hold the answer? Every turn is one episodic cell of a real store, every question is "
        "recalled from it, and the recalled cells are compared with the annotated evidence. "
        "BM25 by the bm25s library stands beside as a peer from outside.",
        limits=(
            (
                "overlap is the paper's lexical part alone; hand set is the whole hand-set score "
                "(our coefficients: the paper publishes none)."
            ),
            "This measures finding evidence and says nothing about answering the question.",
            "Peers get every analyser that CMA's scorers get; compare with the best row of a peer.",
            (
                "Intervals resample questions within the given conversations; other conversations "
                "may differ more."
            ),
        ),
        order=8,
    ),
    "failure_matrix": About(
        title="Injected faults",
        asked="What happens when something goes wrong? Each fault is really injected into a small "
        "store of its own: the clock is moved, rows are removed by another connection, snapshots "
        "are edited and hashed anew, threads and processes race. A row passes only if the response "
        "is the required one and nothing else changed, by every record of the store's file.",
        limits=(
            (
                "The documented eight, and one for each fault of memory semantics that users of "
                "comparable systems reported; other faults may be answered otherwise."
            ),
            "The required responses are those of the paper and of our catalogue of faults.",
        ),
        order=1,
    ),
    "graph_fixture": About(
        title="The graph over three scales",
        asked="Do two episodes, a claim, a skill and a decision make one connected graph, and does "
        "a traversal from any of them reach all, in the same order? The fixture is built through "
        "the public interface, then asked for again, restored from a snapshot, and built anew by "
        "another process.",
        limits=("Five nodes show the rules of the graph and nothing about large ones.",),
        order=4,
    ),
    "coefficient_sweep": About(
        title="Coefficients swept",
        asked="Which coefficients recall best, how much are they worth on conversations that had "
        "no say in them, and how flat is the ground around them? The parts of every candidate are "
        "taken once from the store's own index; then thousands of settings are ranked in arrays. "
        "Each conversation is judged with what was chosen on the others.",
        limits=(
            (
                "Only the coefficients are held out: analyser, lexical function, parts and ranges "
                "were chosen with all conversations in view."
            ),
            (
                "Intervals resample questions within the given conversations; other conversations "
                "may differ more."
            ),
            "Seconds and speed-up are of the machine named below and of that moment.",
            "This measures finding evidence and says nothing about answering the question.",
        ),
        order=8,
    ),
    "version_ladder": About(
        title="The version ladder",
        asked="What does each version add? The same questions are put to lexical recall alone "
        "(Orion, by the strongest of its scorers: see the notes), to recall whose hits bring their "
        "neighbours in an episode's frame (+ Trifid), to one that also finds claims, which bring "
        "their sources (+ Lagoon), and to packets (+ Rosette). Judged is the share of a question's "
        "evidence turns that fits a token budget.",
        limits=(
            (
                "The claims come from a plain rule and are approved by rule: what a person or a "
                "model would propose and approve may serve better, or worse."
            ),
            (
                "A packet says of every record where it came from and keeps it quoted; what that "
                "is worth is not measured here, only what it costs in tokens."
            ),
            "This measures finding evidence and says nothing about answering the question.",
            "Eagle and Sun have no rung: conversations hold no executions, and no model is run.",
        ),
        order=9,
    ),
    "explain": About(
        title="One delivery told backwards",
        asked="What reached the model, and why was each piece of it there? A small memory with two "
        "claims that contradict each other is built through the public interface, one request is "
        "delivered from it, and the delivery is told from its receipt back to the audit records. "
        "The same telling on the command line: cma explain STORE RECEIPT.",
        limits=(
            (
                "Verified means that what is stored is what the audit chain says of it. It says "
                "nothing about whether a claim is true."
            ),
            "Delivered means handed over by the library; what a model made of it is not seen here.",
        ),
        order=3,
    ),
    "recovery": About(
        title="Crashes and damage",
        asked="What do a killed process, a power cut, a failing disk and a flipped bit take from a "
        "store? One script writes in every way the library knows. Writers are killed at random "
        "and at calls to the disk; power is cut around every sync of a recorded run, with six "
        "guesses at what the disk had still written; each call to the disk fails in turn; bits "
        "are flipped in database, log and anchor, and all over a snapshot. What is left must "
        "stand exactly where a clean run stood before or after the interrupted step, and go on.",
        limits=(
            (
                "Kills leave the machine running, so they cannot show a missing sync; the power "
                "cuts can, and their control, which syncs less often, must lose something."
            ),
            (
                "The disk of the power cuts is a model: names become durable in their order, and "
                "what was synced stays. A disk that only pretends to write is asked no more than "
                "whether the loss is noticed; erased bytes that it kept so, nobody can notice."
            ),
            (
                "Of shared memory only the mapping is made to fail, not what is written to it: a "
                "crash begins it anew."
            ),
            (
                "Damage by accident, one fault at a time. Whoever rewrites a snapshot and all its "
                "digests makes another snapshot; compare its digest with one kept elsewhere. A "
                "flip that spoils the newer slot of an anchor together with the cut-off end of "
                "the log that it names goes unnoticed."
            ),
        ),
        order=2,
    ),
    "concurrency": About(
        title="Many writers at once",
        asked="When several processes, or threads of one, use one store at the same time, is all "
        "that was acknowledged there, once, on one unbroken chain? They write, replace, link, "
        "recall, propose, approve, reject, sweep, deliver, verify and take snapshots of the same "
        "things; a checker that shares no code with the library then reads file and logs.",
        limits=(
            (
                "Who comes first differs from run to run: the counts of refusals and the times are "
                "those of one run on one machine."
            ),
            "Writers on one machine; a store on a network drive is not meant and not measured.",
        ),
        order=2,
    ),
    "fuzz": About(
        title="Hostile input",
        asked="Does everything that reads what others wrote refuse bad input in the way that it "
        "promises? Inputs are made from a seed, by a grammar and by changing good ones, for the "
        "readers of snapshots, records, settings, data sets, claims and results, for the command "
        "line and for the library. Each has a bound on time, and each process one on memory.",
        limits=(
            "Seeded and repeatable, and not guided by which code an input reaches.",
            (
                "Accepted inputs are mostly those whose change did no harm, such as another word "
                "in a text; whether their content is true is not judged."
            ),
        ),
        order=2,
    ),
    "delta_norm": About(
        title="The frozen-model diagnostic",
        asked="Does one semantic cell, as a context vector, change what a frozen model computes, "
        "and does nothing change without it? One approved claim is delivered through a seeded "
        "adapter at two decoder layers, under nine conditions, with the base model's weights, "
        "gradients and trainable parameters watched.",
        limits=(
            "A boundary of intervention and no result about any task.",
            "Adapter weights are drawn from a seed, since the paper's are unpublished.",
        ),
        order=5,
    ),
    "model_transfer": About(
        title="The diagnostic over model families",
        asked="Does the same path work in other families of models? Small models with seeded "
        "weights are built from each family's own code, and asked for all that the diagnostic "
        "states.",
        limits=("Seeded weights of toy size: this shows that the path fits, and no more.",),
        order=6,
    ),
    "task_gain": About(
        title="Does served memory change answers?",
        asked="A tiny model is trained here to answer questions from text, then frozen; adapters "
        "are trained over it, and asked about facts that were held out of their training. Each "
        "question's facts lie in a memory; recall and packet serve them, as context vectors or as "
        "text in the prompt.",
        limits=(
            "Generated facts in a vocabulary of some fifty words, and a model of toy size.",
            "The adapter is trained for this task; the paper's adapter is unpublished.",
        ),
        order=7,
    ),
    "stage150": About(
        title="Artifact tree and release gates",
        asked="Can the results be handed over and checked by somebody else? The results of the "
        "other experiments become one tree of declared files in canonical form, each held against "
        "its schema and listed with its digest; seven gates are computed from the files alone, "
        "and a scan looks for secrets, places, names, private text and models.",
        limits=(
            (
                "The paper tells of 153 files and seven gates and publishes neither: the "
                "composition and the gates are ours."
            ),
            "The scan finds known forms and given texts; that it finds none is no proof.",
        ),
        order=11,
    ),
    "scale": About(
        title="Growing stores",
        asked="What does a growing store cost to build, open, append to, hold in memory and ask? "
        "Cells of words from a Zipf-like vocabulary, from thousands to millions, beside bm25s, "
        "tantivy and SQLite FTS5 in one run with one thread.",
        limits=(
            "Generated words: natural text has other frequencies, and longer cells.",
            (
                "The peers rank by BM25 and keep no ids, confidences, times, scopes or audit; CMA "
                "ranks by the paper's score and does."
            ),
            "The cells have no links. With links, every cell that matches is scored.",
            "Times are of one machine at one moment; compare the engines, not the machines.",
        ),
        order=10,
    ),
}
"""In the order of the page, by `order`."""
