"""A run is logged with a floor and another agent is evaluated on it; a log of a user."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from bandits.experiments import url
from tests.browser.conftest import Open
from tests.browser.test_accessibility import go_to
from tests.browser.test_journeys import status
from tests.browser.test_sweep import choose
from tests.support import experiment

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def evaluate(page: Page) -> None:
    page.get_by_role("button", name="Evaluate").click()
    expect(page.get_by_text("Estimated value").first).to_be_visible()
    expect(page.get_by_text(re.compile(r"^To find a difference of 10\s%"))).to_be_visible()


def test_a_run_with_a_floor_is_logged_and_another_agent_evaluated(visit: Open) -> None:
    floor = [{"kind": "floor", "epsilon": 0.2}]
    agents = [{"kind": kind, "guards": floor} for kind in ("epsilon_greedy", "lints")]
    e = experiment(*agents, seed=71, steps=4000, replications=4)
    page = visit(f"/arena?{urlencode(url.to_query(e))}", **DESK)
    status(page, "^Finished: 4,000 steps")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="Record decisions").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Decisions (Parquet)").click()
    assert download.value.suggested_filename.endswith(".parquet")
    page.keyboard.press("Escape")
    go_to(page, "/data?view=what_if")
    expect(page.get_by_role("combobox", name="Log")).to_have_value(re.compile("^Run: ε-greedy"))
    expect(page.get_by_role("combobox", name="Target policy")).to_have_value(re.compile("^LinTS"))
    evaluate(page)
    expect(
        page.get_by_text(re.compile("The simulator knows the true value.*the interval contains it"))
    ).to_be_visible()
    expect(page.locator(".bp-plot")).to_have_count(2)
    assert not page.evaluate(WIDER)


def log() -> dict[str, Any]:
    """A CSV of 600 uniformly random decisions."""
    g = np.random.default_rng(1)
    items, clicks = g.integers(0, 3, 600), g.random(600)
    rows = [
        f"{item},{int(click < 0.2 + 0.1 * item)},0.3333333333"
        for item, click in zip(items, clicks, strict=True)
    ]
    return {
        "name": "log.csv",
        "mimeType": "text/csv",
        "buffer": "\n".join(["item,click,propensity", *rows]).encode(),
    }


@pytest.mark.parametrize(("screen", "scheme"), [(DESK, "light")])
def test_a_log_of_a_user(
    visit: Open, screen: dict[str, Any], scheme: Literal["light", "dark"]
) -> None:
    page = visit("/what_if", color_scheme=scheme, **screen)
    choose(page, "Log", "Your file")
    page.locator("input[type=file]").set_input_files(log())
    expect(page.get_by_text("600 decisions, 3 items.")).to_be_visible()
    choose(page, "Target policy", "Always one item")
    evaluate(page)
    expect(page.locator(".bp-plot")).to_have_count(2)
    assert not page.evaluate(WIDER)
