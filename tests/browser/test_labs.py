"""Labs on a phone at night: the run of a link is drawn, and nothing is wider than the screen."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from bandits.experiments import url
from tests.browser.conftest import Open
from tests.browser.test_accessibility import PHONE
from tests.browser.test_journeys import DRAWN
from tests.support import experiment

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

SHOP: dict[str, Any] = {"kind": "petshop", "n_products": 10}
SHOCK = {**SHOP, "changes": [{"kind": "shock", "at": 1000}]}
LAUNCH = {
    "kind": "petshop",
    "n_products": 20,
    "n_users": 100,
    "changes": [{"kind": "launch", "at": 1000, "items": 2, "category": "Fish", "quality": 1.5}],
}
PICTURES = {
    "kind": "artwork",
    "n_titles": 20,
    "n_pictures": [3, 5],
    "n_users": 60,
    "n_retrieved": 3,
}
# the address, the simulator, and how the sentence on its run begins
LABS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("shock_lab", SHOCK, "^Recovery from the change|had nothing to recover"),
    ("new_items", LAUNCH, "^The 2 products launched at step 1,000"),
    ("artwork", PICTURES, "^At the end of the run, .* gets a take fraction of"),
)
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.mark.stress
def test_the_runs_of_links_fit_a_phone(visit: Open) -> None:
    for address, simulator, sentence in LABS:
        e = experiment("linucb", "random", simulator=simulator, steps=3000, seed=61)
        page = visit(f"/{address}?{url.query(e)}", color_scheme="dark", **PHONE)
        expect(page.get_by_text(re.compile(sentence)).first).to_be_visible()
        page.locator(".bp-plot").first.scroll_into_view_if_needed()
        expect(page.locator(DRAWN).first).to_be_attached()
        assert not page.evaluate(WIDER)
    table = page.get_by_test_id("stMarkdown").locator("table").first
    expect(table.locator("tbody tr")).to_have_count(8)
    assert table.evaluate("t => t.getBoundingClientRect().right") <= 390
