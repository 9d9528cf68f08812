"""Every page with a keyboard, a screen reader and a phone.

Axe-core finds nothing serious on any of them.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from bandits.experiments import url
from tests.browser.conftest import Open
from tests.browser.test_journeys import status
from tests.support import STRESS, experiment, thinned

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

PAGES = {
    "/": "Bandit Playground",
    "/?view=which": "Which should I use?",
    "/arena": "Arena",
    "/arena?view=diagnostics": "Diagnostics",
    "/sweep": "Sweep",
    "/labs": "Shock lab",
    "/labs?view=guards": "Guard rails",
    "/labs?view=new_items": "New items",
    "/labs?view=artwork": "Artwork",
    "/labs?view=visit": "One visit",
    "/labs?view=cost": "Cost of confidence",
    "/labs?view=production": "Production",
    "/data": "Your data",
    "/data?view=what_if": "What if?",
    "/runs": "Runs",
    "/learn": "Lessons",
    "/learn?view=glossary": "Glossary",
}
VIEWS = {
    **{path.rpartition("=")[2]: heading for path, heading in PAGES.items() if "=" in path},
    "cost": "Cost",
}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
# rules that Streamlit breaks and we cannot change, and where: the menu of pages nests sections as
# <ul><div><li>
STREAMLIT = {
    "list": "[data-testid=stSidebarNavItems]",
    "listitem": "[data-testid=stSidebarNavItems]",
}
# rules about colours
COLOURS = "color-contrast", "link-in-text-block"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
APP = "document.querySelector('[data-testid=stApp]')"
INSIDE = "([target, place]) => Boolean(document.querySelector(target)?.closest(place))"
VISIBLE_KEYS = (
    "[...document.querySelectorAll('kbd')].filter(e => e.getClientRects().length).map(e => "
    "e.innerText)"
)
NAMES = """[...document.querySelectorAll('[aria-label], [placeholder], [title]')].flatMap(e =>
  [e.getAttribute('aria-label'), e.getAttribute('placeholder'), e.title]).filter(Boolean)"""
FIRST_PLOT = """document.querySelector('.bp-plot').getBoundingClientRect().top
  + document.querySelector('[data-testid=stMain]').scrollTop"""


def settled(page: Page, heading: str) -> None:
    """Wait until a page is drawn."""
    expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)


def serious(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """What axe-core finds on the page as it is: serious and critical violations that are not
    Streamlit's own.

    By all rules, or by those that are named.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    only = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    # the shapes in a plot are thousands, of which axe reads neither names nor contrast
    context = {"exclude": [[".bp-plot svg"]]}
    found = page.evaluate(
        "([context, options]) => axe.run(context, options)",
        [context, {"resultTypes": ["violations"], **only}],
    )
    return [
        f"{page.url}: {violation['id']}: {node['target']} {node['html'][:200]}: "
        f"{node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
        if not page.evaluate(
            INSIDE, [node["target"][-1], STREAMLIT.get(violation["id"], "no-such-place")]
        )
    ]


def lasting(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """What axe-core still finds when the page has had time to draw what a new theme makes the
    server compute anew.
    """
    for _ in range(60):
        if not (found := serious(page, rules)):
            break
        page.wait_for_timeout(500)
    return found


def in_both_themes(page: Page) -> list[str]:
    """What axe-core finds on the page in the light and in the dark theme.

    The app follows the system at once.
    """
    found, colours = [], set()
    # themes differ in nothing else
    for scheme, rules in zip(THEMES, ((), COLOURS), strict=True):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"() => getComputedStyle({APP}).colorScheme === '{scheme}'")
        colours.add(page.evaluate(f"getComputedStyle({APP}).backgroundColor"))
        found += lasting(page, rules)
    assert len(colours) == len(THEMES)
    return found


def go_to(page: Page, path: str) -> None:
    """Open a page from the navigation, then the view of it."""
    name, _, view = path.partition("?view=")
    page.get_by_test_id("stTopNav").locator(f'a[href$="{name}"]').click()
    if view:
        page.get_by_test_id("stButtonGroup").get_by_text(VIEWS[view], exact=True).first.click()


def test_axe_finds_nothing_serious_on_any_page(visit: Open) -> None:
    e = experiment("linucb", "lints", "random", steps=800, replications=4, seed=31)
    page = visit(f"/arena?{url.query(e)}")
    found: list[str] = []
    status(page, "^Finished: 800 steps")
    # colours are those of the theme
    page.add_style_tag(content="*, ::before, ::after { transition: none !important }")
    # Home last: its race is longer than this run
    pages = sorted(PAGES.items(), key=lambda item: len(item[0]) == 1)
    for place, (path, heading) in enumerate(pages):
        # as users move: the run and the controls stay
        go_to(page, path)
        settled(page, heading)
        # pages share the colours of a theme; the others are read in the theme of the page before
        found += in_both_themes(page) if STRESS or place % 3 == 1 else lasting(page)
        names = page.evaluate(NAMES)
        assert not [name for name in names if re.search(r"[$\\]", name)], path
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Help")).to_be_visible()
    found += in_both_themes(page)
    assert found == []


def test_axe_finds_nothing_serious_on_a_phone_with_its_menu_open(visit: Open) -> None:
    page = visit("/arena", color_scheme="dark", **PHONE)
    settled(page, "Arena")
    found = serious(page)
    page.get_by_test_id("stExpandSidebarButton").tap()
    expect(page.get_by_test_id("stSidebarNavLink").first).to_be_in_viewport()
    found += serious(page)
    assert found == []


@pytest.mark.parametrize("path", thinned(["/", "/arena"], lambda _: False, lambda n: n == 0))
def test_on_a_phone_the_first_plot_is_near_the_top(visit: Open, path: str) -> None:
    page = visit(path, **PHONE)
    settled(page, PAGES[path])
    expect(page.locator(".bp-plot:not([data-wait])").first).to_be_attached()
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")
    # below the conclusion, and in sight
    assert page.evaluate(FIRST_PLOT) <= 800
    assert page.evaluate(VISIBLE_KEYS) == []
    menu = page.get_by_test_id("stExpandSidebarButton")
    assert "Menu" in page.evaluate(
        "b => getComputedStyle(b, '::after').content", menu.element_handle()
    )
    page.locator("button.bp-open").tap()
    expect(page.get_by_text("Start the tour")).to_be_visible()
    expect(page.get_by_text("Shortcuts", exact=True)).to_be_hidden()


@pytest.mark.parametrize(
    ("path", "label"),
    thinned(
        [("/arena", "Run"), ("/sweep", "Run"), ("/labs?view=cost", "Measure")],
        lambda _: False,
        lambda number: number == 0,
    ),
)
def test_the_main_button_is_reached_within_five_tab_stops(
    visit: Open, path: str, label: str
) -> None:
    page = visit(path)
    settled(page, PAGES[path])
    expect(page.locator("button.bp-open")).to_be_visible()
    page.keyboard.press("Tab")
    skip = page.get_by_role("button", name=f"Skip to {label}", exact=True)
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(
        page.get_by_test_id("stMain").get_by_role("button", name=re.compile(f"^{label}"))
    ).to_be_focused()


def test_the_tour_is_shown_on_request_from_any_page(visit: Open) -> None:
    page = visit("/learn?view=glossary", **PHONE)
    tour = page.locator(".bp-tour")
    settled(page, "Glossary")
    page.locator("button.bp-open").tap()
    page.get_by_role("button", name="Start the tour").tap()
    settled(page, "Bandit Playground")
    expect(tour.get_by_role("heading", name="Agents in one shop")).to_be_visible()
    expect(page.locator(".bp-board[data-bp-tour]")).to_be_visible()
    for _ in range(4):
        tour.get_by_role("button", name="Next").tap()
    expect(tour.get_by_text("Tour, 5 of 5")).to_be_visible()
    tour.get_by_role("button", name="Done").tap()
    expect(page.locator(".bp-tour, [data-bp-tour]")).to_have_count(0)
    page.reload()
    settled(page, "Bandit Playground")
    expect(page.locator("button.bp-open")).to_be_visible()
    # no card over the plots
    expect(tour).to_have_count(0)
