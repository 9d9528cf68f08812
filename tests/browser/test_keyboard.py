"""The keyboard while pages are drawn anew: the focus stays."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from bandits.experiments import url
from tests.browser.conftest import Open
from tests.browser.test_journeys import status
from tests.support import experiment

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

SHOP = experiment("linucb", "random", steps=800, replications=4, seed=33)


def test_a_slider_keeps_the_focus(visit: Open) -> None:
    page = visit(f"/arena?{url.query(SHOP)}")
    status(page, "^Finished: 800 steps")
    for name in ("Exploration bonus", "Ridge"):
        slider = page.get_by_role("slider", name=re.compile(f"^{name}")).first
        slider.focus()
        # both sliders are followed: every value is a run
        expect(page.locator(".bi-strip")).to_have_count(2)
        for presses in (1, 2):
            expect(page.get_by_test_id("stApp")).to_have_attribute(
                "data-test-script-state", "notRunning"
            )
            before = page.url
            page.keyboard.press("ArrowRight")
            changed = page.get_by_test_id("stSidebar").get_by_test_id("stExpander").first
            # the line of the agent shows it: the line is drawn anew
            if name == "Exploration bonus":
                expect(changed).to_contain_text(f"α {0.5 + presses / 20:g}")
            page.wait_for_url(lambda there, before=before: there != before)
            expect(slider).to_be_focused()
