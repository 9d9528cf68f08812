"""Ridge models of features in any unit equal exact arithmetic, or the experiment is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import UserError, read
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, Contexts, Feedback, FloatArray, Round
from bandits.experiments.lockstep import make_lane
from bandits.models.linear.nonstationary import SlidingWindowRidge
from bandits.models.linear.ridge import Ridge
from bandits.results.decision import why
from bandits.simulators.classification import Classification, load
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import inspect

N = 24
# of mean and variance; a variance below the second is compared absolutely
NEAR, SMALL = 1e-6, 1e-3


def stream(unit: str, g: np.random.Generator) -> FloatArray:
    """Draw features as users have them: one column in a large unit, others of ordinary size."""
    large = {
        "Unix time": 1.7e9 + np.sort(g.uniform(0, 1e6, N)),
        "milliseconds": 1.7e12 + np.sort(g.uniform(0, 1e9, N)),
        "id": g.integers(1, 10**9, N).astype(float),
        "income": g.uniform(2e4, 2e5, N).round(),
        "none": g.normal(size=N),
    }[unit]
    return np.column_stack([large, g.integers(18, 80, N), g.normal(size=N), np.ones(N)])


def exact(
    ridge: float, seen: FloatArray, rewards: FloatArray, x: FloatArray
) -> tuple[float, float]:
    """Return theta . x and x' A^-1 x in fractions, by elimination."""
    D = len(x)
    rows = [[Fraction(v) for v in row] for row in seen.tolist()]
    target = [Fraction(v) for v in x.tolist()]
    table = [
        [sum((a[i] * a[j] for a in rows), Fraction(ridge) * (i == j)) for j in range(D)]
        + [target[i]]
        for i in range(D)
    ]
    for i in range(D):
        for k in range(i + 1, D):
            factor = table[k][i] / table[i][i]
            table[k] = [b - factor * a for a, b in zip(table[i], table[k], strict=True)]
    u = [Fraction(0)] * D
    for i in reversed(range(D)):
        rest = sum((table[i][j] * u[j] for j in range(i + 1, D)), Fraction(0))
        u[i] = (table[i][D] - rest) / table[i][i]
    b = [
        sum((a[i] * Fraction(r) for a, r in zip(rows, rewards.tolist(), strict=True)), Fraction(0))
        for i in range(D)
    ]
    mean = sum((p * q for p, q in zip(u, b, strict=True)), Fraction(0))
    variance = sum((p * q for p, q in zip(u, target, strict=True)), Fraction(0))
    return float(mean), float(variance)


def round_of(x: FloatArray) -> Round:
    D, zero = len(x), np.zeros(1, np.int64)
    contexts = Contexts(x.reshape(1, 1, D).copy(), np.arange(D).reshape(1, 1, D), D)
    available: BoolArray = np.ones((1, 1), np.bool_)
    return Round(0, zero, np.zeros((1, 1), np.int64), contexts, zero, available, zero)


@pytest.mark.parametrize("sharing", ["per_arm", "shared", "hybrid"])
@pytest.mark.parametrize("ridge", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("unit", ["Unix time", "milliseconds", "id", "income", "none"])
def test_means_and_variances_equal_exact_arithmetic(unit: str, ridge: float, sharing: Any) -> None:
    g = np.random.default_rng(7)
    x, rewards = stream(unit, g), (g.random(N) < 0.5).astype(float)
    model = Ridge(np.array([ridge]), x.shape[1], 1, sharing)
    # one arm: both parts of the hybrid have the same features
    prior = ridge / 2 if sharing == "hybrid" else ridge
    for t in range(N - 1):
        if t % 4 == 1:
            (mean, variance), expected = (
                model.predict(round_of(x[-1])),
                exact(prior, x[:t], rewards[:t], x[-1]),
            )
            assert mean[0, 0] == pytest.approx(expected[0], rel=NEAR, abs=NEAR)
            assert variance[0, 0] == pytest.approx(expected[1], rel=NEAR, abs=NEAR * SMALL)
        seen = Feedback(rewards[t].reshape(1, 1), np.ones((1, 1), np.bool_))
        model.update(round_of(x[t]), np.zeros((1, 1), np.int64), seen)


def test_a_singular_matrix_stops_its_row() -> None:
    model = Ridge(np.array([1e-6]), 2, 1, "per_arm")
    seen = Feedback(np.ones((1, 1)), np.ones((1, 1), np.bool_))
    model.update(round_of(np.array([1e9, 1e9])), np.zeros((1, 1), np.int64), seen)
    assert np.isnan(model.mean(round_of(np.ones(2)))).all()


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Save a table with the time of each row, and one with a second time."""
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    g = np.random.default_rng(3)
    start = 1.7e9 + 997 * np.arange(60)
    end = start + 3 * g.integers(100, size=60)
    lines = [f"{start[i]:.0f},{end[i]:.0f},{g.normal():.3f},{'ab'[i % 2]}" for i in range(60)]
    parsed = inspect("\n".join(["start,end,size,class", *lines]).encode())
    both = uploads.save_dataset(parsed, target="class", title="Both")
    one = uploads.save_dataset(parsed, target="class", leave_out=["end"], title="One")
    return f"{one} {both}"


def plan(data: str, **agent: Any) -> dict[str, Any]:
    simulator = {"kind": "classification", "data": data, "encoding": "context", "scale": "none"}
    return {
        "simulator": simulator,
        "agents": [{"kind": "linucb", **agent}],
        "steps": 30,
        "replications": 2,
    }


def test_why_this_arm_equals_exact_arithmetic(table: str) -> None:
    one, _ = table.split()
    e = read(plan(one))
    for step in (3, 11, 29):
        # which counts from 1
        found = why(e, "LinUCB", step + 1)
        lane = make_lane(e, 0)
        trace = lane.advance(step)
        built = Classification(e.simulator, Streams(e.seed, range(e.replications)))
        x = np.array([built.round_at(t).features[0, 0] for t in range(step + 1)])
        for arm in range(2):
            chosen = trace.items[:, 0, 0] == arm
            mean, variance = exact(1.0, x[:-1][chosen], trace.rewards[:, 0][chosen], x[-1])
            (candidate,) = [c for c in found.candidates if c.item == arm]
            assert candidate.mean == pytest.approx(mean, rel=NEAR, abs=NEAR)
            assert candidate.width == pytest.approx(variance**0.5, rel=NEAR)
    assert load(one).features.max() > 1e9


@pytest.mark.parametrize(
    ("both", "agent"),
    [
        (True, {}),
        (False, {"gamma": 0.99}),
        (False, {"window": 50}),
        (False, {"kind": "logistic_ucb"}),
    ],
)
def test_models_that_would_lose_their_digits_are_refused_with_a_hint_at_the_scale(
    table: str, both: bool, agent: dict[str, Any]
) -> None:
    data = table.split()[both]
    with pytest.raises(
        UserError, match=r"^agents\.0 \(.*ridge .* choose simulator\.scale standard"
    ):
        read(plan(data, **agent))
    scaled = plan(data, **agent)
    del scaled["simulator"]["scale"]
    assert read(scaled)


def test_a_window_equals_exact_arithmetic_up_to_the_limit() -> None:
    """Features of which a window takes back the squares: 1e10 times the ridge are allowed."""
    from bandits.base.types import SimulatorSpec

    g = np.random.default_rng(5)
    x = np.column_stack([g.uniform(5e4, 1e5, N), g.normal(size=N), np.ones(N)])
    rewards = (g.random(N) < 0.5).astype(float)
    spec = SimulatorSpec(n_items=1, n_candidates=1, n_features=3, n_stored=3)
    model = SlidingWindowRidge(np.ones(1), spec, "per_arm", 5)
    for t in range(N - 1):
        seen = Feedback(rewards[t].reshape(1, 1), np.ones((1, 1), np.bool_))
        model.update(round_of(x[t])._replace(step=t), np.zeros((1, 1), np.int64), seen)
    mean, variance = model.predict(round_of(x[-1]))
    expected = exact(1.0, x[N - 6 : N - 1], rewards[N - 6 : N - 1], x[-1])
    assert (mean[0, 0], variance[0, 0]) == pytest.approx(expected, rel=NEAR, abs=NEAR)
