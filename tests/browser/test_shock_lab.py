"""A change from its choice to the sentence about recovery, another discount factor, and a link."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.test_journeys import run_button
from tests.browser.test_sweep import choose
from tests.support import wait_for

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
# labels of the dotted curves of a run before this one
BEFORE = """() => [...document.querySelectorAll('.bp-plot')].flatMap(p => p.data || [])
  .filter(t => t.line && t.line.dash === 'dot').length"""


def verdict(page: Page) -> str:
    """Wait for the sentence about recovery and for the clicks lost, which need the run without
    changes.
    """
    sentence = page.get_by_text(re.compile("^Recovery from the change from step 5,000 to 15,000"))
    expect(sentence).to_be_visible()
    expect(
        page.get_by_text(re.compile("^Clicks lost to the changes, against the same run"))
    ).to_be_visible()
    return sentence.inner_text()


def dotted(page: Page) -> int:
    """Count the dotted curves with the first plot in sight: others are not drawn."""
    page.locator(".bp-plot").first.scroll_into_view_if_needed()
    expect(page.locator(".bp-plot:not([data-wait])").first).to_be_attached()
    found: int = page.evaluate(BEFORE)
    return found


@pytest.mark.parametrize(("screen", "scheme"), [(PHONE, "dark")])
def test_puppy_parents_grow_up(
    visit: Open, screen: dict[str, Any], scheme: Literal["light", "dark"]
) -> None:
    page = visit("/shock_lab", color_scheme=scheme, **screen)
    choose(page, "Change", "Puppy parents grow up")
    run_button(page).click()
    before = verdict(page)
    assert dotted(page) == 0
    choose(page, "Discount factor γ", "0.999")
    wait_for(lambda: dotted(page), "the run before this one")
    after = verdict(page)
    assert "gamma 0.999 " in after
    assert after != before
    assert not page.evaluate(WIDER)
    address = urlsplit(page.url)
    shared = visit(f"{address.path}?{address.query}", color_scheme=scheme, **screen)
    assert verdict(shared) == after
