"""Figures for a paper: each plot as PDF, and one LaTeX file that sets them all with captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.plots import Plot
from reports.tables import latex_text

LISTING = "figures.tex"
HEAD = """\
% Needs \\usepackage{graphicx}. Use it with \\input, or copy single figures out of it.
% The measured values of each are in tables/ beside this folder, as .tex too.
"""


def write_for_paper(plots: Sequence[Plot], folder: Path) -> list[Path]:
    """Write the PDFs and the LaTeX file; return the paths. Without plots nothing is written."""
    if not plots:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in plots:
        path = folder / f"{plot.name}.pdf"
        path.write_bytes(plot.pdf())
        written.append(path)
    listing = folder / LISTING
    listing.write_text(HEAD + "".join(_figure(plot) for plot in plots), encoding="utf-8")
    return [*written, listing]


def _figure(plot: Plot) -> str:
    return "\n".join(
        (
            "",
            r"\begin{figure}",
            r"\centering",
            rf"\includegraphics[width=\linewidth]{{{plot.name}.pdf}}",
            rf"\caption{{{latex_text(plot.title)}.}}\label{{fig:{plot.name}}}",
            rf"% {' '.join(plot.alternative.split())}",
            r"\end{figure}",
            "",
        )
    )
