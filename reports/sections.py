"""What the page says about one experiment: a section of tables, plots, notes and provenance.

A section holds measured values alone. Where no run speaks it holds none, and says why and which
command makes one. An experiment that this module does not know gets every table as it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from reports import graph, other_settings, retrieval, tally
from reports.plots import Plot
from reports.retrieval_values import data_label
from reports.tables import Table, table
from reproductions.inputs import CorruptInputError
from reproductions.results import Choice, DataSource, Run

Builder = Callable[[Run, str], "Content"]


@dataclass(frozen=True)
class Content:
    """What a run's tables give: one sentence of result, tables and plots."""

    finding: str
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()


@dataclass(frozen=True)
class About:
    """What is fixed about an experiment: its question, its limits, how to run it."""

    title: str
    asked: str
    limits: tuple[str, ...]
    order: int


@dataclass(frozen=True)
class Section:
    """One section of the page."""

    anchor: str
    experiment: str
    title: str
    asked: str
    command: str
    state: str
    """`measured`, `missing`, `failed` or `stale`."""
    message: str = ""
    finding: str = ""
    other_settings: str = ""
    """The overrides of its run, where they go beyond the settings of the repository."""
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    data: tuple[DataSource, ...] = ()
    facts: tuple[tuple[str, str], ...] = field(default_factory=tuple)
    """Run, device, versions: who measured this, where."""


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
        order=1,
    ),
    "graph_fixture": About(
        title="The graph over three scales",
        asked="Do two episodes, a claim, a skill and a decision make one connected graph, and does "
        "a traversal from any of them reach all, in the same order? The fixture is built through "
        "the public interface, then asked for again, restored from a snapshot, and built anew by "
        "another process.",
        limits=("Five nodes show the rules of the graph and nothing about large ones.",),
        order=2,
    ),
    "recovery": About(
        title="Damaged snapshots",
        asked="Is a snapshot that disagrees with itself refused whole? Every bit of a small "
        "snapshot that holds a record of every type is flipped in turn, and the file is cut to "
        "every length; each copy is given to the restore that users call.",
        limits=(
            (
                "Damage by accident, one fault at a time. Whoever rewrites a snapshot and all its "
                "digests makes another snapshot; compare its digest with one kept elsewhere."
            ),
        ),
        order=4,
    ),
}
WANTED = (("contract_tally", ""), ("retrieval", "locomo"))
"""Sections that the page has even where no run exists."""
_BUILDERS: Mapping[str, Builder] = {
    "contract_tally": lambda run, anchor: Content(*tally.build(run, anchor)),
    "graph_fixture": lambda run, anchor: Content(*graph.build(run, anchor)),
    "retrieval": lambda run, anchor: Content(*retrieval.build(run, anchor)),
}


def sections(choices: Mapping[tuple[str, str], Choice], runs: Iterable[Run] = ()) -> list[Section]:
    """Return the sections in page order; a wanted one without any run says how to make it.

    `runs` are all runs: those with other settings get a section of their own, the last one.
    """
    wanted = dict.fromkeys([*WANTED, *choices])
    ordered = sorted(wanted, key=lambda key: (_about(key[0]).order, key not in WANTED, key))
    found = [_section(experiment, data_set, choices.get((experiment, data_set))) for
             experiment, data_set in ordered]  # fmt: skip
    compared = other_settings.build(runs)
    return [*found, _other_settings(compared)] if compared else found


def _other_settings(compared: Table) -> Section:
    return Section(
        anchor=other_settings.ANCHOR,
        experiment="retrieval",
        title=other_settings.TITLE,
        asked=other_settings.ASKED,
        command=other_settings.EXAMPLE,
        state="measured",
        tables=(compared,),
        notes=other_settings.NOTES,
    )


def _section(experiment: str, data_set: str, choice: Choice | None) -> Section:
    about = _about(experiment)
    anchor = "-".join(part for part in (experiment, data_set) if part).replace("_", "-")
    command = f"python -m experiments experiment={experiment}" + (
        f" data={data_set}" if data_set else ""
    )
    title = about.title + (f": {data_label(data_set)}" if data_set else "")
    run = choice.run if choice else None
    if run is None:
        failed = choice.failed if choice else None
        message = "Not run yet, so nothing is shown."
        if failed is not None:
            error = failed.result.error
            reason = f"{error.type}: {error.message}" if error else "no reason recorded"
            message = f"Run {failed.result.run_id} failed, so nothing is shown. {reason}"
        state = "failed" if failed else "missing"
        return Section(
            anchor, experiment, title, about.asked, command, state, message, limits=about.limits
        )
    message, state = "", "measured"
    other = " ".join(run.machine.other_settings)
    if other:
        message = f"This run was made with other settings: {other}. "
    if choice is not None and choice.failed is not None:
        state = "stale" if choice.stale else "measured"
        message += f"A later run, {choice.failed.result.run_id}, failed"
        message += (
            " after the sources changed: these values are of the earlier sources."
            if choice.stale
            else "; these values are of the last run that succeeded."
        )
    content = _content(experiment, run, anchor)
    return Section(
        anchor=anchor,
        experiment=experiment,
        title=title,
        asked=about.asked,
        command=_again(run, command),
        state=state,
        message=message.strip(),
        finding=content.finding,
        other_settings=other,
        tables=content.tables,
        plots=content.plots,
        notes=tuple(run.result.notes),
        limits=about.limits,
        data=tuple(run.result.data),
        facts=_facts(run),
    )


def _again(run: Run, command: str) -> str:
    """Return the command that makes a run again: `command` with what else its overrides say."""
    known = ("experiment", "data", "resume")
    more = [given for given in run.machine.overrides if given.split("=")[0] not in known]
    return " ".join([command, *map(shlex.quote, more)])


def _content(experiment: str, run: Run, anchor: str) -> Content:
    """Return what a run's tables give; a table without its columns or numbers is an error."""
    try:
        return _BUILDERS.get(experiment, _plain)(run, anchor)
    except CorruptInputError:
        raise
    except (KeyError, ValueError, OverflowError) as error:
        raise CorruptInputError(
            f"{run.folder}: a table lacks a column or a number ({error}); "
            f"run: python -m experiments experiment={experiment} resume=false"
        ) from error


def _about(experiment: str) -> About:
    plain = About(experiment.replace("_", " ").capitalize(), "", (), order=len(ABOUT))
    return ABOUT.get(experiment, plain)


def _plain(run: Run, anchor: str) -> Content:
    """Return every table of a run as it is."""
    tables = []
    for name in run.result.tables:
        rows = run.table(name)
        if rows:
            stem = name.removesuffix(".csv")
            columns = {key: key for key in rows[0] if key is not None}
            tables.append(table(f"{anchor}-{stem}", stem.replace("_", " "), rows, columns))
    return Content("", tuple(tables))


def _moment(text: str) -> str:
    """Return a recorded moment to the second; runs record UTC."""
    return f"{text[:19].replace('T', ' ')} UTC" if text else ""


def _facts(run: Run) -> tuple[tuple[str, str], ...]:
    machine, result = run.machine, run.result
    revision = machine.git_revision[:12] if machine.git_revision else "not recorded"
    cpus = f", {machine.cpu_count} CPUs" if machine.cpu_count else ""
    facts = {
        "Run": result.run_id,
        "Finished": _moment(machine.finished_at),
        "Took": f"{machine.seconds:.1f} s" if machine.seconds is not None else "",
        "Device": f"{machine.device} ({machine.platform}{cpus})" if machine.platform
        else machine.device,
        "Python": machine.python,
        "Revision": revision + (" with uncommitted changes" if machine.git_dirty else ""),
        "Overrides": " ".join(machine.overrides),
        "Seed": "" if result.seed is None else str(result.seed),
        "Sources": result.source_digest[:16],
        "Settings": result.config_hash[:16],
        "Packages": ", ".join(f"{name} {version}" for name, version in machine.packages.items()),
    }  # fmt: skip
    return tuple((name, value) for name, value in facts.items() if value)
