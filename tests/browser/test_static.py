"""The static files: a lesson and presets run in the browser, offline, to the engine's numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from bandits.agents.linear.base import LinearAgent
from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import make_lane
from bandits.experiments.presets import presets
from docs.make_static import as_data, runs_in_browser, write
from tests.support import experiment

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)

STEPS = 300
PLAY = """([experiment, i, steps]) => {
  const lane = new Bandits.Lane(experiment, experiment.agents[i]);
  lane.advance(steps);
  const found = {};
  for (const name of ['items', 'rewards', 'value', 'best', 'average']) {
    found[name] = Array.from(lane[name].subarray(0, steps * lane.rows.length));
  }
  return {...found, theta: lane.rows.map(({ agent }) => Array.from(agent.model?.theta ?? []))} }"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("static")
    write(made)
    return made


@pytest.fixture
def offline(browser: Browser, folder: Path) -> Any:
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []


@pytest.mark.parametrize("simulator", ["levers", "petshop"])
def test_the_numbers_are_those_of_the_engine(offline: Page, folder: Path, simulator: str) -> None:
    world = {"kind": simulator, "layout": "per_row" if simulator == "levers" else "shared"}
    kinds = ("linucb", "lints", "epsilon_greedy", "ucb1", "beta_ts", "epsilon_greedy_averages")
    tried: Experiment = experiment(
        *kinds,
        {"kind": "beta_ts", "label": "weak", "prior_clicks": 0.3, "prior_misses": 0.8},
        {"kind": "beta_ts", "label": "mixed", "prior_clicks": 0.3, "prior_misses": 2.0},
        "random",
        "oracle",
        simulator=world,
        steps=2 * STEPS,
        replications=2,
        seed=2**40 + 3,
    )
    assert runs_in_browser(tried)
    offline.goto((folder / "index.html").as_uri())
    data = json.loads(json.dumps(as_data(tried)))
    for i, label in enumerate(tried.labels):
        lane = make_lane(tried, i)
        trace = lane.advance(STEPS)
        found = offline.evaluate(PLAY, [data, i, STEPS])
        shape = (STEPS, 2)
        np.testing.assert_array_equal(np.reshape(found["items"], shape), trace.items[:, :, 0])
        np.testing.assert_array_equal(np.reshape(found["rewards"], shape), trace.rewards)
        columns = {"value": trace.value, "best": trace.best_value, "average": trace.random_value}
        for name, expected in columns.items():
            np.testing.assert_allclose(
                np.reshape(found[name], shape), expected, atol=1e-12, rtol=0, err_msg=label
            )
        if isinstance(lane.agent, LinearAgent):
            theta: Any = lane.agent.model.theta
            np.testing.assert_allclose(
                np.array(found["theta"]), theta.reshape(2, -1), atol=1e-12, rtol=0
            )


def test_presets_run_offline_and_a_slider_changes_one_agent(offline: Page, folder: Path) -> None:
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10e6
    offline.goto((folder / "index.html").as_uri())
    offline.evaluate("EXPERIMENTS.levers.experiment.steps = 500")
    offline.locator("#preset").dispatch_event("change")
    expect(offline.locator("#status")).to_contain_text("Finished: 500 of 500 steps")
    expect(offline.locator(".plot .scatterlayer path.js-line")).not_to_have_count(0)
    # the numbers of the app
    preset = presets()["levers"].experiment
    ucb1 = preset.labels.index("UCB1")
    rate = float(make_lane(preset, ucb1).advance(500).rewards.mean())
    row = offline.get_by_role("row").filter(
        has=offline.get_by_role("cell", name="UCB1", exact=True)
    )
    expect(row).to_contain_text(f"{rate:.3f}")
    others = offline.get_by_role("row").filter(has_text="Beta Thompson").inner_text()
    before = row.inner_text()
    offline.get_by_role("slider", name="UCB1: Exploration bonus").press("End")
    expect(row).not_to_have_text(before.replace("\t", ""))
    expect(offline.locator("#status")).to_contain_text("Finished")
    assert offline.get_by_role("row").filter(has_text="Beta Thompson").inner_text() == others


def test_a_lesson_runs_offline(offline: Page, folder: Path) -> None:
    offline.goto((folder / "lesson.html").as_uri())
    expect(offline.get_by_role("heading", name="Why it stops learning")).not_to_be_visible()
    # 16 replications take a while on a busy machine
    offline.evaluate("EXPERIMENTS.lesson.experiment.steps = 2000")
    offline.get_by_role("button", name="Run", exact=True).click()
    expect(offline.get_by_role("heading", name="Why it stops learning")).to_be_visible()
    expect(offline.locator(".plot .main-svg").first).to_be_attached()
    offline.get_by_role("button", name="Run", exact=True).last.click()
    expect(offline.get_by_text(re.compile(r"^ ?0\.\d{4}: (reached|not yet)\.$"))).to_be_visible()
    assert "{{" not in offline.locator("main").inner_text()
