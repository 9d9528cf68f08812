"""Neural click TS against a network trained by torch and a covariance inverted by torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bandits import UserError, read
from bandits.agents import REGISTRY
from bandits.simulators.ranking import Ranking
from tests.contract.worlds import join, make, same

SETTINGS = {
    "n_users": 20,
    "n_items": 30,
    "n_candidates": 8,
    "slate": 3,
    "embedding": 4,
    "constant": False,
}
AS_PUBLISHED: dict[str, Any] = {
    "sigma2": 1e-4,
    "epsilon": 1e-6,
    "inverse": "pseudo",
    "learning_rate": 1e-3,
    "batch": 32,
}
PUBLISHED: dict[str, Any] = {
    "epsilon": 1e-6,
    "inverse": "pseudo",
    "hidden": (6, 4),
    "buffer": 10,
    "batch": 10,
    "learning_rate": 0.5,
}  # slates of 3


class Published(torch.nn.Module):
    """A plain torch model: embeddings initialised at the vectors, two layers, a head without a
    constant.
    """

    def __init__(self, users: Any, items: Any, flat: torch.Tensor, relu: bool) -> None:
        super().__init__()
        self.users = torch.nn.Embedding.from_pretrained(torch.tensor(users), freeze=False)
        self.items = torch.nn.Embedding.from_pretrained(torch.tensor(items), freeze=False)
        self.first, self.second = torch.nn.Linear(8, 6), torch.nn.Linear(6, 4)
        self.head, self.relu = torch.nn.Linear(4, 1, bias=False), relu
        weights = [*self.first.parameters(), *self.second.parameters(), *self.head.parameters()]
        torch.nn.utils.vector_to_parameters(flat, weights)
        self.double()

    def forward(
        self, users: torch.Tensor, items: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.cat([self.users(users), self.items(items)], dim=1)
        phi = self.second(torch.relu(self.first(x)))
        phi = torch.relu(phi) if self.relu else phi
        return phi, self.head(phi)[:, 0]


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    ("vectors", "head"), [("fixed", None), ("tuned", None), ("fixed", 0.02), ("tuned", 2.0)]
)
def test_scores_equal_those_of_a_plain_torch_implementation(
    relu: bool, vectors: str, head: float | None
) -> None:
    settings = {**SETTINGS, "features": "concatenation"}
    own = {"relu": relu, "vectors": vectors, "head_learning_rate": head, **PUBLISHED}
    lane = make("neural_click_ts", Ranking, rows=[5], options=settings, sigma2=0.3, **own)
    agent, simulator = lane.agent, lane.simulator
    assert isinstance(simulator, Ranking)
    start: torch.Tensor = agent.net.flat[0, :-1].clone()  # type: ignore[attr-defined]
    reference = Published(simulator.users[0], simulator.items[0], start, relu)
    fixed = () if vectors == "tuned" else ("users.weight", "items.weight")
    below = [p for n, p in reference.named_parameters() if n not in (*fixed, "head.weight")]
    groups: list[dict[str, Any]] = [
        {"params": below},
        {"params": [reference.head.weight], "lr": head or 0.5},
    ]
    optimiser, S = torch.optim.SGD(groups, lr=0.5), 1e-6 * torch.eye(4, dtype=torch.float64)
    kept: list[tuple[int, int, float, float]] = []
    for step in range(60):
        round = simulator.round_at(step)
        users = torch.full((8,), int(round.users[0]))
        phi, logit = reference(users, torch.tensor(round.items[0]))
        inverse = torch.linalg.pinv(S, rtol=4 * np.finfo(np.float32).eps)
        width = (phi @ inverse * phi).sum(1).clamp_min(0).sqrt()
        noise = torch.tensor(agent.normals.at(step)[0])  # type: ignore[attr-defined]
        scores = logit + 0.3**0.5 * width * noise
        actual = agent.scores(round)[0]
        np.testing.assert_allclose(actual, scores.detach(), rtol=2e-3, atol=2e-4)
        slate = np.argsort(-actual)[:3][None]
        feedback, _ = simulator.respond(round, slate, simulator.uniforms.at(step))
        agent.learn(round, slate, feedback)
        for item, click, seen in zip(
            round.items[0, slate[0]], feedback.rewards[0], feedback.examined[0], strict=True
        ):
            kept.append((int(round.users[0]), int(item), float(click), float(seen)))
        if len(kept) >= 10:
            user_ids, item_ids, clicks, seen = (
                torch.tensor(column) for column in zip(*kept[:10], strict=True)
            )
            phi, logit = reference(user_ids, item_ids)
            S = S + ((phi * seen[:, None]).T @ phi).detach().double()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logit, clicks.double(), reduction="none"
            )
            optimiser.zero_grad()
            ((loss * seen).sum() / seen.sum()).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            kept = kept[10:]
    np.testing.assert_allclose(agent.S[0], S, rtol=1e-3, atol=1e-6)  # type: ignore[attr-defined]


def test_the_learning_rate_of_the_network_for_its_head_too_changes_no_bit() -> None:
    plain, stated, other = (
        make(
            "neural_click_ts", Ranking, options=SETTINGS, **PUBLISHED, head_learning_rate=rate
        ).advance(80)
        for rate in (None, PUBLISHED["learning_rate"], 0.01)
    )
    assert same(plain, stated)
    assert not same(plain, other)


def test_rows_have_head_learning_rates_of_their_own() -> None:
    params = [
        REGISTRY["neural_click_ts"].Params(**PUBLISHED, head_learning_rate=rate)
        for rate in (0.05, 0.5)
    ]
    lane = make(params, Ranking, rows=[4, 4], options=SETTINGS)
    agent: Any = lane.agent
    before = agent.net.flat.clone()
    # the first training is after ten items, in slates of three
    for step in range(4):
        round = lane.simulator.round_at(step)
        slate = np.tile(np.arange(3), (2, 1))
        feedback, _ = lane.simulator.respond(round, slate, lane.simulator.uniforms.at(step))
        agent.learn(round, slate, feedback)
    moved = agent.net.flat - before
    torch.testing.assert_close(moved[0, :-5], moved[1, :-5])
    torch.testing.assert_close(10 * moved[0, -5:-1], moved[1, -5:-1])
    assert (moved[1, -5:-1] != 0).all()


@pytest.mark.parametrize("rate", [0.0, -1.0, 11.0])
def test_an_impossible_head_learning_rate_is_refused(rate: float) -> None:
    with pytest.raises(UserError, match="it must be a number above 0 and up to 10 or null"):
        read(
            {
                "simulator": {"kind": "ranking"},
                "agents": [{"kind": "neural_click_ts", "head_learning_rate": rate}],
            }
        )


def smallest(relu: bool) -> Any:
    """Return the smallest eigenvalue of S after each of four blocks of steps, (4, R)."""
    lane = make(
        "neural_click_ts",
        Ranking,
        rows=range(4),
        options={"features": "concatenation"},
        relu=relu,
        **AS_PUBLISHED,
    )
    eigenvalues = []
    for _ in range(4):
        lane.advance(150)
        eigenvalues.append(lane.agent.spectrum([])[:, 0, -1])  # type: ignore[index]
    return np.array(eigenvalues)


@pytest.mark.slow
def test_the_smallest_eigenvalue_grows_without_a_relu_and_stalls_with_it() -> None:
    """Su et al.: where a ReLU cuts embeddings off at zero, some directions are never observed."""
    linear, cut = smallest(relu=False), smallest(relu=True)
    assert (np.diff(linear, axis=0) > 0).all()
    assert (linear[-1] > 1e3 * 1e-6).all()
    assert (cut[-1] < linear[-1] / 10).all()


def test_a_relu_leaves_units_inactive_for_all_candidates() -> None:
    """S keeps epsilon in these directions.

    They add no uncertainty, because no candidate has a component there.
    """
    for relu in (False, True):
        options = {"features": "concatenation"}
        lane = make(
            "neural_click_ts", Ranking, rows=range(4), options=options, relu=relu, **AS_PUBLISHED
        )
        lane.advance(150)
        phi = np.concatenate(
            [
                lane.agent.forward_pass(lane.simulator.round_at(t)).inputs[-1].numpy()
                for t in range(150, 155)
            ],  # type: ignore[attr-defined]
            axis=1,
        )
        dead = (phi == 0).all(axis=1)
        least = lane.agent.spectrum([])[:, 0, -1]  # type: ignore[index]
        if relu:
            assert ((dead.sum(axis=1) >= 3) & (dead.sum(axis=1) <= 12)).all()
            np.testing.assert_allclose(least, 1e-6, rtol=1e-6)
        else:
            assert not dead.any()
            assert (least > 1e-4).all()


def test_without_variance_the_agent_is_greedy() -> None:
    lane = make("neural_click_ts", Ranking, options=SETTINGS, sigma2=0, **PUBLISHED)
    lane.advance(40)
    for step in range(40, 50):
        round = lane.simulator.round_at(step)
        mean = lane.agent.mean(round)  # type: ignore[attr-defined]
        np.testing.assert_array_equal(lane.agent.scores(round), mean)
        shown, best = lane.advance(1).items[0], np.argsort(-mean, axis=1)[:, : SETTINGS["slate"]]
        np.testing.assert_array_equal(shown, np.take_along_axis(round.items, best, axis=1))


def test_variance_of_an_unobserved_direction_under_both_inverses() -> None:
    variances = {}
    for inverse in ("pseudo", "exact"):
        lane = make(
            "neural_click_ts",
            Ranking,
            rows=[0],
            options=SETTINGS,
            **{**PUBLISHED, "inverse": inverse},
        )
        lane.agent.S[0] = np.diag([4.0, 1.0, 0.25, 1e-9])  # type: ignore[attr-defined]
        half = lane.agent.root_inverse[0]  # type: ignore[attr-defined]
        variances[inverse] = np.diag(half @ half.T)
    np.testing.assert_allclose(variances["pseudo"], [0.25, 1, 4, 0], atol=1e-12)
    np.testing.assert_allclose(variances["exact"], [0.25, 1, 4, 1e9], rtol=1e-9)


def test_a_shared_draw_uses_one_beta_for_all_candidates() -> None:
    lane = make(
        "neural_click_ts",
        Ranking,
        rows=[0],
        options=SETTINGS,
        draw="shared",
        sigma2=1.0,
        **PUBLISHED,
    )
    lane.advance(40)
    round = lane.simulator.round_at(40)
    phi = lane.agent.forward_pass(round).inputs[-1][0].double().numpy()  # type: ignore[attr-defined]
    mean = lane.agent.mean(round)[0]  # type: ignore[attr-defined]
    beta, *_ = np.linalg.lstsq(phi, lane.agent.scores(round)[0] - mean, rcond=None)
    np.testing.assert_allclose(phi @ beta, lane.agent.scores(round)[0] - mean, atol=1e-9)
    draws = [
        next(lane.agent.redraws(round, np.random.default_rng(i)))[0] - mean for i in range(4000)
    ]
    expected = phi @ np.linalg.pinv(lane.agent.S[0], rcond=4 * np.finfo(np.float32).eps) @ phi.T  # type: ignore[attr-defined]
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(np.cov(np.array(draws).T) - expected) < 5 * scale * np.sqrt(2 / 4000)).all()


def test_tuned_vectors_are_restored_from_saved_state() -> None:
    options = {**SETTINGS, "features": "concatenation"}
    params = {**PUBLISHED, "vectors": "tuned"}
    straight = make("neural_click_ts", Ranking, options=options, **params).advance(100)
    lane = make("neural_click_ts", Ranking, options=options, **params)
    first, other = lane.advance(45), make("neural_click_ts", Ranking, options=options, **params)
    other.load_state_dict(lane.state_dict())
    assert float(np.abs(other.agent.tables.changes[1]).max()) > 0  # type: ignore[attr-defined]
    assert same(join([first, other.advance(55)]), straight)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_tables_give_the_outputs_of_the_network_on_whole_inputs(
    constant: bool, layout: str
) -> None:
    options = {**SETTINGS, "features": "concatenation", "constant": constant, "layout": layout}
    lane = make(
        "neural_click_ts",
        Ranking,
        rows=range(3),
        options=options,
        vectors="tuned",
        **{**PUBLISHED, "hidden": (9, 6, 4)},
    )
    lane.advance(40)
    agent: Any = lane.agent
    round = lane.simulator.round_at(40)
    x = agent.tables.pairs(np.repeat(round.users[:, None], 8, axis=1), round.items)
    given = round.contexts.dense_single(round.context)
    assert np.abs(x[..., :8] - given[..., :8]).max() > 0  # trained
    np.testing.assert_array_equal(x[..., 8:], given[..., 8:])
    whole, fast = agent.net.forward(torch.from_numpy(x)), agent.forward_pass(round)
    torch.testing.assert_close(fast.out, whole.out)
    torch.testing.assert_close(fast.inputs[-1], whole.inputs[-1])


def test_a_network_that_diverges_stops_its_row() -> None:
    lane = make(
        "neural_click_ts",
        Ranking,
        rows=range(2),
        options={**SETTINGS, "features": "concatenation"},
        vectors="tuned",
        **PUBLISHED,
    )
    agent: Any = lane.agent
    agent.net.flat[0] = float("nan")
    scores = agent.scores(lane.simulator.round_at(0))
    assert np.isnan(scores[0]).all()
    assert np.isfinite(scores[1]).all()


@pytest.mark.parametrize("kind", ["neural_click_ts", "neural_greedy"])
def test_compiled_training_equals_training_by_torch(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**SETTINGS, "features": "concatenation"}
    more = (
        {"vectors": "tuned", **PUBLISHED}
        if kind == "neural_click_ts"
        else {"every": 7, "loss": "log"}
    )
    lane, by_torch = (make(kind, Ranking, rows=range(2), options=options, **more) for _ in range(2))
    lane.advance(40)
    monkeypatch.setattr(type(by_torch.agent), "compiled", False)
    by_torch.advance(40)
    agent, other = lane.agent, by_torch.agent
    assert agent.train_steps == other.train_steps > 0  # type: ignore[attr-defined]
    # Adam divides by the gradient's size: where that is small, rounding moves a weight by a part of
    # a step
    torch.testing.assert_close(agent.net.flat, other.net.flat, rtol=1e-4, atol=1e-4)  # type: ignore[attr-defined]
