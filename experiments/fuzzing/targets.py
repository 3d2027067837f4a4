"""The table of targets: each reader, how it is fed, and the errors that it promises."""

from __future__ import annotations

from cma import CmaError
from experiments.failures import DataError, UsageError
from experiments.fuzzing import calls, files, snapshots
from experiments.fuzzing.target import Target
from reproductions.inputs import CorruptInputError

TARGETS: tuple[Target, ...] = (
    Target("canonical", 380, files.make_canonical, files.canonical_reader, (CmaError,)),
    Target("snapshot", 40, snapshots.make, snapshots.restoring, (CmaError,)),
    Target("library", 180, calls.make_call, calls.library, (CmaError,)),
    Target(
        "command line", 20, calls.make_command, calls.command_line, (calls.CommandRefusedError,)
    ),
    Target("overrides", 10, calls.make_overrides, calls.overrides, (UsageError,)),
    Target(
        "locomo",
        90,
        files.make_locomo,
        files.reader_of(("locomo.json",), files.use_locomo),
        (DataError,),
    ),
    Target(
        "cranfield",
        90,
        files.make_cranfield,
        files.reader_of(("documents.xml", "queries.xml", "judgements.txt"), files.use_cranfield),
        (DataError,),
    ),
    Target(
        "beir",
        90,
        files.make_beir,
        files.reader_of(("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"), files.use_beir),
        (DataError,),
    ),
    Target(
        "claims",
        50,
        files.make_claims,
        files.reader_of(("claims.yaml",), files.use_claims),
        (CorruptInputError,),
    ),
    Target(
        "results",
        50,
        files.make_run,
        files.reader_of(
            (
                "recovery/0123/result.json",
                "recovery/0123/machine.json",
                "recovery/0123/config.yaml",
                "recovery/0123/t.csv",
            ),
            files.use_runs,
        ),
        (CorruptInputError,),
    ),
)
BY_NAME = {target.name: target for target in TARGETS}
