"""The synthetic simulator equals that of the NeuralUCB paper.

Expected rewards follow the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, kstest

from bandits import run
from bandits.agents import REGISTRY
from bandits.agents.neural.static_mlp import StaticMLP
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, FloatArray
from bandits.experiments.experiment import UserError, read
from bandits.experiments.presets import presets
from bandits.simulators.synthetic import Synthetic
from tests.contract.worlds import make, same, take

ROWS = (0, 1, 2)
FUNCTIONS = ("linear", "quadratic", "form", "cosine")
ALONG: dict[str, Callable[[Any], Any]] = {
    "linear": lambda s: s,
    "quadratic": lambda s: 10 * s**2,
    "cosine": lambda s: np.cos(3 * s),
}
each_function = pytest.mark.parametrize("function", FUNCTIONS)


def simulator_of(rows: tuple[int, ...] = ROWS, seed: int = 5, **options: Any) -> Synthetic:
    return Synthetic(Synthetic.Params(**options), Streams(seed, rows))


def contexts(simulator_of: Synthetic, steps: int) -> FloatArray:
    return np.concatenate(
        [simulator_of.round_at(step).features for step in range(steps)]
    )  # (steps R, K, D)


@each_function
@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_expected_rewards_follow_the_formula(function: Any, layout: Any) -> None:
    built = simulator_of(function=function, layout=layout, scale=0.7)
    for step in (0, 1, 500, 20_000):
        round = built.round_at(step)
        means = built.probabilities(round)
        for r, x in enumerate(round.features):
            layout_of = built.layouts()[r]
            generator = built.streams.generator("layout", row=layout_of)
            if function == "form":
                A = generator.standard_normal((20, 20))
                expected = [v @ A.T @ A @ v for v in x]
            else:
                a = generator.standard_normal(20)
                expected = [ALONG[function](v @ a / np.linalg.norm(a)) for v in x]
            np.testing.assert_allclose(means[r], 0.7 * np.array(expected), rtol=1e-12, atol=1e-14)


def test_bernoulli_rewards_follow_a_logistic_model() -> None:
    """log odds = scale h(x), so that for linear h they are linear in x."""
    plain, draws = (
        simulator_of(function="linear", scale=3.0),
        simulator_of(function="linear", scale=3.0, reward="bernoulli"),
    )
    for step in range(20):
        round = draws.round_at(step)
        p = draws.probabilities(round)
        np.testing.assert_allclose(
            np.log(p / (1 - p)), plain.probabilities(round), rtol=1e-10, atol=1e-14
        )


@pytest.mark.parametrize("where", ["ball", "sphere"])
def test_contexts_are_uniform(where: Any) -> None:
    x = contexts(simulator_of(contexts=where, n_features=3), 2000).reshape(-1, 3)
    radius = np.linalg.norm(x, axis=1)
    limit = 2.226 / np.sqrt(len(x))
    if where == "sphere":
        np.testing.assert_allclose(radius, 1, rtol=1e-12)
    else:
        assert kstest(radius**3, "uniform").statistic < limit
    # Archimedes: on the sphere in three dimensions each coordinate is uniform
    for axis in (x / radius[:, None]).T:
        assert kstest((axis + 1) / 2, "uniform").statistic < limit


def expected(function: str, where: str, d: int = 20, K: int = 4) -> tuple[float, float]:
    """Return the expected reward of the best of K arms and of a random one by an integral over
    quantiles.

    (a.x)^2 of a uniform point of the sphere is Beta(1/2, (d - 1)/2); the ball is the projection of
    a sphere with two more dimensions. The largest of K uniforms has the quantiles u^(1/K)."""
    square, h = beta(0.5, (d - 1 if where == "sphere" else d + 1) / 2), ALONG[function]
    u = (np.arange(100_000) + 0.5) / 100_000
    most = u ** (1 / K)
    # a.x is symmetric
    if function == "linear":
        along = np.sign(most - 0.5) * np.sqrt(square.ppf(np.abs(2 * most - 1)))
        return float(h(along).mean()), 0.0
    # cos(3 t) falls from 0 to 1
    best = square.ppf(most if function == "quadratic" else 1 - most)
    return float(h(np.sqrt(best)).mean()), float(h(np.sqrt(square.ppf(u))).mean())


@pytest.mark.parametrize("where", ["ball", "sphere"])
@pytest.mark.parametrize("function", ["linear", "quadratic", "cosine"])
def test_the_regret_of_random_choice_equals_the_integral(function: str, where: str) -> None:
    best, mean = expected(function, where)
    rows, T = range(8), 500
    trace = make(
        "random", Synthetic, rows=rows, options={"function": function, "contexts": where}
    ).advance(T)
    for measured, exact in (
        (trace.best_value, best),
        (trace.random_value, mean),
        (trace.value, mean),
    ):
        assert abs(measured.mean() - exact) < 4.5 * measured.std() / np.sqrt(measured.size)


def test_the_best_arm_of_a_form_equals_an_independent_simulation() -> None:
    """Draw the ball as the projection of a sphere with two more dimensions.

    The mean of x'A'Ax is tr(A'A) / (d + 2).
    """
    trace = make("random", Synthetic, rows=range(8), options={"function": "form"}).advance(1500)
    A = Streams(7, (0,)).generator("layout").standard_normal((20, 20))
    x = np.random.default_rng(0).standard_normal((40_000, 4, 22))
    x = (x / np.linalg.norm(x, axis=2, keepdims=True))[:, :, :20]
    best = np.square(x @ A.T).sum(axis=2).max(axis=1)
    error = np.hypot(best.std() / 200, trace.best_value.std() / np.sqrt(trace.best_value.size))
    assert abs(trace.best_value.mean() - best.mean()) < 4.5 * error
    exact = np.square(A).sum() / 22
    assert abs(trace.random_value.mean() - exact) < 4.5 * trace.random_value.std() / np.sqrt(
        trace.random_value.size
    )


def test_regret_equals_the_measured_values() -> None:
    """A separate run, two seeds of T = 10,000: 6476 on quadratic, about 59,500 on form.

    The unit ball of the paper
    fits (6432); the unit sphere of the authors' code (7046) does not."""
    best, mean = expected("quadratic", "ball")
    step = make("random", Synthetic, rows=range(4)).advance(1000)
    spread = (step.best_value - step.value).std() * np.sqrt(10_000 / 2)
    assert abs(10_000 * (best - mean) - 6476) < 3 * spread
    best, mean = expected("quadratic", "sphere")
    assert abs(10_000 * (best - mean) - 6476) > 6 * spread
    options = {"function": "form", "layout": "per_row"}
    trace = make("random", Synthetic, rows=range(40), options=options).advance(300)
    regret = 10_000 * (trace.best_value - trace.random_value).mean(axis=0)
    assert abs(regret.mean() - 59_500) < 3 * regret.std(ddof=1) / np.sqrt(2)


@pytest.mark.slow
def test_linucb_is_between_random_and_the_oracle_on_nonlinear_rewards() -> None:
    """Check the order of the published curves, not their values."""
    total = {
        (f, kind): (t.best_value - t.value).mean()
        for f in ("quadratic", "form")
        for kind, more in (("random", {}), ("linucb", {"sharing": "shared"}))
        for t in [
            make(kind, Synthetic, rows=range(4), options={"function": f}, **more).advance(4000)
        ]
    }
    # measured .63 at T = 10,000
    assert 0.3 < total["quadratic", "linucb"] / total["quadratic", "random"] < 0.85
    assert 0.5 < total["form", "linucb"] / total["form", "random"] < 0.97  # .87


def test_noise_is_gaussian_and_equal_for_all_arms() -> None:
    options = {"noise": 0.3, "layout": "per_row"}
    trace = make("random", Synthetic, rows=range(8), options=options).advance(1000)
    draws = trace.rewards - trace.value
    assert kstest((draws / 0.3).ravel(), "norm").statistic < 2.226 / np.sqrt(draws.size)
    np.testing.assert_allclose(draws, trace.best_rewards - trace.best_value, atol=1e-12)
    quiet = make("random", Synthetic, options={"noise": 0.0}).advance(50)
    assert np.array_equal(quiet.rewards, quiet.value)


def test_a_uniform_of_zero_gives_a_finite_reward() -> None:
    built = simulator_of()
    feedback, _ = built.respond(built.round_at(0), np.zeros((3, 1), np.int64), np.zeros((3, 1)))
    assert np.isfinite(feedback.rewards).all()


def test_bernoulli_rewards_have_their_probability() -> None:
    options = {"reward": "bernoulli", "function": "linear", "scale": 5.0}
    trace = make("random", Synthetic, rows=range(8), options=options).advance(2000)
    assert set(np.unique(trace.rewards)) == {0.0, 1.0}
    variance = (trace.value * (1 - trace.value)).mean()
    assert abs((trace.rewards - trace.value).mean()) < 4.5 * np.sqrt(variance / trace.rewards.size)
    # the same uniform against the larger probability
    assert (trace.best_rewards >= trace.rewards).all()


@each_function
@pytest.mark.parametrize("reward", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_a_row_does_not_depend_on_other_rows(function: Any, reward: Any, layout: Any) -> None:
    options = {
        "function": function,
        "reward": reward,
        "layout": layout,
        "n_features": 7,
        "n_arms": 3,
    }
    whole = make("linucb", Synthetic, rows=range(5), options=options).advance(60)
    for rows in ((0,), (1, 3), (4, 2, 0)):
        assert same(
            make("linucb", Synthetic, rows=rows, options=options).advance(60), take(whole, rows)
        )


def test_layout_shared_or_each_row_its_own() -> None:
    x = np.eye(20)[None].repeat(3, axis=0)
    for layout, same_everywhere in (("shared", True), ("per_row", False)):
        built = simulator_of(layout=layout, function="linear")
        round = built.round_at(0)
        # the weights themselves
        a = built.probabilities(round._replace(contexts=Contexts(x, *list(round.contexts)[1:])))
        np.testing.assert_allclose(np.linalg.norm(a, axis=1), 1, rtol=1e-12)
        assert np.allclose(a[0], a[1]) == same_everywhere
    assert not np.array_equal(
        simulator_of(seed=6).round_at(0).features, simulator_of().round_at(0).features
    )


@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_the_log_is_random_choice_in_this_simulator(layout: Any) -> None:
    built, n = simulator_of(layout=layout, function="linear", noise=0.1), 20_000
    for row in ROWS if layout == "per_row" else (0,):
        log = built.log(row, n)
        a, *_ = np.linalg.lstsq(log.values, log.rewards, rcond=None)
        generator = built.streams.generator("layout", row=row)
        truth = generator.standard_normal(20)
        truth /= np.linalg.norm(truth)
        assert np.abs(a - truth).max() < 5 * 0.1 / np.sqrt(n / 22)


def test_a_network_trained_offline_fits_the_layout_of_its_row() -> None:
    params: dict[str, Any] = {
        "interactions": 4000,
        "epochs": 4,
        "hidden": (16,),
        "learning_rate": 0.01,
    }
    options: dict[str, Any] = {
        "reward": "bernoulli",
        "function": "linear",
        "scale": 10.0,
        "n_features": 4,
    }
    options["layout"] = "per_row"
    trace = make("static_mlp", Synthetic, options=options, **params).advance(300)
    room = (trace.best_value - trace.random_value).mean(axis=0)
    assert ((trace.value - trace.random_value).mean(axis=0) > 0.7 * room).all()
    assert same(
        make("static_mlp", Synthetic, rows=(2,), options=options, **params).advance(300),
        take(trace, [2]),
    )


@pytest.mark.parametrize("agent", ["beta_ts", "static_mlp"])
def test_agents_that_require_clicks_are_refused_where_rewards_are_numbers(agent: str) -> None:
    def experiment(reward: str) -> dict[str, Any]:
        kinds = [{"kind": "random"}, {"kind": agent}]
        return {"simulator": {"kind": "synthetic", "reward": reward}, "agents": kinds, "steps": 10}

    read(experiment("bernoulli"))
    title = REGISTRY[agent].title
    with pytest.raises(
        UserError,
        match=rf"^agents.1 \({title}\) requires rewards of 0 or 1, which Synthetic does not",
    ):
        read(experiment("gaussian"))
    assert "binary" in StaticMLP.needs


@pytest.mark.slow
def test_the_preset_shows_what_its_text_states() -> None:
    e = presets()["quadratic"].experiment
    result = run(e.model_copy(update={"replications": 3, "steps": 3000}))
    regret = [a["pseudo_regret"]["mean"] for a in result.summary()["agents"].values()]
    straight, few, many, random = regret
    assert many < 0.7 * straight < straight < 0.8 * random
    assert many < few < random


def test_rows_of_the_same_replication_have_the_same_layout() -> None:
    """In a sweep, replications repeat in any order."""
    params = Synthetic.Params(layout="per_row")
    repeated, single = (Synthetic(params, Streams(3, rows)) for rows in ((5, 2, 5, 2), (2, 5)))
    means = repeated.probabilities(repeated.round_at(7))
    assert np.array_equal(means, single.probabilities(single.round_at(7))[[1, 0, 1, 0]])
