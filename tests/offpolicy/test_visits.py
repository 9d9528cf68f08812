"""Logs of simulated visits: they can be recorded, and their past rounds are not made again."""

from __future__ import annotations

import pytest

from bandits import UserError
from bandits.experiments.experiment import read
from bandits.offpolicy.recording import record
from bandits.offpolicy.simulated import true_value
from bandits.offpolicy.targets import Random


def test_a_log_of_visits_is_recorded_and_its_rounds_are_not_made_again() -> None:
    e = read(
        {
            "simulator": {"kind": "sessions", "n_products": 10},
            "agents": [{"kind": "random"}],
            "steps": 40,
            "replications": 2,
        }
    )
    log = record(e)
    assert len(log) == 80
    with pytest.raises(UserError, match="depend on what was shown before"):
        true_value(log, Random())
