"""The Arena on the screen: what is in sight, presentation mode, names at the ends of lines, two
tabs.
"""

from __future__ import annotations

import itertools
import re

import pytest
from playwright.sync_api import Page, Route, expect

from bandits.experiments import url
from tests.browser.conftest import Open
from tests.browser.test_instant import drag
from tests.browser.test_journeys import LOOK, RANGE, set_number, status, tiles
from tests.gate import Gate
from tests.support import experiment, wait_for

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

SHOP = experiment(
    "linucb",
    "lints",
    {"kind": "epsilon_greedy"},
    "ucb1",
    "random",
    steps=800,
    replications=4,
    seed=31,
)
TOP = "document.querySelector('.bp-plot').getBoundingClientRect().top"
BOXES = """i => [...(document.querySelectorAll('.bp-cell')[i]?.querySelectorAll('.bp-ends span') || [])]
  .map(e => { const r = e.getBoundingClientRect(); return [r.top, r.bottom, r.left, r.right] })"""  # noqa: E501

# all four plots are drawn, as high as their places, and reach the end of a window of this height
FILLED = """height => { const all = [...document.querySelectorAll('.bp-plot:not([data-wait])')]
  return all.length === 4 && all.every(e => Math.abs(e._fullLayout.height - e.clientHeight) <= 1)
    && all[3].getBoundingClientRect().bottom > height - 40
    && all[3].getBoundingClientRect().bottom <= height }"""


def finished(visit: Open, width: int, height: int, **options: object) -> Page:
    page = visit(
        f"/arena?{url.query(SHOP)}", viewport={"width": width, "height": height}, **options
    )
    status(page, "^Finished: 800 steps")
    return page


def labelled(page: Page, plot: int = 0) -> list[list[float]]:
    """Return top, bottom, left and right of the names at the ends of the lines of a plot."""
    page.wait_for_function(f"i => ({BOXES})(i).length > 0", arg=plot, polling=LOOK)
    found: list[list[float]] = page.evaluate(BOXES, plot)
    return found


@pytest.mark.stress
def test_the_first_curve_is_above_the_fold(visit: Open) -> None:
    page = finished(visit, 1280, 800)
    labelled(page)
    assert page.evaluate(TOP) < 420
    expect(page.locator(".st-key-run-status").get_by_role("progressbar")).to_have_count(0)
    # the slider is followed: it runs by itself
    expect(page.locator(".bi-strip").first).to_be_attached()
    page.get_by_role("slider", name=re.compile("^Exploration bonus")).first.press("ArrowRight")
    dotted = re.compile(r"^Dotted: previous run. LinUCB, alpha .* alpha \S")
    expect(page.locator(".bp-words").filter(has_text=dotted)).to_be_visible()
    status(page, "^Finished: 800 steps")
    # with a previous run
    assert page.evaluate(TOP) < 420
    set_number(page, "Steps", 900)
    expect(page.get_by_text("to update the results")).to_be_visible()
    # and with a line that the controls have changed
    assert page.evaluate(TOP) < 420
    page.get_by_role("button", name="About Click-through rate").click()
    expect(page.get_by_role("tooltip").filter(has_text="Moving average over")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)
    # the title and the description of a preset can be read whole
    page.get_by_role("button", name="Choose a preset").click()
    page.get_by_role("button", name="Neural agents on the pet shop").click()
    expect(page.get_by_text("to start it")).to_be_visible()
    labelled(page)
    assert page.evaluate(TOP) < 420
    title = page.get_by_role("button", name="Neural agents on the pet shop")
    assert title.evaluate("e => e.scrollWidth <= e.clientWidth")
    page.get_by_role("button", name="Read all").click()
    expect(page.get_by_test_id("stPopoverBody").get_by_text("Thompson sampling")).to_be_visible()


def test_four_plots_four_sliders_and_run_are_in_sight_at_once(visit: Open) -> None:
    page = finished(visit, 1366, 768)
    names = ("^Exploration bonus", "^Ridge", "^Noise variance", "^Exploration rate")
    sliders = [page.get_by_role("slider", name=re.compile(name)).first for name in names]
    run = page.get_by_test_id("stMain").get_by_role("button", name=re.compile("^Run"))
    for width, height in ((1366, 768), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(FILLED, arg=height, polling=LOOK)
        plots = page.locator(".st-key-result .bp-cell").all()[:4]
        for part in (*sliders, run, *plots):
            box = part.bounding_box()
            assert box is not None
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= height
    titles = page.locator(".bp-title").all_inner_texts()[:4]
    assert titles == [
        "Click-through rate",
        "Cumulative regret",
        "Selection entropy",
        "Eigenvalue spectrum",
    ]
    a_presentation_fills_the_screen_of_any_size(page)
    lines_have_names_at_their_ends_that_do_not_overlap(page)
    # live: a slider that moves is followed by a run
    sliders[-1].press("ArrowRight")
    expect(page.locator(".bp-words").filter(has_text="Dotted: previous run")).to_be_visible()


def a_presentation_fills_the_screen_of_any_size(page: Page) -> None:
    page.get_by_role("button", name="Present", exact=True).click()
    expect(page.locator(".bp-alone .bp-cell")).to_have_count(4)
    for width, height in ((1280, 720), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(FILLED, arg=height, polling=LOOK)
        cells = page.locator(".bp-cell").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect().toJSON())"
        )
        assert max(cell["bottom"] for cell in cells) <= height
        assert min(cell["height"] for cell in cells[2:]) > 0.28 * height
        assert cells[3]["bottom"] > height - 24
        assert cells[3]["right"] > width - 60
        scrolls = "e => [e.scrollHeight - e.clientHeight, e.scrollWidth - e.clientWidth]"
        assert max(page.get_by_test_id("stMain").evaluate(scrolls)) <= 1
    # alpha, sigma², epsilon, bonus
    expect(page.get_by_test_id("stMain").get_by_role("slider")).to_have_count(4)
    expect(page.locator(".bp-note").filter(visible=True)).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Arena", exact=True)).to_be_visible()
    expect(page.locator(".bp-alone")).to_have_count(0)
    # all four are in sight, as before the presentation
    page.wait_for_function(FILLED, arg=1080, polling=LOOK)


def lines_have_names_at_their_ends_that_do_not_overlap(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 2000})
    for plot in range(4):
        boxes = sorted(labelled(page, plot))
        assert all(below[0] >= above[1] - 1 for above, below in itertools.pairwise(boxes))
    names = page.locator(".bp-cell").first.locator(".bp-ends span").all_inner_texts()
    assert sorted(names) == sorted([*SHOP.labels, "oracle", "random choice"])
    expect(page.locator(".bp-lines li").filter(visible=True)).to_have_count(0)
    # where not all fit, the agents keep theirs
    page.set_viewport_size({"width": 1280, "height": 650})
    ends = page.locator(".bp-cell").first.locator(".bp-ends span")
    expect(ends).to_have_count(len(SHOP.labels))
    assert sorted(ends.all_inner_texts()) == sorted(SHOP.labels)
    page.set_viewport_size({"width": 1280, "height": 2000})
    page.get_by_title("Hide LinTS in all plots").click()
    page.wait_for_function(
        "() => ![...document.querySelectorAll('.bp-ends span')].some(e => e.textContent === "
        "'LinTS')",
        polling=LOOK,
    )


def test_the_menu_of_a_plot_zooms_and_saves_by_keyboard(visit: Open) -> None:
    page = finished(visit, 1280, 900)
    labelled(page)
    box = page.locator(".bp-cell figcaption").first.bounding_box()
    assert box is not None
    # one line: the menu takes none of its own
    assert box["height"] < 32
    before = page.evaluate(RANGE, 0)
    page.get_by_role("button", name="Menu of Click-through rate").press("Enter")
    page.get_by_role("button", name="Zoom in", exact=True).press("Enter")
    page.wait_for_function(f"before => ({RANGE})(0)[1] < before[1]", arg=before, polling=LOOK)
    page.get_by_role("button", name="Reset zoom", exact=True).press("Enter")
    page.wait_for_function(f"before => ({RANGE})(0)[1] === before[1]", arg=before, polling=LOOK)
    page.keyboard.press("Escape")
    for ending in ("png", "svg"):
        page.get_by_role("button", name="Menu of Click-through rate").press("Enter")
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save Click-through rate as {ending.upper()}").press(
                "Enter"
            )
        assert download.value.suggested_filename == f"Click-through rate.{ending}"
        saved = download.value.path().read_bytes()
        assert saved.startswith(b"\x89PNG" if ending == "png" else b"<svg")
        if ending == "svg":
            assert all(name.encode() in saved for name in ("LinUCB", "Click-through rate"))
    page.keyboard.press("Escape")
    one_menu_is_open_at_a_time(page)


def one_menu_is_open_at_a_time(page: Page) -> None:
    """As in Safari: a press on a button focuses the nearest parent that takes the focus, or
    nothing.
    """
    page.evaluate("""document.addEventListener('mousedown', event => {
      const button = event.target.closest('.bp-corner button')
      if (!button) return
      event.preventDefault()
      const parent = button.closest('[tabindex]')
      parent?.closest('.bp-corner') ? parent.focus() : document.activeElement.blur()
    })""")
    mark = page.get_by_role("button", name="Menu of Click-through rate")
    opened = page.locator(".bp-menu").filter(visible=True)
    mark.press("Enter")
    zoom, pan = (
        page.get_by_role("button", name=f"Drag to {way}", exact=True) for way in ("zoom", "pan")
    )
    expect(zoom).to_have_attribute("aria-pressed", "true")
    # opened by keyboard and then clicked
    pan.click()
    expect(pan).to_have_attribute("aria-pressed", "true")
    expect(zoom).to_have_attribute("aria-pressed", "false")
    page.locator(".bp-more").nth(1).click()
    expect(opened).to_have_count(1)
    expect(mark).to_have_attribute("aria-expanded", "false")
    page.get_by_role("heading", name="Arena", exact=True).click()
    expect(opened).to_have_count(0)


@pytest.mark.stress
def test_the_menu_of_a_plot_waits_for_the_first_drawing(visit: Open) -> None:
    page = visit("/learn?view=glossary")
    held: list[Route] = []
    page.route("**/vendor/plotly.min.js*", lambda route: held.append(route))
    page.goto(page.url.replace("/learn?view=glossary", f"/arena?{url.query(SHOP)}"))
    status(page, "^Finished: 800 steps")
    page.get_by_role("button", name="Menu of Click-through rate").click()
    items = page.locator(".bp-menu").filter(visible=True).get_by_role("button")
    expect(items).to_have_count(7)
    assert items.evaluate_all("all => all.every(e => e.disabled)")
    wait_for(lambda: held or page.wait_for_timeout(LOOK), "the request of Plotly")
    held[0].continue_()
    expect(items.first).to_be_enabled()
    assert not items.evaluate_all("all => all.some(e => e.disabled)")


@pytest.mark.stress
def test_six_agents_with_long_names_fit_in_one_row(visit: Open) -> None:
    agents = [{"kind": "epsilon_greedy", "label": f"ε-greedy epsilon 0.{i}5"} for i in range(5)]
    e = experiment(
        {"kind": "linucb", "label": "LinUCB disjoint alpha 1.5"},
        *agents,
        steps=800,
        replications=4,
        seed=31,
    )
    page = visit(f"/arena?{url.query(e)}", viewport={"width": 1280, "height": 800})
    status(page, "^Finished: 800 steps")
    expect(tiles(page)).to_have_count(6)
    boxes = tiles(page).evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")
    assert len({box["top"] for box in boxes}) == 1
    names = page.locator(".bp-tile b").evaluate_all(
        "all => all.map(e => [e.clientHeight, e.scrollHeight])"
    )
    # two lines at most
    assert all(36 >= shown >= whole - 1 for shown, whole in names)


@pytest.mark.stress
def test_a_narrow_plot_has_a_legend_instead(visit: Open) -> None:
    page = finished(visit, 390, 844, has_touch=True, is_mobile=True)
    page.locator(".bp-plot").first.scroll_into_view_if_needed()
    lines = page.locator(".bp-cell").first.locator(".bp-lines li")
    expect(lines).to_have_text([*SHOP.labels, "oracle", "random choice"])
    assert page.locator(".bp-ends span").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.stress
def test_two_tabs_of_a_run_agree(visit: Open, gate: Gate) -> None:
    e = experiment("linucb", "lints", "random", steps=3000, replications=4, seed=32)
    gate.hold(32, 1000)
    one = visit(f"/arena?{url.query(e)}")
    two = visit(f"/arena?{url.query(e)}")
    for page in (one, two):
        status(page, "^Step 1,000 of 3,000")
        expect(tiles(page).filter(has_text="leads")).to_have_count(1)
    assert tiles(one).all_inner_texts() == tiles(two).all_inner_texts()
    gate.open(32)
    for page in (one, two):
        status(page, "^Finished: 3,000 steps")
        expect(page.get_by_text("of the gap between random choice and the oracle")).to_be_visible()
    assert tiles(one).all_inner_texts() == tiles(two).all_inner_texts()
    said = [page.get_by_test_id("stMain").locator("li").all_inner_texts() for page in (one, two)]
    assert said[0] == said[1]


def test_home_shows_four_plots_and_the_sliders_of_its_agents_at_once(visit: Open) -> None:
    page = visit("/", viewport={"width": 1280, "height": 720})
    status(page, "^Finished: 20,000 steps")
    page.wait_for_function(FILLED, arg=720, polling=LOOK)
    sliders = page.get_by_test_id("stMain").get_by_role("slider")
    # alpha twice, sigma², epsilon
    expect(sliders).to_have_count(4)
    for part in (*sliders.all(), *page.locator(".bp-cell").all()):
        box = part.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 720
    # no card over them
    expect(page.locator(".bp-tour")).to_have_count(0)
    # what stands below a slider that moves, or that runs on release, takes no room from them
    drag(page, sliders.first, 60)
    expect(page.locator(".bi-text").first).not_to_be_empty()
    page.wait_for_function(FILLED, arg=720, polling=LOOK)
    # clicks won or lost, once it is released and run
    page.mouse.up()
    dotted = page.locator(".bp-words").filter(has_text="Dotted: previous run. LinUCB, alpha ")
    expect(dotted.filter(has_text="fewer clicks than with alpha 0.5")).to_be_visible()
