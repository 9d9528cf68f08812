"""The disk budget: a share of the free space by default.

Checkpoints and caches go first, starred runs stay.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.base.files import cached_arrays
from bandits.runtime.job import save
from bandits.storage.eviction import SHARE, VARIABLE, enforce, usage
from bandits.storage.run_store import Store
from tests.runtime.test_results_on_disk import finished_job
from tests.storage.test_run_store import finished, put


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store with three runs, two of them with checkpoints, and a cached network."""
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    found = Store()
    for seed in (1, 2, 3):
        put(found, finished(seed))
    for seed in (2, 3):
        e = finished(seed).experiment
        found.keep_checkpoint(e.hash, e, b"x" * 50_000)
    cached_arrays("weights", "network", lambda: {"w": np.zeros(1000)})
    return found


def test_the_budget_is_a_share_of_the_free_space(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, limit = usage(store)
    assert used > 100_000
    assert limit > SHARE * used
    assert enforce(store) == []
    monkeypatch.setenv(VARIABLE, "2GB")
    assert usage(store) == (used, 2_000_000_000)
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(
        UserError, match=r"BANDITS_DISK_BUDGET is much; it must be a size like 500MB or 2GB"
    ):
        usage(store)


def test_what_is_recomputed_most_easily_goes_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = usage(store).used
    monkeypatch.setenv(VARIABLE, str(used - 1))
    (message,) = enforce(store)
    assert message.startswith(f"checkpoint of run {finished(2).experiment.hash[:12]}")
    store.star(finished(1).experiment.hash, True)
    monkeypatch.setenv(VARIABLE, "0")
    messages = enforce(store)
    assert [text.split()[0] for text in messages] == ["checkpoint", "cached", "run", "run"]
    assert [(run.starred, run.evicted) for run in store.runs()] == [
        (False, True),
        (False, True),
        (True, False),
    ]


def test_a_finished_run_keeps_the_budget(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    job = finished_job()
    put(store, job.result)
    size = next(run.bytes for run in store.runs() if run.id == job.id)
    store.delete(job.id)
    # what stays of an evicted run counts too
    monkeypatch.setenv(VARIABLE, str(size + 20_000))
    save(store, job, finished=True)
    assert usage(store).used <= size + 20_000
    assert job.error == ""
    listed = {run.id: run.evicted for run in store.runs()}
    assert len(listed) == 4
    assert not listed[job.id]
    monkeypatch.setenv(VARIABLE, "much")
    save(store, job, finished=True)
    assert job.error == ""
