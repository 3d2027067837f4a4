"""Plots of a sweep: the objective along each coefficient, and over the two that move it most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from reports.plots import BLUE, ORANGE, Plot, Theme

Row = Mapping[str, str]
COLUMNS = 3
_LABELS = {"ndcg@10": "nDCG@10", "mrr": "MRR", "budget_recall": "evidence in the packet"}


def curves(rows: Sequence[Row], anchor: str, name: str) -> Plot:
    """One panel a coefficient: the objective along it, the others at the optimum."""
    own: dict[str, list[Row]] = {}
    for row in rows:
        own.setdefault(row["part"], []).append(row)
    objective = _label(rows[0])
    spoken = "; ".join(_told(part, points) for part, points in own.items())

    def draw(theme: Theme) -> Figure:
        across = min(COLUMNS, len(own))
        down = -(-len(own) // across)
        figure = Figure(figsize=(3.1 * across + 0.6, 2.5 * down + 0.4))
        grid = figure.subplots(down, across, sharey=True, squeeze=False)
        for place, (part, points) in enumerate(own.items()):
            axes = grid[place // across][place % across]
            axes.plot(
                [float(each["coefficient"]) for each in points],
                [float(each["value"]) for each in points],
                color=BLUE, linewidth=1.5,
            )  # fmt: skip
            for each in points:
                if each["optimum"] == "True":
                    axes.plot(
                        float(each["coefficient"]), float(each["value"]), marker="D",
                        color=ORANGE, markersize=6, markeredgecolor=theme.paper,
                    )  # fmt: skip
            axes.set_title(part.replace("_", " "))
            axes.set_xlabel("coefficient (lexical = 1)")
        for extra in range(len(own), across * down):
            grid[extra // across][extra % across].set_visible(False)
        for line in grid:
            line[0].set_ylabel(f"{objective} (mean)")
        return figure

    return Plot(
        f"{anchor}-curves",
        f"One coefficient at a time on {name}",
        f"Lines of {objective} along each coefficient, the others at the optimum, which a diamond "
        f"marks. {spoken}.",
        draw,
    )


def surface(rows: Sequence[Row], optimum: Row, anchor: str, name: str) -> Plot:
    """The objective over two coefficients as colours with contour lines."""
    across, up = rows[0]["x_part"], rows[0]["y_part"]
    objective = _label(optimum)
    xs = sorted({float(row["x"]) for row in rows})
    ys = sorted({float(row["y"]) for row in rows})
    places = {value: place for place, value in enumerate(xs)}
    heights = {value: place for place, value in enumerate(ys)}
    values = np.full((len(ys), len(xs)), np.nan)
    for row in rows:
        values[heights[float(row["y"])], places[float(row["x"])]] = float(row["value"])
    least, most = float(np.nanmin(values)), float(np.nanmax(values))

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(6.4, 4.8))
        axes = figure.add_subplot()
        shown = axes.pcolormesh(xs, ys, values, cmap="cividis", shading="nearest", rasterized=True)
        if most > least:
            levels = [most - drop for drop in (0.05, 0.02, 0.01) if most - drop > least]
            if levels:
                drawn = axes.contour(xs, ys, values, levels=levels, colors="#ffffff",
                                     linewidths=1.0)  # fmt: skip
                axes.clabel(drawn, fmt="%.3f", fontsize=7)
        axes.plot(
            float(optimum[across]), float(optimum[up]), marker="D", color=ORANGE, markersize=7,
            markeredgecolor="#1d2733",
        )  # fmt: skip
        axes.grid(visible=False)
        axes.set_xlabel(f"coefficient of {across.replace('_', ' ')} (lexical = 1)")
        axes.set_ylabel(f"coefficient of {up.replace('_', ' ')} (lexical = 1)")
        bar = figure.colorbar(shown, ax=axes, label=f"{objective} (mean)")
        bar.outline.set_edgecolor(theme.grid)
        return figure

    return Plot(
        f"{anchor}-surface",
        f"{objective} over {across} and {up} on {name}",
        f"Colours of {objective} over the coefficients of {across} and {up}, the others at the "
        f"optimum: from {least:.3f} to {most:.3f}; the optimum, {float(optimum[across]):g} and "
        f"{float(optimum[up]):g}, is marked by a diamond. Contour lines 1, 2 and 5 points below "
        "the highest.",
        draw,
    )


def _told(part: str, points: Sequence[Row]) -> str:
    values = [float(each["value"]) for each in points]
    return f"{part} from {min(values):.3f} to {max(values):.3f}"


def _label(row: Row) -> str:
    return _LABELS.get(row["objective"], row["objective"])
