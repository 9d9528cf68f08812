import re, pytest
from tests.browser.test_journeys import *
def test_probe(visit):
    page = visit("/arena")
    page.wait_for_timeout(3000)
    set_number(page, "Steps", 1_000_000)
    page.screenshot(path="/tmp/p0.png")
    page.get_by_role("button", name="Run", exact=False).first.click()
    for i in range(6):
        page.wait_for_timeout(3000)
        print(page.get_by_test_id("stProgress").all_inner_texts(), page.url, page.get_by_role("spinbutton").first.input_value(), page.get_by_text("controls have changed").count())
    page.screenshot(path="/tmp/p1.png")
