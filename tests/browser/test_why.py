"""From a finished race to why an arm was shown, and on to how well the agents explore."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from bandits.experiments import url
from tests.browser.conftest import Open
from tests.support import experiment

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)


# finite numbers behind a plot's traces, those of bars and heat maps included
POINTS = """i => document.querySelectorAll('.bp-plot')[i].data
  .flatMap(t => t.z ? Array.from(t.z).flatMap(row => Array.from(row)) : Array.from(t.y))
  .filter(Number.isFinite).length"""


def pick(page: Page, name: str) -> None:
    page.get_by_test_id("stMain").get_by_role("combobox", name=re.compile("Agent")).click()
    page.get_by_role("option", name=name, exact=True).click()


@pytest.mark.stress
def test_why_and_how_well(visit: Open) -> None:
    e = experiment("linucb", "lints", "random", steps=800, replications=4, seed=31)
    # all plots in sight
    page = visit(f"/arena?{url.query(e)}", viewport={"width": 1280, "height": 4200})
    expect(
        page.locator(".st-key-run-status").get_by_text(re.compile("^Finished: 800"))
    ).to_be_visible()

    page.get_by_test_id("stMain").get_by_text("Why this arm?").click()
    expect(
        page.get_by_text(re.compile(r"^LinUCB chose .*its mean plus bonus, .* was the highest"))
    ).to_be_visible()
    box = page.get_by_test_id("stMain").get_by_role("spinbutton", name=re.compile("^Step")).last
    box.fill("300")
    box.press("Enter")
    expect(page.get_by_text("LinUCB at step 300")).to_be_visible()
    pick(page, "LinTS")
    expect(page.get_by_text("LinTS at step 300")).to_be_visible()  # the step stays
    expect(page.get_by_text(re.compile(r"Choice probabilities \(exact"))).to_be_visible()

    page.get_by_test_id("stButtonGroup").get_by_text("Diagnostics", exact=True).click()
    expect(page.get_by_text("Finished: 800 steps", exact=False)).to_be_visible()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    page.get_by_text(re.compile(r"^Show the \d+ figures")).click()
    cells = page.locator(".bp-cell")
    # figures, rates of each of four segments, and who is shown what: a map for each agent and one
    # of the optimal choice
    expect(cells).to_have_count(22)
    # the linearity check says nothing about an agent that loses little
    expect(page.locator(".bp-plot[data-wait='Nothing to draw.']")).to_have_count(1)
    for i in range(10):
        # what is not in sight is not drawn
        cells.nth(i).scroll_into_view_if_needed()
        plot = cells.nth(i).locator(".bp-plot")
        if plot.get_attribute("data-wait") == "Nothing to draw.":
            continue
        expect(cells.nth(i).locator(".bp-plot:not([data-wait])")).to_be_visible()
        assert page.evaluate(POINTS, i) > 3, i
    pick(page, "Random")
    expect(page.get_by_text("This agent has no design matrix.", exact=False).first).to_be_visible()
