"""GLM-UCB and UCB-GLM as parameters of Logistic UCB, against an implementation of their own.

The reference writes one parameter for all arms, as the papers do: models per arm are the features
of the chosen arm in the block of that arm, zeros elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit

from bandits import Preview, UserError, read, run, sweeps
from bandits.agents.logistic.logistic_ucb import LogisticUCB
from bandits.base.params import hash_content
from bandits.base.types import FloatArray, IntArray, Round
from bandits.models.linear.design import FeatureSpan
from bandits.models.linear.ridge import Ridge
from bandits.models.position_bias import Position, exposure
from bandits.simulators.ranking import Ranking
from tests.agents.test_forgetting import next_round, played, weights
from tests.contract import worlds
from tests.support import sparse_contexts

ROWS, ARMS, D, RIDGE, ALPHA, STEPS = range(3), 5, 4, 0.7, 0.9, 80
GLM_UCB: dict[str, Any] = {"width": "design", "bonus": "probability", "alpha_schedule": "sqrt_log"}


class Reference:
    """Equation 6 of Filippi et al. (2010) for one row, with the ridge of the agent in M and in
    equation 4.
    """

    def __init__(
        self, ridge: float, *, sharing: str, bonus: str, schedule: str, forced: int
    ) -> None:
        self.ridge, self.sharing, self.bonus, self.schedule, self.forced = (
            ridge,
            sharing,
            bonus,
            schedule,
            forced,
        )
        self.X = np.zeros((0, D if sharing == "shared" else D * ARMS))
        self.y, self.theta = np.zeros(0), np.zeros(self.X.shape[1])

    def features(self, x: FloatArray) -> FloatArray:
        """Return m_a of all arms (K, d)."""
        if self.sharing == "shared":
            return x
        return np.stack([np.kron(np.eye(ARMS)[a], x[a]) for a in range(ARMS)])

    def scores(self, x: FloatArray) -> FloatArray:
        m, t, d = self.features(x), len(self.y) + 1, self.X.shape[1]
        M = self.ridge * np.eye(d) + self.X.T @ self.X
        norm = np.sqrt(np.einsum("ki,ij,kj->k", m, np.linalg.inv(M), m))
        rho = ALPHA * (np.sqrt(np.log(t)) if self.schedule == "sqrt_log" else 1.0)
        mean = m @ self.theta
        return np.asarray((expit(mean) if self.bonus == "probability" else mean) + rho * norm)

    def choose(self, x: FloatArray) -> int:
        if len(self.y) >= self.forced:
            return int(self.scores(x).argmax())
        m, past = self.features(x), self.X
        outside = m - (np.linalg.lstsq(past.T, m.T, rcond=None)[0].T @ past if len(past) else 0.0)
        return int((outside**2).sum(axis=1).argmax())

    def learn(self, x: FloatArray, arm: int, reward: float) -> None:
        self.X, self.y = np.vstack([self.X, self.features(x)[arm]]), np.append(self.y, reward)
        self.theta = self.fitted()

    def fitted(self) -> FloatArray:
        """Solve equation 4, that of the quasi-likelihood."""

        def equation(theta: FloatArray) -> FloatArray:
            return np.asarray(self.X.T @ (self.y - expit(self.X @ theta)) - self.ridge * theta)

        def slope(theta: FloatArray) -> FloatArray:
            p = expit(self.X @ theta)
            return np.asarray(
                -(self.X.T * (p * (1 - p))) @ self.X - self.ridge * np.eye(len(theta))
            )

        return np.asarray(root(equation, self.theta, jac=slope, tol=1e-13).x)


@pytest.mark.parametrize("schedule", ["fixed", "sqrt_log"])
@pytest.mark.parametrize("bonus", ["logit", "probability"])
@pytest.mark.parametrize("sharing", ["shared", "per_arm"])
def test_scores_and_choices_equal_equation_six(sharing: str, bonus: str, schedule: str) -> None:
    """Without forced plays all arms may tie at first: then any of them is right."""
    forced = {"shared": D, "per_arm": D * ARMS}[sharing] if bonus == "probability" else 0
    settings: dict[str, Any] = {
        "width": "design",
        "bonus": bonus,
        "alpha_schedule": schedule,
        "forced": forced,
    }
    lane = worlds.make(
        "logistic_ucb", rows=ROWS, sharing=sharing, refit=1, ridge=RIDGE, alpha=ALPHA, **settings
    )
    own = [
        Reference(RIDGE, sharing=sharing, bonus=bonus, schedule=schedule, forced=forced)
        for _ in ROWS
    ]
    shown = np.zeros(ARMS)
    for step in range(STEPS):
        round = lane.simulator.round_at(step)
        scores, explained = lane.agent.scores(round), lane.agent.explain(round)
        assert explained.how == ("score" if step < forced else "bonus")
        # monitors and diagnostics read it in forced plays too
        assert explained.mean is not None
        trace = lane.advance(1)
        for r, reference in enumerate(own):
            x = round.features[r]
            if step >= forced:
                np.testing.assert_allclose(scores[r], reference.scores(x), rtol=1e-8, atol=1e-8)
            arm = int(trace.items[0, r, 0])
            tied = step == 0 and np.ptp(scores[r]) < 1e-12
            assert tied or arm == reference.choose(x)
            reference.learn(x, arm, trace.rewards[0, r])
            shown[arm] += 1
    assert (shown > 0).all()


def test_with_a_vanishing_ridge_the_scores_are_those_of_the_paper() -> None:
    """M = sum x x' and the estimate of maximum likelihood, which exist after the forced plays."""
    agent = {"sharing": "shared", "refit": 1, "ridge": 1e-6, "alpha": ALPHA, "forced": D, **GLM_UCB}
    lane = worlds.make("logistic_ucb", rows=ROWS, **agent)
    own = [
        Reference(0.0, sharing="shared", bonus="probability", schedule="sqrt_log", forced=D)
        for _ in ROWS
    ]
    for step in range(200):
        x = lane.simulator.round_at(step).features
        trace = lane.advance(1)
        for r, reference in enumerate(own):
            reference.X = np.vstack([reference.X, x[r, trace.items[0, r, 0]]])
            reference.y = np.append(reference.y, trace.rewards[0, r])
    round = lane.simulator.round_at(200)
    x, scores = round.features, lane.agent.scores(round)
    for r, reference in enumerate(own):
        reference.theta = reference.fitted()
        np.testing.assert_allclose(scores[r], reference.scores(x[r]), atol=1e-5)


# forced plays


@pytest.mark.parametrize("sharing", ["shared", "per_arm"])
def test_forced_plays_give_the_design_full_rank(sharing: str) -> None:
    models = 1 if sharing == "shared" else ARMS
    lane = worlds.make(
        "logistic_ucb", rows=ROWS, sharing=sharing, forced=D * models, width="design"
    )
    agent: Any = lane.agent
    for step in range(D * models):
        assert (np.linalg.matrix_rank(agent.design.A - np.eye(D)).sum(axis=1) == step).all()
        lane.advance(1)
    assert (np.linalg.matrix_rank(agent.design.A - np.eye(D)) == D).all()
    np.testing.assert_allclose(agent.span.complement, 0.0, atol=1e-9)


def round_of(features: FloatArray, step: int = 0) -> Round:
    """Return a round of one row with these features (K, D)."""
    K = len(features)
    row = np.zeros(1, np.int64)
    return Round(
        step,
        row,
        np.arange(K)[None],
        sparse_contexts(features[None]),
        row,
        np.ones((1, K), np.bool_),
        row,
    )


def test_short_features_enter_the_span_before_long_ones_enter_again() -> None:
    """The width of a regularised design would prefer the long features a hundred times."""
    round = round_of(
        np.array(
            [
                [10.0, 0.0, 0.0],
                [10.0, 0.1, 0.0],
                [0.0, 0.0, 0.01],
                [20.0, 0.2, 0.0],
                [0.0, 0.0, 0.0],
            ]
        )
    )
    span, model = FeatureSpan(1, 1, 3), np.zeros((1, 5), np.int64)
    chosen = []
    for _ in range(3):
        distance = span.distance(round, model)
        chosen.append(int(distance.argmax()))
        span.add(round, model, np.array([chosen[-1:]]), np.ones((1, 1)))
    assert chosen == [3, 2, 0] or chosen == [3, 0, 2]
    np.testing.assert_array_equal(span.distance(round, model), 0.0)
    np.testing.assert_allclose(span.complement, 0.0, atol=1e-9)


def test_only_slots_with_an_exposure_enter_the_span() -> None:
    round, model = round_of(np.eye(3)), np.zeros((1, 3), np.int64)
    span = FeatureSpan(1, 1, 3)
    span.add(round, model, np.array([[0, 2]]), np.array([[0.3, 0.0]]))
    np.testing.assert_array_equal(span.distance(round, model), [[0.0, 1.0, 1.0]])


def test_where_no_candidate_is_new_the_widest_is_shown() -> None:
    """Two arms in turn in two dimensions: the third forced play is that of the larger width."""
    agent: dict[str, Any] = {"sharing": "shared", "forced": 3, "width": "design"}
    lane = worlds.make("logistic_ucb", rows=[0], options={"n_arms": 2, "n_features": 2}, **agent)
    lane.advance(2)
    round = lane.simulator.round_at(2)
    made: Any = lane.agent
    variance = made.design.predict(round)[1]
    assert (lane.agent.scores(round) < 0).all()
    assert lane.advance(1).items[0, 0, 0] == variance.argmax()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"forced": 21, "window": 20},
            "forced is 21; with a window of 20 steps it must be at most 20",
        ),
        ({"forced": -1}, "it must be a whole number from 0 to 1,000,000"),
        ({"forced": 2_000_000}, "it must be a whole number from 0 to 1,000,000"),
        ({"forced": 2.5}, "it must be a whole number from 0 to 1,000,000"),
        ({"width": "hessian"}, "it must be one of laplace, design"),
        ({"alpha_schedule": "log"}, "it must be one of fixed, sqrt_log"),
    ],
    ids=str,
)
def test_impossible_values_are_refused_in_one_sentence(more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read({"agents": [{"kind": "logistic_ucb", **more}]})


def test_the_repair_shortens_forced_plays_to_the_window() -> None:
    repaired = LogisticUCB.Params.closest({"forced": 21, "window": 20, "gamma": 1.0})
    assert LogisticUCB.Params(**repaired).forced == 20


# the design matrix


@pytest.mark.parametrize("position", ["examined", "ignored", "aware"])
def test_a_design_matrix_weighs_slots_by_their_exposure(position: Position) -> None:
    options = {
        "n_users": 20,
        "n_items": 30,
        "n_candidates": 8,
        "slate": 3,
        "embedding": 4,
        "bias": 0.5,
    }
    lane = worlds.make(
        "logistic_ucb",
        Ranking,
        rows=ROWS,
        options=options,
        sharing="shared",
        position=position,
        **GLM_UCB,
    )
    agent: Any = lane.agent
    expected: FloatArray = np.tile(np.eye(lane.simulator.spec.n_features), (len(ROWS), 1, 1))
    slate: IntArray = np.tile(np.array([4, 0, 2]), (len(ROWS), 1))
    weights = []
    for step in range(30):
        round = lane.simulator.round_at(step)
        feedback, _ = lane.simulator.respond(round, slate, lane.simulator.uniforms.at(step))
        agent.learn(round, slate, feedback)
        weights.append(exposure(feedback, position, lane.simulator.spec.positions))
        x = np.take_along_axis(round.features, slate[:, :, None], axis=1)
        expected += np.einsum("rs,rsi,rsj->rij", weights[-1], x, x)
    np.testing.assert_allclose(agent.design.A[:, 0], expected, rtol=1e-9, atol=1e-12)
    assert (np.mean(weights) < 1) == (position != "ignored")


@pytest.mark.parametrize("way", [{"gamma": 0.97}, {"window": 60}], ids=str)
def test_a_design_matrix_forgets_at_every_step(way: dict[str, Any]) -> None:
    """Between two refits of the logistic models too.

    With a discount factor the width is that of D-LinUCB.
    """
    agent, seen = played(
        "logistic_ucb", 230, sharing="shared", ridge=RIDGE, refit=100, **way, **GLM_UCB
    )
    round = next_round(230)
    width = agent.explain(round).width
    assert width is not None
    for r, past in enumerate(seen):
        w, X = weights(past, **way), np.array([x for _, _, x, _ in past])
        identity = RIDGE * np.eye(X.shape[1])
        V, squared = identity + (X.T * w) @ X, identity + (X.T * w**2) @ X
        inverse = np.linalg.inv(V)
        x = round.features[r]
        expected = np.sqrt(
            np.einsum("ki,ij,kj->k", x, inverse @ squared @ inverse, x) * np.log(231)
        )
        np.testing.assert_allclose(width[r], expected, rtol=1e-7)


def test_the_spectrum_is_that_of_the_matrix_of_the_width() -> None:
    lane = worlds.make("logistic_ucb", rows=ROWS, sharing="shared", **GLM_UCB)
    lane.advance(50)
    agent: Any = lane.agent
    assert isinstance(agent.design, Ridge)
    expected = np.linalg.eigvalsh(agent.design.A[:, 0])[:, ::-1]
    np.testing.assert_allclose(
        agent.spectrum(lane.simulator.bases(False))[:, 0], expected, rtol=1e-10
    )


# earlier experiments, previews


def test_at_their_defaults_the_parameters_stay_out_of_the_hash() -> None:
    """The hash was recorded before they were added."""
    e = read(
        {
            "simulator": {"kind": "petshop"},
            "agents": [{"kind": "logistic_ucb"}],
            "steps": 600,
            "replications": 3,
        }
    )
    assert e.hash.startswith("16a98ceafe4a06b5")
    assert not {"width", "bonus", "alpha_schedule", "forced"} & set(hash_content(e.agents[0]))
    changed = e.model_dump(mode="json")
    changed["agents"][0] |= {"forced": 1}
    assert read(changed).hash != e.hash


@pytest.mark.parametrize(
    "more", [{}, {"sharing": "shared"}, {"gamma": 0.98}, {"window": 50}], ids=str
)
def test_at_their_defaults_nothing_is_added_to_the_state(more: dict[str, Any]) -> None:
    lane = worlds.make("logistic_ucb", rows=ROWS, **more)
    assert {name.partition(".")[0] for name in lane.agent.state} == {"model"}


@pytest.mark.parametrize("more", [{}, {"gamma": 0.98}, {"window": 50}], ids=str)
def test_a_preview_of_glm_ucb_has_the_numbers_of_a_run(more: dict[str, Any]) -> None:
    agent = {"kind": "logistic_ucb", "forced": 12, **GLM_UCB, **more}
    e = read({"simulator": {"kind": "petshop"}, "agents": [agent], "steps": 150, "replications": 2})
    label = e.labels[0]
    result = Preview(e).update(label, alpha=0.4)
    whole = run(result.experiment, workers=0).histories[label]
    np.testing.assert_array_equal(result.histories[label].sums["clicks"], whole.sums["clicks"])


def test_every_parameter_changes_choices() -> None:
    base: dict[str, Any] = {"sharing": "shared", "alpha": 1.0, "refit": 1}
    first = worlds.make("logistic_ucb", rows=ROWS, **base).advance(200).items
    changes: list[dict[str, Any]] = [
        GLM_UCB | {"forced": 10},
        *({name: value} for name, value in GLM_UCB.items()),
    ]
    for more in [*changes, {"forced": 10}]:
        assert not np.array_equal(
            worlds.make("logistic_ucb", rows=ROWS, **base, **more).advance(200).items, first
        )


def test_a_sweep_varies_the_matrix_and_the_forced_plays() -> None:
    axes = [
        {"path": "agents.0.width", "values": ["laplace", "design"]},
        {"path": "agents.0.forced", "values": [0, 9]},
    ]
    experiment = {
        "simulator": {"kind": "petshop"},
        "steps": 100,
        "replications": 2,
        "agents": [{"kind": "logistic_ucb"}],
    }
    landscape = sweeps.run(sweeps.read({"experiment": experiment, "axes": axes}))
    assert landscape.completed.all()
    plain = run(read(experiment), workers=0).histories["Logistic UCB"]
    np.testing.assert_allclose(landscape.numbers("ctr")[0], plain.sums["clicks"][-1] / 100)
