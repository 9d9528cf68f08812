"""A stranger changes nothing of what another visitor started or uploaded, by any action of a page.

The first tests find the actions: methods of what all visitors share, and the places in pages that
use those which change something. A new one is not in the lists below, and fails. The last test
carries out each as a stranger.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from bandits import run, sweeps
from bandits.base.errors import UserError
from bandits.runtime.job import Job
from bandits.runtime.pool import Pool
from bandits.serving.loop import Loop
from bandits.serving.registry import Registry
from bandits.simulators.datasets import csv_table, kept_logs, uploads
from bandits.simulators.datasets.csv_table import inspect as table_of
from bandits.simulators.datasets.kept_logs import KeptLog
from bandits.storage.owners import Owners
from bandits.storage.run_store import Store
from bandits.storage.scores import Scores
from bandits.storage.stored_run import StoredRun
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.manager import SweepJob, SweepManager
from bandits.sweeps.storage.block_files import BlockFiles
from bandits.sweeps.storage.catalogue import CatalogueEntry
from bandits_app.data import upload
from bandits_app.labs.production import Started, held
from bandits_app.runs import run_lists
from bandits_app.runs import sweeps as sweep_lists
from bandits_app.session import workers
from bandits_app.sweep import selection
from tests.pages.support import open_page
from tests.support import experiment
from tests.sweeps.test_sweep import small

ROOT = Path(__file__).parents[2]
VICTIM, STRANGER = "a" * 32, "b" * 32

# what all visitors share: the methods that change what somebody else may own, and all others
CHANGES: dict[type, set[str]] = {
    Pool: {"pause", "stop", "resume", "resume_unfinished", "discard", "delete"},
    SweepManager: {"stop", "star", "note", "delete"},
    Store: {"rename", "tag", "star", "note", "delete", "evict", "drop_checkpoint", "put"}
    | {"keep_checkpoint"},
    Owners: {"record", "drop"},
    Scores: {"record"},
    Loop: {"stop", "kill", "drift"},
    Registry: {"register", "point", "promote", "rollback"},
}
OTHERS: dict[type, set[str]] = {
    # a submitted run is the visitor's own, or is joined as it is; so is a sweep
    Pool: {"submit", "submit_changed", "extend", "compute", "get", "kept_history", "live_jobs"}
    | {"queue_position", "stored_values", "unfinished", "close"},
    SweepManager: {"submit", "get", "evictable", "nearest_points", "stored_sweeps"},
    Store: {"check", "checkpoint_arrays", "checkpoint_experiment", "checkpoints", "claim", "get"}
    | {"comparable", "evictable", "notes", "release", "require_space", "runs", "seconds"},
    Owners: {"may_delete", "may_edit", "of", "require", "require_editor"},
    Scores: {"of"},
    Loop: {"runs", "wait"},
    Registry: {"aliases", "newest", "numbers", "version"},
}
# functions that change files, of us and of Python
FUNCTIONS = {"bad_model", "slow_model", "unlink", "rmtree", "rmdir", "rename", "write_bytes"}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS |= {"save_dataset", "save_log", "keep_file", "enforce"}
# names under which pages hand on a method without calling it
SHARED = {"pool", "manager", "store", "_store", "loop", "registry", "owners", "scores"}
SHARED |= {"uploads", "kept_logs", "breaks", "task", "job"}
# uses that are no action on what is shared
HARMLESS = {
    ("st", "stop"): "ends a script",
    ("buttons", "delete"): "draws a button",
    ("owners", "record"): "keeps the first owner",
    ("scores", "record"): "keeps the first result of a browser",
    ("uploads", "save_dataset"): "adds a file, or keeps an equal one with its title",
    ("", "keep_file"): "adds a file, or keeps an equal one with its title",
    ("task", "stop"): "of this session",
    ("shutil", "rmtree"): "of a loop that has ended",
    ("newest", "put"): "a question",
    ("lines", "discard"): "a closed websocket",
    ("representation", "note"): "a text",
    ("sweep", "point"): "an experiment",
}
# each action of a page, by folder and function, and what the last test does with it
ACTIONS = {
    ("arena/run_buttons.py", "control", "pause"): "pause",
    ("arena/run_buttons.py", "control", "stop"): "stop",
    ("arena/run_buttons.py", "control", "resume"): "resume",
    ("labs/change.py", "start", "stop"): "stop",
    ("session/followed.py", "submit_and_follow", "stop"): "stop",
    ("session/followed.py", "submit_and_follow", "discard"): "discard",
    ("runs/run_lists.py", "unfinished", "resume_unfinished"): "resume",
    ("runs/run_lists.py", "unfinished", "discard"): "discard",
    ("runs/run_lists.py", "actions", "delete"): "delete a run",
    ("runs/run_lists.py", "_save", "rename"): "edit a run",
    ("runs/run_lists.py", "_save", "tag"): "edit a run",
    ("runs/run_lists.py", "_save", "note"): "edit a run",
    ("runs/run_lists.py", "_star", "star"): "star a run",
    ("runs/sweeps.py", "_actions", "delete"): "delete a sweep",
    ("runs/sweeps.py", "_note", "note"): "note on a sweep",
    ("runs/sweeps.py", "_star", "star"): "star a sweep",
    ("pages/sweep.py", "", "stop"): "stop a sweep",
    ("data/upload.py", "uploaded_data_sets", "delete"): "delete a data set",
    ("data/log_replay.py", "_kept", "delete"): "delete a log",
    ("data/upload.py", "delete_stored", "drop"): "delete a data set",
    ("labs/production.py", "_buttons", "stop"): "break production",
    ("labs/production.py", "_buttons", "rollback"): "break production",
    ("labs/production.py", "_breaks", "bad_model"): "break production",
    ("labs/production.py", "_breaks", "slow_model"): "break production",
    ("labs/production.py", "_breaks", "drift"): "break production",
    ("labs/production.py", "_breaks", "kill"): "break production",
}


@pytest.mark.parametrize("kind", CHANGES, ids=lambda kind: kind.__name__)
def test_every_method_of_what_is_shared_is_listed(kind: type) -> None:
    methods = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}
    assert methods == CHANGES[kind] | OTHERS[kind]


def uses() -> Iterator[tuple[str, str, str, str]]:
    """Find the file, function, object and method of each use of something that changes."""
    names = FUNCTIONS.union(*CHANGES.values())
    for file in [*(ROOT / "bandits_app").rglob("*.py"), *(ROOT / "pages").glob("*.py")]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        place = str(file.relative_to(ROOT)).removeprefix("bandits_app/")
        for function, node in _nodes(tree, ""):
            if isinstance(node, ast.Attribute) and node.attr in names:
                owner = ast.unparse(node.value).rpartition(".")[2]
                # else a text or number of that name
                if id(node) not in called and owner.removesuffix("()") not in SHARED:
                    continue
            elif isinstance(node, ast.Name) and node.id in FUNCTIONS:
                owner = ""
            else:
                continue
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            yield place, function, owner, name


def _nodes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    """Walk through a tree, with the outermost function of each node."""
    for child in ast.iter_child_nodes(node):
        inside = function or (child.name if isinstance(child, FUNCTION) else "")
        yield inside, child
        yield from _nodes(child, inside)


def test_every_action_of_a_page_is_listed() -> None:
    found = list(uses())
    assert {(object_, name) for *_, object_, name in found} >= set(HARMLESS)
    assert {
        (place, function, name)
        for place, function, object_, name in found
        if (object_, name) not in HARMLESS
    } == set(ACTIONS)


class Victim(NamedTuple):
    """What another visitor has on the server.

    Attributes
    ----------
    pool : Pool
    live, stopped : Job
        A run that waits for a worker, and one that was stopped.
    run : StoredRun
    manager : SweepManager
    running : SweepJob
    sweep : CatalogueEntry
    data, log : str
        Ids.
    """

    pool: Pool
    live: Job
    stopped: Job
    run: StoredRun
    manager: SweepManager
    running: SweepJob
    sweep: CatalogueEntry
    data: str
    log: str


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    home = tmp_path_factory.mktemp("victim")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BANDITS_HOME", str(home))
        # no worker: what is submitted waits
        pool = Pool(0, Store(home), limited=False)
        manager = SweepManager(pool, home / "sweeps")
        live, stopped = (pool.submit(experiment(seed=seed), VICTIM) for seed in (1, 2))
        pool.stop(stopped, VICTIM)
        e, sweep = experiment(steps=20), small(steps=20, replications=1)
        assert pool.store is not None
        pool.store.put(e, run(e, workers=0).histories, 1.0)
        sweeps.run(sweep, files=BlockFiles(sweep, home / "sweeps"))
        data = uploads.save_dataset(table_of(csv_table.sample()), target="species", title="Iris")
        log = KeptLog(np.array([0, 1]), np.ones(2), np.ones((2, 1)), ("a", "b"), ("x",))
        kept = kept_logs.save_log(log, title="Log")
        for name in (e.hash, sweep.hash, data, kept):
            pool.owners.record(name, VICTIM)
        running = SweepJob(
            small(), InProcessExecutor, home / "sweeps", lambda _: None, lambda _: None, VICTIM
        )
        (shelved,), (entry,) = pool.store.runs(), manager.stored_sweeps()
        for module in (run_lists, sweep_lists, upload):
            patch.setattr(module, "deleter", lambda: STRANGER)
        patch.setattr(workers, "pool", lambda: pool)
        patch.setattr(selection, "manager", lambda: manager)
        yield Victim(pool, live, stopped, shelved, manager, running, entry, data, kept)
        pool.close()


# with the arguments of the pages
TRIED: dict[str, Callable[[Victim], object]] = {
    "pause": lambda v: v.pool.pause(v.live, STRANGER),
    "stop": lambda v: v.pool.stop(v.live, STRANGER),
    "resume": lambda v: v.pool.resume_unfinished(v.stopped.experiment, STRANGER),
    "discard": lambda v: v.pool.discard(v.stopped.id, STRANGER),
    "discard what waits": lambda v: v.pool.discard(v.live.id, STRANGER),
    "delete a run": lambda v: v.pool.delete(v.run.id, STRANGER),
    "edit a run": lambda v: run_lists._save(v.run, {"Title": "mine", "Tags": "", "Notes": ""}),
    "star a run": lambda v: run_lists._star([v.run], True),
    "stop a sweep": lambda v: v.manager.stop(v.running, STRANGER),
    "delete a sweep": lambda v: v.manager.delete(v.sweep.sweep.hash, STRANGER),
    "note on a sweep": lambda v: sweep_lists._note(v.sweep.sweep.hash, {"Notes": "mine"}),
    "star a sweep": lambda v: sweep_lists._star([v.sweep], True),
    "delete a data set": lambda v: upload.delete_stored(v.data, partial(uploads.delete, v.data)),
    "delete a log": lambda v: upload.delete_stored(v.log, partial(kept_logs.delete, v.log)),
}


def state(v: Victim) -> object:
    """Return all that the victim has."""
    assert v.pool.store is not None
    owned = [v.live.id, v.stopped.id, v.run.id, v.sweep.sweep.hash, v.data, v.log]
    return (
        (v.live.status, v.live.owner, v.stopped.status, v.stopped.owner),
        (v.pool.store.runs(), v.manager.stored_sweeps()),
        (uploads.listing(), kept_logs.listing()),
        [v.pool.owners.of(name) for name in owned],
    )


@pytest.mark.parametrize("action", TRIED)
def test_a_stranger_is_refused(action: str, victim: Victim) -> None:
    before = state(victim)
    with pytest.raises(UserError, match=r"only the (user|browser)"):
        TRIED[action](victim)
    assert state(victim) == before


def test_every_action_is_tried() -> None:
    assert {*ACTIONS.values()} <= {*TRIED, "break production"}


def test_a_stranger_breaks_no_production(tmp_path: Path) -> None:
    loop = Loop(tmp_path, rate=1)
    held()[:] = [Started(loop, "another visitor")]
    try:
        at = open_page("labs/production", owner="me")
        assert not at.exception
        assert not at.button
        assert any("Another visitor" in caption.value for caption in at.caption)
    finally:
        loop.stop()
        held().clear()


def test_equal_data_keep_the_title_of_who_uploaded_them_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    table = table_of(csv_table.sample())
    for title in ("My iris", "my. IRIS"):
        uploads.save_dataset(table, target="species", title=title)
    log = KeptLog(np.array([0, 1]), np.ones(2), np.ones((2, 1)), ("a", "b"), ("x",))
    for title in ("My log", "my. LOG"):
        kept_logs.save_log(log, title=title)
    assert [info.title for info in uploads.listing()] == ["My iris"]
    assert [info.title for info in kept_logs.listing()] == ["My log"]
