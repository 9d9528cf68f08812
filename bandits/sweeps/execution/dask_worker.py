"""What a worker of a Dask cluster is asked: what it is made of, a known answer, a block of a sweep."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from bandits.base.files import Arrays
from bandits.runtime.protocol import UPDATE_INTERVAL
from bandits.sweeps.blocks import Block, Row, compute
from bandits.sweeps.sweep import Sweep, read, read_with_proposals

from .executors import ExecutorLostError

PACKAGES = ("numpy", "scipy", "numba", "torch", "distributed")
PROBE = {
    "experiment": {
        "simulator": {"kind": "petshop", "n_products": 10, "n_users": 40},
        "agents": [{"kind": "lints", "sharing": "hybrid"}],
        "steps": 100,
        "replications": 2,
    },
    "axes": [{"path": "agents.0.sigma2", "values": [0.1, 1.0]}],
}

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
MALLOC_KEEP = 128 * 2**20  # bytes that an arena of malloc may keep after they were freed

Make = dict[str, str]


class Call:
    """A call that travels as bytes which only a worker reads: a scheduler needs none of this package to pass it on.

    ``pickle.loads`` of its pickle is the answer.
    """

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self._call


@lru_cache(maxsize=1)
def make() -> Make:
    """Versions of everything that numbers depend on in this process; of this package its content."""
    return {
        "bandits": _content()[:12],
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in PACKAGES},
    }


def _content() -> str:
    """SHA-256 of the package's modules and data."""
    root, digest = Path(__file__).resolve().parents[2], hashlib.sha256()
    for path in sorted(p for kind in ("*.py", "*.parquet") for p in root.rglob(kind)):
        digest.update(f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def unlike(ours: Make, answer: str) -> str:
    """The first way in which this worker differs from the process that asks, in a sentence; empty if it does not.

    Parameters
    ----------
    ours : dict
        The asking process's `make`.
    answer : str
        Its `probe`.
    """
    from distributed import get_worker

    worker = f"the worker {get_worker().address}"
    for name, wanted in ours.items():
        if (found := make()[name]) != wanted:
            what = "other code" if name == "bandits" else f"another {name}"
            return f"{worker} has {what} ({found}; where the sweep was begun {wanted}): its numbers may differ"
    return "" if probe() == answer else f"{worker} computes other numbers than where the sweep was begun"


@lru_cache(maxsize=1)
def probe() -> str:
    """SHA-256 of a small block's numbers."""
    sweep = read(PROBE)
    block = Block(tuple((p, r) for p in range(sweep.size) for r in range(sweep.experiment.replications)))
    sums = sorted(item for item in compute(sweep, block).items() if item[0].startswith("sum."))
    return hashlib.sha256(b"".join(array.tobytes() for _, array in sums)).hexdigest()


def block(text: str, rows: Sequence[Row], ours: Make, answer: str, topic: str, key: str) -> Arrays:
    """Compute a block as the task ``key``; its steps are told to those who listen to ``topic``.

    A task cannot be interrupted, so it looks whether somebody still wants it: who cancelled it, or is gone, does not.

    Raises
    ------
    Lost
        This worker came late and is unlike the process that asks.
    Stopped
        Nobody wants it any more.
    """
    from distributed import Status, get_worker

    worker = get_worker()
    if sentence := unlike(ours, answer):
        raise ExecutorLostError(sentence)
    _keep_memory()
    told = time.monotonic()

    def tell(step: int) -> None:
        nonlocal told
        if time.monotonic() - told >= UPDATE_INTERVAL:
            worker.log_event(topic, {"key": key, "step": step})
            told = time.monotonic()

    def stop() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state != "executing" or worker.status in (Status.closing, Status.closed)

    return compute(_sweep(text), Block(tuple((point, run) for point, run in rows)), tell, stop)


@lru_cache(maxsize=1)
def _keep_memory() -> None:
    """Take back Dask's wish that a worker return every freed page at once: our arrays come and go by the thousand.

    It sets MALLOC_TRIM_THRESHOLD_ where it starts workers, so that big data frames leave memory; ours would ask the
    system for the same pages again at every step. Only glibc can be told so.
    """
    library = ctypes.CDLL(None) if os.name == "posix" else None
    if (mallopt := getattr(library, "mallopt", None)) is not None:
        mallopt(M_TRIM_THRESHOLD, MALLOC_KEEP)
        mallopt(M_MMAP_THRESHOLD, MALLOC_KEEP // 4)


@lru_cache(maxsize=4)
def _sweep(text: str) -> Sweep:
    """The sweep of many blocks is judged once."""
    return read_with_proposals(text)
