"""Agents with and without a guard: names, guards that are there already, and what is offered."""

from __future__ import annotations

import pytest

from bandits import read
from bandits.experiments.experiment import Experiment
from bandits.experiments.guarding import guard_kinds, guardable, suggestion, with_and_without
from bandits.results.figures.style import styles


def experiment(*labels: str | None) -> Experiment:
    agents = [{"kind": "linucb", "label": label} for label in labels]
    return read(
        {"simulator": {"kind": "petshop"}, "agents": agents, "steps": 400, "replications": 2}
    )


def test_each_agent_runs_once_as_it_is_and_once_with_the_guard() -> None:
    before = experiment(None, None, "Mine")
    after = with_and_without(before, {"kind": "floor", "epsilon": 0.1}, ["LinUCB 2", "Mine"])
    assert after.labels == (
        "LinUCB 2",
        "Mine",
        "LinUCB 2 exploration floor",
        "Mine exploration floor",
    )
    assert [len(agent.guards) for agent in after.agents] == [0, 0, 1, 1]
    whole = with_and_without(before, {"kind": "floor"}, before.labels)
    # in the colours in which they run without guards
    assert styles(before).items() < styles(whole).items()


def test_long_names_that_begin_alike_stay_different() -> None:
    long = "A name with exactly forty characters, no"[:38].replace(",", "")
    names = [f"{long} {n}"[:40] for n in range(3)]
    after = with_and_without(experiment(*names), {"kind": "floor"}, names)
    assert len(set(after.labels)) == 6
    assert set(names) <= set(after.labels)
    assert all(len(label) <= 40 for label in after.labels)


@pytest.mark.parametrize("kind", list(guard_kinds()))
def test_what_is_offered_can_run(kind: str) -> None:
    before = experiment(None)
    spec = before.simulator_class().describe(before.simulator)
    after = with_and_without(
        before, {"kind": kind, **suggestion(kind, before.steps, spec)}, guardable(before)
    )
    assert after.agents[1].guards[0].kind == kind
