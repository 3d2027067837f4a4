"""What the page says about one experiment: a section of tables, plots, notes and provenance.

A section holds measured values alone. Where no run speaks it holds none, and says why and which
command makes one. An experiment that this module does not know gets every table as it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from reports import (
    concurrency,
    failures,
    fuzz,
    gain,
    graph,
    ladder,
    other_settings,
    recovery,
    retrieval,
    scale,
    stage150,
    sun,
    sweep,
    tally,
    telling,
)
from reports.about import ABOUT, About
from reports.plots import Plot
from reports.retrieval_values import data_label
from reports.tables import Table, table
from reproductions.inputs import CorruptInputError
from reproductions.results import Choice, DataSource, Run

Builder = Callable[[Run, str], "Content"]


@dataclass(frozen=True)
class Content:
    """What a run's tables give: one sentence of result, tables, plots, and steps to tell."""

    finding: str
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()
    steps: tuple[telling.Step, ...] = ()


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
    steps: tuple[telling.Step, ...] = ()
    notes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    data: tuple[DataSource, ...] = ()
    facts: tuple[tuple[str, str], ...] = field(default_factory=tuple)
    """Run, device, versions: who measured this, where."""


WANTED = (("contract_tally", ""), ("retrieval", "locomo"))
"""Sections that the page has even where no run exists."""
_BUILDERS: Mapping[str, Builder] = {
    "delta_norm": lambda run, anchor: Content(*sun.build_delta(run, anchor)),
    "model_transfer": lambda run, anchor: Content(*sun.build_transfer(run, anchor)),
    "task_gain": lambda run, anchor: Content(*gain.build(run, anchor)),
    "contract_tally": lambda run, anchor: Content(*tally.build(run, anchor)),
    "explain": lambda run, anchor: _told(run, anchor),
    "failure_matrix": lambda run, anchor: Content(*failures.build(run, anchor)),
    "graph_fixture": lambda run, anchor: Content(*graph.build(run, anchor)),
    "concurrency": lambda run, anchor: Content(*concurrency.build(run, anchor)),
    "fuzz": lambda run, anchor: Content(*fuzz.build(run, anchor)),
    "recovery": lambda run, anchor: Content(*recovery.build(run, anchor)),
    "retrieval": lambda run, anchor: Content(*retrieval.build(run, anchor)),
    "scale": lambda run, anchor: Content(*scale.build(run, anchor)),
    "coefficient_sweep": lambda run, anchor: Content(*sweep.build(run, anchor)),
    "stage150": lambda run, anchor: Content(*stage150.build(run, anchor)),
    "version_ladder": lambda run, anchor: Content(*ladder.build(run, anchor)),
}


def sections(
    choices: Mapping[tuple[str, str], Choice],
    runs: Iterable[Run] = (),
    not_run: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> list[Section]:
    """Return the sections in page order; a wanted one without any run says how to make it.

    `runs` are all runs: those with other settings get a section of their own, the last one.
    `not_run` says which data was missing where an experiment could not run for want of it.
    """
    wanted = dict.fromkeys([*WANTED, *choices, *not_run])
    ordered = sorted(wanted, key=lambda key: (_about(key[0]).order, key not in WANTED, key))
    found = [_section(*key, choices.get(key), not_run.get(key)) for key in ordered]
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


def _section(
    experiment: str, data_set: str, choice: Choice | None, missing_data: str | None
) -> Section:
    about = _about(experiment)
    anchor = "-".join(part for part in (experiment, data_set) if part).replace("_", "-")
    command = f"python -m experiments experiment={experiment}" + _chosen(data_set)
    title = about.title + (f": {data_label(data_set)}" if data_set else "")
    run = choice.run if choice else None
    if run is None:
        failed = choice.failed if choice else None
        message = "Not run yet, so nothing is shown."
        if missing_data is not None:
            message = f"Not run here: no data ({missing_data} was not found)."
        if failed is not None:
            error = failed.result.error
            reason = f"{error.type}: {error.message}" if error else "no reason recorded"
            reason = reason.removesuffix(".")
            message = f"Run {failed.result.run_id} failed, so nothing is shown. {reason}."
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
        steps=content.steps,
        notes=tuple(run.result.notes),
        limits=about.limits,
        data=tuple(run.result.data),
        facts=_facts(run),
    )


def _chosen(data_set: str) -> str:
    """Return the overrides that choose a data set; where a folder lies no run records."""
    if data_set.startswith("beir-"):
        return " data=beir data.path=FOLDER"
    return f" data={data_set}" if data_set else ""


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


def _told(run: Run, anchor: str) -> Content:
    finding, tables, steps = telling.build(run, anchor)
    return Content(finding, tables, steps=steps)


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
