"""The text of `python -m experiments --help`: examples first, then every group and key."""

from __future__ import annotations

from typing import Any

from experiments.overrides import flattened, groups

EXAMPLES = """\
Run an experiment on the Civilization Memory Architecture.

  python -m experiments experiment=NAME [group=OPTION ...] [key=value ...]

Examples
  python -m experiments experiment=contract_tally
      run the contract tests and tally them by contract id
  python -m experiments experiment=failure_matrix
      inject every documented fault and see that the required response comes
  python -m experiments experiment=recovery
      kill -9, power cuts, failing disks, flipped bits, damaged snapshots (two minutes)
  python -m experiments experiment=fuzz fuzz.inputs=1000000 seed=7
      hostile input for every reader; what breaks one is kept as a small file
  python -m experiments experiment=concurrency concurrency.operations=500
      eight writers of 500 operations each on one store, judged by a checker of its own
  python -m experiments experiment=explain
      one delivery told backwards from its receipt to the audit records
  python -m experiments experiment=delta_norm
      what one claim does to a frozen model of Qwen3-0.6B's shape (three minutes, 4 GB)
  python -m experiments experiment=model_transfer
      the same demands on small models of eight families
  python -m experiments experiment=delta_norm model=qwen3_0_6b model.place=/folder/with/weights
      the same on real weights
  python -m experiments experiment=stage150
      one checked tree of 153 files from the results of the others, and its seven gates
  python -m experiments experiment=version_ladder
      what each version adds to evidence recall within a budget
  python -m experiments experiment=retrieval
      evidence recall on LoCoMo; where it is not at hand, status 2 (data.missing=skip: status 0)
  python -m experiments experiment=retrieval data=generated
      the same on generated conversations: no data, no network
  python -m experiments experiment=retrieval data.path=/folder/with/data
      say where locomo/locomo10.json lies; CMA_DATA_DIR=/folder/with/data does the same
  python -m experiments experiment=retrieval data=cranfield
      the same on a collection of documents with graded judgements
  python -m experiments experiment=retrieval data=beir data.path=/folder
      on your own: a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv, as BEIR has them
  python -m experiments experiment=retrieval retrieval.coefficients.link=0.3
      another hand-set coefficient
  python -m experiments -m experiment=retrieval data=generated retrieval.coefficients.link=0,0.1,0.3
      a run for each of them; python -m reports compares them under "Runs with other settings"
  python -m experiments experiment=coefficient_sweep sweep.design=sobol sweep.points=10000
      ten thousand settings of the coefficients in seconds, judged on conversations left out
  python -m experiments experiment=coefficient_sweep sweep.objective=ndcg@10
      the best coefficients by exact line searches, for another objective
  python -m experiments experiment=scale
      latency and memory of growing stores beside other engines (a minute)
  python -m experiments experiment=scale scale.cells=[1000000]
      the same at a million cells (minutes)
  python -m experiments experiment=retrieval store=kept
      keep the filled stores in the run directory, for `cma recall` and `cma explain`
  python -m experiments experiment=retrieval resume=false
      run again although a finished run of these settings exists
  python -m experiments -m experiment=retrieval data=locomo,generated
      several runs, one after another; with hydra/launcher=joblib at the same time, with
      hydra/launcher=ray or submitit_slurm on several machines. The end names every cell of the
      grid that is not done and joins all figures in runs/grids/<id>.csv; asked again, only those
      run that are not done

Results go to runs/<experiment>/<run id>/ (paths.runs=FOLDER for another place): config.yaml,
result.json, one CSV a table, machine.json, log.txt. Exit status: 0 done, 1 failed, 2 wrong request.
"""


def help_text() -> str:
    """Return the whole help."""
    lines = [EXAMPLES, "Groups (group=OPTION)"]
    lines += [f"  {group}: {', '.join(options)}" for group, options in sorted(groups().items())]
    lines += ["", "Keys (key=value) and their defaults"]
    keys = flattened()
    sections = {key.rpartition(".")[0] for key in keys}
    lines += [
        f"  {key}={_shown(value)}"
        for key, value in keys.items()
        if key not in sections and key != "experiment"
    ]
    lines += ["", "Hydra's own options: --hydra-help, --cfg job, --info, --multirun"]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return str(value)
