"""Saved, resumed and extended runs are bit-identical to uninterrupted runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from bandits import Experiment
from bandits.experiments.history import History
from bandits.experiments.lockstep import Lockstep, run_to_end
from bandits.experiments.snapshots import nice_spacing, snapshot_steps
from tests.support import thinned

AGENTS: list[dict[str, Any]] = [
    {"kind": "linucb", "sharing": "hybrid"},
    {"kind": "lints"},
    {"kind": "beta_ts"},
    {"kind": "epsilon_greedy", "decay": 0.01},
    {"kind": "linucb", "label": "window", "window": 50},
    {"kind": "static_mlp", "interactions": 1000, "epochs": 1},
]


def experiment(steps: int, agents: list[dict[str, Any]] = AGENTS) -> Experiment:
    settings = {"kind": "petshop", "n_products": 10, "n_users": 50}
    return Experiment(simulator=settings, agents=agents, steps=steps, replications=3, seed=5)


def same(a: dict[str, History], b: dict[str, History]) -> None:
    for label, history in a.items():
        other = b[label]
        for name in History.SUMS:
            np.testing.assert_array_equal(history.sums[name], other.sums[name])
        np.testing.assert_array_equal(history.counts, other.counts)
        assert [s.step for s in history.spectra] == [s.step for s in other.spectra]
        for s, t in zip(history.spectra, other.spectra, strict=True):
            np.testing.assert_array_equal(s.eigenvalues, t.eigenvalues)
        assert [(c.step, c.inside.tolist()) for c in history.calibrations] == [
            (c.step, c.inside.tolist()) for c in other.calibrations
        ]


@pytest.mark.parametrize("at", thinned([(1,), (137,), (400,)], lambda number: number == 1))
def test_a_run_resumed_from_the_middle_is_bit_identical(at: int) -> None:
    whole, first, second = (Lockstep(experiment(500)) for _ in range(3))
    run_to_end(whole)
    list(first.advance(at))
    second.load_state_dict(first.state_dict())
    run_to_end(second, chunk=77)
    same(whole.histories, second.histories)


def test_a_state_is_the_same_without_copies_of_what_agents_hold() -> None:
    floor = {"kind": "lints", "label": "guarded", "guards": [{"kind": "floor"}]}
    lockstep = Lockstep(experiment(100, [*AGENTS, floor, {"kind": "neural_greedy"}]))
    run_to_end(lockstep)
    copied, seen = lockstep.state_dict(), lockstep.state_dict(views=True)
    assert list(seen) == list(copied)
    for name, value in copied.items():
        np.testing.assert_array_equal(seen[name], value)
    model = lockstep.runners["LinUCB"].lane.agent.model
    assert np.shares_memory(seen["0.lane.agent.model.A"], model.A)
    assert not np.shares_memory(copied["0.lane.agent.model.A"], model.A)


@pytest.mark.parametrize(
    ("short", "long"), thinned([(300, 500), (1000, 2500), (2000, 9000)], lambda number: number == 1)
)
def test_a_finished_run_extended_equals_the_longer_run(short: int, long: int) -> None:
    agents = [{"kind": "linucb"}, {"kind": "lints", "sharing": "shared"}]
    brief, longer, whole = (Lockstep(experiment(steps, agents)) for steps in (short, long, long))
    run_to_end(brief)
    longer.load_state_dict(brief.state_dict())
    run_to_end(longer)
    run_to_end(whole)
    same(whole.histories, longer.histories)


def test_each_grid_spacing_divides_the_next() -> None:
    spacings = [
        nice_spacing(steps, 2000) for steps in (1, 2000, 2001, 10_000, 30_000, 100_000, 10_000_000)
    ]
    assert spacings == sorted(spacings)
    assert all(b % a == 0 for a, b in itertools.pairwise(spacings))
    for steps in (1, 39, 41, 2000, 12_345, 10_000_000):
        assert steps <= nice_spacing(steps, 2000) * 2000
        assert snapshot_steps(steps)[-1] == steps
        assert len(snapshot_steps(steps)) <= 41
