"""The plateau of the linearity check: slope and distance against plain formulas, and the error
rates of the sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from bandits import Experiment, diagnostics, run
from bandits.agents.linear.linucb import LinUCB
from bandits.base.types import FloatArray
from bandits.diagnostics import LinearityCheck
from bandits.diagnostics.regret import MAX_CLOSED, Plateau, plateau
from bandits.diagnostics.rules.model import linearity
from bandits.experiments.history import History
from bandits.experiments.lane import Trace
from bandits.experiments.snapshots import ExplorationCheck
from bandits.results.metrics import Estimate
from bandits.results.result import Result
from tests.support import often, thinned

# replications of a run, and runs of an error rate: a sign in 1 of 4 runs would be seen with
# probability .97
ROWS, GROUPS = 16, often(12, 40)
POINTS = np.zeros(10)


def history(regret: FloatArray, exploring: float = 0.0) -> History:
    """Construct a history of expected regrets per step, (T, R), of which exploring costs a part."""
    T, rows = regret.shape
    one, shown = np.ones((T, rows)), np.zeros((T, rows, 1), np.int64)
    result = History(T, rows, 5)
    result.extend(
        Trace(
            0, shown, shown[:, :, 0], 1 - regret, one, 1 - regret, one, one, np.ones(rows, np.bool_)
        )
    )
    for step in range(T // 20, T + 1, T // 20):
        chosen = 1 - regret[step - 1]
        columns = [np.full(rows, 0.1), chosen, chosen + exploring, np.ones(rows), np.zeros(rows)]
        result.exploration_checks.append(ExplorationCheck(step, np.stack(columns, axis=1)))
    return result


def some(source: History, rows: slice) -> History:
    """Return some replications of a history: they are independent of the others."""
    part = History(source.steps, rows.stop - rows.start, source.n_items)
    part.sums = {name: sums[:, rows] for name, sums in source.sums.items()}
    part.exploration_checks = [
        ExplorationCheck(c.step, c.values[rows]) for c in source.exploration_checks
    ]
    part.step = source.step
    return part


def share_reached(whole: History) -> float:
    """Return the share of the runs of ``ROWS`` replications that have the sign."""
    parts = [plateau(some(whole, slice(i, i + ROWS))) for i in range(0, whole.rows, ROWS)]
    return float(np.mean([part is not None and part.reached for part in parts]))


def at_most(rate: float, n: int) -> float:
    """Return the share of ``n`` runs that is exceeded in 1 of 1,000 tests where the true rate is
    ``rate``.
    """
    return float(stats.binom.ppf(0.999, n, rate) / n)


def test_slope_and_distance_equal_a_plain_fit() -> None:
    rng = np.random.default_rng(0)
    regret = rng.random((900, 5)) * 0.1 + 0.3
    found = plateau(history(regret, exploring=0.05))
    assert found is not None
    late = regret[600:]
    slopes = np.array([np.polyfit(np.arange(300), -row, 1)[0] for row in late.T])
    half = stats.t.ppf(0.975, 4) * slopes.std(ddof=1) / 5**0.5
    np.testing.assert_allclose(
        found.slope, [slopes.mean(), slopes.mean() - half, slopes.mean() + half], rtol=1e-6
    )
    distance = late.mean(axis=0) - 0.05
    half = stats.t.ppf(0.975, 4) * distance.std(ddof=1) / 5**0.5
    np.testing.assert_allclose(
        found.distance, [distance.mean(), distance.mean() - half, distance.mean() + half]
    )
    z = slopes * 300 - MAX_CLOSED * distance
    assert found.reached == (z.mean() + stats.t.ppf(0.975, 4) * z.std(ddof=1) / 5**0.5 < 0)


def test_a_coarse_grid_changes_little() -> None:
    """Of 9,000 steps, sums are stored at some only."""
    rng = np.random.default_rng(1)
    regret = 0.3 + 0.1 * np.arange(9000)[:, None] / 9000 + 0.1 * rng.standard_normal((9000, 4))
    whole = history(regret)
    assert len(whole.grid) < 9000
    found = plateau(whole)
    assert found is not None
    assert found.slope.mean == pytest.approx(-0.1 / 9000, rel=0.4)
    # the reward falls
    assert found.reached


def test_the_definition_of_the_largest_share() -> None:
    """Least squares over the last third of 1/√t close a fifth of the mean distance."""
    t = np.linspace(2 / 3, 1, 100_001)
    y = t**-0.5
    assert MAX_CLOSED <= -np.polyfit(t, y, 1)[0] / 3 / y.mean() < MAX_CLOSED + 0.005


def test_one_replication_or_a_short_run_has_no_sign() -> None:
    flat = np.full((900, 1), 0.3)
    assert plateau(history(flat)) is None
    assert plateau(history(np.full((20, 4), 0.3))) is not None
    short = history(np.full((20, 4), 0.3))
    short.step = 5
    assert plateau(short) is None


def test_exploring_alone_is_no_distance() -> None:
    regret = 0.2 + 0.01 * np.random.default_rng(2).standard_normal((900, 8))
    without, with_all = plateau(history(regret)), plateau(history(regret, exploring=0.2))
    assert without is not None
    assert with_all is not None
    assert (without.reached, with_all.reached) == (True, False)


def test_a_distance_that_may_be_zero_is_no_sign() -> None:
    """The reward falls in all replications, but in some of them the agent is as good as the
    oracle.
    """
    levels = 0.3 * np.random.default_rng(6).standard_normal(8)
    levels += 0.02 - levels.mean()
    falling = 0.3 * (np.arange(900)[:, None] / 900 - 5 / 6)
    for shift, reached in ((0.0, False), (1.0, True)):
        found = plateau(history(levels + shift + falling))
        assert found is not None
        assert found.slope.high < 0
        assert found.distance.high > 0
        assert found.reached == reached


@pytest.mark.parametrize(
    ("exponent", "bounds"),
    [(-0.5, (0.0, at_most(0.025, 200))), (-1.0, (0.0, 0.0)), (0.0, (0.9, 1.0))],
)
def test_the_error_rate_of_constructed_regrets(
    exponent: float, bounds: tuple[float, float]
) -> None:
    """A regret of √t is the boundary: it is called a plateau in 2.5 % of runs.

    A constant distance always is.
    """
    n = 200
    rng = np.random.default_rng(3)
    t = np.arange(1, 601)[:, None] / 600
    levels = 1 + 0.1 * rng.standard_normal(n * ROWS)
    regret = 0.2 * levels * t**exponent + 0.15 * rng.standard_normal((600, n * ROWS))
    rate = share_reached(history(regret))
    assert bounds[0] <= rate <= bounds[1]


def simulated(function: str, agent: dict[str, Any]) -> History:
    """Run ``GROUPS`` times ``ROWS`` replications at once, each with weights of its own."""
    world = {"kind": "synthetic", "function": function, "n_arms": 5, "n_features": 10, "noise": 0.5}
    world["layout"] = "per_row"
    e = Experiment.model_validate(
        {
            "simulator": world,
            "agents": [agent],
            "steps": 2000,
            "replications": ROWS * GROUPS,
            "seed": 5,
        }
    )
    with threadpool_limits(1):
        return next(iter(run(e).histories.values()))


LINEAR_AGENTS = [
    {"kind": "linucb", "sharing": "shared", "alpha": 0.5},
    {"kind": "lints", "sharing": "shared"},
    {"kind": "epsilon_greedy", "sharing": "shared", "epsilon": 0.1},
]
AGENT_CASES = [pytest.param(agent, id=agent["kind"]) for agent in LINEAR_AGENTS]


@pytest.mark.parametrize("agent", thinned(AGENT_CASES, lambda _: False, lambda number: number == 0))
def test_an_agent_that_learns_in_a_linear_simulator_has_no_plateau(agent: dict[str, Any]) -> None:
    whole = simulated("linear", agent)
    regret = (whole.sums["best_value"] - whole.sums["value"]).mean(axis=1)
    thirds = np.interp(np.array([0, 1, 2, 3]) * whole.steps / 3, whole.grid, regret)
    assert np.diff(thirds)[2] < np.diff(thirds)[0]  # it learns
    assert share_reached(whole) <= 0.05


@pytest.mark.parametrize("agent", thinned(AGENT_CASES, lambda _: False, lambda number: number == 1))
def test_a_linear_agent_that_is_stuck_in_a_nonlinear_simulator_has_a_plateau(
    agent: dict[str, Any],
) -> None:
    assert share_reached(simulated("quadratic", agent)) >= 0.9


STUCK = Plateau(Estimate(1e-6, -5e-6, 7e-6), Estimate(0.2, 0.18, 0.22), True)
LEARNS = Plateau(Estimate(5e-5, 2e-5, 8e-5), Estimate(0.2, 0.18, 0.22), False)
UNDECIDED = Plateau(Estimate(5e-5, -2e-5, 12e-5), Estimate(0.2, 0.18, 0.22), False)


@pytest.mark.parametrize(
    ("gain", "p", "sign", "verdict", "message"),
    [
        (
            0.0,
            0.5,
            STUCK,
            "watch",
            "The cause may also be that the agent stopped exploring too early.",
        ),
        (
            0.0,
            0.5,
            LEARNS,
            "healthy",
            "reward per step changes by 0.05 (95 % CI 0.02 to 0.08) per 1,000",
        ),
        (0.0, 0.5, LEARNS, "healthy", " No plateau: over the last third"),
        (0.0, 0.5, UNDECIDED, "healthy", " No evidence of a plateau: "),
        (0.0, 0.001, STUCK, "watch", " Plateau: "),
        (
            4.0,
            0.001,
            STUCK,
            "alarm",
            "reward per step changes by 0.001 (95 % CI −0.005 to 0.007) per 1,000",
        ),
        (4.0, 0.001, LEARNS, "alarm", "and is 0.2 (95 % CI 0.18 to 0.22) below it"),
        (4.0, 0.001, None, "alarm", "so a linear model underfits."),
    ],
)
def test_the_finding_states_slope_and_distance(
    gain: float, p: float, sign: Plateau | None, verdict: str, message: str
) -> None:
    check = LinearityCheck(POINTS, POINTS, POINTS + 1, p, gain)
    finding = linearity(LinUCB.Params(sharing="shared"), check, sign)
    assert finding.verdict == verdict
    assert message in finding.text
    assert (sign is None) != ("per 1,000 steps relative to the oracle's" in finding.text)
    per_arm = linearity(LinUCB.Params(), check, sign)
    if gain > 1:
        assert ("per-arm models may underfit too" in per_arm.text) == (sign is STUCK)
        assert per_arm.verdict == "watch"


def test_a_plateau_decides_where_observations_are_few() -> None:
    check = LinearityCheck(POINTS, POINTS, POINTS + 1, 0.5, 0.5, beyond=1.0)
    verdicts = [
        linearity(LinUCB.Params(sharing="shared"), check, sign).verdict for sign in (STUCK, LEARNS)
    ]
    assert verdicts == ["watch", "none"]


@pytest.mark.parametrize(
    ("agent", "changes"),
    [
        ({"gamma": 0.99}, {}),
        ({"window": 500}, {}),
        ({}, {"changes": [{"kind": "shock", "at": 400}]}),
    ],
    ids=["discount", "window", "shock"],
)
def test_forgetting_and_changes_are_causes_of_their_own(
    agent: dict[str, Any], changes: dict[str, Any]
) -> None:
    for parameters, simulator, stated in (({}, {}, True), (agent, changes, False)):
        e = Experiment.model_validate(
            {
                "simulator": {"kind": "petshop", **simulator},
                "steps": 900,
                "replications": 3,
                "agents": [{"kind": "linucb", "sharing": "shared", **parameters}],
            }
        )
        regret = 0.3 + 0.01 * np.random.default_rng(4).standard_normal((900, 3))
        check = LinearityCheck(POINTS, POINTS, POINTS + 1, 0.5, 0.0)
        finding = diagnostics.findings(
            Result(e, {e.labels[0]: history(regret)}), e.labels[0], None, check
        )["linearity"]
        assert ("Plateau: over the last third" in finding.text) == stated
