"""A power cut: a killed server costs time, and not one number."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Page, expect

from bandits import run
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.results.comparison.conclusion import ranking
from bandits.storage.run_store import Store
from tests.browser.conftest import App, Open
from tests.browser.test_journeys import run_button, set_number, status, tiles
from tests.gate import Gate
from tests.support import same, wait_for

pytestmark = pytest.mark.browser
# interrupted where they are held
STEPS, STOP = 30_000, 20_000


def race(steps: int) -> str:
    """A link to a race of explorers: nothing else is run, and no network trained."""
    e = presets()["too-much"].experiment
    return f"/arena?{url.query(e.model_copy(update={'steps': steps}))}"


def named(page: Page, steps: int) -> str:
    """The run that the address names, once it is the one of so many steps."""
    page.wait_for_url(re.compile(f"steps={steps}"))
    return url.parse_query(dict(parse_qsl(page.url.split("?")[1]))).experiment.hash


def tick_the_only(page: Page, asked: str) -> None:
    """Find one run and tick it.

    The table is drawn on a canvas, so that its boxes are found by place.
    """
    search = page.get_by_role("textbox", name="Search")
    search.fill(asked)
    search.press("Enter")
    expect(page.get_by_text(re.compile(r"^1 of \d runs"))).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    table = page.get_by_test_id("stDataFrame")
    expect(table.locator("canvas").first).to_be_visible()
    table.scroll_into_view_if_needed()
    table.click(position={"x": 18, "y": 53})
    expect(page.get_by_role("button", name="Open in the Arena")).to_be_enabled()


def interrupted_at(app: App, name: str) -> None:
    """Wait until the run has been saved on its way."""
    store = Store(app.home)

    def finished() -> str:
        return "the run has finished" if name in {kept.id for kept in store.runs()} else ""

    wait_for(lambda: store.checkpoint_files.state(name), "a checkpoint on disk", finished)
    assert not finished()


def as_if_nothing_had_happened(app: App, page: Page, name: str) -> None:
    """The finished run has the bits of one that was never interrupted, and the page shows them."""
    kept = Store(app.home).get(name)
    assert kept is not None
    assert kept.experiment.steps == STEPS
    whole = run(kept.experiment)
    for label, history in whole.histories.items():
        same(kept.histories[label], history)
    shown = tiles(page).all_inner_texts()
    assert [text.split("\n")[0] for text in shown] == ranking(whole)
    for text, label in zip(shown, ranking(whole), strict=True):
        assert f"{metrics.estimate(metrics.click_rate(whole.histories[label])).mean:.3f}" in text


def test_after_a_killed_server_finished_runs_are_there_and_the_unfinished_one_goes_on(
    start: Callable[[], App], visit: Open, gate: Gate
) -> None:
    gate.hold(presets()["too-much"].experiment.seed, STOP)
    app = start()
    page = visit(race(1000), at=app)
    status(page, "^Finished: 1,000 steps")
    short = named(page, 1000)
    set_number(page, "Steps", STEPS)
    run_button(page).click()
    name, query = named(page, STEPS), page.url.split("?")[1]
    interrupted_at(app, name)
    page.close()
    app.kill()

    gate.open()
    again = start()
    # the link that was sent round shows what had been computed
    page = visit(f"/arena?{query}", at=again)
    status(page, rf"^Stopped at step [1-9][\d,]* of {STEPS:,}; .* interrupted when the app ended")
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    expect(page.get_by_text(f"Pet shop, {STEPS:,} steps, 16 replications")).to_be_visible()
    tick_the_only(page, "alpha pet")
    page.get_by_role("button", name="Open in the Arena").click()
    status(page, "^Finished: 1,000 steps")
    assert named(page, 1000) == short
    page.get_by_role("link", name="Runs").click()
    page.locator(f".st-key-resume-{name} button").click()
    expect(page.get_by_role("heading", name="Arena", exact=True)).to_be_visible()
    status(page, f"^Finished: {STEPS:,} steps")
    as_if_nothing_had_happened(again, page, name)
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_role("heading", name="Finished", exact=True)).to_be_visible()
    expect(page.locator(f".st-key-resume-{name}")).to_have_count(0)
