"""A lesson in the browser: from a prediction to the card, by keyboard where a reader would.

A handout on paper.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from bandits.lessons import lessons
from bandits.lessons.handout import handout
from bandits.lessons.lesson import PredictStep, TryStep
from tests.browser.conftest import Open
from tests.browser.test_accessibility import in_both_themes, lasting
from tests.support import STRESS

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", name=text, exact=True)).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


def onwards(page: Page) -> None:
    """Press the main button by its shortcut."""
    page.keyboard.press("Control+Enter")


@pytest.mark.stress
def test_lesson_two_from_its_first_prediction_to_its_card(visit: Open) -> None:
    page = visit("/lessons")
    page.get_by_role("button", name="Start").nth(2).click()
    heading(page, "A choice in every visit")
    onwards(page)
    heading(page, "First act: an agent that never explores")
    page.get_by_role("slider").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("slider")).to_have_value("0.4")
    # the slider tells the server after 200 ms
    page.evaluate("() => new Promise(done => setTimeout(done, 600))")
    page.get_by_role("button", name="Keep my prediction").click()
    heading(page, "Three ways to choose")
    page.get_by_text("LinUCB alpha 1 the most, and the other two about the same").click()
    page.get_by_role("button", name="Keep my prediction").click()
    heading(page, "The shop opens")
    onwards(page)
    heading(page, "Clicks per visit")
    expect(page.locator(".bp-plot:not([data-wait])").first).to_be_visible()
    expect(page.get_by_text("your prediction").first).to_be_visible()
    main = page.get_by_test_id("stMain")
    main.evaluate("main => main.scrollTo(0, 400)")
    onwards(page)
    heading(page, "Why it stops learning")
    page.wait_for_function("() => document.querySelector('[data-testid=stMain]').scrollTop === 0")
    for name in ("How many products does it show?", "A bonus for the unknown"):
        onwards(page)
        heading(page, name)
    onwards(page)
    heading(page, "Second act: what does exploring cost?")
    page.get_by_role("button", name="Keep my prediction").click()
    for name in (
        "The lead of the explorer",
        "The beginning, close up",
        "An investment that pays",
        "More of it?",
    ):
        heading(page, name)
        if name != "More of it?":
            onwards(page)
    page.get_by_text("About as little as without exploration").click()
    page.get_by_role("button", name="Keep my prediction").click()
    for name in ("None, some, too much", "Two ways to lose", "What the visitor reveals"):
        heading(page, name)
        onwards(page)
    heading(page, "Your turn: how much is right?")
    page.get_by_role("button", name="Run", exact=False).click()
    expect(page.get_by_text("Not yet.")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    heading(page, "What to remember")
    onwards(page)
    heading(page, "What you predicted, and what happened")
    expect(page.get_by_text("Right predictions: 2 of 4. Solved tasks: 0 of 1.")).to_be_visible()
    expect(page.get_by_text("You predicted: 0.4 clicks per visit.")).to_be_visible()
    expect(page.get_by_text("Not right. The answer: 0.209 clicks per visit")).to_be_visible()
    expect(page.get_by_text("Not solved. Your last value")).to_be_visible()
    expect(page.get_by_text("of all decisions; the prediction")).to_be_visible()
    page.reload()
    # the link holds the place, predictions and attempts
    heading(page, "What you predicted, and what happened")
    expect(page.get_by_text("Not solved. Your last value")).to_be_visible()


def axe(page: Page, *, both: bool = STRESS) -> list[str]:
    """What axe finds in one theme or both, once the plots of the step are drawn."""
    expect(page.locator(".bp-plot[data-wait]")).to_have_count(0)
    return in_both_themes(page) if both else lasting(page)


def test_lesson_three_by_keyboard_alone_and_axe_finds_nothing_serious_at_any_step(
    visit: Open,
) -> None:
    """It has every kind of step."""
    page, found = visit("/lessons"), list[str]()
    page.add_style_tag(content="*, ::before, ::after { transition: none !important }")
    expect(page.get_by_role("button", name="Start").nth(3)).to_be_visible()
    page.get_by_role("button", name="Start").nth(3).focus()
    page.keyboard.press("Enter")
    for step in lessons()["ridge-regression-by-hand"].data.steps:
        heading(page, lessons()["ridge-regression-by-hand"].texts[step.id].title)
        found += axe(page)
        if step.id == "unseen":
            page.get_by_role("radiogroup", name="Your prediction").get_by_role(
                "radio"
            ).first.focus()
            page.keyboard.press("Space")
        elif step.id == "halved":
            for label, words in (("Most", "Banner, without"), ("Place 2", "Banner, with the")):
                page.get_by_role("combobox", name=re.compile(label)).focus()
                page.keyboard.type(words)
                page.keyboard.press("Enter")
                expect(page.get_by_test_id("stApp")).to_have_attribute(
                    "data-test-script-state", "notRunning"
                )
        elif step.id == "book":
            page.get_by_role("switch", name="Click D").or_(
                page.get_by_role("checkbox", name="Click D")
            ).focus()
            page.keyboard.press("Space")
            expect(page.get_by_role("row", name=re.compile("^visitor D"))).to_contain_text("00")
        if isinstance(step, PredictStep):
            keep = page.get_by_role("button", name="Keep my prediction")
            expect(keep).to_be_enabled()
            # the shortcut does not work within a radio button or a menu
            keep.focus()
            page.keyboard.press("Enter")
        else:
            onwards(page)
        # its main button is Run
        if isinstance(step, TryStep):
            expect(page.get_by_text("Not yet.")).to_be_visible()
            found += axe(page, both=True)
            page.get_by_role("button", name="Next").focus()
            page.keyboard.press("Enter")
    heading(page, "What you predicted, and what happened")
    found += axe(page, both=True)
    expect(page.get_by_text("Right predictions: 2 of 4. Solved tasks: 0 of 1.")).to_be_visible()
    assert found == []


def test_no_plot_of_a_handout_is_clipped_on_paper(visit: Open) -> None:
    # its own: the handout's policy would hold for what the app still loads
    page = visit("/lessons").context.new_page()
    page.set_content(handout(lessons()["ridge-regression-by-hand"], {}, answers=True))
    page.emulate_media(media="print")
    # A4 without its margins
    page.set_viewport_size({"width": 658, "height": 1000})
    beyond = "[...document.querySelectorAll('svg,table,svg text')].filter(e => {"
    beyond += (
        "const b = e.getBoundingClientRect(); return b.right > innerWidth + 1 || b.left < -1})"
    )
    assert page.evaluate(f"{beyond}.map(e => e.outerHTML.slice(0, 120))") == []
    assert page.locator("svg").count() == 2
