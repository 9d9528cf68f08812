"""Compile each kernel once for all processes, and count those that a run needs.

Kernels are compiled when they are first called, and stored on disk by Numba. Two workers of a new
checkout would compile the same ones at the same time: here one compiles while the other waits, and
then loads what was stored.

``python -m bandits.runtime.kernels`` writes ``kernels.json``: the kernels that each agent calls in
the pet shop (one that plans: in visits), with default parameters."""

from __future__ import annotations

import gc
import importlib
import json
import multiprocessing
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.dispatcher import Dispatcher

from bandits.agents import REGISTRY
from bandits.base.files import lock_file
from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import Lockstep, run_to_end

FILE = Path(__file__).with_name("kernels.json")
# agents whose kernels an idle worker compiles before a run needs them
USUAL: tuple[dict[str, Any], ...] = (
    {"kind": "linucb"},
    {"kind": "lints"},
    {"kind": "epsilon_greedy"},
    {"kind": "random"},
    {"kind": "logistic_ts"},
    # its training too
    {"kind": "sgd_ts", "batch": 2},
)
_depth = threading.local()


def compile_for(agent: dict[str, Any]) -> None:
    """Compile what an agent calls, or load it, by a short run."""
    cls = REGISTRY[agent["kind"]]
    params = cls.Params(**agent)
    # one that learns later is run until it does
    steps = 1 + getattr(params, "learning_starts", 3)
    short: dict[str, Any] = {"agents": [agent], "steps": steps, "replications": 2}
    if "visits" in cls.requires(params):
        short["simulator"] = {"kind": "sessions", "observed": "mood"}
    run_to_end(Lockstep(Experiment.model_validate(short)))


def compile_once(ready: Callable[[str], None]) -> None:
    """Let one process at a time compile a kernel, and call ``ready`` with the name of each that was
    compiled or loaded.
    """
    dispatchers: Any = Dispatcher
    original = dispatchers.compile

    def compile(dispatcher: Any, sig: Any) -> Any:
        name = _name(dispatcher)
        if not name.startswith("bandits.") or getattr(_depth, "within", False):
            entry = original(dispatcher, sig)
        else:
            with _alone(dispatcher):
                _depth.within = True
                try:
                    entry = original(dispatcher, sig)
                finally:
                    _depth.within = False
        ready(name)
        return entry

    dispatchers.compile = compile


def missing(experiment: Experiment) -> list[str]:
    """List the kernels that a run is known to need and that no process has compiled yet."""
    needed = {name for agent in experiment.agents for name in _known().get(agent.kind, ())}
    return sorted(name for name in needed if not _stored(name))


@contextmanager
def warming(folder: Path = FILE.parent) -> Iterator[bool]:
    """Whether this process alone may compile ahead; the others stay free for runs."""
    with _lock(folder / "__pycache__" / "warming.lock", wait=False) as alone:
        yield alone


@contextmanager
def _alone(dispatcher: Any) -> Iterator[None]:
    """Wait until no other process compiles a kernel of this folder that is not stored yet."""
    if _index(dispatcher).exists():
        yield
        return
    with _lock(Path(dispatcher._cache.cache_path) / "compiling.lock", wait=True):
        yield


@contextmanager
def _lock(file: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock of a file, or not where it cannot be had."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = lock_file(file, wait=wait)
    except OSError:
        # nothing can be stored here either
        yield True
        return
    if handle is None:
        yield False
        return
    with handle:
        yield True


@cache
def _known() -> dict[str, list[str]]:
    known: dict[str, list[str]] = json.loads(FILE.read_text("utf-8"))
    return known


def _stored(name: str) -> bool:
    module, _, function = name.rpartition(".")
    kernel = getattr(importlib.import_module(module), function, None)
    # one that has another name now is not counted: a list that is out of date ends no run
    return kernel is None or _index(kernel).exists()


def _index(dispatcher: Any) -> Path:
    """Return the file that lists what is stored of a kernel."""
    return Path(dispatcher._cache._cache_file._index_path)


def _name(dispatcher: Any) -> str:
    return f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"


def called(kind: str) -> list[str]:
    """List the stored kernels that this process has called since it began, once it has run an agent
    of a kind.
    """
    compile_for({"kind": kind})
    kernels: Iterator[Any] = (one for one in gc.get_objects() if isinstance(one, Dispatcher))
    return sorted(
        {
            _name(one)
            for one in kernels
            if one.overloads and _name(one).startswith("bandits.") and one._cache.cache_path
        }
    )


def main() -> None:
    """Write the list anew: each kind in a process of its own that finds nothing stored, since those
    that a stored kernel calls are not loaded (5 minutes).
    """
    found = {}
    for kind in REGISTRY:
        with tempfile.TemporaryDirectory() as empty:
            os.environ["NUMBA_CACHE_DIR"] = empty
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found[kind] = pool.apply(called, (kind,))
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
