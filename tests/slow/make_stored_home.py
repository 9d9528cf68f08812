"""Write the home of version 1.0 that later versions must open: ``python -m
tests.slow.make_stored_home``.

Run it once per format that is promised, never to make a test pass.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bandits import Experiment, Result, read, run
from bandits.base.files import pack
from bandits.experiments import url
from bandits.experiments.lockstep import Lockstep
from bandits.results.result import plain
from bandits.simulators.datasets import csv_table, kept_logs, uploads
from bandits.storage.run_store import Store
from bandits.sweeps import Landscape
from bandits.sweeps import read as read_sweep
from bandits.sweeps import run as run_sweep
from bandits.sweeps import url as sweep_url
from bandits.sweeps.storage.block_files import BlockFiles

ARCHIVE = Path(__file__).with_name("stored_home_1_0.tar.xz")
SHOP = {"kind": "petshop", "n_products": 8, "n_users": 20, "changes": [{"kind": "shock", "at": 40}]}
NETWORK = {"kind": "neural_ucb", "hidden": [4], "training": "newest"}
RUNS: dict[str, dict[str, Any]] = {
    "linear": {"agents": [{"kind": "linucb"}, {"kind": "random"}], "steps": 200, "seed": 1},
    "neural": {"agents": [NETWORK, {"kind": "random"}], "steps": 80, "seed": 2},
    "guarded": {
        "agents": [{"kind": "beta_ts", "guards": [{"kind": "floor", "epsilon": 0.1}]}],
        "steps": 200,
        "seed": 3,
    },
}
UNFINISHED = {"agents": [{"kind": "linucb"}], "steps": 200, "seed": 4}
SWEEP = {"path": "agents.0.alpha", "values": [0.2, 1.0]}


def experiment(data: dict[str, Any]) -> Experiment:
    """Return one of the experiments in full."""
    return read({"simulator": SHOP, "replications": 2, **data})


def facts(result: Result) -> dict[str, Any]:
    """Return what must stay: the hash, the link, and every number of the summary."""
    numbers = json.loads(json.dumps(plain(result.summary())))
    return {
        "hash": result.experiment.hash,
        "link": url.to_query(result.experiment),
        "summary": numbers,
    }


def sweep_facts(landscape: Landscape) -> dict[str, Any]:
    """Return what must stay of a sweep."""
    sweep = landscape.sweep
    return {
        "hash": sweep.hash,
        "link": sweep_url.to_query(sweep),
        "ctr": landscape.numbers("ctr").tolist(),
    }


def fill(home: Path) -> dict[str, Any]:
    """Store runs, a sweep, a data set and a log in a home; return what was stored."""
    store, found = Store(), dict[str, Any]()
    for name, data in RUNS.items():
        result = run(experiment(data), workers=0, progress=False)
        store.put(result.experiment, result.histories, 1.5)
        found[name] = facts(result)
    store.rename(found["linear"]["hash"], "Première course")
    store.tag(found["linear"]["hash"], "lesson 1")
    store.star(found["linear"]["hash"], True)
    store.note(found["linear"]["hash"], "two lines\nof notes")
    store.evict(found["guarded"]["hash"])

    unfinished = experiment(UNFINISHED)
    half = Lockstep(unfinished)
    list(half.advance(100))
    store.keep_checkpoint(unfinished.hash, unfinished, pack(half.state_dict()))
    found["unfinished"] = facts(run(unfinished, workers=0, progress=False))

    base = experiment({"agents": [{"kind": "linucb"}], "steps": 100}).model_dump(mode="json")
    sweep = read_sweep({"experiment": base, "axes": [SWEEP]})
    found["sweep"] = sweep_facts(run_sweep(sweep, files=BlockFiles(sweep, home / "sweeps")))

    generator = np.random.default_rng(0)
    lines = [
        f"{generator.normal():.3f},{generator.normal():.3f},{'yes' if i % 3 else 'no'}"
        for i in range(60)
    ]
    table = csv_table.inspect("\n".join(["x,y,answer", *lines]).encode())
    found["data"] = uploads.save_dataset(table, target="answer", title="Mine")
    log = kept_logs.KeptLog(
        np.arange(40) % 3,
        (np.arange(40) % 4 == 0).astype(float),
        generator.normal(size=(40, 2)),
        ("a", "b", "c"),
        ("x", "y"),
    )
    found["log"] = kept_logs.save_log(log, title="Log")
    return found


def main() -> None:
    """Fill a home and pack it, with what was stored, into `ARCHIVE`."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        os.environ["BANDITS_HOME"] = str(home)
        found = fill(home)
        (home / "facts.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
        with tarfile.open(ARCHIVE, "w:xz") as tar:
            # a reserve of free space, which every store makes for itself
            tar.add(
                home,
                "home",
                filter=lambda info: None if info.name.endswith(("/reserve", ".lock")) else info,
            )


if __name__ == "__main__":
    main()
