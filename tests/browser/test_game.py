"""Lesson 0 in the browser: with a thumb on a phone, with keys before a projector."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from bandits.lessons.answers import pulls_to_link
from tests.browser.conftest import Open
from tests.browser.test_accessibility import PHONE

pytestmark = pytest.mark.browser
# the link of a game with this many pulls made, of all levers in turn; the others are made here
MADE = 36
ADDRESS = "/learn?lesson=pull-the-levers&step=2&levers=246810&pulls=" + pulls_to_link(
    {"ten": [pull % 10 for pull in range(MADE)]}
)


def pulled(page: Page, pull: int) -> None:
    """Wait for the pull after this one."""
    words = f"Pull {pull + 2} of 40" if pull < 39 else "You pulled the best lever"
    expect(page.get_by_text(words)).to_be_visible(timeout=60_000)


def test_a_phone_and_a_keyboard_play_the_same_levers_and_share_a_plot(visit: Open) -> None:
    phone = visit(ADDRESS, **PHONE)
    levers = phone.locator(".st-key-levers").get_by_role("button")
    expect(levers).to_have_count(10, timeout=60_000)
    boxes = [levers.nth(i).bounding_box() for i in range(10)]
    # all under a thumb, on one screen
    assert all(b is not None and b["width"] >= 48 and b["height"] >= 48 for b in boxes)
    assert boxes[9] is not None
    assert boxes[9]["y"] + boxes[9]["height"] < 844
    for pull in range(MADE, 40):
        levers.nth(pull % 10).tap()
        pulled(phone, pull)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    page = visit(ADDRESS)
    page.set_viewport_size({"width": 1280, "height": 720})
    # keys work once the buttons are there
    expect(page.locator(".st-key-levers").get_by_role("button")).to_have_count(10, timeout=60_000)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    for pull in range(MADE, 40):
        page.keyboard.press(str((pull + 1) % 10))
        pulled(page, pull)
    same = "[data-testid=stTable] tr:nth-child(1) td:nth-child(2)"
    assert page.locator(same).first.inner_text() == phone.locator(same).first.inner_text()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.get_by_text("Play in a class").click()
    shown = page.get_by_text("Show the results of all players")
    # the expander grows while it opens
    expect(shown).to_be_visible()
    shown.click()
    expect(page.get_by_role("switch", name="Show the results of all players")).to_be_checked()
    expect(page.get_by_text(re.compile(r"[2-9] results:")).first).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="New levers").click()
    expect(page.get_by_text("Pull 1 of 40")).to_be_visible()
