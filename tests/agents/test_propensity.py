"""Propensities are what they say: exact, estimated by redraws, or 1 for what is shown."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from bandits.agents.base import Agent
from bandits.agents.guards.base import unguarded
from bandits.agents.propensity import REDRAWS, choice_counts, first_choices
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round
from bandits.experiments.lane import Lane, build_lane
from tests.agents.test_formulas import BINARY
from tests.contract import worlds
from tests.support import often, thinned

ROWS = (0, 1, 2)
EXACT: list[tuple[str, dict[str, Any]]] = [
    ("lints", {"sigma2": 0.1}),
    ("lints", {"sigma2": 0.1, "gamma": 0.95}),
    ("lints", {"sigma2": 0.1, "window": 20}),
    ("lints", {"sigma2": 0.3, "fourier": 6}),
    ("lints", {"sigma2": 0.0}),
    ("beta_ts", {}),
    ("beta_ts", {"prior_clicks": 0.1, "prior_misses": 0.5}),
    ("beta_ts", {"gamma": 0.95}),
    ("sgd_ts", {"batch": 10}),
    ("sgd_ts", {"batch": 50}),
]
ESTIMATED: list[tuple[str, dict[str, Any]]] = [
    ("lints", {"sigma2": 0.1, "sharing": "shared"}),
    ("lints", {"sigma2": 0.1, "sharing": "hybrid"}),
    ("lints", {"noise": "inverse_gamma"}),
    ("beta_ts", {"prior_misses": 0.49}),
    ("beta_ts", {"prior_clicks": 0.09}),
    ("logistic_ts", {}),
    ("sgd_ts", {"batch": 10, "sharing": "shared"}),
]
FLOOR = {"kind": "floor", "epsilon": 0.3}
SLOW = {"kind": "fallback", "to": "random", "median_ms": 5, "p99_ms": 60}
STACKS: list[list[dict[str, Any]]] = [
    [FLOOR],
    [SLOW],
    [SLOW, FLOOR],
    [{"kind": "cap", "share": 0.4, "window": 10}],
]


def standard_error(probabilities: FloatArray, n: int = REDRAWS) -> FloatArray:
    """Compute that of shares of n redraws: the standard deviation of Beta(n p + 1, n (1 - p) + 1),
    which is above 0.
    """
    p = (n * probabilities + 1) / (n + 2)
    return np.asarray(np.sqrt(p * (1 - p) / (n + 3)))


def lane_of(
    kind: str, steps: int = 40, *, rows: Any = ROWS, guards: Any = (), **params: Any
) -> tuple[Lane, Round]:
    """Return a lane after some steps, and the round to come, in which one candidate is not
    available.
    """
    lane = worlds.make(kind, worlds.Linear, rows=rows, options=BINARY, **params)
    if guards:
        own = [type(lane.agent).Params(**params, guards=list(guards))] * len(rows)  # type: ignore[arg-type]
        lane = build_lane(type(lane.agent), own, lane.simulator)
    lane.advance(steps)
    round = lane.simulator.round_at(steps)
    available = round.available.copy()
    available[0, 1] = False
    return lane, round._replace(available=available)


def chi_square(counts: FloatArray, p: FloatArray, n: int) -> float:
    """P-value of counts against probabilities, cells below 5 expected counts together."""
    expected = n * p
    small = expected < 5
    pairs = [
        *zip(counts[~small], expected[~small], strict=True),
        (counts[small].sum(), expected[small].sum()),
    ]
    if pairs[-1][1] < 1e-6:
        assert pairs.pop()[0] == 0
    statistic = sum((c - e) ** 2 / e for c, e in pairs)
    return float(chi2.sf(statistic, max(len(pairs) - 1, 1)))


@pytest.mark.parametrize(("kind", "params"), EXACT, ids=str)
def test_exact_probabilities_are_the_frequencies_of_scores(
    kind: str, params: dict[str, Any]
) -> None:
    """Scores of the same estimates at many later steps, so from the agent's own random numbers, and
    redraws.
    """
    lane, round = lane_of(kind, **params)
    agent, n = lane.agent, often(2500, 6000)
    assert agent.propensity == "exact"
    p = agent.probabilities(round)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert (p >= 0).all()
    assert not p[~round.available].any()
    own = np.zeros(p.shape)
    ageless = round._replace(step=round.step)
    for i in range(n):
        # the estimates fade with the step
        if "gamma" in params and kind == "lints":
            break
        scores = agent.scores(ageless._replace(step=round.step + i))
        own[np.arange(3), np.where(round.available, scores, -np.inf).argmax(axis=1)] += 1
    for counts in (own, choice_counts(agent, round, n=n).astype(float)):
        if counts.any():
            assert min(chi_square(counts[r], p[r], n) for r in range(3)) > 1e-4


@pytest.mark.parametrize(("kind", "params"), ESTIMATED, ids=str)
def test_estimated_probabilities_agree_with_independent_redraws(
    kind: str, params: dict[str, Any]
) -> None:
    lane, round = lane_of(kind, **params)
    assert lane.agent.propensity == "monte_carlo"
    p = lane.agent.probabilities(round)
    # the draw of the round counts as one more
    np.testing.assert_allclose((1001 * p).round(), 1001 * p, rtol=1e-12)
    own = np.where(round.available, lane.agent.scores(round), -np.inf).argmax(axis=1)
    assert (p[np.arange(3), own] >= 1 / 1001).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert not p[~round.available].any()
    other = choice_counts(lane.agent, round, n=2000, part=1) / 2000
    assert (np.abs(p - other) < 4 * np.hypot(standard_error(p), standard_error(other, 2000))).all()
    assert ((p > 0) & (p < 1)).any()
    assert not np.array_equal(p, choice_counts(lane.agent, round, part=1) / 1000)


@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: "-".join(g["kind"] for g in stack))
@pytest.mark.parametrize(("kind", "params"), [EXACT[0], ESTIMATED[0], ("linucb", {})], ids=str)
def test_guards_keep_probabilities_right(
    kind: str, params: dict[str, Any], stack: list[dict[str, Any]]
) -> None:
    """The stated vector agrees with redraws through the whole stack.

    The agent decides what kind it is.
    """
    lane, round = lane_of(kind, guards=stack, **params)
    inner = unguarded(lane.agent).propensity
    mixes = stack[0]["kind"] != "cap"
    assert lane.agent.propensity == ("exact" if inner == "deterministic" and mixes else inner)
    p, n = lane.agent.probabilities(round), 2000
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert not p[~round.available].any()
    if inner == "deterministic":
        return
    other = choice_counts(lane.agent, round, n=n, part=1) / n
    error = np.hypot(standard_error(other, n), standard_error(p) if inner == "monte_carlo" else 0)
    assert (np.abs(p - other) < 4 * error).all()


def test_a_fallback_whose_agent_has_failed_is_redrawn() -> None:
    lane, round = lane_of("lints", guards=[SLOW], sharing="shared")
    lane.agent.broken[0] = True  # type: ignore[attr-defined]
    p, other = lane.agent.probabilities(round), choice_counts(lane.agent, round, n=4000) / 4000
    assert (np.abs(p - other) < 4 * standard_error(other, 4000)).all()


@pytest.mark.parametrize(
    ("kind", "params"),
    thinned([*EXACT, *ESTIMATED], lambda number: number in (5, 13), lambda number: number % 4 == 0),
    ids=str,
)
def test_questions_change_no_choice_and_rows_do_not_depend_on_each_other(
    kind: str, params: dict[str, Any]
) -> None:
    lane, round = lane_of(kind, **params)
    undisturbed, _ = lane_of(kind, **params)
    unguarded(lane.agent).n_redraws = 60
    p = lane.agent.probabilities(round)
    assert np.array_equal(lane.agent.probabilities(round), p)
    assert worlds.same(lane.advance(50), undisturbed.advance(50))
    for row in ROWS:
        alone, single = lane_of(kind, rows=(row,), **params)
        single = single._replace(available=round.available[[row]])
        alone.agent.n_redraws = 60
        assert np.array_equal(alone.agent.probabilities(single)[0], p[row])


class Coins(Agent):
    """An agent that shows candidate 0 with a given probability."""

    propensity = "monte_carlo"

    def __init__(self, p: float, rows: int) -> None:
        self.p, self.rows, self.streams = p, rows, Streams(1, range(rows))

    def scores(self, round: Round) -> FloatArray:
        return np.zeros((self.rows, 2))

    def redraws(self, round: Round, generator: np.random.Generator) -> Any:
        while True:
            first = generator.random((self.rows, 1)) < self.p
            yield np.concatenate([first, ~first], axis=1).astype(float)


class Silent(Coins):
    """An agent that declares redraws and has none."""

    def redraws(self, round: Round, generator: np.random.Generator) -> Any:
        return iter(())


def test_an_agent_without_redraws_has_no_estimate() -> None:
    round = worlds.make("random", rows=range(4)).simulator.round_at(0)
    with pytest.raises(ValueError, match="monte_carlo must implement redraws"):
        next(first_choices(Silent(0.5, 4), round))


def test_numbers_of_a_row_come_from_its_own_stream() -> None:
    together, single = Streams(3, (4, 7)), Streams(3, (7,))
    draws: list[Any] = [
        lambda g, n: g.random((n, 3)),
        lambda g, n: g.standard_normal((n, 2, 2)),
        lambda g, n: g.standard_normal(n),
        lambda g, n: g.random((n, 3), np.float32),
        lambda g, n: g.beta(np.ones((n, 3)), 2 * np.ones((n, 3))),
    ]
    for draw in draws:
        both, one = together.of_rows("propensity", block=5), single.of_rows("propensity", block=5)
        for _ in range(3):
            drawn, alone = draw(both, 2), draw(one, 1)
            assert drawn.dtype == alone.dtype
            assert np.array_equal(drawn[1], alone[0])
            assert not np.array_equal(drawn[0], drawn[1])
    with pytest.raises(ValueError, match="first axis must be that of the 2 rows"):
        together.of_rows("propensity").random(3)


def test_redraws_come_from_a_stream_of_their_own() -> None:
    lane, round = lane_of("lints", sharing="shared", sigma2=0.1)
    other = lane.agent.streams.of_rows("propensity", block=round.step)
    for chosen, scores in zip(
        islice(first_choices(lane.agent, round), 20), lane.agent.redraws(round, other), strict=False
    ):
        assert np.array_equal(chosen, np.where(round.available, scores, -np.inf).argmax(axis=1))
