"""What a process does while it is killed, and what must be found afterwards; see `crash_points`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bandits import sweeps
from bandits.base.files import cached_arrays
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import inspect
from bandits.storage.run_store import EvictedError, Store
from bandits.sweeps.blocks import compute, pack
from bandits.sweeps.storage.block_files import BlockFiles
from tests.storage.test_run_store import finished, put
from tests.sweeps.test_sweep import rows_of, small

View = dict[str, Any]
WORK = (
    "put",
    "put again",
    "checkpoint",
    "rename",
    "delete",
    "evict",
    "block",
    "thin",
    "search",
    "cache",
    "upload",
)


def searched() -> sweeps.Sweep:
    """Return a sweep by Optuna."""
    data = small(steps=50).model_dump(mode="json", include={"experiment", "axes"})
    return sweeps.read({**data, "search": "optuna", "number": 4, "batch": 2, "sampler": "random"})


def fill(home: Path) -> None:
    """Store two runs, one of them evicted, and a sweep."""
    store = Store(home)
    for seed in (1, 2):
        store.rename(put(store, finished(seed)), f"run {seed}")
        store.keep_checkpoint(finished(seed).experiment.hash, finished(seed).experiment, b"before")
    store.evict(finished(2).experiment.hash)
    sweeps.run(small(), files=BlockFiles(small(), home / "sweeps"))


def prepare(work: str, home: str) -> Callable[[], object]:
    """Return the work to be traced; everything else is done before."""
    folder = Path(home)
    store, first, second, third = Store(folder), finished(1), finished(2), finished(3)
    name, files = first.experiment.hash, BlockFiles(small(seed=4), folder / "sweeps")
    block = pack(files.sweep, rows_of(files.sweep))[0]
    arrays = compute(files.sweep, block)
    table = inspect(b"a,b,c\n" + b"".join(b"%d,%d,%d\n" % (i, i % 7, i % 2) for i in range(60)))
    done: dict[str, Callable[[], object]] = {
        "put": lambda: put(store, third),
        "put again": lambda: put(store, second),
        "checkpoint": lambda: store.keep_checkpoint(
            third.experiment.hash, third.experiment, b"after"
        ),
        "rename": lambda: store.rename(name, "new"),
        "delete": lambda: store.delete(name),
        "evict": lambda: store.evict(name),
        "block": lambda: files.save(block, arrays),
        "thin": lambda: BlockFiles(small(), folder / "sweeps").drop_curves(),
        "search": lambda: sweeps.run(searched(), files=BlockFiles(searched(), folder / "sweeps")),
        "cache": lambda: cached_arrays("weights", "network", lambda: {"w": np.arange(5.0)}),
        "upload": lambda: uploads.save_dataset(table, target="c", title="crash"),
    }
    return done[work]


def view(home: Path) -> View:
    """Return all that a home shows; damage raises."""
    store, found = Store(home), View()
    for run in store.runs():
        try:
            result = store.get(run.id)
            assert result is not None
            curves = result.summary()["agents"]
        except EvictedError:
            curves = None
        assert (curves is None) == run.evicted
        found[run.id] = (run.title, run.tags, run.headline, run.experiment.hash, curves)
    for run_id, _ in store.checkpoints():
        found["checkpoint " + run_id] = store.checkpoint_files.state(run_id)
    for data in uploads.listing():
        found[data.id] = uploads.load(data.id).to_csv()
    return found
