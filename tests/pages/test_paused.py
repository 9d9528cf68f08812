"""A run that is paused: pages say so, and draw no conclusion from it before its end; where it is
stopped, they state what its conclusions mean.
"""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from bandits.experiments import url
from bandits.results.change.lost_clicks import without_changes
from bandits.runtime.pool import Pool
from tests.gate import Gate
from tests.pages.support import ended, open_page, under_way
from tests.support import experiment, over, wait_for

PET = {"kind": "petshop", "n_products": 10}
SHOCK = PET | {"changes": [{"kind": "shock", "at": 300}]}
LAUNCH = PET | {"changes": [{"kind": "launch", "at": 300, "items": 2}]}
FLOOR = {"kind": "linucb", "label": "Floor", "guards": [{"kind": "floor"}]}
# page: simulator and agents
CASES = {
    "arena": (PET, ("linucb", "lints", "random")),
    "labs/change": (SHOCK, ("linucb", "lints", "random")),
    "labs/guards": (PET, ("linucb", FLOOR)),
    "labs/new_items": (LAUNCH, ("linucb", "random")),
    "labs/visit": ({"kind": "sessions"}, ("linucb", "lints")),
    "labs/artwork": ({"kind": "artwork"}, ("linucb", "random")),
}
# a sentence in bold or in a list, with a number in it
CONCLUSION = re.compile(r"(\*\*|- ).*\d", re.DOTALL)


def conclusions(at: AppTest) -> list[str]:
    assert not at.exception
    return [m.value for m in at.markdown if CONCLUSION.match(m.value)]


def says_paused(at: AppTest) -> bool:
    """Return whether the page says it where the conclusion stands, or as a caption above."""
    return any("aused" in text.value for text in [*at.caption, *at.markdown])


@pytest.mark.parametrize("page", CASES)
def test_a_paused_run_has_no_conclusion(pool: Pool, gate: Gate, page: str) -> None:
    simulator, agents = CASES[page]
    seed = 7100 + list(CASES).index(page)
    e = experiment(*agents, simulator=simulator, seed=seed, steps=2000, replications=2)
    if e.simulator.all_changes:
        # only the run itself is missing
        ended(pool.submit(without_changes(e)))
    gate.hold(seed, 1500)
    job = under_way(pool.submit(e))
    wait_for(lambda: all(h.step >= 1500 for h in job.histories.values()), "the gate", over(job))
    pool.pause(job, job.owner)
    wait_for(lambda: job not in pool.processes, "its worker to be free")
    at = open_page(page, url.to_query(e))
    assert says_paused(at)
    assert conclusions(at) == []
    assert "press Run" not in str([table.value for table in at.table])
    pool.stop(job, job.owner)
    wait_for(lambda: job.status == "stopped", "the stop")
    at.run()
    assert "has not reached its end" in str([text.value for text in [*at.caption, *at.markdown]])
    gate.open()
    ended(pool.submit(e))
    at = open_page(page, url.to_query(e))
    assert not says_paused(at)
    assert conclusions(at)
