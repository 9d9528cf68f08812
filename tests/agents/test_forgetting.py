"""Every agent that can forget weighs its observations as stated, and keeps its prior whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from bandits import UserError, read, run
from bandits.agents import REGISTRY, Agent
from bandits.base.types import FloatArray, Round
from bandits.experiments.lockstep import make_lane
from bandits.models.linear.nonstationary import DiscountedRidge
from tests.models.test_nonstationary import RIDGE, SETTING, observation
from tests.support import often, thinned

FORGETTING = [
    kind
    for kind, cls in REGISTRY.items()
    if any(cls.forgets(cls.Params(**change)) for change in cls.test_params())
]
WAYS: list[dict[str, Any]] = [{"gamma": 0.97}, {"window": 60}]


def played(kind: str, steps: int, rows: int = 2, **params: Any) -> tuple[Agent, list[list[Any]]]:
    """Run an agent; returns it and, for every row, its observations (step, item, x, reward)."""
    shock = [{"kind": "shock", "at": steps // 2}] if steps > 1 else []
    simulator = {"kind": "petshop", "n_products": 6, "n_users": 30, "changes": shock}
    e = read(
        {
            "simulator": simulator,
            "agents": [{"kind": kind, **params}],
            "steps": steps,
            "replications": rows,
        }
    )
    lane = make_lane(e, 0)
    trace = lane.advance(steps)
    seen: list[list[Any]] = [[] for _ in range(rows)]
    for step in range(steps):
        features = lane.simulator.round_at(step).features
        for r in range(rows):
            item = int(trace.items[step, r, 0])
            seen[r].append((step, item, features[r, item], float(trace.rewards[step, r])))
    return lane.agent, seen


def weights(seen: list[Any], gamma: float = 1.0, window: int | None = None) -> FloatArray:
    """Return the weight of each observation after the last one."""
    age = len(seen) - 1 - np.array([step for step, *_ in seen])
    return np.where(age < (window or np.inf), gamma**age, 0.0)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", ["ucb1", "beta_ts"])
def test_counts_are_discounted_or_windowed(kind: str, way: dict[str, Any]) -> None:
    agent, seen = played(kind, 400, **way)
    for r, past in enumerate(seen):
        w = weights(past, **way)
        shown, clicks = np.zeros(6), np.zeros(6)
        for weight, (_, item, _, reward) in zip(w, past, strict=True):
            shown[item] += weight
            clicks[item] += weight * reward
        np.testing.assert_allclose(agent.shown[r], shown, atol=1e-10)  # type: ignore[attr-defined]
        np.testing.assert_allclose(agent.clicks[r], clicks, atol=1e-10)  # type: ignore[attr-defined]


def test_discounted_ucb_is_the_published_index() -> None:
    agent, seen = played("ucb1", 300, gamma=0.97, alpha=0.7)
    round = next_round(300)
    for r, past in enumerate(seen):
        w, items = weights(past, gamma=0.97), np.array([item for _, item, *_ in past])
        rewards = np.array([reward for *_, reward in past])
        for a in range(6):
            n = w[items == a].sum()
            index = (w * rewards)[items == a].sum() / n + 0.7 * np.sqrt(np.log(w.sum()) / n)
            assert agent.scores(round)[r, a] == pytest.approx(index, rel=1e-10)
    explained = agent.explain(round)
    np.testing.assert_allclose(explained.mean + 0.7 * explained.width, agent.scores(round))


def test_discounted_thompson_keeps_its_prior() -> None:
    agent, seen = played("beta_ts", 300, gamma=0.97, prior_clicks=2.0, prior_misses=3.0)
    a, b = agent.posterior(next_round(300))  # type: ignore[attr-defined]
    for r, past in enumerate(seen):
        w, items = weights(past, gamma=0.97), np.array([item for _, item, *_ in past])
        rewards = np.array([reward for *_, reward in past])
        for k in range(6):
            own = items == k
            assert a[r, k] == pytest.approx(2 + (w * rewards)[own].sum(), rel=1e-10)
            assert b[r, k] == pytest.approx(3 + (w * (1 - rewards))[own].sum(), rel=1e-10)


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", ["lints", "epsilon_greedy"])
def test_means_of_linear_agents_are_weighted_least_squares(
    kind: str, way: dict[str, Any], sharing: str
) -> None:
    agent, seen = played(kind, 400, sharing=sharing, ridge=0.5, **way)
    round = next_round(400)
    mean = agent.mean(round)  # type: ignore[attr-defined]
    for r, past in enumerate(seen):
        w, items = weights(past, **way), np.array([item for _, item, *_ in past])
        X, y = np.array([x for _, _, x, _ in past]), np.array([reward for *_, reward in past])
        for k in range(6):
            own = np.ones(len(past), bool) if sharing == "shared" else items == k
            A = 0.5 * np.eye(9) + (w[own, None] * X[own]).T @ X[own]
            theta = np.linalg.solve(A, (w[own] * y[own]) @ X[own])
            assert mean[r, k] == pytest.approx(round.features[r, k] @ theta, abs=1e-9)


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_a_draw_has_the_covariance_of_discounted_least_squares(sharing: Any) -> None:
    gamma, generator = np.array([0.9, 0.99, 1.0]), np.random.default_rng(1)
    model = DiscountedRidge(RIDGE, gamma, SETTING, sharing)
    for step in range(300):
        model.update(*observation(step, generator))
    # some steps after the last update
    round, _, _ = observation(305, generator)
    mean, variance = model.predict(round)
    n, sigma = often(4000, 40_000), np.array([0.5, 1.0, 2.0])
    width = 5 if sharing == "shared" else 4
    drawn = np.array(
        [model.sample(round, sigma, generator.standard_normal((3, width))) for _ in range(n)]
    )
    spread = sigma[:, None] ** 2 * variance
    assert (np.abs(drawn.mean(axis=0) - mean) < 4.5 * np.sqrt(spread / n)).all()
    assert (np.abs(drawn.var(axis=0) / spread - 1) < 4.5 * np.sqrt(2 / n)).all()


def test_a_shared_draw_has_the_exact_covariance() -> None:
    gamma, generator, sigma = (
        np.array([0.6, 0.8, 1.0]),
        np.random.default_rng(2),
        np.array([0.5, 1.0, 2.0]),
    )
    model = DiscountedRidge(RIDGE, gamma, SETTING, "shared")
    past: list[tuple[int, FloatArray]] = []
    for step in range(20):
        round, slate, feedback = observation(step, generator)
        model.update(round, slate, feedback)
        past.append((step, np.take_along_axis(round.features, slate[..., None], axis=1)[:, 0]))
    center = model.draw(22, sigma, np.zeros((3, 5)))
    columns = [model.draw(22, sigma, np.tile(unit, (3, 1))) - center for unit in np.eye(5)]
    for r in range(3):
        V, V2 = RIDGE[r] * np.eye(5), RIDGE[r] * np.eye(5)
        for step, x in past:
            V += gamma[r] ** (21 - step) * np.outer(x[r], x[r])
            V2 += gamma[r] ** (2 * (21 - step)) * np.outer(x[r], x[r])
        inverse, factor = np.linalg.inv(V), np.array([column[r] for column in columns]).T
        np.testing.assert_allclose(
            factor @ factor.T, sigma[r] ** 2 * inverse @ V2 @ inverse, rtol=1e-9, atol=1e-12
        )


def maximum_a_posteriori(
    X: FloatArray, y: FloatArray, w: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Fit a logistic model by scipy; returns theta and the precision of its Laplace posterior."""

    def loss(theta: FloatArray) -> float:
        return float(
            (w * (np.logaddexp(0, X @ theta) - y * (X @ theta))).sum() + ridge / 2 * theta @ theta
        )

    def gradient(theta: FloatArray) -> FloatArray:
        return np.asarray((w * (expit(X @ theta) - y)) @ X + ridge * theta)

    def hessian(theta: FloatArray) -> FloatArray:
        p = expit(X @ theta)
        return np.asarray((w * p * (1 - p) * X.T) @ X + ridge * np.eye(X.shape[1]))

    start = np.zeros(X.shape[1])
    found = minimize(
        loss, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-12}
    ).x
    for _ in range(3):
        found = found - np.linalg.solve(hessian(found), gradient(found))
    return found, hessian(found)


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", ["logistic_ucb", "logistic_ts"])
def test_logistic_models_are_weighted_fits(kind: str, way: dict[str, Any], sharing: str) -> None:
    # a multiple of the refit interval
    steps = 400
    agent, seen = played(kind, steps, sharing=sharing, ridge=0.5, refit=20, **way)
    posterior = agent.model.posterior  # type: ignore[attr-defined]
    for r, past in enumerate(seen):
        w, items = weights(past, **way), np.array([item for _, item, *_ in past])
        X, y = np.array([x for _, _, x, _ in past]), np.array([reward for *_, reward in past])
        for m in range(posterior.theta.shape[1]):
            own = np.ones(len(past), bool) if sharing == "shared" else items == m
            theta, H = maximum_a_posteriori(X[own], y[own], w[own], 0.5)
            np.testing.assert_allclose(posterior.theta[r, m], theta, atol=1e-8)
            np.testing.assert_allclose(posterior.H[r, m], H, atol=1e-8)


@pytest.mark.slow
def test_a_logistic_window_is_exact_after_many_steps() -> None:
    agent, seen = played(
        "logistic_ucb", often(10_000, 50_000), rows=1, sharing="shared", window=500, refit=100
    )
    X, y = (
        np.array([x for _, _, x, _ in seen[0][-500:]]),
        np.array([reward for *_, reward in seen[0][-500:]]),
    )
    theta, H = maximum_a_posteriori(X, y, np.ones(500), REGISTRY["logistic_ucb"].Params().ridge)  # type: ignore[attr-defined]
    posterior = agent.model.posterior  # type: ignore[attr-defined]
    np.testing.assert_allclose(posterior.theta[0, 0], theta, atol=1e-8)
    np.testing.assert_allclose(posterior.H[0, 0], H, atol=1e-8)


def test_a_full_discounted_history_drops_the_lightest() -> None:
    """Synthetic arms are new at every step: no feature vector comes twice."""
    simulator = {"kind": "synthetic", "reward": "bernoulli", "n_arms": 3, "n_features": 2}
    agent = {"kind": "logistic_ucb", "gamma": 0.9, "history": 50, "refit": 10, "sharing": "shared"}
    lane = make_lane(
        read({"simulator": simulator, "agents": [agent], "steps": 200, "replications": 2}), 0
    )
    rewards = lane.advance(200).rewards[150:]
    history = lane.agent.model.history  # type: ignore[attr-defined]
    for r in range(2):
        kept = history.shows[r, : history.used[r]]
        np.testing.assert_allclose(np.sort(kept)[::-1], 0.9 ** np.arange(50), rtol=1e-12)
        clicks = history.clicks[r, : history.used[r]][np.argsort(-kept)]
        np.testing.assert_allclose(clicks, rewards[::-1, r] * 0.9 ** np.arange(50), rtol=1e-12)
        assert np.unique(history.slots[r][history.slots[r] >= 0]).tolist() == list(range(50))


@pytest.mark.parametrize(
    "kind", ["linucb", "lints", "logistic_ucb", "logistic_ts", "ucb1", "beta_ts"]
)
def test_what_is_not_shown_becomes_uncertain_again(kind: str) -> None:
    """An arm that has not been shown within the window is as uncertain as at the start."""
    own = {"refit": 1} if kind.startswith("logistic") else {}
    agent, seen = played(kind, 400, window=5, **own)
    fresh, _ = played(kind, 1, window=5, **own)
    width, prior = (a.explain(next_round(400)).width for a in (agent, fresh))
    assert width is not None
    assert prior is not None
    idle = [
        (r, k)
        for r, past in enumerate(seen)
        for k in range(6)
        if k not in {item for _, item, *_ in past[-5:]}
    ]
    assert idle
    # of the first step
    unshown = [k for k in range(6) if k != seen[0][0][1]]
    for r, k in idle:
        assert width[r, k] == pytest.approx(prior[0, unshown[0]], rel=1e-9)


@pytest.mark.parametrize("kind", FORGETTING)
def test_forgetting_is_declared_and_both_ways_at_once_are_refused(kind: str) -> None:
    cls, both = REGISTRY[kind], {"gamma": 0.9, "window": 5}
    own = {name: value for name, value in both.items() if name in cls.Params.model_fields}
    for name, value in own.items():
        assert cls.forgets(cls.Params(**{name: value}))
    assert not cls.forgets(cls.Params(**dict.fromkeys(own.keys() & {"gamma"}, 1.0)))
    # agents that have one way alone cannot be given both
    with pytest.raises(UserError, match="not both" if own == both else "gamma|window"):
        read({"agents": [{"kind": kind, **both}]})
    if own == both:
        assert cls.forgets(cls.Params(**cls.Params.closest(both)))


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"kind": "lints", "gamma": 0.9, "sharing": "hybrid"}, "not hybrid"),
        ({"kind": "lints", "window": 9, "noise": "inverse_gamma"}, "no window"),
        (
            {"kind": "neural_linear_ts", "gamma": 0.9, "noise": "inverse_gamma"},
            "gamma 1 and no window",
        ),
        ({"kind": "neural_click_ts", "window": 9}, "window"),
        ({"kind": "logistic_ts", "gamma": 0.9, "refit": 0}, "refit is 0"),
        ({"kind": "ucb1", "gamma": 0}, "above 0"),
        ({"kind": "beta_ts", "window": 0}, "from 1"),
    ],
    ids=str,
)
def test_impossible_forgetting_is_refused(agent: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        read({"agents": [agent]})


@pytest.mark.parametrize(
    "kind",
    thinned(
        [(kind,) for kind in FORGETTING if not kind.startswith("neural")],
        lambda _: False,
        lambda number: number % 4 == 0,
    ),
)
def test_forgetting_helps_after_a_shock(kind: str) -> None:
    """Paired: with the shock, the agent that forgets earns more over the second half than the one
    that does not.

    Of neural agents only the head forgets: docs/CHANGE.md has what that earns.
    """
    shared: dict[str, Any] = (
        {"sharing": "shared"} if "sharing" in REGISTRY[kind].Params.model_fields else {}
    )
    # at 1, as published, it never stops trying all products of the window
    shared |= {"alpha": 0.1} if kind == "kl_ucb" else {}
    # its default estimators take minutes
    shared |= (
        {"estimator": "DecisionTreeClassifier", "options": "max_depth=2"}
        if kind == "oracle_based"
        else {}
    )
    fading = {"gamma": 0.998} if "gamma" in REGISTRY[kind].Params.model_fields else {"window": 1000}
    agents = [
        {"kind": kind, "label": "all", **shared},
        {"kind": kind, "label": "fading", **fading, **shared},
    ]
    rates = [[p * q for q in (1, 0.4, 0.3, 0.2, 0.1)] for p in (0.8, 0.8, 0.8, 0.8)]
    # the same change for every persona, as for agents without context
    turned = [row[::-1] for row in rates]
    changes = [{"kind": "shock", "at": 2000, "how": turned}]
    simulator = {
        "kind": "petshop",
        "n_products": 10,
        "features": "interaction",
        "click_rates": rates,
        "changes": changes,
    }
    found = run(read({"simulator": simulator, "agents": agents, "steps": 4000, "replications": 8}))
    assert found.compare("fading", "all").difference.low > 0


def next_round(step: int) -> Round:
    simulator = {"kind": "petshop", "n_products": 6, "n_users": 30}
    e = read(
        {
            "simulator": simulator,
            "agents": [{"kind": "random"}],
            "steps": step + 1,
            "replications": 2,
        }
    )
    return make_lane(e, 0).simulator.round_at(step)
