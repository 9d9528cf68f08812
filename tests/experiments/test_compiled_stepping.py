"""Steps computed by compiled code are bit-identical to single steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bandits import Experiment
from bandits.agents import REGISTRY, Agent
from bandits.experiments.lane import Lane, Trace
from bandits.experiments.lockstep import make_lane
from tests.support import thinned

SHOPS: list[dict[str, Any]] = [
    {"kind": "petshop", "shock_step": 300},
    {"kind": "petshop", "layout": "per_row", "features": "both", "n_products": 12},
    {"kind": "petshop", "features": "interaction", "n_products": 150},
    {
        "kind": "petshop",
        "layout": "per_row",
        "n_products": 12,
        "changes": [
            {
                "kind": "drift",
                "start": 100,
                "end": 300,
                "from": "new_puppy_parent",
                "to": "mature_dog_owner",
            },
            {"kind": "features", "at": 260, "column": 5, "how": "shifted"},
            {"kind": "traffic", "at": 350, "shares": [0.4, 0.3, 0.3, 0]},
            {"kind": "shock", "at": 420, "how": "reverse"},
        ],
    },
    {
        "kind": "petshop",
        "n_products": 12,
        "changes": [{"kind": "season", "period": 200, "amplitude": 0.5}],
    },
    # more features than arms: shorter blocks of draws
    {"kind": "petshop", "features": "both", "n_products": 4},
]


def pair(shop: dict[str, Any], agent: dict[str, Any]) -> tuple[Lane, Lane]:
    if agent["kind"] == "static_mlp":
        agent = {**agent, "interactions": 1000, "epochs": 1}
    experiment = Experiment(
        simulator={**shop, "n_users": 40}, agents=[agent], steps=900, replications=3, seed=11
    )
    compiled, interpreted = make_lane(experiment, 0), make_lane(experiment, 0)
    interpreted.use_compiled = False
    return compiled, interpreted


def same(a: Trace, b: Trace) -> None:
    for name in Trace._fields:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


COMPILED_AGENTS = [
    {"kind": kind, **more}
    for kind, cls in REGISTRY.items()
    if cls.play is not Agent.play
    for more in cls.test_params()
] + [{"kind": "epsilon_greedy", "epsilon": 0.8, "decay": 0.01}]


IDS = ("shock", "per_row", "many arms", "changes", "season", "few arms")


def diagonal(every: int) -> Callable[[int], bool]:
    """Select every second (third, ...) agent in one simulator, and each simulator with many
    agents.
    """
    n = len(IDS)
    return lambda i: i // n % every == 0 and i % n == i // n % n


PAIRS = [
    pytest.param(shop, agent, id=f"{name}-{agent}")
    for agent in COMPILED_AGENTS
    for name, shop in zip(IDS, SHOPS, strict=True)
]


@pytest.mark.parametrize(("shop", "agent"), thinned(PAIRS, diagonal(2), diagonal(1)))
def test_compiled_steps_equal_interpreted_steps(
    shop: dict[str, Any], agent: dict[str, Any]
) -> None:
    compiled, interpreted = pair(shop, agent)
    # across the shock and the ends of blocks
    for n in (1, 250, 149, 200):
        same(compiled.advance(n), interpreted.advance(n))
    a, b = compiled.state_dict(), interpreted.state_dict()
    for name in a.keys() - {"seconds"}:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.parametrize("kind", ["linucb", "lints", "epsilon_greedy"])
def test_a_row_that_diverges_stops_at_the_same_step(kind: str) -> None:
    compiled, interpreted = pair(SHOPS[0], {"kind": kind})
    for lane in (compiled, interpreted):
        lane.advance(100)
        lane.agent.model.theta[1] = np.nan  # type: ignore[attr-defined]
        trace = lane.advance(50)
        assert lane.alive.tolist() == [True, False, True]
        assert np.isnan(trace.value[:, 1]).all()
        assert np.isfinite(trace.value[:, [0, 2]]).all()
    same(compiled.advance(200), interpreted.advance(200))


def test_agents_of_the_default_preset_have_compiled_steps() -> None:
    """All agents of the preset run compiled, for speed."""
    for agent in ("random", "epsilon_greedy", "linucb", "lints", "oracle"):
        lane, _ = pair(SHOPS[0], {"kind": agent})
        predrawn = lane.simulator.predraw(0, 10)
        assert predrawn is not None
        assert lane.agent.play(predrawn, lane.alive) is not None
