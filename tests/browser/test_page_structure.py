"""The page without a browser: every colour can be read, every plot told apart, nothing is left out.

What a browser would be needed for is in test_page_in_browser.py; this runs everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from reports import plots
from reports.page import FOLDER

STYLE = (FOLDER / "page.css").read_text(encoding="utf-8")
READABLE = 4.5
"""WCAG 2.2 AA: the least contrast of text of ordinary size."""
SEEN = 3.0
"""The same for marks that carry meaning."""
TEXT_ON = {
    "ink": ("paper", "card", "soft"),
    "muted": ("paper", "card", "soft"),
    "link": ("paper", "card", "soft"),
    **{name: (f"{name}-soft",) for name in ("good", "part", "none", "bad", "notice")},
}
PALETTE = (
    plots.ORANGE, plots.SKY, plots.GREEN, plots.BLUE, plots.VERMILLION, plots.PURPLE,
)  # fmt: skip
# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
VISION = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}  # fmt: skip
APART = 8.0
"""Least difference (CIE 1976, in Lab) of two colours of the palette, however they are seen."""


def linear(colour: str) -> np.ndarray:
    """Return linear RGB of a colour such as #0072b2."""
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted(float(linear(each) @ (0.2126, 0.7152, 0.0722)) for each in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Return CIE Lab of linear RGB, white D65."""
    matrix = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = matrix @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def themes() -> dict[str, dict[str, str]]:
    """Return the page's colours by name, light and dark."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
    named = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part)) for part in (light, dark)]
    return {"light": named[0], "dark": named[0] | named[1]}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_on_its_paper(theme: str) -> None:
    colours = themes()[theme]
    pairs = [(ink, paper) for ink, papers in TEXT_ON.items() for paper in papers]
    assert len(pairs) == 14
    for ink, paper in pairs:
        assert contrast(colours[ink], colours[paper]) >= READABLE, (theme, ink, paper)
    assert contrast(colours["mark"], colours["card"]) >= SEEN


@pytest.mark.parametrize("theme", [plots.LIGHT, plots.DARK], ids=["light", "dark"])
def test_every_text_of_a_plot_can_be_read_on_its_paper(theme: plots.Theme) -> None:
    for ink in (theme.ink, theme.muted, theme.peer):
        assert contrast(ink, theme.paper) >= READABLE


def _nearest(colours: Sequence[str], seen: np.ndarray) -> float:
    told = [lab(seen @ linear(each)) for each in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(told, 2))


@pytest.mark.parametrize("vision", ["ordinary", *VISION])
def test_the_palette_is_told_apart_by_colour_blind_eyes(vision: str) -> None:
    seen = np.eye(3) if vision == "ordinary" else np.array(VISION[vision])
    assert _nearest(PALETTE, seen) >= APART
    if vision == "deuteranopia":  # the test can fail: red and green of one lightness are one colour
        assert _nearest(("#c94f37", "#7f8a2b"), seen) < APART


def test_every_series_has_a_marker_of_its_own_as_well() -> None:
    markers = [*plots._MARKERS.values(), *(marker for _, marker in plots._OTHERS)]
    assert len(set(markers)) == len(markers)


def test_no_file_of_the_page_names_an_address() -> None:
    for file in sorted(Path(FOLDER).iterdir()):
        text = file.read_text(encoding="utf-8")
        assert not re.findall(r"(?:https?:)?//[a-z0-9][\w.-]*\.[a-z]{2,}", text, re.IGNORECASE), (
            file
        )
        assert "@import" not in text
