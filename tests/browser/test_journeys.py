"""What people do, in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from bandits.experiments import url
from tests.browser.conftest import Open
from tests.gate import Gate
from tests.support import experiment, wait_for

pytestmark = pytest.mark.browser
# patience, not a claim: a busy machine trains networks meanwhile
expect.set_options(timeout=240_000)

# milliseconds between looks: at every frame they would take the processor from what is looked at
LOOK = 250
DRAWN = ".bp-plot:not([data-wait]) .scatterlayer path.js-line"
# steps between the points of a curve in a run of 10,000,000 steps
SPACING = 10_000
# without a network, whose training takes longer than these runs
SMALL = experiment(
    "linucb", "lints", "epsilon_greedy", "random", steps=1000, replications=4, seed=33
)
RACERS = ["LinUCB", "LinUCB alpha 1.5", "LinTS", "ε-greedy", "Static MLP", "A/B test"]
# the numbers behind the lines of a plot: the last step, and how many points are finite
LINES = """i => document.querySelectorAll('.bp-plot')[i].data.filter(t => !t.fill && !t.meta)
  .map(t => ({name: t.name, last: t.x[t.x.length - 1], points: Array.from(t.y).filter(Number.isFinite).length}))"""  # noqa: E501
RANGE = "i => document.querySelectorAll('.bp-plot')[i]._fullLayout.xaxis.range.map(Number)"
# the last step that is drawn; before the first drawing, -Infinity
LAST = """i => Math.max(...(document.querySelectorAll('.bp-plot')[i]?.data || []).filter(t => !t.meta)
  .map(t => t.x[t.x.length - 1]))"""  # noqa: E501


def status(page: Page, text: str) -> Locator:
    """Find the line that states how far the run is.

    A finished run has no bar, and its plots are up to date.
    """
    found = page.locator(".st-key-run-status, [data-testid=stProgress]").get_by_text(
        re.compile(text)
    )
    expect(found).to_be_visible()
    # the plots are updated after the line, by a fragment of their own
    if text.startswith(("^Finished", "^Stopped")):
        page.locator(".bp-live[data-final=true]").first.wait_for()
    return found


def step(page: Page) -> int:
    text = status(page, r"^(Step|Stopped at step) [\d,]+ of").inner_text()
    found = re.search(r"tep ([\d,]+) of", text)
    assert found is not None
    return int(found[1].replace(",", ""))


def tiles(page: Page) -> Locator:
    return page.get_by_role("list", name="Leaderboard").get_by_role("listitem")


def drawn(page: Page, plots: int = 4) -> None:
    """The plots hold lines, on the screen and behind it."""
    for i in range(plots):
        plot = page.locator(".bp-plot").nth(i)
        plot.scroll_into_view_if_needed()
        expect(page.locator(".bp-cell").nth(i).locator(DRAWN).first).to_be_attached()
        page.wait_for_function(
            f"i => {{ const all = ({LINES})(i); return all.length && all.every(t => t.points > 3) }}",  # noqa: E501
            arg=i,
            polling=LOOK,
        )
        path = page.locator(".bp-cell").nth(i).locator(DRAWN).first.get_attribute("d") or ""
        assert path.count("L") + path.count("H") + path.count("V") > 2 or path.count("C") > 2, path


def set_number(page: Page, label: str, value: object) -> None:
    box = page.get_by_role("spinbutton", name=re.compile(f"^{label}"))
    box.fill(str(value))
    box.press("Enter")
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


def small(visit: Open) -> Page:
    """Open the Arena by the link to a short run."""
    page = visit(f"/arena?{url.query(SMALL)}")
    status(page, "^Finished: 1,000 steps, 4 replications")
    return page


def run_button(page: Page) -> Locator:
    return page.get_by_test_id("stMain").get_by_role("button", name=re.compile("^Run"))


def run_long(page: Page, gate: Gate, seed: int) -> None:
    """A run that lasts until it is stopped: it stands still at step 40,000, or where another test
    has left it.
    """
    gate.hold(seed, 40_000)
    set_number(page, "Steps", 10_000_000)
    run_button(page).click()
    status(page, "^Step [1-9]")
    wait_for(lambda: (gate.stands(seed) or 0) > 0, "the run to stand still")
    # before its own plots those of the page's first result may be there, whose zoom ends with it:
    # 1,000 steps
    page.wait_for_function(
        f"step => ({LAST})(1) > step - {SPACING}", arg=gate.stands(seed), polling=LOOK
    )


def stop(page: Page) -> None:
    # while busy, Streamlit has a Stop too
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    status(page, r"^Stopped at step [\d,]+ of 10,000,000; results so far are kept")


def test_the_first_thing_seen_is_a_race(visit: Open) -> None:
    page = visit()
    expect(page.get_by_role("heading", name="Bandit Playground")).to_be_visible()
    status(page, "^Finished: 20,000 steps, 16 replications")
    expect(tiles(page)).to_have_count(6)
    names = [text.split("\n")[0] for text in tiles(page).all_inner_texts()]
    assert sorted(names) == sorted(RACERS)
    assert "leads" in tiles(page).first.inner_text()
    rates = [float(re.findall(r"0\.\d{3}", text)[0]) for text in tiles(page).all_inner_texts()]
    assert rates == sorted(rates, reverse=True)
    drawn(page, plots=2)
    lines: list[dict[str, Any]] = page.evaluate(LINES, 0)
    assert sorted(line["name"] for line in lines) == sorted(RACERS)
    assert {line["last"] for line in lines} == {20_000}
    expect(page.get_by_text("of the gap between random choice and the oracle")).to_be_visible()
    labels = page.locator(".bp-plot").evaluate_all(
        "all => all.map(p => p.getAttribute('aria-label'))"
    )
    assert [label.split(":")[0] for label in labels][:2] == [
        "Click-through rate",
        "Cumulative regret",
    ]
    page.get_by_role("button", name="Open in the Arena").click()
    expect(page.get_by_role("heading", name="Arena")).to_be_visible()
    status(page, "^Finished: 20,000 steps")
    drawn(page)


def test_a_slider_a_key_and_another_result(visit: Open) -> None:
    page = small(visit)
    set_number(page, "Steps", 2000)
    # no slider is followed from here on
    expect(page.get_by_text("to update the results")).to_be_visible()
    slider = page.get_by_role("slider", name=re.compile("^Exploration")).first
    expect(slider).to_have_value("0.5")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 30, y, steps=6)
    page.mouse.up()
    expect(slider).not_to_have_value("0.5")
    dragged = float(slider.input_value())
    slider.press("ArrowRight")
    expect(slider).to_have_value(f"{dragged + 0.05:g}")
    page.keyboard.press("Control+Enter")
    status(page, "^Finished: 2,000 steps, 4 replications")
    expect(page.get_by_text("to update the results")).to_have_count(0)
    expect(tiles(page)).to_have_count(4)
    drawn(page, 1)
    assert {line["last"] for line in page.evaluate(LINES, 0)} == {2000}
    changed = tiles(page).filter(has_text="LinUCB")
    before = changed.inner_text()
    # no exploration at all
    slider.press("Home")
    expect(slider).to_have_value("0")
    page.keyboard.press("Control+Enter")
    expect(changed).not_to_have_text(before)
    status(page, "^Finished: 2,000 steps")


def test_a_live_run_is_zoomed_paused_resumed_stopped_and_continued(visit: Open, gate: Gate) -> None:
    page = small(visit)
    run_long(page, gate, SMALL.seed)
    page.evaluate("document.querySelectorAll('.bp-plot')[1].mark = 'the same'")
    plot = page.locator(".bp-plot").nth(1)
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 120, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 150, steps=6)
    page.mouse.move(box["x"] + 260, box["y"] + 200, steps=6)
    page.mouse.up()
    page.wait_for_function(f"() => ({RANGE})(1)[0] > 0", polling=LOOK)
    zoomed = page.evaluate(RANGE, 1)
    # three times more points than before
    for _ in range(3):
        last = page.evaluate(LAST, 1)
        gate.hold(SMALL.seed, last + 20_000)
        page.wait_for_function(f"last => ({LAST})(1) > last", arg=last, polling=LOOK)
        assert page.evaluate(RANGE, 1) == zoomed
    main = page.get_by_test_id("stMain")
    main.get_by_role("button", name="Pause").click()
    text = status(page, r"^Paused at step [\d,]+ of 10,000,000").inner_text()
    paused = int(re.findall(r"[\d,]+", text)[0].replace(",", ""))
    gate.hold(SMALL.seed, paused + 20_000)
    main.get_by_role("button", name="Resume").click()
    status(page, "^Step [1-9]")
    wait_for(lambda: step(page) > paused, "the run to go on")
    stop(page)
    assert page.evaluate(RANGE, 1) == zoomed
    assert page.evaluate("document.querySelectorAll('.bp-plot')[1].mark") == "the same"
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.dblclick(box["x"] + 200, box["y"] + 150)
    page.wait_for_function(f"end => ({RANGE})(1)[1] > end", arg=zoomed[1], polling=LOOK)
    set_number(page, "Steps", 500)
    run_button(page).click()
    status(page, "^Finished: 500 steps")
    main.get_by_role("button", name="Continue").click()
    status(page, "^Finished: 1,000 steps")
    expect(page.get_by_role("spinbutton", name=re.compile("^Steps"))).to_have_value("1000")
    drawn(page, 1)


@pytest.mark.stress
def test_a_run_goes_on_while_its_visitor_is_elsewhere(visit: Open, gate: Gate) -> None:
    page = small(visit)
    set_number(page, "Seed", 7)
    run_long(page, gate, 7)
    began = step(page)
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", name="Bandit Playground")).to_be_visible()
    gate.hold(7, 60_000)
    wait_for(lambda: gate.stands(7) == 60_000, "the run to go on")
    page.get_by_role("link", name="Arena").click()
    expect(page.get_by_role("heading", name="Arena")).to_be_visible()
    expect(page.get_by_role("spinbutton", name=re.compile("^Seed"))).to_have_value("7")
    page.wait_for_url(re.compile(r"simulator=petshop.*seed=7"))
    wait_for(lambda: step(page) > began, "news of it")
    again = step(page)
    gate.hold(7, 80_000)
    page.reload()
    expect(page.get_by_role("heading", name="Arena")).to_be_visible()
    wait_for(lambda: step(page) > again, "the run to go on")
    after = step(page)
    expect(page.get_by_role("spinbutton", name=re.compile("^Seed"))).to_have_value("7")
    expect(page.get_by_role("spinbutton", name=re.compile("^Steps"))).to_have_value("10000000")
    drawn(page, 2)
    # the link, in somebody else's browser
    friend = visit(page.url[page.url.index("/arena") :])
    assert step(friend) >= after
    stop(page)
    # without touching anything
    status(friend, "^Stopped at step")


@pytest.mark.stress
def test_a_shared_link_gives_the_same_numbers_in_another_browser(visit: Open) -> None:
    page = small(visit)
    set_number(page, "Steps", 700)
    run_button(page).click()
    status(page, "^Finished: 700 steps")
    page.get_by_role("button", name="Share").click()
    link = (
        page.get_by_test_id("stCode")
        .filter(has_text="steps=700")
        .first.inner_text()
        .replace("\n", "")
    )
    # readable as it stands
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/arena\?[\w.=&+-]+", link)
    assert link.split("?")[1] == page.url.split("?")[1]
    friend = visit(link[link.index("/arena") :])
    status(friend, "^Finished: 700 steps")
    expect(tiles(friend)).to_have_count(tiles(page).count())
    assert tiles(friend).all_inner_texts() == tiles(page).all_inner_texts()
    expect(friend.get_by_role("spinbutton", name=re.compile("^Steps"))).to_have_value("700")
    # edited, and never run before
    stranger = visit(link[link.index("/arena") :].replace("steps=700", "steps=750"))
    expect(stranger.get_by_text("This link was edited")).to_be_visible()
    status(stranger, "^Finished: 750 steps")
    assert tiles(stranger).all_inner_texts() != tiles(page).all_inner_texts()


def test_an_agent_is_hidden_and_left_alone_in_all_plots_at_once(visit: Open) -> None:
    page = small(visit)
    drawn(page)

    def everywhere(holds: str) -> None:
        """What the names in a plot must satisfy, in each of them.

        One that is out of sight is drawn when it is seen.
        """
        for i in range(4):
            page.locator(".bp-plot").nth(i).scroll_into_view_if_needed()
            page.wait_for_function(
                f"""i => {{ const names = [...new Set(document.querySelectorAll('.bp-plot')[i].data
                .filter(t => t.visible !== false && t.legendgroup).map(t => t.name))]; return {holds} }}""",  # noqa: E501
                arg=i,
                polling=LOOK,
            )

    tile = tiles(page).filter(has_text="LinTS").get_by_role("button", name=re.compile("^LinTS"))
    tile.click()
    expect(tile).to_have_attribute("aria-pressed", "false")
    everywhere("!names.includes('LinTS') && names.includes('LinUCB')")
    # the keyboard shows it again
    tile.press("Enter")
    everywhere("names.includes('LinTS')")
    page.get_by_role("button", name="Show only LinUCB", exact=True).click()
    everywhere("names.length === 1 && names[0] === 'LinUCB'")
    page.get_by_role("button", name="Show all agents").click()
    everywhere("names.length > 2")


def test_on_a_phone_at_night(visit: Open) -> None:
    page = visit(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, color_scheme="dark"
    )

    def fits() -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert (
            page.evaluate(
                "[...document.querySelectorAll('[data-testid=stMain], "
                "[data-testid=stSidebarContent]')].filter(e => e.clientWidth > 100 && "
                "e.scrollWidth > e.clientWidth + 1).map(e => e.dataset.testid)"
            )
            == []
        )
        wide = page.evaluate(
            "[...document.querySelectorAll('.bp-plot, .board li, [data-testid=stMain] "
            "button')].filter(e => {const r = e.getBoundingClientRect(); return r.width > 0 && "
            # a row that scrolls
            "!e.closest('.st-key-main-sliders') && "
            "(r.left < -1 || r.right > 391)}).length"
        )
        assert wide == 0

    status(page, "^Finished: 20,000 steps")
    fits()
    drawn(page, plots=2)
    (red, green, blue) = page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor.match(/[0-9]+/g).map(Number)"
    )[:3]
    assert max(red, green, blue) < 64
    ink = page.evaluate(
        "document.querySelector('.bp-plot')._fullLayout.font.color.match(/[0-9]+/g).map(Number)"
    )[:3]
    assert min(ink) > 150
    columns = page.locator(".bp-plot").evaluate_all(
        "all => all.map(p => Math.round(p.getBoundingClientRect().left))"
    )
    # one below the other
    assert len(set(columns)) == 1
    page.get_by_role("button", name="Open in the Arena").tap()
    expect(page.get_by_role("heading", name="Arena")).to_be_visible()
    fits()
    page.get_by_test_id("stExpandSidebarButton").tap()
    # the browser's own input in it is hidden
    first = page.get_by_test_id("stSlider").filter(visible=True).first
    first.scroll_into_view_if_needed()
    expect(first).to_be_in_viewport()
    box = first.bounding_box()
    assert box is not None
    assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    first.get_by_role("slider").press("ArrowRight")
    set_number(page, "Steps", 1000)
    fits()
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").tap()
    run_button(page).tap()
    status(page, "^Finished: 1,000 steps")
    fits()
    drawn(page)
