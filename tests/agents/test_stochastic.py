"""Agents that state probabilities: choices, slates and propensities follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chisquare

from bandits.agents import REGISTRY
from bandits.agents.params import AgentParams, LearnerParams
from bandits.agents.stochastic import StochasticAgent
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import gumbel_scores, top_k
from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec
from bandits.contract import agents as contract
from bandits.models.linear.ridge import Ridge
from tests.contract import worlds
from tests.contract.worlds import join, make, same, take


class Boltzmann(StochasticAgent):
    """Boltzmann exploration: an arm is chosen in proportion to exp(estimated reward /
    temperature).
    """

    class Params(LearnerParams):
        kind: Literal["boltzmann"] = "boltzmann"
        temperature: float = param(
            0.1,
            title="Temperature",
            symbol=r"\tau",
            gt=0,
            le=10,
            help="Divides the estimates. Larger values choose more evenly; usually 0.01 to 1.",
        )

    title = "Boltzmann"
    formula = r"\pi_a\propto\exp(\hat\theta_a^\top x_a/\tau)"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.temperature = self.column("temperature")[:, None]
        self.model = Ridge(np.ones(len(params)), spec.n_features, spec.n_items, "per_arm")
        self.state = tuple(f"model.{name}" for name in self.model.state)

    def probabilities(self, round: Round) -> FloatArray:
        offered = np.where(round.available, self.model.mean(round) / self.temperature, -np.inf)
        return np.asarray(softmax(offered, axis=1))

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.model.update(round, slate, feedback)

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        return super().memory(params, spec) + Ridge.memory(spec, "per_arm")


class Fixed(StochasticAgent):
    """Agent that chooses candidate k in proportion to k, and never the last one."""

    class Params(AgentParams):
        kind: Literal["fixed"] = "fixed"

    title = "Fixed"
    formula = r"\pi_a\propto a"
    learns = False

    def probabilities(self, round: Round) -> FloatArray:
        weights = np.arange(1.0, round.items.shape[1] + 1)
        weights[-1] = 0
        offered = weights * round.available
        return np.asarray(offered / offered.sum(axis=1, keepdims=True))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "boltzmann", Boltzmann)
    monkeypatch.setitem(REGISTRY, "fixed", Fixed)


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("environment", ["petshop", "changing", "cascade"])
@pytest.mark.parametrize("kind", ["boltzmann", "fixed"])
def test_the_contract_of_agents_holds(
    kind: str, environment: str, check: Callable[[contract.Case], None]
) -> None:
    check(contract.Case(kind, (), environment))


def test_the_first_slot_has_the_stated_probabilities() -> None:
    p = np.array([0.5, 0.25, 0.15, 0.07, 0.03, 0.0])
    uniforms = np.random.default_rng(0).random((100_000, 6))
    chosen = gumbel_scores(np.tile(p, (len(uniforms), 1)), uniforms).argmax(axis=1)
    counts = np.bincount(chosen, minlength=6)
    assert counts[-1] == 0
    assert chisquare(counts[:-1], len(uniforms) * p[:-1]).pvalue > 1e-4


def test_a_run_chooses_with_the_stated_probabilities() -> None:
    lane = make("fixed", worlds.Linear, rows=range(16))
    items = np.concatenate([lane.advance(500).items[:, :, 0] for _ in range(4)])
    p = np.array([1.0, 2, 3, 4]) / 10
    counts = np.bincount(items.ravel(), minlength=5)
    assert counts[-1] == 0
    assert chisquare(counts[:-1], items.size * p).pvalue > 1e-4
    # steps and rows are independent
    for a, b in ((items[:-1], items[1:]), (items[:, :-1], items[:, 1:])):
        pairs = np.bincount((5 * a + b).ravel(), minlength=25).reshape(5, 5)[:-1, :-1]
        assert chisquare(pairs.ravel(), a.size * np.outer(p, p).ravel()).pvalue > 1e-4


def test_choices_are_independent_of_the_numbers_that_a_subclass_draws() -> None:
    agent: Any = make("boltzmann").agent
    K = agent.spec.n_candidates
    # part 0, the default
    own = agent.streams.blocks("agent", lambda g, n: g.random((n, K)), width=K)
    assert (own.at(0) != agent._uniforms.at(0)).all()


def test_a_slate_is_drawn_without_replacement() -> None:
    """Plackett-Luce: the ordered slate (i, j) has probability p_i p_j / (1 - p_i)."""
    p, n = np.array([0.4, 0.3, 0.2, 0.1, 0.0]), 100_000
    uniforms = np.random.default_rng(1).random((n, 5))
    slate = top_k(
        gumbel_scores(np.tile(p, (n, 1)), uniforms),
        np.ones((n, 5), np.bool_),
        np.ones(n, np.bool_),
        2,
        np.zeros(n, np.uint64),
        0,
    )
    counts = np.bincount(5 * slate[:, 0] + slate[:, 1], minlength=25).reshape(5, 5)
    expected = n * p[:, None] * p / (1 - p[:, None])
    possible = (expected > 0) & ~np.eye(5, dtype=bool)
    assert not counts[~possible].any()
    assert chisquare(counts[possible], expected[possible]).pvalue > 1e-4


def test_unavailable_candidates_are_never_shown_and_nan_stops_the_row() -> None:
    available = np.array([[True, False, True], [True, True, True]])
    scores = gumbel_scores(np.array([[0.5, 0.0, 0.5], [np.nan, 0.5, 0.5]]), np.full((2, 3), 0.5))
    assert np.isneginf(scores[0, 1])
    alive = np.ones(2, np.bool_)
    top_k(scores, available, alive, 1, np.zeros(2, np.uint64), 0)
    assert alive.tolist() == [True, False]
    assert np.isposinf(gumbel_scores(np.array([[1.0]]), np.array([[0.0]]))).all()


@pytest.mark.parametrize("environment", [worlds.Changing, worlds.Cascade])
def test_choices_depend_on_neither_other_rows_nor_chunks(environment: Any) -> None:
    together = make("boltzmann", environment, rows=(0, 1, 2)).advance(90)
    for row in range(3):
        assert same(make("boltzmann", environment, rows=(row,)).advance(90), take(together, [row]))
    lane = make("boltzmann", environment)
    assert same(join([lane.advance(n) for n in (1, 40, 49)]), together)


def test_a_run_continues_from_its_state() -> None:
    lane = make("boltzmann", worlds.Cascade)
    lane.advance(30)
    other = make("boltzmann", worlds.Cascade)
    other.load_state_dict(lane.state_dict())
    assert same(other.advance(30), lane.advance(30))
