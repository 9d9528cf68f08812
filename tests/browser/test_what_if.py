"""A log of a user is uploaded and a policy evaluated on it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.test_sweep import choose

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def evaluate(page: Page) -> None:
    page.get_by_role("button", name="Evaluate").click()
    expect(page.get_by_text("Estimated value").first).to_be_visible()
    expect(page.get_by_text(re.compile(r"^To find a difference of 10\s%"))).to_be_visible()


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


def test_a_log_of_a_user(visit: Open) -> None:
    page = visit("/what_if", viewport={"width": 1280, "height": 800})
    choose(page, "Log", "Your file")
    page.locator("input[type=file]").set_input_files(log())
    expect(page.get_by_text("600 decisions, 3 items.")).to_be_visible()
    choose(page, "Target policy", "Always one item")
    evaluate(page)
    expect(page.locator(".bp-plot")).to_have_count(2)
    assert not page.evaluate(WIDER)
