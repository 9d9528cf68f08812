"""The lab Cost of confidence fills while it measures, and fits a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.gate import Gate

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)


@pytest.mark.stress
def test_a_measurement_is_drawn_while_it_goes_on_and_fits_a_phone(visit: Open, gate: Gate) -> None:
    # with small budgets, as `tests.plugin_gate` says
    gate.hold("cost", 20)
    # plots are drawn in sight only
    page = visit("/cost", viewport={"width": 1280, "height": 3200})
    expect(page.get_by_role("heading", name="Cost of confidence")).to_be_visible()
    page.get_by_role("button", name="Measure").click()
    drawn = page.locator(".bp-plot .main-svg:first-child")
    expect(page.get_by_text("Measuring: ")).to_be_visible()
    # before all is measured
    expect(drawn.first).to_be_visible()
    gate.open()
    expect(page.get_by_text("Measured: ")).to_be_visible()
    expect(page.get_by_role("heading", name="Agreement with exact widths")).to_be_visible()
    expect(page.locator(".bp-plot[data-wait]")).to_have_count(0)
    expect(drawn).to_have_count(7)
    expect(page.get_by_role("group", name="Time vs. observations")).to_be_visible()
    expect(page.get_by_text("one decision with exact widths and its update take")).to_be_visible()
    page.get_by_title("Hide Backward passes in all plots").click()
    expect(page.get_by_title("Show Backward passes again")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("heading", name="Times and limits")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("textbox", name="Hidden layers").fill("5000")
    page.get_by_role("textbox", name="Hidden layers").press("Tab")
    page.get_by_role("button", name="Measure").click()
    expect(page.get_by_text("it must be a whole number from 1 to 1,024")).to_be_visible()
