"""The lab Shock lab: a change, what it costs, and how forgetting changes that."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from bandits import read
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.results.change.conclusion import conclusion
from bandits.results.change.lost_clicks import without_changes
from bandits.runtime.pool import Pool
from bandits_app.session import workers
from tests.pages.support import ended, open_page, panels, sentences
from tests.support import experiment, wait_for

SHOCK = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "shock", "at": 1000}]}
AGENTS = (
    {"kind": "linucb"},
    {"kind": "linucb", "label": "LinUCB gamma 0.999", "gamma": 0.999},
    {"kind": "random"},
)


def shocked(seed: int, **changes: Any) -> Any:
    return experiment(*AGENTS, simulator=SHOCK, steps=2000, replications=8, seed=seed, **changes)


def table(at: AppTest) -> Any:
    return next(t.value for t in at.table if "Recovery" in t.value.columns)


def bullets(at: AppTest) -> list[str]:
    """Return the conclusions below the plots."""
    text = "\n".join(m.value for m in at.markdown if m.value.startswith("- ")).replace("\\", "")
    return [line.removeprefix("- ") for line in text.splitlines()]


def dotted(at: AppTest) -> list[str]:
    """Return the names of the curves of the run before."""
    figures = [cell["figure"] for p in panels(at) for cell in p["cells"]]
    return [t["name"] for figure in figures for t in figure["data"] if t.get("meta") == "before"]


def test_a_link_shows_recovery_and_what_the_change_cost(pool: Pool) -> None:
    e = shocked(31)
    ended(pool.submit(e))
    at = open_page("labs/change", url.to_query(e))
    assert not at.exception
    assert at.selectbox(key="change-name").value == "own"
    assert "Changes: market shock (preferences rotate) at step 1,000." in [
        c.value.replace("\\", "") for c in at.caption
    ]
    recovery, never = bullets(at)
    assert recovery.startswith("Recovery from the change at step 1,000")
    assert never.startswith(
        "Random had nothing to recover: it never reached 95\u00a0% of the best choice"
    )
    found = table(at)
    assert list(found.columns) == [
        "Agent",
        "CTR before",
        "CTR after",
        "Recovery",
        "Clicks lost to the change",
    ]
    assert list(found["Agent"]) == list(e.labels)
    # its place is there from the beginning
    assert set(found["Clicks lost to the change"]) == {"press Run"}
    assert [
        cell["figure"]["layout"]["title"]["text"] for p in panels(at) for cell in p["cells"]
    ] == [
        "Click-through rate",
        "Cumulative regret",
    ]
    ended(pool.submit(without_changes(e)))
    found = table(at.run())
    assert all("±" in cell for cell in found["Clicks lost to the change"])
    said = "".join(m.value for m in at.markdown).replace("\u00a0", " ").replace("\\", "")
    first = conclusion(pool.get(e.hash).result, pool.get(without_changes(e).hash).result)
    assert "loses least to the change" in first
    assert f"**{first}**" in said
    assert bullets(at)[2].startswith(
        "Clicks lost to the changes, against the same run without them (8 paired"
    )


def test_run_starts_the_chosen_change_and_its_twin(pool: Pool) -> None:
    at = open_page("labs/change", url.to_query(experiment("linucb", seed=32, steps=200)))
    assert any("The Arena's run has no change" in c.value for c in at.caption)
    assert not at.exception
    for name in ("drift", "season"):
        at.selectbox(key="change-name").select(name).run()
        about = presets()[name].about
        assert any(c.value.replace("\\", "") == about for c in at.caption)
    next(b for b in at.button if b.label == "Run").click().run()
    assert not at.exception
    job = workers.pool().get(at.session_state["job"])
    assert job is not None
    unchanged_job = pool.get(without_changes(job.experiment).hash)
    assert job.experiment.simulator.all_changes
    assert unchanged_job is not None
    for each in (job, unchanged_job):
        if each.active:
            pool.stop(each, each.owner)


def test_the_slider_moves_the_agents_that_forget_and_keeps_the_others(pool: Pool) -> None:
    e = shocked(33)
    ended(pool.submit(e))
    ended(pool.submit(without_changes(e)))
    at = open_page("labs/change", url.to_query(e))
    before = sentences(at)
    assert not dotted(at)
    at.selectbox(key=f"change-gamma-{e.hash[:12]}").set_value(0.998).run()
    assert not at.exception
    job = pool.get(at.session_state["job"])
    assert job is not None
    now = job.experiment
    assert [getattr(agent, "gamma", None) for agent in now.agents] == [1.0, 0.998, None]
    assert now.labels[1] == "LinUCB gamma 0.998"
    assert at.session_state["previous"] == e.hash
    ended(job)
    ended(pool.submit(without_changes(now)))
    at.run()
    # another sentence, above the curves of the run before
    assert sentences(at) != before
    assert "LinUCB gamma 0.998" in "".join(sentences(at))
    assert dotted(at)
    # a visitor who follows the link reads the same and has no run before
    told = at.query_params.items()
    linked = open_page("labs/change", {k: v if isinstance(v, str) else v[0] for k, v in told})
    assert sentences(linked) == sentences(at)
    assert not dotted(linked)
    # the Arena shows this run, and so do its controls
    at.switch_page("arena.py").run()
    assert read(at.session_state["draft"].data()) == now
    assert not any("Previous result" in c.value for c in at.caption)
    next(b for b in at.button if b.label == "Undo").click().run()
    assert read(at.session_state["draft"].data()) == e


@pytest.mark.stress
def test_values_are_compared_on_request_and_the_link_holds_which(pool: Pool) -> None:
    e = shocked(34)
    ended(pool.submit(e))
    at = open_page("labs/change", url.to_query(e))
    assert "price" not in at.query_params
    at.selectbox(key=f"change-agent-{e.hash[:12]}").select("LinUCB gamma 0.999").run()
    at.selectbox(key=f"change-parameter-{e.hash[:12]}-LinUCB gamma 0.999").select("window").run()
    next(b for b in at.button if b.label == "Compare values").click().run()
    assert not at.exception
    assert at.query_params["price"] in ("1.window", ["1.window"])
    wait_for(
        lambda: any(" run" in m.value and "all steps" in m.value for m in at.run().markdown),
        "the comparison",
    )
    titles = [cell["figure"]["layout"]["title"]["text"] for p in panels(at) for cell in p["cells"]]
    assert "What forgetting costs and earns" in titles
    verdict = next(m.value for m in at.markdown if "all steps" in m.value)
    other = open_page("labs/change", {**url.to_query(e), "price": "1.window"})
    assert other.selectbox(key=f"change-agent-{e.hash[:12]}").value == "LinUCB gamma 0.999"
    assert verdict in [m.value for m in other.markdown]


def test_a_link_to_values_that_are_not_computed_starts_nothing(pool: Pool) -> None:
    e = shocked(33)
    ended(pool.submit(e))
    for given, chosen in (
        ("1.window", "window"),
        ("9.gamma", "gamma"),
        ("1.nothing", "gamma"),
        ("x", "gamma"),
    ):
        at = open_page("labs/change", {**url.to_query(e), "price": given})
        assert not at.exception
        assert [s.value for s in at.selectbox if s.label == "Vary"] == [chosen]
        assert any(c.value.startswith("Seven values of one agent") for c in at.caption)
