"""A slider of the Arena answers while it moves, and its release is a run like any other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from bandits import Experiment, read, run
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits_app.arena.instant import follower
from tests.browser.conftest import Open
from tests.browser.test_journeys import LOOK, drawn, set_number, status, tiles
from tests.support import wait_for

# of a plot, how often each agent is drawn (bands left out), and its axes
CURVES = """i => document.querySelectorAll('.bp-plot')[i].data.filter(t => !t.fill && t.legendgroup)
  .reduce((n, t) => ({...n, [t.legendgroup]: (n[t.legendgroup] ?? 0) + 1}), {})"""
AXES = (
    "i => ['xaxis', 'yaxis'].map(a => "
    "document.querySelectorAll('.bp-plot')[i]._fullLayout[a].range.map(Number))"
)

# A websocket for the sliders cannot be opened, as behind some proxies; Streamlit's own can.
REFUSED = """window.WebSocket = class extends WebSocket {
  constructor(url, ...more) { super(String(url).replace(/instant$/, 'refused'), ...more); }
}"""

# What the server of the page says arrives later by so many milliseconds, in the same order.
SLOW = """window.WebSocket = class extends WebSocket {
  addEventListener(type, listener, ...more) {
    const late = type !== 'message' || !this.url.includes('_stcore/stream') ? listener : (event) => {
      const due = performance.now() + (window.slow ?? 0);
      window.before = (window.before ?? Promise.resolve())
        .then(() => new Promise((arrived) => setTimeout(arrived, due - performance.now())))
        .then(() => listener(event));
    };
    super.addEventListener(type, late, ...more);
  }
}"""  # noqa: E501

# The page holds a new value whose run it does not show yet; or, where a machine is slow, shows its
# run at once.
ANSWERED = """at => location.search.includes(at) || document.body.textContent.includes('to update the results')
  && document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'"""  # noqa: E501

# nothing of it is trained before
RACE = read(
    {
        **(first := presets()["race"].experiment.model_dump(mode="json")),
        "agents": [
            {"kind": "ucb1"} if agent["kind"] == "static_mlp" else agent
            for agent in first["agents"]
        ],
        "steps": 2000,
        "replications": 4,
    }
)
LINK = f"/arena?{url.query(RACE)}"
KEY_OF = (
    "node => [...node.closest('[class*=st-key-]').classList].find(name => "
    "name.startsWith('st-key-'))"
)


def short_race(visit: Open, **options: Any) -> Page:
    """The default experiment with 2,000 steps and 4 replications, opened by its link."""
    page = visit(LINK, **options)
    status(page, "^Finished: 2,000 steps, 4 replications")
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(tiles(page)).to_have_count(6)
    drawn(page, 2)
    page.evaluate("scrollTo(0, 0)")
    return page


def alpha(page: Page) -> Locator:
    return page.get_by_role("slider", name=re.compile("^Exploration bonus")).first


def strip(slider: Locator) -> Locator:
    return slider.locator("xpath=ancestor::*[contains(@class, 'stElementContainer')][1]").locator(
        ".bi-strip"
    )


def thumb(slider: Locator) -> tuple[float, float]:
    slider.scroll_into_view_if_needed()
    box = slider.locator("xpath=ancestor::*[@data-rac][1]").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Page, slider: Locator, by: float) -> None:
    """Press the thumb and move it, without releasing it."""
    x, y = thumb(slider)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by, y, steps=8)


def curves(page: Page) -> dict[str, int]:
    found: dict[str, int] = page.evaluate(CURVES, 0)
    return found


def stated(page: Page) -> str:
    """Return the sentence above the plots, as it is seen."""
    return page.locator(".st-key-conclusion").inner_text().strip().replace("\u00a0", " ")


def previewed(page: Page, label: str = "LinUCB") -> None:
    wait_for(lambda: curves(page).get(label) == 2, "the preview")


def rate(page: Page, label: str) -> str:
    tile = tiles(page).filter(
        has=page.get_by_role("button", name=re.compile(f"^{label}$|^{label} \\d|^{label} –"))
    )
    return re.findall(r"\d\.\d{3}", tile.first.inner_text())[0]


def shown(page: Page) -> Experiment:
    """The experiment in the page's address."""
    return url.parse_query(dict(parse_qsl(urlsplit(page.url).query))).experiment


def test_a_drag_is_answered_and_its_release_is_a_run(visit: Open) -> None:
    page = short_race(visit)
    before, axes, address = tiles(page).all_inner_texts(), page.evaluate(AXES, 0), page.url
    slider = alpha(page)
    drag(page, slider, 60)
    previewed(page)
    # the others cannot change
    assert {n for label, n in curves(page).items() if label != "LinUCB"} == {1}
    assert page.evaluate(AXES, 0)[0] == axes[0]
    expect(strip(slider)).to_contain_text(
        re.compile(r"than with alpha 0\.5|No significant difference from alpha 0\.5")
    )
    expect(strip(slider)).to_contain_text("4 replications, 2,000 steps")
    trying = page.locator(".bp-trying")
    expect(trying).to_have_count(1)
    # the sentence above the plots is of the value that they show
    assert re.match(
        rf"LinUCB, alpha {float(slider.input_value()):g}: (\d+ \w+ clicks than with|No significant "
        r"difference from) alpha 0\.5 .*\. The comparison with other agents follows on release\.$",
        stated(page),
    )
    # nothing is run before the release
    assert page.url == address
    # the plots are in sight
    expect(page.locator(".bp-peek")).to_have_count(0)
    value = float(slider.input_value())
    assert value > 0.5
    wait_for(lambda: "against 0.5" in trying.inner_text(), "the tile")
    page.mouse.up()
    page.wait_for_url(re.compile(rf"agents\.0\.alpha={value:g}(&|$)"))
    status(page, "^Finished: 2,000 steps, 4 replications")
    expect(trying).to_have_count(0)
    # the dotted previous run
    wait_for(lambda: curves(page)["LinUCB"] <= 2, "the preview to give way to the run")
    assert "earned" in stated(page)
    after = tiles(page).all_inner_texts()
    same = [text for text in before if text.split("\n")[0] not in ("LinUCB",)]
    assert len(after) == len(same) + 1
    # an agent earns the same without the others
    e = shown(page)
    alone = e.model_copy(update={"agents": e.agents[:1]})
    clicks = run(alone, workers=0).histories["LinUCB"].sums["clicks"][-1] / 2000
    # whose main parameter is not the default any more
    tile = next(text for text in after if text.startswith("LinUCB (alpha "))
    # the numbers of `run`
    assert f"{clicks.mean():.3f}" in tile


@pytest.mark.stress
def test_a_drag_is_taken_back_by_escape_by_its_way_back_and_by_a_reload(visit: Open) -> None:
    page = short_race(visit)
    before, address = tiles(page).all_inner_texts(), page.url
    slider = alpha(page)
    x, y = thumb(slider)
    drag(page, slider, 60)
    previewed(page)
    page.mouse.move(x, y, steps=4)
    expect(slider).to_have_value("0.5")
    page.mouse.up()
    wait_for(lambda: curves(page)["LinUCB"] == 1, "the preview to go")
    assert page.url == address
    assert "earned" in stated(page)
    drag(page, slider, 60)
    previewed(page)
    page.keyboard.press("Escape")
    wait_for(lambda: curves(page)["LinUCB"] == 1, "the preview to go")
    expect(alpha(page)).to_have_value("0.5")
    page.mouse.up()
    expect(alpha(page)).to_have_value("0.5")
    assert tiles(page).all_inner_texts() == before
    expect(page.get_by_text("to update the results")).to_have_count(0)
    assert page.url == address
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    drag(page, alpha(page), 60)
    previewed(page)
    page.reload()
    page.mouse.up()
    status(page, "^Finished: 2,000 steps, 4 replications")
    expect(tiles(page)).to_have_count(len(before))
    assert tiles(page).all_inner_texts() == before
    expect(alpha(page)).to_have_value("0.5")
    expect(page.locator(".bi-strip").first).to_be_attached()
    # now more than agents differs from the run that is shown: no slider is followed
    set_number(page, "Steps", 3000)
    wait_for(lambda: page.locator(".bi-strip").count() == 0, "the strips to go")
    alpha(page).press("ArrowRight")
    expect(page.get_by_text("to update the results")).to_be_visible()


def test_the_keyboard_alone(visit: Open) -> None:
    page = short_race(visit)
    slider = alpha(page)
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        expect(slider).to_be_focused()
    expect(alpha(page)).to_have_value("0.65")
    page.wait_for_url(re.compile(r"agents\.0\.alpha=0\.65"))
    status(page, "^Finished: 2,000 steps, 4 replications")
    expect(page.get_by_text("to update the results")).to_have_count(0)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(alpha(page)).to_be_focused()
    mark = strip(alpha(page)).get_by_role("button").first
    expect(mark).to_be_visible()
    # to the play mark
    page.keyboard.press("Tab")
    expect(mark).to_be_focused()
    expect(mark).to_have_accessible_name("Try all values of Exploration bonus of LinUCB one by one")
    page.keyboard.press("Enter")
    expect(strip(alpha(page))).to_contain_text(
        re.compile(
            r"^[^·]*Best of \d\d values: [\d.]+ \(0\.\d{3} in \d+ replications, [\d,]+ steps\)"
        )
    )
    # playing changes no setting
    expect(alpha(page)).to_have_value("0.65")
    assert strip(alpha(page)).locator(".bi-track i").count() > 20
    assert strip(alpha(page)).locator(".bi-best").count() >= 1
    wait_for(lambda: page.locator(".bp-trying").count() == 0, "the preview to go")


@pytest.mark.stress
def test_keys_that_overtake_the_page_are_run(visit: Open) -> None:
    page = visit("/learn?view=glossary")
    page.add_init_script(SLOW)
    page.goto(page.url.replace("/learn?view=glossary", LINK))
    status(page, "^Finished: 2,000 steps, 4 replications")
    drawn(page, 2)
    slider = alpha(page)
    expect(strip(slider)).to_be_visible()
    slider.focus()
    page.evaluate("window.slow = 1000")
    for value in (0.65, 0.8):
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        page.wait_for_function(ANSWERED, arg=f"agents.0.alpha={value}")
    page.evaluate("window.slow = 0")
    page.wait_for_url(re.compile(r"agents\.0\.alpha=0\.8(&|$)"))
    expect(alpha(page)).to_have_value("0.8")
    expect(page.get_by_text("to update the results")).to_have_count(0)
    assert shown(page).agents[0].model_dump()["alpha"] == 0.8
    # and the slider is followed as before
    alpha(page).press("ArrowRight")
    page.wait_for_url(re.compile(r"agents\.0\.alpha=0\.85(&|$)"))


@pytest.mark.stress
def test_two_parameters_at_once(visit: Open) -> None:
    page = short_race(visit)
    button = strip(alpha(page)).get_by_role(
        "button", name="Try both, Exploration bonus and Ridge, together, of LinUCB"
    )
    button.scroll_into_view_if_needed()
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    field = page.locator(".bi-field")
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.9 * box["height"])
    page.mouse.down()
    for i in range(1, 6):
        page.mouse.move(
            box["x"] + (0.1 + 0.1 * i) * box["width"], box["y"] + (0.9 - 0.1 * i) * box["height"]
        )
        wait_for(lambda n=i: field.locator(".bi-cell").count() >= n, "the background to fill")
    previewed(page)
    # it stays under the pointer
    assert field.bounding_box() == box
    expect(strip(alpha(page))).to_contain_text("alpha 0.5, ridge 1")
    page.mouse.up()
    page.wait_for_url(re.compile(r"agents\.0\.ridge="))
    status(page, "^Finished: 2,000 steps, 4 replications")
    agent = shown(page).agents[0].model_dump()
    assert agent["alpha"] > 1
    assert agent["ridge"] != 1
    expect(alpha(page)).to_have_value(f"{agent['alpha']:g}")
    wait_for(lambda: page.locator(".bp-trying").count() == 0, "the preview to give way to the run")
    # the card was drawn anew
    if not page.locator(".bi-field").count():
        strip(alpha(page)).get_by_role("button", name=re.compile("together")).click()
    page.locator(".bi-field").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".bp-trying")).to_have_count(1)
    page.keyboard.press("Escape")
    wait_for(lambda: page.locator(".bp-trying").count() == 0, "the preview to go")
    assert shown(page).agents[0].model_dump() == agent


@pytest.mark.stress
def test_behind_a_proxy_that_opens_no_further_websocket(server: str, browser: Browser) -> None:
    """The handshake is refused by the server itself.

    The console reports that, so this page is not `visit`'s.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(REFUSED)
    context.set_default_timeout(240_000)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    sent: list[str] = []
    page.on(
        "request",
        lambda one: (
            sent.append(one.url) if one.method == "POST" and "/instant" in one.url else None
        ),
    )
    page.goto(server + LINK)
    status(page, "^Finished: 2,000 steps, 4 replications")
    drawn(page, 2)
    slider = alpha(page)
    drag(page, slider, 60)
    expect(strip(slider)).to_contain_text("4 replications, 2,000 steps")
    previewed(page)
    many = len(sent)
    assert many >= 1
    x, y = thumb(slider)
    page.mouse.move(x + 20, y, steps=4)
    wait_for(lambda: len(sent) > many, "the next question")
    # the last move is drawn
    page.wait_for_timeout(LOOK)
    value = float(slider.input_value())
    page.mouse.up()
    page.wait_for_url(re.compile(rf"agents\.0\.alpha={value:g}(&|$)"))
    status(page, "^Finished: 2,000 steps, 4 replications")
    assert wrong == []
    context.close()


def test_an_answer_that_cannot_be_drawn_is_no_lost_connection(browser: Browser) -> None:
    """The next question, which is sent before the answer is drawn, is answered as usual."""
    page, header = browser.new_page(), b'{"whole":true}'
    page.route("**/*", lambda route: route.fulfill(body="<p>", content_type="text/html"))
    answer = len(header).to_bytes(4, "little") + header
    page.route("**/instant", lambda route: route.fulfill(body=answer))
    page.goto("http://line.test/")
    page.add_script_tag(
        content=(Path(follower.__file__).parent / "line.js").read_text(encoding="utf-8")
    )
    heard = page.evaluate("""async () => {
        WebSocket = class { static OPEN = 1; constructor() { setTimeout(() => this.onclose({ code: 1006 })); } close() {} };
        const heard = [];
        const line = makeLine("instant", (about, header) => {
          heard.push([about, header]);
          if (about === "first") throw new Error("drawing");
        });
        line.ask({}, "first");
        await new Promise((done) => setTimeout(done)); // it is being answered
        line.ask({}, "second");
        while (heard.length < 2) await new Promise((done) => setTimeout(done, 10));
        return heard;
    }""")  # noqa: E501
    assert heard == [["first", {"whole": True}], ["second", {"whole": True}]]
    page.close()


def test_on_a_touch_screen(visit: Open) -> None:
    page = short_race(visit, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.get_by_test_id("stExpandSidebarButton").tap()
    slider = alpha(page)
    x, y = thumb(slider)
    touch = page.context.new_cdp_session(page)

    def event(kind: str, *points: tuple[float, float]) -> None:
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": a, "y": b} for a, b in points]},
        )

    event("touchStart", (x, y))
    for i in range(1, 7):
        event("touchMove", (x + 8 * i, y))
        page.wait_for_timeout(LOOK / 5)
    expect(strip(slider)).to_contain_text(re.compile("alpha 0.5"))
    # the last move is drawn
    page.wait_for_timeout(LOOK)
    value = slider.input_value()
    # the sidebar hides the plots
    peek = page.locator(".bp-peek")
    expect(peek).to_contain_text(
        re.compile(r"^Click-through rate LinUCB 0\.\d{3} ± .* against 0\.5")
    )
    # six lines, oracle, random choice; line and band of what is tried
    assert peek.locator("path").count() == 10
    small, own = (
        peek.bounding_box(),
        slider.locator("xpath=ancestor::*[@role='group'][1]").bounding_box(),
    )
    assert small is not None
    assert own is not None
    assert small["x"] >= 0
    assert small["x"] + small["width"] <= 390
    assert (
        small["y"] + small["height"] <= own["y"]
        or own["y"] + own["height"] <= small["y"] <= 844 - small["height"]
    )
    event("touchEnd")
    page.wait_for_url(re.compile(rf"agents\.0\.alpha={float(value):g}(\.0)?(&|$)"))
    status(page, "^Finished: 2,000 steps, 4 replications")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(peek).to_have_count(0)


@pytest.mark.stress
def test_in_a_presentation(visit: Open) -> None:
    page = short_race(visit, viewport={"width": 1280, "height": 720})
    page.get_by_role("button", name="Present").click()
    expect(page.get_by_role("button", name="Exit presentation")).to_be_visible()
    # its sliders too
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    slider = alpha(page)
    drag(page, slider, 30)
    previewed(page)
    expect(strip(slider)).to_contain_text("4 replications, 2,000 steps")
    # takes the drag back; the presentation goes on
    page.keyboard.press("Escape")
    wait_for(lambda: curves(page)["LinUCB"] == 1, "the preview to go")
    page.mouse.up()
    expect(alpha(page)).to_have_value("0.5")
    # also once the page has answered
    page.wait_for_timeout(LOOK)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_role("button", name="Exit presentation")).to_be_visible()


@pytest.mark.stress
def test_a_slow_agent_shows_kept_runs_and_runs_on_release(visit: Open) -> None:
    def rated(rate: float) -> str:
        agents = [
            {"kind": "neural_greedy", "learning_rate": rate, "hidden": (4,)},
            {"kind": "random"},
        ]
        return url.query(read({"agents": agents, "steps": 200, "replications": 2, "seed": 75}))

    for rate in (0.02, 0.004, 0.01):
        page = visit(f"/arena?{rated(rate)}")
        status(page, "^Finished: 200 steps, 2 replications")
    drawn(page, 2)
    slider = page.get_by_role("slider", name=re.compile("^Learning rate")).first
    expect(strip(slider)).to_contain_text("Until then: the nearest of 2 stored runs")
    expect(strip(slider).locator(".bi-kept")).to_have_count(2)
    clear = (
        "marks => marks.filter(mark => /transparent|, "
        "0\\)/.test(getComputedStyle(mark).backgroundColor)).length"
    )
    # marks that are seen
    assert strip(slider).locator(".bi-kept").evaluate_all(clear) == 0
    before, address, drawn_as = tiles(page).all_inner_texts(), page.url, slider.evaluate(KEY_OF)
    drag(page, slider, 80)
    expect(strip(slider)).to_contain_text(
        re.compile(r"Stored run: learning rate = 0\.02, CTR 0\.\d{3}")
    )
    expect(page.locator(".bp-trying")).to_contain_text("stored run: learning rate = 0.02")
    assert page.locator(".bp-tried path").count() > 0
    page.keyboard.press("Escape")
    expect(page.locator(".bp-trying")).to_have_count(0)
    wait_for(lambda: slider.evaluate(KEY_OF) != drawn_as, "the controls to be drawn anew")
    page.mouse.up()
    expect(slider).to_have_attribute("aria-valuetext", "0.01")
    assert tiles(page).all_inner_texts() == before
    assert page.url == address
    expect(strip(slider)).to_contain_text("Until then")
    drag(page, slider, 80)
    expect(strip(slider)).to_contain_text("Stored run")
    page.mouse.up()
    page.wait_for_url(lambda there: there != address)
    status(page, "^Finished: 200 steps, 2 replications")
    rate = shown(page).agents[0].model_dump()["learning_rate"]
    assert rate > 0.01
    expect(strip(slider)).to_contain_text(re.compile("the nearest of [23] stored runs"))
