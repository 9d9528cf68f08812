"""Counts of a history: every item at every step, up to each point of the grid."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.experiments import history as module
from bandits.experiments.history import History
from bandits.experiments.lane import Trace

STEPS, ROWS, ITEMS, SLATE = 500, 3, 7, 2


def trace(start: int, end: int) -> Trace:
    """Cut a trace of which row 1 stops at step 300."""
    generator = np.random.default_rng(5)
    items = generator.integers(0, ITEMS, (STEPS, ROWS, SLATE))
    rewards = generator.random((STEPS, ROWS))
    rewards[300:, 1] = np.nan
    columns = [rewards[start:end]] * 5
    alive = np.array([True, end < 300, True])
    return Trace(start, items[start:end], np.zeros((end - start, ROWS), np.int64), *columns, alive)


@pytest.mark.parametrize("cells", [1, 100, 2**20])
@pytest.mark.parametrize("chunk", [1, 7, 250, STEPS])
@pytest.mark.parametrize("bucket", [1, 3])
def test_counts_depend_neither_on_chunks_nor_on_passes(
    cells: int, chunk: int, bucket: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CELLS_AT_ONCE", cells)
    history = History(STEPS, ROWS, ITEMS, bucket_size=bucket)
    for start in range(0, STEPS, chunk):
        history.extend(trace(start, min(start + chunk, STEPS)))
    whole = trace(0, STEPS)
    for point, step in enumerate(history.count_grid):
        for row in range(ROWS):
            seen = whole.items[: min(step, 300) if row == 1 else step, row].ravel() // bucket
            expected = np.bincount(seen, minlength=history.n_counted)
            np.testing.assert_array_equal(history.counts[point, row], expected)


def test_an_agent_that_begins_anew_in_another_process_is_merged() -> None:
    history, copy = History(STEPS, ROWS, ITEMS), History(STEPS, ROWS, ITEMS)
    history.extend(trace(0, 250))
    # the share of optimal choices is counted from the first step on
    assert "optimal" in history.sums
    copy.merge(history.since(0))
    copy.merge(History(STEPS, ROWS, ITEMS).since(0))
    assert copy.step == 0
    copy.merge(history.since(0))
    np.testing.assert_array_equal(copy.sums["optimal"], history.sums["optimal"])
    with pytest.raises(KeyError):
        copy.merge({k: v for k, v in history.since(0).items() if k != "sum.clicks"})
