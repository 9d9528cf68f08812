"""An exported log is read by Vowpal Wabbit's own reader of dsjson, to the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import vowpalwabbit

from bandits.cli.main import main
from bandits.offpolicy import evaluate
from bandits.offpolicy.reading import read_log
from bandits.offpolicy.targets import Matrix
from bandits.policy import Policy
from bandits.serving.registry import Registry
from bandits.serving.service import Service

N, ITEMS = 600, ["a", "b", "c"]


def test_vowpal_wabbit_reads_what_a_service_exports(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry")
    agent = {"kind": "epsilon_greedy", "epsilon": 0.5}
    registry.register(Policy(agent, ITEMS, {"x": "number"}, scale=False).to_bytes(), {})
    registry.promote(1)
    service, g = Service(tmp_path), np.random.default_rng(0)
    for i in range(N):
        x = float(g.normal())
        # not all items can always be shown
        answer = service.decide({"x": x}, ITEMS[: 2 + (i % 3 > 0)])
        good = answer.item == ("a" if x > 0 else "b")
        service.reward(answer.event_id, float(g.random() < (0.8 if good else 0.2)))
    service.close()
    path = tmp_path / "log.json"
    assert main(["events", str(tmp_path), "export", str(path)]) == 0
    log = read_log(path)
    assert len(log) == N
    assert log.propensities is not None
    assert log.available is not None

    options = "--dsjson --cb_explore_adf --cb_type ips --epsilon 0.2 --quiet -q :: --random_seed 1"
    reader = vowpalwabbit.Workspace(options)
    shares, costs, weighted = np.zeros((N, len(ITEMS))), [], []
    for row, line in enumerate(path.read_text().splitlines()):
        # the shared features first, then one example for each candidate
        examples = reader.parse(line)
        candidates = np.flatnonzero(log.available[row])
        assert len(examples) == 1 + len(candidates)
        labels = [e.get_label(vowpalwabbit.LabelType.CONTEXTUAL_BANDIT).costs for e in examples]
        ((place, (found,)),) = [(k, own) for k, own in enumerate(labels[1:]) if own]
        assert candidates[place] == log.actions[row]
        assert found.probability == pytest.approx(log.propensities[row], rel=1e-6)
        shares[row, candidates] = reader.predict(examples)
        costs.append(found.cost)
        weighted.append(-found.cost * shares[row, log.actions[row]] / found.probability)
        reader.learn(examples)
        reader.finish_example(examples)
    reader.finish()
    np.testing.assert_array_equal(-np.array(costs), log.rewards)
    estimates = evaluate(log, Matrix(shares, "Vowpal Wabbit"), estimators=("ips",)).estimates
    assert estimates["ips"].value == pytest.approx(np.mean(weighted), rel=1e-5)
    # it learned from the features: by chance 4 of 10 are clicked
    assert np.mean(weighted[N // 2 :]) > 0.55
