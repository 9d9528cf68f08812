"""Kept runs that equal an experiment except for one number of one agent."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from bandits import Experiment, run
from bandits.storage.run_index import RUNS
from bandits.storage.run_store import MAX_COMPARABLE, Store
from bandits.storage.stored_run import StoredValue, stored_values
from tests.support import experiment


def raced(alpha: float, *others: Any, label: str | None = None, **changes: Any) -> Experiment:
    agent = {"kind": "linucb", "alpha": alpha, "label": label, "ridge": changes.pop("ridge", 1.0)}
    return experiment(*others, agent, **{"steps": 40, "replications": 2, **changes})


def test_only_one_parameter_of_the_agent_may_differ() -> None:
    now = raced(0.5, "random")
    kept = {
        "a": raced(2.0, "random"),
        # other agents do not matter, nor names
        "b": raced(0.1, "lints", label="Bold"),
        # the first one with a value counts
        "c": raced(2.0),
        "now": raced(0.5),
        "ridge": raced(0.3, ridge=2.0),
        "seed": raced(0.3, seed=9),
        "steps": raced(0.3, steps=41),
        "replications": raced(0.3, replications=3),
        "simulator": raced(0.3, simulator={"kind": "petshop", "n_products": 11}),
        "kind": experiment({"kind": "lints"}, steps=40, replications=2),
    }
    expected = [StoredValue(0.1, "b", "Bold"), StoredValue(2.0, "a", "LinUCB")]
    assert stored_values(now, "LinUCB", "alpha", kept.items()) == expected
    assert stored_values(now, "LinUCB", "ridge", kept.items()) == []
    many = [(str(i), raced(1 + i / 100)) for i in range(40)]
    assert [one.run for one in stored_values(now, "LinUCB", "alpha", many, most=3)] == [
        "0",
        "1",
        "2",
    ]


def test_the_store_lists_runs_over_the_same_users(tmp_path: Path) -> None:
    store, now = Store(tmp_path), raced(0.5)
    results = [
        run(raced(alpha, seed=seed), workers=0)
        for alpha, seed in ((0.1, 1), (2.0, 1), (0.3, 1), (0.4, 2))
    ]
    for result in results:
        store.put(result.experiment, result.histories, 1.0)
    store.evict(results[2].experiment.hash)  # no curves
    now = raced(0.5, seed=1)
    first, second = (result.experiment for result in results[:2])
    assert store.comparable(now) == [(second.hash, second), (first.hash, first)]

    def add(index: sqlite3.Connection) -> None:
        (row,) = RUNS.find(index, "id = ?", first.hash)
        for i in range(MAX_COMPARABLE):
            # some of them are not JSON, and all have another hash
            text = row["experiment"][: -1 - i % 2]
            RUNS.put(
                index, {**row, "id": f"{i}", "experiment": text, "content": f"{i}", "created": 0.0}
            )

    store._index.use(add, write=True)
    assert [found for _, found in store.comparable(now)] == [second, first]
