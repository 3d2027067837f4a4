"""`python docs/gallery.py`: the plots of the last report as a page, each with the run that made it.

Run it after `make reproduce`; the pictures are copied with few colours, the page is written anew.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from reports.sections import sections
from reproductions.not_run import read_notes
from reproductions.results import choose, read_runs

DOCS = Path(__file__).resolve().parent
RUNS, PLOTS = DOCS.parent / "runs", DOCS.parent / "reports" / "out" / "plots"
COLOURS = 64
HEAD = """# Gallery

The plots of one `make reproduce` on two processor cores, as the report page shows them. Written by
`python docs/gallery.py`; a run of your own makes the same ones, but for what the machine's speed
decides.
"""


def main() -> None:
    """Copy the plots and write the page."""
    target = DOCS / "gallery"
    target.mkdir(exist_ok=True)
    for old in target.glob("*.png"):
        old.unlink()
    runs = read_runs(RUNS)
    choices = choose(runs)
    speaking = {(c.experiment, c.data_set): c.run for c in choices.values()}
    lines = [HEAD]
    for section in sections(choices, runs, read_notes(RUNS)):
        for plot in section.plots:
            picture = Image.open(PLOTS / f"{plot.name}.png").convert("RGB")
            picture.quantize(COLOURS).save(target / f"{plot.name}.png", optimize=True)
            of = [run for (name, _), run in speaking.items() if name == section.experiment and run]
            ids = ", ".join(sorted(f"`{run.result.run_id}`" for run in of))
            lines.append(
                f"## {plot.title}\n\n{section.finding}\n\n"
                f"![{plot.title}](gallery/{plot.name}.png)\n\n"
                f"`experiment={section.experiment}`, run {ids}\n"
            )
    (DOCS / "gallery.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
