"""Pre-training on a log: equal to plain torch, of the network alone, cached by all it
depends on.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits as log_loss
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from bandits import UserError, read
from bandits.agents import REGISTRY as AGENTS
from bandits.agents.neural import warm_start
from bandits.base.types import LoggedData
from bandits.simulators.petshop import PetShop
from bandits.simulators.ranking import Ranking
from tests.contract.worlds import NEURAL, make

TINY = {"n_products": 10, "n_users": 40}
N = 40
SMALL: dict[str, Any] = {"hidden": (6, 4), "pretrain": N}
# values that differ from the defaults and from SMALL
OTHER: dict[str, Any] = {
    "hidden": (8,),
    "optimiser": "sgd",
    "loss": "log",
    "heads": "per_arm",
    "pretrain": 30,
    "embedding": 3,
    "scaling": "paper",
    "regularised": True,
    "covariance": "exact",
    "training": "replay",
    "noise": "inverse_gamma",
    "strategy": "bonus",
    "rebuild": False,
    "draw": "shared",
    "inverse": "pseudo",
    "relu": True,
    "position": "ignored",
    "window": 30,
    "decay_from": "start",
}


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_start, "BATCH", 16)


def warm(kind: str, rows: Any = (0, 1), **params: Any) -> Any:
    lane = make(kind, PetShop, options=TINY, rows=rows, **{**SMALL, **params})
    lane.agent.prepare()
    return lane.agent


def plain_training(agent: Any, start: torch.Tensor, row: int, optimiser: Any) -> torch.Tensor:
    """Train one network by torch on the log, in its order; returns the weights."""
    widths = agent.widths
    layers = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
    relu = [torch.nn.ReLU() for _ in layers[1:]]
    # linear between the last hidden layer and the head
    if agent.params[0].kind == "neural_click_ts":
        relu[-1] = torch.nn.Identity()  # type: ignore[call-overload]
    between = [*relu, torch.nn.Identity()]
    net = torch.nn.Sequential(
        *(part for pair in zip(layers, between, strict=True) for part in pair)
    )
    vector_to_parameters(start.clone(), net.parameters())
    if agent.params[0].kind == "neural_click_ts":
        layers[-1].bias.requires_grad_(False)
    log, steps = agent.access.log(int(agent.access.layouts[row]), N), optimiser(layers)
    x = torch.zeros(N, widths[0])
    x.scatter_(1, torch.tensor(log.columns), torch.tensor(log.values, dtype=torch.float32))
    rewards = torch.tensor(log.rewards, dtype=torch.float32)
    for _ in range(5):
        for begin in range(0, N, 16):
            part = slice(begin, begin + 16)
            out, target = net(x[part])[:, 0], rewards[part]
            loss = log_loss(out, target) if agent.log_odds else ((out - target) ** 2).mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
    return parameters_to_vector(net.parameters()).detach()


@pytest.mark.parametrize("kind", ["neural_ucb", "neural_greedy", "neural_click_ts"])
def test_weights_equal_those_of_plain_torch(kind: str) -> None:
    head = {"learning_rate": 0.5, "head_learning_rate": 0.2} if kind == "neural_click_ts" else {}
    start = make(
        kind, PetShop, options=TINY, rows=[3, 4], **{**SMALL, **head}
    ).agent.net.flat.clone()  # type: ignore[attr-defined]
    agent = warm(kind, rows=[3, 4], **head)

    def optimiser(layers: list[torch.nn.Linear]) -> Any:
        if kind != "neural_click_ts":
            parameters = [p for layer in layers for p in layer.parameters()]
            return torch.optim.Adam(parameters, lr=agent.params[0].learning_rate)
        below = [p for layer in layers[:-1] for p in layer.parameters()]
        return torch.optim.SGD(
            [{"params": below}, {"params": [layers[-1].weight], "lr": 0.2}], lr=0.5
        )

    for row in (0, 1):
        expected = plain_training(agent, start[row], row, optimiser)
        torch.testing.assert_close(agent.net.flat[row], expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(agent.net.flat, start)


@pytest.mark.parametrize("kind", NEURAL)
def test_only_the_networks_are_trained(kind: str) -> None:
    cold, trained = warm(kind, pretrain=0), warm(kind)
    assert cold.offline_training is None
    assert trained.offline_training.interactions == N
    before, after = cold.state_dict(), trained.state_dict()
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    # "start": to which a weight penalty pulls
    network = {"improvements", "weights", "start"}
    assert {"improvements", "weights"} <= changed
    assert {name for name in changed if not name.startswith("optimiser.")} <= network
    if "start" in after:
        np.testing.assert_array_equal(after["start"], after["weights"])
    again = make(kind, PetShop, options=TINY, rows=(0, 1), **SMALL).agent
    # it comes from the cache
    assert again.is_trained()
    again.prepare()
    np.testing.assert_array_equal(again.state_dict()["weights"], after["weights"])


@pytest.mark.parametrize("kind", NEURAL)
def test_a_field_counts_for_the_cache_if_the_weights_depend_on_it(kind: str) -> None:
    params = AGENTS[kind].Params
    base = warm(kind)
    for name, field in params.model_fields.items():
        # tuned vectors: of simulators that provide no log
        if name in ("kind", "label", "guards", "vectors"):
            continue
        value = OTHER.get(name)
        if value is None:
            whole = "int" in str(field.annotation)
            value = (field.default or 0) + 1 if whole else (field.default or 0.1) / 2
        together = (
            {"regularised": True}
            if name == "ridge" and "regularised" in params.model_fields
            else {}
        )
        reference = warm(kind, **together) if together else base
        other = warm(kind, **{name: value}, **together)
        depends = other.net.flat.shape != base.net.flat.shape or not torch.equal(
            other.net.flat, reference.net.flat
        )
        assert other.pretrain_recipe() != reference.pretrain_recipe() or not depends, name
        if depends:
            agent: Any = AGENTS[kind]
            assert name in (*agent.PRETRAIN_READS, *agent.PRETRAIN_OPTIONS), name


def test_the_key_of_the_cache_is_that_of_earlier_versions() -> None:
    agent = make("neural_linucb", PetShop, options=TINY, rows=(0, 1), **SMALL).agent
    place = [agent.access.key, 7, 0, 1]
    expected = f'["neural_linucb", 1, [[6, 4], "adam", "squared", "shared", 40, [0.01, 0.01]], {json.dumps(place)}]'  # noqa: E501
    assert agent.pretrain_recipe() == expected  # type: ignore[attr-defined]


def test_members_of_an_ensemble_learn_from_different_parts_of_the_log() -> None:
    agent = warm("ensemble", members=20)
    weights = agent.pretrain_weights(0, 500)
    assert weights.shape == (2, 500, 20)
    assert set(np.unique(weights)) == {0.0, 1.0}
    assert abs(weights.mean() - 0.5) < 4 * 0.5 / np.sqrt(weights.size)
    # the same parts in every pass
    np.testing.assert_array_equal(agent.pretrain_weights(0, 500), weights)
    assert not np.array_equal(agent.pretrain_weights(1, 500), weights)


def test_dropout_is_active_while_the_network_is_trained() -> None:
    few, many = (warm("mc_dropout", dropout=rate) for rate in (1e-9, 0.5))
    assert not torch.allclose(few.net.flat, many.net.flat, atol=1e-3)
    dropped = float((many._masks[0] == 0).double().mean())
    # of the last batch
    assert 0.2 < dropped < 0.8


def test_outputs_per_arm_are_trained_on_the_items_of_the_log() -> None:
    cold, agent = (warm("neural_linear_ts", heads="per_arm", pretrain=n) for n in (0, 4))
    (_, moved) = agent.net.views(agent.net.flat - cold.net.flat)[-1]
    np.testing.assert_array_equal(
        np.flatnonzero(moved[0].numpy()), np.unique(agent.access.log(0, 4).items)
    )


def test_learned_embeddings_are_trained_on_the_users_and_items_of_the_log() -> None:
    cold, agent = warm("neural_greedy", pretrain=0, embedding=3), warm("neural_greedy", embedding=3)
    log: LoggedData = agent.access.log(0, N)
    for table, shown, seen in zip(
        agent.net.embedding_tables(agent.net.flat - cold.net.flat),
        (40, 10),
        (log.users, log.items),
        strict=True,
    ):
        moved = np.flatnonzero(table[0].abs().sum(1).numpy() > 0)
        np.testing.assert_array_equal(moved, np.unique(seen))
        assert table.shape[1] == shown


class RankingWithLog(Ranking):
    """The ranking simulator with logged interactions of random users and items."""

    @classmethod
    def describe(cls, params: Any) -> Any:
        spec = super().describe(params)
        return replace(spec, capabilities=spec.capabilities | {"log"})

    def log(self, layout: int, n: int) -> LoggedData:
        generator = self.streams.generator("log", row=layout)
        users, items = (
            generator.integers(0, self.params.n_users, n),
            generator.integers(0, self.params.n_items, n),
        )
        values = np.hstack([self.users[layout][users], self.items[layout][items]])
        columns = np.broadcast_to(np.arange(values.shape[1]), values.shape)
        return LoggedData(
            users, items, values, columns, (generator.random(n) < 0.3).astype(np.float64)
        )


def test_tuned_vectors_are_trained_where_a_simulator_has_a_log_and_vectors() -> None:
    options = {
        "n_users": 8,
        "n_items": 12,
        "n_candidates": 5,
        "slate": 2,
        "embedding": 4,
        "constant": False,
        "features": "concatenation",
    }
    lane = make(
        "neural_click_ts", RankingWithLog, options=options, rows=(0, 1), vectors="tuned", **SMALL
    )
    agent: Any = lane.agent
    agent.prepare()
    users = agent.access.log(0, N).users
    moved = np.flatnonzero(np.abs(agent.tables.changes[0][0]).sum(1))
    np.testing.assert_array_equal(moved, np.unique(users))
    again: Any = make(
        "neural_click_ts", RankingWithLog, options=options, rows=(0, 1), vectors="tuned", **SMALL
    ).agent
    again.prepare()
    np.testing.assert_array_equal(again.tables.changes[0], agent.tables.changes[0])


@pytest.mark.parametrize("kind", NEURAL)
def test_a_simulator_without_a_log_refuses_pre_training_in_one_sentence(kind: str) -> None:
    agent = {"kind": kind, "pretrain": 100}
    with pytest.raises(
        UserError, match=r"requires logged interactions, which Ranking does not provide\.?$"
    ) as refusal:
        read({"simulator": {"kind": "ranking"}, "agents": [agent]})
    assert "\n" not in str(refusal.value)
    assert {"pretrain": 0} in AGENTS[kind].alternatives(Ranking.describe(Ranking.Params()))
