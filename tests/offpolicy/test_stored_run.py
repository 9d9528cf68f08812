"""The policy of a stored run as a target: frozen after the first half of the log's steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bandits import run
from bandits.base.errors import UserError
from bandits.experiments.lockstep import make_lane
from bandits.offpolicy import evaluate, record, true_value
from bandits.offpolicy.choices import kept_agents
from bandits.offpolicy.recorded_columns import by_item
from bandits.offpolicy.stored_run import frozen_policy
from bandits.storage.run_store import Store
from tests.support import experiment

LOG = {"seed": 81, "steps": 300, "replications": 3}
KEPT = {"seed": 81, "steps": 700, "replications": 3}


@pytest.mark.parametrize("kind", ["linucb", "lints", "epsilon_greedy", "beta_ts"])
def test_the_policy_is_that_of_the_agent_after_half_of_the_log(kind: str) -> None:
    kept = experiment(kind, "random", **KEPT)
    rest, policy = frozen_policy(record(experiment("random", **LOG)), kept, kept.labels[0])
    assert set(np.asarray(rest.steps)) == set(range(150, 300))
    lane = make_lane(kept, 0)
    lane.use_compiled = False
    lane.agent.prepare()
    lane.advance(150)
    # later ones differ where an agent redraws: it uses up random numbers
    round = lane.simulator.round_at(150)
    np.testing.assert_array_equal(
        policy.matrix[:3], by_item(round, lane.agent.probabilities(round), 10)
    )


def test_the_oracle_of_a_run_earns_what_the_best_item_does() -> None:
    e = experiment("random", **LOG)
    simulator = make_lane(e, 0).simulator
    rest, policy = frozen_policy(record(e), experiment("oracle", **KEPT), "Oracle")
    best = [
        simulator.probabilities(simulator.round_at(step)).max(axis=1) for step in range(150, 300)
    ]
    assert true_value(rest, policy).value == pytest.approx(np.mean(best), rel=1e-12)


def test_a_short_run_is_frozen_at_its_end() -> None:
    log = record(experiment("random", **LOG))
    rest, policy = frozen_policy(log, experiment("linucb", **{**KEPT, "steps": 40}), "LinUCB")
    assert set(np.asarray(rest.steps)) == set(range(40, 300))
    assert policy.name.startswith("LinUCB after step 40 of the run ")


def test_replications_that_the_run_lacks_are_left_out() -> None:
    log = record(experiment("random", **LOG))
    all_rows, whole = frozen_policy(log, experiment("linucb", **KEPT), "LinUCB")
    one_row, alone = frozen_policy(
        log, experiment("linucb", **{**KEPT, "replications": 1}), "LinUCB"
    )
    assert set(np.asarray(one_row.rows)) == {0}
    np.testing.assert_array_equal(alone.matrix, whole.matrix[np.asarray(all_rows.rows) == 0])


def test_a_kept_run_is_found_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    kept, e = experiment("linucb", "oracle", **KEPT), experiment("random", "epsilon_greedy", **LOG)
    Store().put(kept, dict(run(kept, workers=0).histories), 1.0)
    log, spec = record(e), f"run:{kept.hash[:10]}:LinUCB"
    found = evaluate(log, spec, estimators=["ips"])
    assert found.target == f"LinUCB after step 150 of the run {kept.hash[:8]}"
    assert found.n == len(log) / 2
    assert (
        kept_agents(e, Store().runs(), lambda run: "My run")
        == {  # not the oracle
            f"LinUCB, halfway in My run ({kept.hash[:8]})": f"run:{kept.hash}:LinUCB"
        }
    )
    assert kept_agents(experiment("random", **{**LOG, "seed": 82}), Store().runs(), str) == {}
    with pytest.raises(UserError, match="no stored run has this id"):
        evaluate(log, "run:0000:LinUCB")


def test_policies_that_do_not_fit_are_refused() -> None:
    log, kept = record(experiment("random", **LOG)), experiment("linucb", **KEPT)
    with pytest.raises(UserError, match="has no agent 'LinTS'"):
        frozen_policy(log, kept, "LinTS")
    for other in ({"simulator": {"kind": "petshop", "n_products": 20}, "seed": 81}, {"seed": 82}):
        with pytest.raises(UserError, match="must have the simulator and the seed of the log"):
            frozen_policy(log, experiment("linucb", **other), "LinUCB")
    with pytest.raises(UserError, match="not one of a simulated run"):
        evaluate("open_bandit/random/men", f"run:{kept.hash}:LinUCB")
