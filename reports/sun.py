"""The sections of `delta_norm` and `model_transfer`: norms by condition and place, and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from reports.plots import BLUE, ORANGE, Plot, Theme
from reports.tables import Table, table
from reproductions.results import Run

PAPER = {"1": 7.7929, "2": 4.9193}
"""The paper's norms, shown beside ours and never compared by size: its weights are unpublished."""
COLOURS = {"1": BLUE, "2": ORANGE}
HATCHES = {"1": "", "2": "///"}
CONDITIONS: Mapping[str, str] = {
    "full": "full",
    "shuffled": "shuffled",
    "other_memory": "other memory",
    "site_1_only": "first place only",
    "site_2_only": "second place only",
    "no_memory": "no memory",
    "masked": "masked",
    "zero_vectors": "zero vectors",
    "adapter_off": "adapter off",
}

YES_OR_NO = ("weights_unchanged", "logits_equal_without_memory")

Row = Mapping[str, str]
Built = tuple[str, tuple[Table, ...], tuple[Plot, ...]]


def build_delta(run: Run, anchor: str) -> Built:
    """Return finding, tables and plot of the frozen-model diagnostic."""
    norms, checks = (run.needed(name, "a run") for name in ("norms.csv", "checks.csv"))
    dtypes = list(dict.fromkeys(row["dtype"] for row in norms))
    shown = [
        {
            **row,
            "condition": CONDITIONS.get(row["condition"], row["condition"]),
            "place": row["place"] if row["delta_norm"] else "none",
            "paper": str(_paper(row)),
            "equal": "yes" if row["logits_equal"] == "True" else "no",
        }
        for row in norms
    ]
    told = [
        {
            **row,
            "parameters": f"{int(row['parameters']):,}",
            **{name: "yes" if row[name] == "True" else "NO" for name in YES_OR_NO},
        }
        for row in checks
    ]
    tables = (
        table(
            f"{anchor}-norms", "Delta norms by condition and place", shown,
            {"dtype": "Numbers", "condition": "Condition", "place": "Place",
             "delta_norm": "Norm of the delta", "applied_norm": "Norm as applied",
             "paper": "Paper (not comparable)", "equal": "Logits as untouched"},
            caption="Frobenius norm over the prompt's real tokens. As applied: what the states "
            "changed by in the model's own numbers. Adapter off registers nothing, so it has no "
            "norm. The paper's adapter weights are unpublished: its sizes stand beside ours and "
            "say nothing about them.",
        ),
        table(
            f"{anchor}-checks", "What else the diagnostic states", told,
            {"model": "Model", "weights": "Weights", "device": "Device", "dtype": "Numbers",
             "context": "Context vector", "parameters": "Base parameters",
             "trainable": "Trainable", "gradients": "With a gradient",
             "weights_unchanged": "Weights unchanged",
             "logits_equal_without_memory": "Logits equal without memory"},
            caption="Gradients are counted after a backward pass through the adapter and a real "
            "step of its optimiser; the weights' fingerprint is taken before and after.",
        ),
    )  # fmt: skip
    first = [row for row in norms if row["dtype"] == dtypes[0]]
    plot = norm_bars(f"{anchor}-norms-plot", first, _alternative(first))
    return _finding(first, checks), tables, (plot,)


def build_transfer(run: Run, anchor: str) -> Built:
    """Return finding, table and plot of the diagnostic over families."""
    rows = run.needed("transfer.csv", "a run")
    held = {row["family"] for row in rows} - {
        row["family"] for row in rows if row["structure"] != "True"
    }
    families = {row["family"] for row in rows}
    shown = [{**row, "structure": "yes" if row["structure"] == "True" else "NO"} for row in rows]
    found = table(
        f"{anchor}-families", "Families", shown,
        {"family": "Family", "layers": "Decoder layers at", "dtype": "Numbers",
         "device": "Device", "parameters": "Parameters", "full_1": "Norm, place 1",
         "full_2": "Norm, place 2", "no_memory_max": "Without memory",
         "structure": "All as demanded"},
        caption="As demanded: norms above zero with memory and exactly zero without, logits equal "
        "to the untouched model's without memory and different with it, no trainable base "
        "parameter, no base gradient, weights unchanged."
        + "".join(f" Equal in every number: {' and '.join(some)}." for some in _alike(rows)),
    )  # fmt: skip
    alike = [" and ".join(some) for some in _alike(rows)]
    found_text = (
        f"{len(held)} of {len(families)} families meet every demand, from one adapter recipe."
    )
    if alike:
        found_text += f" Equal in every number, so one computation and not two: {'; '.join(alike)}."
    return (
        found_text,
        (found,),
        (),
    )


def _alike(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the families whose small models compute the same: no evidence of their own."""
    seen: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        values = (row["dtype"], row["parameters"], row["full_1"], row["full_2"])
        seen.setdefault(values, []).append(row["family"])
    return list(dict.fromkeys(tuple(some) for some in seen.values() if len(some) > 1))


def norm_bars(name: str, rows: Sequence[Row], alternative: str) -> Plot:
    """Draw a bar a condition and place; exact zeros are written out, a bar would not show them."""
    order = [each for each in CONDITIONS if any(row["condition"] == each for row in rows)]

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(7.2, 3.6))
        axes = figure.add_subplot()
        highest = max((float(row["delta_norm"] or 0) for row in rows), default=1.0) or 1.0
        for spot, condition in enumerate(order):
            mine = [row for row in rows if row["condition"] == condition and row["delta_norm"]]
            if not mine:
                axes.text(spot, highest * 0.02, "nothing attached", ha="center", fontsize=7,
                          color=theme.muted, rotation=90, va="bottom")  # fmt: skip
            for row in mine:
                place, norm = row["place"], float(row["delta_norm"])
                left = spot + (-0.2 if place == "1" else 0.2)
                axes.bar(left, norm, width=0.38, color=COLOURS[place], hatch=HATCHES[place],
                         edgecolor=theme.paper)  # fmt: skip
                axes.text(left, norm + highest * 0.015, "0" if norm == 0 else f"{norm:.1f}",
                          ha="center", fontsize=7, color=theme.ink)  # fmt: skip
        for place, word in (("1", "first place"), ("2", "second place")):
            axes.bar([0], [0], color=COLOURS[place], hatch=HATCHES[place], label=word,
                     edgecolor=theme.paper)  # fmt: skip
        axes.set_xticks(
            range(len(order)), [CONDITIONS[each] for each in order], rotation=30, ha="right"
        )
        axes.set_ylabel("norm of the memory delta")
        axes.set_ylim(0, highest * 1.12)
        axes.grid(visible=False, axis="x")
        axes.legend(loc="upper right")
        return figure

    return Plot(name, "Memory delta by condition and place", alternative, draw)


def _paper(row: Row) -> float | str:
    if row["condition"] == "full":
        return PAPER.get(row["place"], "")
    return 0 if row["condition"] == "no_memory" else ""


def _finding(rows: Sequence[Row], checks: Sequence[Row]) -> str:
    full = [row for row in rows if row["condition"] == "full"]
    silent = [row for row in rows if row["condition"] == "no_memory"]
    norms = " and ".join(f"{float(row['delta_norm']):.1f}" for row in full)
    zero = all(float(row["delta_norm"]) == 0 for row in silent) and bool(silent)
    return (
        f"With memory the delta norms at the two places are {norms}; without it both are "
        f"{'exactly zero' if zero else 'NOT zero'}. Model {checks[0]['model']} with "
        f"{checks[0]['weights']} weights on {checks[0]['device']}: "
        f"{checks[0]['trainable']} base parameters can be trained, {checks[0]['gradients']} got a "
        "gradient. The sizes cannot be compared with the paper's."
    )


def _alternative(rows: Sequence[Row]) -> str:
    told = [
        f"{CONDITIONS.get(row['condition'], row['condition'])}, place {row['place']}: "
        f"{float(row['delta_norm']):.1f}"
        for row in rows
        if row["delta_norm"]
    ]
    return "Norm of the memory delta. " + "; ".join(told) + "."
