"""The probabilities that agents state are those of their choices: every kind of agent through every
stack of guards.

Given the probabilities p that are stated for a choice A among K candidates, the expected value of
1[A = a] - p_a is 0, and so is that of 1[A = a] / p_a - 1, summed over the candidates with p_a of at
least .003. This holds for redraws too, however few, because the draw of the choice is counted as
one of them. Sums of such differences over decisions, divided by the root of the sum of their
variances, which p gives, are about standard normal. The limit is 5 for some 2,100 sums: level .0012
together. In 16 rows of 60 decisions a probability of .2 that is stated wrong by .07 in all of them
gives 5.4. Each agent meets every sixth stack in turn, no guard and all guards; under ``make
stress`` all stacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bandits import UserError, read
from bandits.agents import REGISTRY
from bandits.agents.guards.base import unguarded
from bandits.base.types import FloatArray
from bandits.experiments.lockstep import make_lane
from tests.support import often

ROWS, STEPS, REDRAWS, LIMIT = 16, 60, 12, 5.0
LEAST = 0.003
SHOP = {"kind": "petshop", "n_products": 5, "n_users": 40, "features": "both"}
VISITS = {"kind": "sessions", "n_products": 10, "n_users": 40, "observed": "mood"}
PLANNING = ("q_learning", "dqn")
FLOOR = {"kind": "floor", "epsilon": 0.2}
CAP = {"kind": "cap", "share": 0.6, "window": 10}
LATE = {"median_ms": 5, "p99_ms": 60}
FALLBACKS = [
    {"kind": "fallback", "to": to, **LATE}
    for to in ("random", "popularity", "epsilon_greedy", "default")
]
STACKS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "floor": [FLOOR],
    "small floor": [{"kind": "floor", "epsilon": 0.02}],
    "floor per arm": [{"kind": "floor", "epsilon": 0.05, "per": "arm"}],
    "new arms": [{"kind": "floor", "epsilon": 0.1, "shows": 20, "new": 0.3}],
    "cap": [CAP],
    "delay": [{"kind": "delay", "steps": 30}],
    "geometric": [{"kind": "delay", "steps": 10, "law": "geometric"}],
    "batch": [{"kind": "batch", "steps": 25}],
    "reset": [{"kind": "reset", "every": 33}],
    "detector": [{"kind": "reset", "monitor": "page_hinkley"}],
    **{f"fallback to {guard['to']}": [guard] for guard in FALLBACKS},
    "cap in floor": [CAP, FLOOR],
    "floor in cap": [{"kind": "floor", "epsilon": 0.2}, CAP],
    "fallback in floor": [FALLBACKS[1], FLOOR],
    "floor in fallback": [FLOOR, FALLBACKS[0]],
    "delay in fallback": [{"kind": "delay", "steps": 20}, FALLBACKS[2]],
    "all": [
        FALLBACKS[0],
        {"kind": "floor", "epsilon": 0.2, "shows": 10},
        {"kind": "cap", "share": 0.7, "window": 10},
        {"kind": "delay", "steps": 7},
        {"kind": "batch", "steps": 5},
        {"kind": "reset", "every": 31},
    ],
}
LATE_STACKS = {
    name for name, stack in STACKS.items() if {g["kind"] for g in stack} & {"delay", "batch"}
}
NETWORK = {
    **{"hidden": (4,), "every": 20, "updates": 1, "interactions": 1000, "epochs": 1},
    "learning_starts": 10,
    # one small tree
    **{"estimator": "DecisionTreeRegressor", "options": "max_depth=2"},
}


def cases() -> Iterator[Any]:
    """Yield each kind of agent, with the parameters that lead through its ways of choosing."""
    for kind, cls in REGISTRY.items():
        fields = cls.Params.model_fields
        small = {name: value for name, value in NETWORK.items() if name in fields}
        ways: list[dict[str, Any]] = [small]
        if "sharing" in fields and cls.propensity == "monte_carlo":
            ways.append({**small, "sharing": "shared"})
        if "strategy" in fields and fields["strategy"].default != "thompson":
            ways.append({**small, "strategy": "thompson"})
        for way in ways:
            name = "-".join([kind, *(str(v) for k, v in way.items() if k not in NETWORK)])
            yield pytest.param(kind, way, id=name)


def deviations(kind: str, way: dict[str, Any], guards: Any) -> FloatArray | None:
    """Return the sums in their standard deviations, float64 (K + 1,), or None of guards that are
    refused.
    """
    agent = {"kind": kind, **way, "guards": guards}
    simulator = VISITS if kind in PLANNING else SHOP
    data = {
        "simulator": simulator,
        "agents": [agent],
        "steps": STEPS,
        "replications": ROWS,
        "seed": 7,
    }
    try:
        lane = make_lane(read(data), 0)
    except UserError:
        return None
    lane.use_compiled = False
    lane.agent.prepare()
    unguarded(lane.agent).n_redraws = REDRAWS
    # 1: whatever is known exactly may differ by rounding
    K = lane.simulator.spec.n_candidates
    sums, variance = np.zeros(K + 1), np.ones(K + 1)
    for step in range(STEPS):
        p = lane.agent.probabilities(lane.simulator.round_at(step))
        shown = lane.advance(1).items[0] == np.arange(K)
        assert (p[shown] > 0).all(), "a candidate is shown whose probability is stated as 0"
        taken = p >= LEAST
        inverse, n = np.where(taken, 1 / np.maximum(p, LEAST), 0), taken.sum(axis=1)
        sums += np.append((shown - p).sum(axis=0), (inverse * shown).sum() - n.sum())
        variance += np.append((p * (1 - p)).sum(axis=0), (inverse.sum(axis=1) - n**2).clip(0).sum())
    return np.asarray(sums / np.sqrt(variance))


@pytest.mark.parametrize(
    ("kind", "way", "turn"),
    [pytest.param(*case.values, turn, id=case.id) for turn, case in enumerate(cases())],
)
def test_choices_have_the_probabilities_that_were_stated(
    kind: str, way: dict[str, Any], turn: int
) -> None:
    every = often(6, 1)
    tried = {
        name: deviations(kind, way, guards)
        for place, (name, guards) in enumerate(STACKS.items())
        if name in ("none", "all") or (place + turn) % every == 0
    }
    found = {name: z for name, z in tried.items() if z is not None}
    # not for networks; rewards of a visit are never late
    refused = LATE_STACKS if kind in PLANNING else set()
    assert set(tried) - set(found) <= {"detector", *refused}
    assert {name: z for name, z in found.items() if np.abs(z).max() >= LIMIT} == {}
