"""Functions that run on a worker of a Dask cluster: compare versions, check known numbers, compute
a block.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from bandits.base.files import Arrays
from bandits.base.malloc import set_malloc
from bandits.experiments import plugins
from bandits.runtime.protocol import UPDATE_INTERVAL
from bandits.sweeps.blocks import Block, Row, compute, read_cached
from bandits.sweeps.sweep import read

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

# freed bytes that an arena of malloc may keep
MALLOC_KEEP = 128 * 2**20

Fingerprint = dict[str, str]


class Call:
    """A call pickled into bytes that only a worker unpickles: the scheduler does not need this
    package.

    ``pickle.loads`` of its pickle is the result of the call.
    """

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self._call


@lru_cache(maxsize=1)
def fingerprint() -> Fingerprint:
    """Return the versions of all packages that numbers depend on.

    Of this package, a hash of its content.
    """
    return {
        "bandits": _package_hash()[:12],
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in PACKAGES},
    }


def _package_hash() -> str:
    """Return the SHA-256 of the package's modules and data, and of the plug-ins."""
    root, digest = Path(__file__).resolve().parents[2], hashlib.sha256()
    for path in sorted(p for kind in ("*.py", "*.parquet") for p in root.rglob(kind)):
        digest.update(f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    digest.update(json.dumps(plugins.digests(), sort_keys=True).encode())
    return digest.hexdigest()


def find_difference(expected: Fingerprint, expected_probe: str) -> str:
    """Describe the first difference between this worker and the client in one sentence.

    Empty without any.

    Parameters
    ----------
    expected : dict
        The client's `fingerprint`.
    expected_probe : str
        The client's `probe`.
    """
    from distributed import get_worker

    worker = f"the worker {get_worker().address}"
    for name, wanted in expected.items():
        if (found := fingerprint()[name]) != wanted:
            what = "other code" if name == "bandits" else f"another {name}"
            return f"{worker} has {what} ({found}; the client has {wanted}); its numbers may differ"
    return "" if probe() == expected_probe else f"{worker} computes other numbers than the client"


@lru_cache(maxsize=1)
def probe() -> str:
    """Compute a small block and return the SHA-256 of its numbers."""
    sweep = read(PROBE)
    block = Block(
        tuple((p, r) for p in range(sweep.size) for r in range(sweep.experiment.replications))
    )
    sums = sorted(item for item in compute(sweep, block).items() if item[0].startswith("sum."))
    return hashlib.sha256(b"".join(array.tobytes() for _, array in sums)).hexdigest()


def compute_block(
    text: str, rows: Sequence[Row], expected: Fingerprint, expected_probe: str, topic: str, key: str
) -> Arrays:
    """Compute a block as the task ``key`` and publish its steps under ``topic``.

    Dask cannot interrupt a task. Therefore the task checks whether it was cancelled or its client
    is gone.

    Raises
    ------
    ExecutorLostError
        If this worker joined late and differs from the client.
    StoppedError
        If the task is no longer needed.
    """
    from distributed import Status, get_worker

    worker = get_worker()
    if difference := find_difference(expected, expected_probe):
        raise ExecutorLostError(difference)
    _keep_memory()
    published = time.monotonic()

    def publish(step: int) -> None:
        nonlocal published
        if time.monotonic() - published >= UPDATE_INTERVAL:
            worker.log_event(topic, {"key": key, "step": step})
            published = time.monotonic()

    def stop() -> bool:
        task = worker.state.tasks.get(key)
        return (
            task is None
            or task.state != "executing"
            or worker.status in (Status.closing, Status.closed)
        )

    return compute(
        read_cached(text),
        Block(tuple((point, replication) for point, replication in rows)),
        publish,
        stop,
    )


@lru_cache(maxsize=1)
def _keep_memory() -> None:
    """Let malloc keep freed memory, against the default that Dask sets for its workers.

    Dask sets MALLOC_TRIM_THRESHOLD_ so that large data frames are returned to the system at once.
    Lanes allocate the same small arrays at every step, and would request the same pages again and
    again."""
    set_malloc(trim_threshold=MALLOC_KEEP, mmap_threshold=MALLOC_KEEP // 4)
