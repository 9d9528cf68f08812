"""The lab Guard rails: agents with and without a guard, and alarms."""

from __future__ import annotations

import pytest

from bandits.experiments import url
from bandits.runtime.pool import Pool
from tests.pages.support import ended, open_page, panels
from tests.support import experiment, thinned, wait_for

SHOWN = "Shown below: the last run."


def test_agents_run_with_the_guard_and_without_it(pool: Pool) -> None:
    e = experiment("linucb", "lints", "oracle", seed=51, steps=600)
    ended(pool.submit(e))
    at = open_page("labs/guards", url.to_query(e))
    assert not at.exception
    (agents,) = at.multiselect
    assert agents.options == ["LinUCB", "LinTS"]
    at.selectbox(key="guard-kind").select("fallback").run()
    next(b for b in at.button if b.label == "Run").click().run()
    assert not at.exception
    job = pool.get(at.session_state["job"])
    assert job is not None
    assert list(job.experiment.labels) == ["LinUCB", "LinTS", "LinUCB fallback", "LinTS fallback"]
    assert [[g.kind for g in agent.guards] for agent in job.experiment.agents] == [
        [],
        [],
        ["fallback"],
        ["fallback"],
    ]
    ended(job)
    at.run()
    assert any("the fallback made" in m.value for m in at.markdown)
    titles = [cell["figure"]["layout"]["title"]["text"] for p in panels(at) for cell in p["cells"]]
    assert titles == ["Click-through rate", "Exposure of the arms", "Exposure by segment"]


@pytest.mark.parametrize(
    "kind", thinned(["floor", "cap", "delay", "batch", "reset"], lambda n: n in (0, 4))
)
def test_every_guard_is_offered_with_settings_that_run(pool: Pool, kind: str) -> None:
    e = experiment("linucb", seed=52, steps=400)
    ended(pool.submit(e))
    at = open_page("labs/guards", url.to_query(e))
    at.selectbox(key="guard-kind").select(kind).run()
    next(b for b in at.button if b.label == "Run").click().run()
    assert not at.exception
    assert not at.error
    job = pool.get(at.session_state["job"])
    assert job is not None
    assert job.id != e.hash
    ended(job)
    at.run()
    # the controls are those of the run that is drawn
    assert not any(SHOWN in c.value for c in at.caption)
    (agents,) = at.multiselect
    agents.set_value([]).run()
    agents.set_value(["LinUCB"]).run()
    assert not any(SHOWN in c.value for c in at.caption)
    at.selectbox(key="guard-kind").select("cap" if kind == "floor" else "floor").run()
    assert any(SHOWN in c.value for c in at.caption)


@pytest.mark.slow
def test_alarms_are_found_on_request(pool: Pool) -> None:
    changes = [{"kind": "features", "at": 3000, "column": 0}]
    simulator = {"kind": "petshop", "n_products": 10, "changes": changes}
    e = experiment("linucb", simulator=simulator, seed=53, steps=5000)
    ended(pool.submit(e))
    at = open_page("labs/guards", url.to_query(e))
    next(b for b in at.button if b.label == "Find alarms").click().run()
    wait_for(lambda: at.run().table, "the alarms")
    assert not at.exception
    found = at.table[0].value
    assert "Feature drift" in set(found["Monitor"])
    assert list(found.columns) == ["Agent", "Monitor", "First alarm", "Delay", "False alarms"]
    (verdict,) = [m.value for m in at.markdown if "the change at step 3,000" in m.value.lower()]
    assert "Feature drift (3 of 3 cases, median delay " in verdict.replace("\\", "")
    (expander,) = at.expander
    assert expander.label == "What each monitor observed first"
    assert expander.markdown[0].value.count("\n") == len(found) - 1


@pytest.mark.slow
def test_alarms_without_a_change_are_false(pool: Pool) -> None:
    e = experiment("linucb", seed=54, steps=5000)
    ended(pool.submit(e))
    at = open_page("labs/guards", url.to_query(e))
    next(b for b in at.button if b.label == "Find alarms").click().run()
    wait_for(
        lambda: any(m.value.startswith("**Nothing changes in this run") for m in at.run().markdown),
        "the alarms",
    )
    assert not at.exception
