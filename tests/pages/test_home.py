"""The page Home, through app.py, with real workers."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from bandits import read
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.runtime.pool import Pool
from tests.pages.support import board, ended, open_page, plots, sentences, status
from tests.support import experiment

EARNED = ["Click-through rate", "Cumulative regret"]
EXPLORED = ["Selection entropy", "Eigenvalue spectrum"]


def home() -> AppTest:
    at = open_page()
    assert not at.exception
    return at


def titles(at: AppTest) -> list[str]:
    return [plot["layout"]["title"]["text"] for plot in plots(at)]


def test_home_states_its_question_and_shows_a_run(pool: Pool) -> None:
    at = home()
    assert at.title[0].value == "Bandit Playground"
    assert any("contextual bandit" in caption.value for caption in at.caption)
    race = pool.get(presets()["race"].experiment.hash)
    assert race is not None
    assert titles(at) == [*EARNED, *EXPLORED]
    # one main parameter for each agent that has one
    assert [s.label for s in (*at.main.slider, *at.main.select_slider)] == [
        *["Exploration bonus α"] * 2,
        "Exploration rate ε",
        "Noise variance σ²",
    ]
    (button,) = [b for b in at.button if b.label == "Open in the Arena"]
    at = button.click().run()
    assert not at.exception
    assert at.title[0].value == "Arena"
    assert read(at.session_state["draft"].data()) == race.experiment
    given = {
        name: text if isinstance(text, str) else text[0] for name, text in at.query_params.items()
    }
    assert url.parse_query(given).experiment.hash == race.id


def test_a_button_opens_which_should_i_use_and_the_address_states_it() -> None:
    at = home()
    next(button for button in at.button if button.label == "Which should I use?").click()
    at = at.run()
    assert at.title[0].value == "Which should I use?"
    assert at.query_params["view"] == "which"


def test_home_states_the_conclusions_of_its_run(pool: Pool) -> None:
    home()
    race = pool.get(presets()["race"].experiment.hash)
    assert race is not None
    assert ended(race).status == "finished"
    at = home()
    assert status(at).startswith("Finished: 20,000 steps, 16 replications, in ")
    for label in race.experiment.labels:
        assert label in board(at)
    # the leader beside each other one, the summary, the scope
    assert len(sentences(at)) >= len(race.experiment.labels) + 1
    assert re.fullmatch(
        r"LinUCB earned 4,\d{3} more clicks than A/B test \(95 % CI .*; 16 paired replications\). "
        r"That is 2\d\d clicks per 1,000 visitors\. The test shows one winner to all users; "
        r"one for each segment may earn more\."
        r"( Static MLP leads, but does not learn\.| Static MLP, which does not learn, is not "
        r"significantly ahead of LinUCB\.)?",
        sentences(at)[0],
    )
    assert all(p["data"] for p in plots(at))


def test_home_states_the_facts_of_the_shop_and_zooms_on_the_leading_agents(pool: Pool) -> None:
    home()
    job = pool.get(presets()["race"].experiment.hash)
    assert job is not None
    ended(job)
    at = home()
    text = " ".join(m.value for m in at.main.markdown)
    assert "50 products in 5 categories, 1,000 users of 4 personas" in text
    assert "Random choice earns a click-through rate of 0.21, the best choice 0.51." in text
    assert at.table[0].value.loc["Fish hobbyist", "Fish"] == "0.60"
    rate, regret, *_ = plots(at)
    # random choice at 0.21 lies outside
    assert rate["layout"]["yaxis"]["range"][0] > 0.25
    # that of the test is about 4,900
    assert 100 < regret["layout"]["yaxis"]["range"][1] < 2000
    for plot in (rate, regret):
        assert plot["layout"]["meta"]["note"].endswith(" Zoomed: A/B test ends outside.")


def test_a_slider_of_home_that_was_moved_changes_the_run_there(pool: Pool) -> None:
    at = home()
    at = at.main.slider[0].set_value(0.6).run()
    # as a browser does when it is released
    at.session_state["run-requested"] = "slider"
    at = at.run()
    assert not at.exception
    assert at.title[0].value == "Bandit Playground"
    job = pool.get(at.session_state["job"])
    assert job is not None
    assert job.experiment.agents[0].alpha == 0.6
    pool.stop(job, job.owner)


def test_home_offers_its_sliders_where_the_controls_hold_another_experiment(pool: Pool) -> None:
    e = experiment("linucb", seed=3107, steps=200)
    ended(pool.submit(e))
    at = open_page("arena", url.to_query(e))
    at = at.switch_page("home.py").run()
    assert not (*at.main.slider, *at.main.select_slider)
    assert any("hold another experiment" in c.value for c in at.caption)
    at = next(b for b in at.button if b.label == "Show the sliders of this run").click().run()
    assert not at.exception
    assert len((*at.main.slider, *at.main.select_slider)) == 4
    assert not any("hold another experiment" in c.value for c in at.caption)


@pytest.mark.parametrize(
    ("door", "title", "preset"),
    [("Teach", "Lessons", ""), ("Tune", "Sweep", "race"), ("Research", "Diagnostics", "race")],
)
def test_each_door_opens_its_page_with_its_experiment(
    pool: Pool, door: str, title: str, preset: str
) -> None:
    at = home()
    at = at.button(f"door-{door}").click().run()
    assert not at.exception
    assert at.title[0].value == title
    if preset:
        assert read(at.session_state["draft"].data()) == presets()[preset].experiment
