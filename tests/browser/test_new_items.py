"""Launched products from the press to when each agent found them.

A title and the pictures of two visitors.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from bandits.experiments.presets import presets
from bandits.results.artwork_title import titles
from tests.browser.conftest import Open
from tests.browser.test_journeys import run_button
from tests.browser.test_sweep import choose

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def summary(page: Page) -> str:
    """Wait for the sentence on a title."""
    sentence = page.get_by_text(re.compile("^At the end of the run, .* gets a take fraction of"))
    expect(sentence).to_be_visible()
    return sentence.inner_text()


@pytest.mark.parametrize(("screen", "scheme"), [(PHONE, "dark")])
def test_ten_products_are_launched_and_found(
    visit: Open, screen: dict[str, Any], scheme: Literal["light", "dark"]
) -> None:
    page = visit("/new_items", color_scheme=scheme, **screen)
    choose(page, "Launches", "A launch")
    run_button(page).click()
    found = page.get_by_text(
        re.compile("^The 10 products launched at step 10,000 get their fair share")
    )
    expect(found).to_be_visible()
    assert re.search(r" after [\d,]+ steps with LinUCB per arm \(", found.inner_text())
    assert ", shown too " in found.inner_text()
    assert not page.evaluate(WIDER)
    if screen is DESK:
        choose(page, "Launches", "A title night")
        run_button(page).click()
        earned = page.get_by_text(
            re.compile("^Take fraction on the 40 titles launched at step 10,000: LinUCB shared")
        )
        expect(earned).to_be_visible()
        assert "; optimal 0." in earned.inner_text()


@pytest.mark.parametrize(("screen", "scheme"), [(PHONE, "dark")])
def test_two_visitors_are_shown_two_pictures_of_a_title(
    visit: Open, screen: dict[str, Any], scheme: Literal["light", "dark"]
) -> None:
    page = visit("/artwork", color_scheme=scheme, **screen)
    choose(page, "Experiment", "A picture for each visitor")
    run_button(page).click()
    first = summary(page)
    choose(page, "Title", list(titles(presets()["artwork"].experiment).values())[1])
    expect(page.get_by_text(first)).to_have_count(0)
    assert summary(page) != first
    expect(page.get_by_text("Pictures and visitors")).to_be_visible()
    table = page.get_by_test_id("stMarkdown").locator("table").first
    expect(table.locator("tbody tr")).to_have_count(8)
    rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert len({row[0] for row in rows}) == 8  # visitors
    assert len({row[1].split(" (")[0] for row in rows}) >= 2  # pictures
    assert table.evaluate("t => t.getBoundingClientRect().right") <= page.evaluate(
        "document.documentElement.clientWidth"
    )
    shared = page.get_by_text(
        re.compile("^LinUCB shared has the higher take fraction: .* minus LinUCB per title")
    )
    expect(shared).to_be_visible()
    # two visitors, two pictures
    expect(page.get_by_text("what LinUCB shared estimates")).to_have_count(2)
    answers = page.get_by_text(re.compile("LinUCB shared chose picture")).all_inner_texts()
    assert len({re.search(r"chose picture (\d+)", answer)[1] for answer in answers}) == 2  # type: ignore[index]
    assert not page.evaluate(WIDER)
