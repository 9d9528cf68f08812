"""The lab Production: the loop starts, its numbers move, a bad version is sent, and all ends."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)


def test_the_loop_is_started_broken_and_stopped(visit: Open) -> None:
    page = visit("/production", viewport={"width": 1366, "height": 900})
    page.get_by_role("button", name="Start").click()
    boxes = page.locator(".bp-boxes li")
    expect(boxes.filter(has_text="Choice")).to_contain_text("ms")
    # a bad version learns from rewards
    expect(boxes.filter(has_text="Reward")).to_contain_text(re.compile(r"[1-9]\d* rewards/s"))
    page.get_by_role("button", name="Break something").click()
    page.get_by_role("button", name="Bad model").click()
    expect(page.get_by_text(re.compile(r"Challenger: version \d+, before: ")).first).to_be_visible()
    expect(boxes.filter(has_text="Deployment")).to_contain_text("version")
    # while busy, Streamlit has a Stop too
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("All parts have ended.")).to_be_visible()
