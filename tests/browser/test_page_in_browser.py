"""The page in a real browser: quiet, self-contained, sortable, readable on a phone and in print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 400, "height": 800}
ROWS = "#failure-matrix .table:has(#failure-matrix-rows) tbody tr"


class Shown:
    """The page as shown, with what it said and asked for while it was."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.said: list[str] = []
        self.asked: list[str] = []


@pytest.fixture
def shown(browser: Any, report: Path) -> Iterator[Shown]:
    """The report, freshly loaded in a desk-wide window."""
    found = Shown(browser, report.as_uri())
    browser.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
    browser.on("pageerror", lambda error: found.said.append(str(error)))
    browser.on("request", lambda request: found.asked.append(request.url))
    browser.emulate_media(media="screen", color_scheme="light")
    browser.set_viewport_size(DESK)
    browser.goto(found.address, wait_until="load")
    yield found
    assert found.said == []
    assert [each for each in found.asked if not each.startswith("data:")] == [found.address]
    browser.goto("about:blank")


def fits(page: Any) -> bool:
    """Tell whether nothing makes the page wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_the_page_is_quiet_and_asks_for_nothing(shown: Shown) -> None:
    assert "Civilization Memory Architecture" in shown.page.title()
    assert shown.page.locator("section").count() >= 6
    assert shown.asked  # the listener is awake: the page itself was asked for
    assert fits(shown.page)


def test_the_browser_lets_nothing_else_in(shown: Shown) -> None:
    """The content policy holds: an image from outside, put in by a script, is refused."""
    shown.page.evaluate(
        "new Promise(done => { const image = new Image(); image.onerror = done;"
        " image.onload = done; image.src = 'https://example.org/x.png'; })"
    )
    assert any("Content Security Policy" in each for each in shown.said)
    shown.said.clear()
    shown.asked[:] = [each for each in shown.asked if "example.org" not in each]


def test_every_drawing_is_drawn_and_has_words(shown: Shown) -> None:
    drawn = shown.page.evaluate(
        "[...document.images].map(i => [i.naturalWidth, i.alt.length, i.currentSrc.slice(0, 19)])"
    )
    assert len(drawn) >= 4
    for width, words, source in drawn:
        assert width > 200
        assert words > 40
        assert source == "data:image/svg+xml;"


def test_a_table_is_sorted_by_a_click_and_back_by_another(shown: Shown) -> None:
    table = shown.page.locator(".table:has(#contract-tally-contracts)")
    if not table.is_visible():
        shown.page.locator("details:has(#contract-tally-contracts) > summary").click()
    head = table.locator("th button").first
    cells = "[...document.querySelectorAll('.table:has(#contract-tally-contracts) tbody tr')]"
    names = f"{cells}.map(row => row.cells[0].textContent.trim())"
    head.click()
    up = shown.page.evaluate(names)
    assert table.locator("th").first.get_attribute("aria-sort") == "ascending"
    head.click()
    down = shown.page.evaluate(names)
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)
    assert up[0] != down[0]


def test_claims_are_filtered_by_words_and_by_verdict(shown: Shown) -> None:
    rows = shown.page.locator(".claims tbody tr")
    field = shown.page.locator(".claims input[type=search]")
    field.fill("adapter norm")
    seen = rows.filter(visible=True)
    assert 0 < seen.count() < rows.count()
    assert all("norm" in each.lower() for each in seen.all_text_contents())
    field.fill("")
    assert seen.count() == rows.count()
    button = shown.page.locator("button[data-verdict=failed]")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert {each.get_attribute("data-verdict") for each in seen.all()} <= {"failed"}
    button.click()
    assert seen.count() == rows.count()


def test_light_and_dark_have_their_own_paper_ink_and_drawings(shown: Shown) -> None:
    look = (
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        " document.images[0].currentSrc]"
    )
    light = shown.page.evaluate(look)
    shown.page.emulate_media(color_scheme="dark")
    shown.page.wait_for_function(f"{look}[2] !== {light[2]!r}")
    dark = shown.page.evaluate(look)
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_on_a_phone_nothing_is_wider_than_the_page(shown: Shown) -> None:
    shown.page.set_viewport_size(PHONE)
    shown.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert fits(shown.page)
    cut = shown.page.evaluate(
        "[...document.querySelectorAll('.stacked .scroll')]"
        ".filter(each => each.scrollWidth > each.clientWidth + 1)"
        ".map(each => each.getAttribute('aria-labelledby') || 'claims')"
    )
    assert cut == []
    assert shown.page.locator(".table.stacked").count() >= 3


def test_in_print_tools_are_gone_and_no_table_is_cut(shown: Shown) -> None:
    shown.page.emulate_media(media="print")
    for gone in (".tools", "nav", ".files"):
        assert shown.page.locator(gone).filter(visible=True).count() == 0, gone
    heights = shown.page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(each => each.offsetParent)"
        ".map(each => [each.scrollHeight, each.clientHeight])"
    )
    assert heights
    assert all(whole <= seen + 1 for whole, seen in heights)


def test_the_keyboard_reaches_the_claims_first(shown: Shown) -> None:
    shown.page.keyboard.press("Tab")
    assert shown.page.evaluate("document.activeElement.getAttribute('href')") == "#claims"
