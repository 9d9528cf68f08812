"""Training on a log: what it costs, in the summary, in words, and in what is stored."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bandits import Result, read, run
from bandits.base.randomness import Streams
from bandits.experiments.history import History
from bandits.experiments.lockstep import make_lane
from bandits.results import log_training, metrics
from bandits.simulators import REGISTRY as SIMULATORS


@pytest.fixture(scope="module")
def result() -> Result:
    agents = [
        {
            "kind": "neural_greedy",
            "label": "Warm",
            "hidden": [4],
            "pretrain": 500,
            "guards": [{"kind": "floor"}],
        },
        {"kind": "neural_greedy", "label": "Cold", "hidden": [4]},
        {"kind": "static_mlp", "interactions": 2000, "epochs": 3, "embedding": 4, "hidden": [8]},
    ]
    simulator = {"kind": "petshop", "n_products": 10, "n_users": 40, "layout": "per_row"}
    return run(read({"simulator": simulator, "agents": agents, "steps": 200, "replications": 3}))


def test_a_log_costs_what_random_choice_loses_at_each_interaction(result: Result) -> None:
    found, history = result.summary()["agents"], result.histories["Warm"]
    assert "training" not in found["Cold"]
    gap = history.sums["best_value"][-1] - history.sums["random_value"][-1]
    assert found["Warm"]["training"]["interactions"] == 500
    cost = found["Warm"]["training"]["log_regret"]
    assert cost["mean"] == pytest.approx(2.5 * gap.mean())
    assert cost["high"] - cost["low"] == pytest.approx(
        2 * 2.5 * metrics.t_quantile(3) * gap.std(ddof=1) / np.sqrt(3)
    )


@pytest.mark.parametrize(("at", "known"), [(100, True), (1, False)])
def test_a_log_costs_what_it_costs_in_the_simulator_before_its_first_change(
    at: int, known: bool
) -> None:
    agent = {"kind": "neural_greedy", "hidden": [4], "pretrain": 500, "every": 500}
    change = {"kind": "traffic", "at": at, "shares": [0, 0, 0, 1]}
    simulator = {"kind": "petshop", "n_products": 10, "n_users": 40}
    data = {"simulator": simulator, "agents": [agent], "steps": 2100, "replications": 3}
    still = run(read({**data, "steps": 100})).summary()["agents"]["Neural greedy"]["training"][
        "log_regret"
    ]
    changed = run(read({**data, "simulator": {**simulator, "changes": [change]}}))
    cost = changed.summary()["agents"]["Neural greedy"]["training"]["log_regret"]
    assert known == (cost["mean"] is not None and np.isfinite(cost["mean"]))
    assert known == ("clicks" in log_training.sentences(changed)[0])
    if known:
        assert cost == pytest.approx(still)


def test_the_training_is_stated_in_words_and_its_time_apart(result: Result) -> None:
    sentence, of_static = log_training.sentences(result)
    assert re.search(
        r" Its log loss on 200 interactions held out is 0\.\d{4}, that of a perfect model on the same 0\.\d{4}: an "  # noqa: E501
        r"excess of 0\.\d{4} \(95\u00a0% CI −?0\.\d{4} to 0\.\d{4} over 3 layouts\)\.",
        of_static,
    )
    assert sentence.startswith(
        "Warm was trained before step 0 on 500 logged interactions under random choice, 2.5 "
    )
    assert "clicks (95\u00a0% CI " in sentence
    assert "The training took " in sentence
    timing = result.timing()["agents"]
    assert timing["Warm"]["training_seconds"] > 0
    assert "training_seconds" not in timing["Cold"]


def test_curves_of_the_training_are_means_over_layouts(result: Result) -> None:
    (figure,) = log_training.training_curves(result).values()
    drawn = {t["name"]: t["y"] for t in figure["data"] if t.get("mode") == "lines"}
    training = result.histories["Static MLP"].training
    assert training is not None
    np.testing.assert_allclose(drawn["Training"], training.train_loss.mean(axis=0))
    np.testing.assert_allclose(drawn["Validation"], training.validation_loss.mean(axis=0))
    np.testing.assert_allclose(drawn["perfect model"], training.perfect_loss.mean())


@pytest.mark.parametrize("label", ["Warm", "Static MLP"])
@pytest.mark.parametrize("load", ["merge", "load_state_dict"])
def test_a_history_keeps_the_training_in_every_stored_form(
    result: Result, label: str, load: str
) -> None:
    history = result.histories[label]
    copy = History(200 if load == "merge" else 400, 3, 10, 4)
    getattr(copy, load)(history.since(0) if load == "merge" else history.state_dict())
    assert copy.training is not None
    assert history.training is not None
    for stored, own in zip(copy.training, history.training, strict=True):
        np.testing.assert_array_equal(stored, own)
    cold = History(200, 3, 10, 4)
    cold.merge(result.histories["Cold"].since(0))
    assert cold.training is None


def test_the_excess_is_over_the_true_probabilities_of_the_same_visits(result: Result) -> None:
    found, training = (
        result.summary()["agents"]["Static MLP"]["training"],
        result.histories["Static MLP"].training,
    )
    assert training is not None
    assert training.validation_loss.shape == training.train_loss.shape == (3, 3)
    access = make_lane(result.experiment, 2).simulator.access()
    perfect = []
    for layout in range(3):
        log = access.log(layout, 2000)
        assert log.means is not None
        pairs = zip(log.rewards[-200:], log.means[-200:], strict=True)
        perfect.append(np.mean([-np.log(mean if click else 1 - mean) for click, mean in pairs]))
    np.testing.assert_allclose(training.perfect_loss, perfect)
    assert found["held_out"] == 200
    assert found["perfect_loss"]["mean"] == pytest.approx(np.mean(perfect))
    assert found["excess_loss"]["mean"] == pytest.approx(
        found["validation_loss"][-1] - np.mean(perfect)
    )
    assert len(found["train_loss"]) == 3
    (spec,) = log_training.training_curves(result).values()
    assert {trace["name"] for trace in spec["data"] if trace.get("name")} >= {
        "Training",
        "Validation",
        "perfect model",
    }


@pytest.mark.parametrize("kind", ["petshop", "synthetic", "wheel", "artwork", "classification"])
def test_logs_state_the_expected_reward_of_each_interaction(kind: str) -> None:
    simulator = SIMULATORS[kind]
    log = simulator(simulator.Params(), Streams(3, [0])).log(0, 4000)
    assert log.means is not None
    error = log.rewards - log.means
    assert abs(error.mean()) <= 4 * error.std() / np.sqrt(len(error))
    assert kind == "classification" or error.std() > 0
    assert np.corrcoef(log.rewards, log.means)[0, 1] > 0.05
