"""Steps computed by compiled code are bit-identical to single steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bandits import Experiment
from bandits.agents import REGISTRY, Agent
from bandits.agents.context_free import gaussian_ts
from bandits.agents.context_free.base import ContextFreeAgent
from bandits.base.params import declaration
from bandits.base.types import FloatArray, Round
from bandits.experiments.lane import Lane, Trace, build_lane, join
from bandits.experiments.lockstep import make_lane
from tests.support import often, thinned

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


BOUNDS: dict[str, tuple[float, ...]] = {
    "a0": (0.01, 0.25, 100.0),
    "alpha": (0.0, 1e-6, 1.0),
    "decay": (0.0, 0.01, 1.0),
    "epsilon": (0.0, 1e-6, 1.0),
    "gap_weight": (1e-6, 1.0, 1e6),
    "mixing": (1e-6, 0.1, 1.0),
    "prior_mean": (-1e6, 0.0, 3.0),
    "start": (-3.0, 0.0, 1e6),
    "step_size": (1e-300, 0.1, 10.0),
    "strength": (1e-300, 0.1, 1000.0),
    "temperature": (1e-300, 0.1, 100.0),
    "test": (1, 50, 3000),
}
"""Extreme and usual values of parameters that rows need not share."""
RULES = [
    *(kind for kind, cls in REGISTRY.items() if issubclass(cls, ContextFreeAgent)),
    "squarecb",
    "bag",
]


@pytest.mark.parametrize("kind", RULES)
def test_rows_of_any_parameters_cut_anywhere_and_resumed_equal_interpreted_rows(kind: str) -> None:
    """Some stretches are interpreted, some begin from a checkpoint."""
    generator, cls = np.random.default_rng(RULES.index(kind)), REGISTRY[kind]
    for _ in range(often(2, 30)):
        sets = cls.test_params()
        fixed = {"kind": kind, **sets[generator.integers(len(sets))]}
        free = [
            name
            for name, field in cls.Params.model_fields.items()
            if name in BOUNDS and name not in fixed and not declaration(field)["structural"]
        ]
        experiment = Experiment(
            simulator={
                "kind": "petshop",
                "n_products": int(generator.choice([2, 5, 40])),
                "n_users": 30,
                "shock_step": 100,
            },
            agents=[fixed],
            steps=250,
            replications=3,
            seed=int(generator.integers(1000)),
        )
        rows = [
            cls.Params(**fixed, **{name: generator.choice(BOUNDS[name]).item() for name in free})
            for _ in range(3)
        ]
        interpreted, lane = (
            make_lane(experiment, 0, params=rows),
            make_lane(experiment, 0, params=rows),
        )
        interpreted.use_compiled = False
        parts = []
        for n in np.diff([0, *np.sort(generator.choice(np.arange(1, 250), 5, replace=False)), 250]):
            resumed = make_lane(experiment, 0, params=rows)
            resumed.load_state_dict(lane.state_dict())
            lane = lane if generator.random() < 0.7 else resumed
            lane.use_compiled = bool(generator.random() < 0.8)
            parts.append(lane.advance(int(n)))
        same(join(parts), interpreted.advance(250))


class OtherProbabilities(REGISTRY["softmax"]):  # type: ignore[misc]
    def probabilities(self, round: Round) -> FloatArray:
        return np.asarray((round.items == 1).astype(np.float64))


class OtherMean(REGISTRY["epsilon_greedy_averages"]):  # type: ignore[misc]
    def mean(self, round: Round) -> FloatArray:
        return -super().mean(round)


class OtherCounts:
    def counts(self, round: Round) -> tuple[FloatArray, FloatArray]:
        shown, clicks = super().counts(round)  # type: ignore[misc]
        return shown, shown - clicks


class Mixed(OtherCounts, REGISTRY["ucb1"]):  # type: ignore[misc]
    """Overrides by a class that is no agent."""


class OtherModel(REGISTRY["linucb"]):  # type: ignore[misc]
    compiled_model = None


class OtherTitle(REGISTRY["softmax"]):  # type: ignore[misc]
    title = "Other"

    class Params(REGISTRY["softmax"].Params):  # type: ignore[name-defined,misc]
        pass

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def memory(cls, params: Any, spec: Any) -> int:
        return 2 * super().memory(params, spec)

    def helper(self) -> int:
        return 1


@pytest.mark.parametrize("cls", [OtherProbabilities, OtherMean, Mixed, OtherModel])
def test_a_subclass_that_changes_an_agent_is_not_played_by_its_compiled_loop(
    cls: type[Agent],
) -> None:
    compiled, interpreted = pair(SHOPS[0], {"kind": cls.Params().kind})
    a, b = (build_lane(cls, [cls.Params()] * 3, x.simulator) for x in (compiled, interpreted))
    b.use_compiled = False
    same(a.advance(100), b.advance(100))
    assert cls.play is Agent.play


def test_a_subclass_that_changes_no_choice_keeps_the_compiled_loop() -> None:
    assert OtherTitle.play is REGISTRY["softmax"].play
    assert all(REGISTRY[kind].play is not Agent.play for kind in RULES)


def test_gaussian_thompson_is_interpreted_where_scipy_has_no_quantile_for_compiled_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = pair(SHOPS[0], {"kind": "gaussian_ts"})
    monkeypatch.setattr(gaussian_ts, "stdtrit_address", lambda: None)
    same(a.advance(50), b.advance(50))
