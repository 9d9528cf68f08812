"""Logs of simulated visits: they can be recorded, and their past rounds are not made again."""

from __future__ import annotations

import pytest

from bandits import UserError
from bandits.experiments.experiment import read
from bandits.offpolicy.evaluation import evaluate
from bandits.offpolicy.log import DecisionLog
from bandits.offpolicy.recording import record
from bandits.offpolicy.simulated import true_value
from bandits.offpolicy.targets import Random


def visits(agent: str) -> DecisionLog:
    return record(
        read(
            {
                "simulator": {"kind": "sessions", "n_products": 10},
                "agents": [{"kind": agent}],
                "steps": 40,
                "replications": 2,
            }
        )
    )


def test_a_log_of_visits_is_recorded_and_its_rounds_are_not_made_again() -> None:
    log = visits("random")
    assert len(log) == 80
    with pytest.raises(UserError, match="depend on what was shown before"):
        true_value(log, Random())


def test_a_log_of_visits_is_evaluated_without_its_truth() -> None:
    """It states the range of rewards, and whether its agent learned."""
    for agent, n_notes in (("random", 0), ("epsilon_greedy", 1)):
        evaluation = evaluate(visits(agent), "random", estimators=["ips"], interval="bernstein")
        assert evaluation.truth is None
        assert sum("learned while it chose" in note for note in evaluation.notes) == n_notes
