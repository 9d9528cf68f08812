"""Training on a log: what it costs, in the summary, in words, and in what is stored."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import Result, read, run
from bandits.experiments.history import History
from bandits.results import log_training, metrics


@pytest.fixture(scope="module")
def result() -> Result:
    agents = [
        {"kind": "neural_greedy", "label": "Warm", "hidden": [4], "pretrain": 500, "guards": [{"kind": "floor"}]},
        {"kind": "neural_greedy", "label": "Cold", "hidden": [4]},
    ]
    simulator = {"kind": "petshop", "n_products": 10, "n_users": 40}
    return run(read({"simulator": simulator, "agents": agents, "steps": 200, "replications": 3}))


def test_a_log_costs_what_random_choice_loses_at_each_interaction(result: Result) -> None:
    found, history = result.summary()["agents"], result.histories["Warm"]
    assert "training" not in found["Cold"]
    gap = history.sums["best_value"][-1] - history.sums["random_value"][-1]
    assert found["Warm"]["training"]["interactions"] == 500
    cost = found["Warm"]["training"]["log_regret"]
    assert cost["mean"] == pytest.approx(2.5 * gap.mean())
    assert cost["high"] - cost["low"] == pytest.approx(2 * 2.5 * metrics.t_quantile(3) * gap.std(ddof=1) / np.sqrt(3))


def test_the_training_is_stated_in_words_and_its_time_apart(result: Result) -> None:
    (sentence,) = log_training.sentences(result)
    assert sentence.startswith("Warm was trained before step 0 on 500 logged interactions under random choice, 2.5 ")
    assert "clicks (95\u00a0% CI " in sentence
    assert "The training took " in sentence
    timing = result.timing()["agents"]
    assert timing["Warm"]["training_seconds"] > 0
    assert "training_seconds" not in timing["Cold"]


def test_a_history_keeps_the_training_in_every_stored_form(result: Result) -> None:
    history = result.histories["Warm"]
    for copy, load in ((History(200, 3, 10, 4), "merge"), (History(400, 3, 10, 4), "load_state_dict")):
        getattr(copy, load)(history.since(0) if load == "merge" else history.state_dict())
        assert copy.training == history.training
    cold = History(200, 3, 10, 4)
    cold.merge(result.histories["Cold"].since(0))
    assert cold.training is None
