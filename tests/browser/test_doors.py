"""Seven doors: their names in one line, and the views behind them, whose addresses last."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from bandits.experiments import url
from tests.browser.conftest import Open
from tests.browser.test_accessibility import PHONE, go_to, settled
from tests.support import experiment

pytestmark = pytest.mark.browser

NAMES = ["Home", "Arena", "Sweep", "Labs", "Data", "Runs", "Learn"]


def test_all_doors_stand_in_one_line(visit: Open) -> None:
    page = visit("/labs", viewport={"width": 1366, "height": 768})
    settled(page, "Shock lab")
    links = page.get_by_test_id("stTopNavLink")
    assert [name.splitlines()[-1].strip() for name in links.all_inner_texts()] == NAMES
    boxes = [link.bounding_box() for link in links.all()]
    assert all(box is not None for box in boxes)
    assert len({box["y"] for box in boxes if box is not None}) == 1
    expect(links.nth(NAMES.index("Labs")).locator("p, span").last).to_have_css("font-weight", "600")


@pytest.mark.stress
def test_on_a_phone_the_doors_are_in_the_menu(visit: Open) -> None:
    page = visit("/labs", **PHONE)
    settled(page, "Shock lab")
    page.get_by_test_id("stExpandSidebarButton").tap()
    links = page.get_by_test_id("stSidebarNavLink")
    expect(links.first).to_be_in_viewport()
    assert [name.splitlines()[-1].strip() for name in links.all_inner_texts()] == NAMES


def test_an_address_of_a_term_keeps_its_anchor(visit: Open) -> None:
    page = visit("/glossary#regret")
    settled(page, "Glossary")
    expect(page).to_have_url(re.compile(r"/learn\?view=glossary#regret$"))


def test_a_link_to_a_view_keeps_its_experiment_and_a_reload_keeps_the_view(visit: Open) -> None:
    e = experiment("linucb", seed=93, steps=400, simulator={"kind": "petshop", "n_products": 10})
    page = visit(f"/guard_rails?{url.query(e)}")
    settled(page, "Guard rails")
    expect(page).to_have_url(re.compile(r"/labs\?.*seed=93.*view=guards"))
    page.reload()
    settled(page, "Guard rails")
    go_to(page, "/data?view=what_if")
    settled(page, "What if?")
    page.reload()
    settled(page, "What if?")
    expect(page.get_by_role("combobox", name="Log")).to_have_value("Run: LinUCB")
