"""Fixtures and markers of all tests: a temporary home, a gate that holds runs, slow tests, and
those that need a server of Redis.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.gate import Gate

# as in workers, before imports of numpy
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

FOLDER = Path(__file__).parent
STRESS = os.environ.get("BANDITS_STRESS") == "1"
REDIS = shutil.which("redis-server")
LEFT_OUT = pytest.StashKey[int]()
# the same examples on every machine, no deadline
settings.register_profile("bandits", deadline=None, derandomize=True)
settings.register_profile("stress", deadline=None, derandomize=True, max_examples=1000)
settings.load_profile("stress" if STRESS else "bandits")

# they mostly wait
WAITING = ("browser", "slow/test_kill", "slow/test_pool", "pages")
# folders whose tests are slow, unless they are marked quick
SLOW = ("browser", "slow")
# whose files share an app and a browser, or a pool and the modules of the pages
TOGETHER = ("browser", "pages")


# before tests are selected by their markers
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests to `make stress`, mark slow ones by their folder, and run those that mostly wait
    first.

    What waits then runs beside what computes.
    """
    for mark in (() if STRESS else ("stress",)) + (() if REDIS else ("redis",)):
        left = [item for item in items if item.get_closest_marker(mark)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker(mark)]
        if mark == "redis" and left:
            config.stash[LEFT_OUT] = len(left)
    for item in items:
        folder = item.path.relative_to(FOLDER).parts[0]
        if folder in SLOW and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not f"{item.path.relative_to(FOLDER)}".startswith(WAITING))


# without processes of its own pytest has no such hook
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run each file in one process, and some folders, so that an app, a pool or a cluster that
    tests share is started once.

    The groups of pytest-xdist 3.8 have no effect with pytest 9.2, which ignores the names that they
    give to tests.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            folder = file.split("/")[1]
            return folder if folder in TOGETHER else file

    return Together(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """State which tests this machine cannot run."""
    if left := terminalreporter.config.stash.get(LEFT_OUT, 0):
        terminalreporter.line(
            f"left out: {left} tests of a service on several machines, because redis-server is not "
            "installed (Debian: apt-get install redis-server)"
        )


# imports make objects that stay
gc.disable()


def pytest_collection_finish() -> None:
    """Leave the modules and tests of this process out of searches for garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("BANDITS_HOME")
    os.environ["BANDITS_HOME"] = str(tmp_path_factory.mktemp("home"))
    yield
    os.environ.pop("BANDITS_HOME") if before is None else os.environ.update(BANDITS_HOME=before)


@pytest.fixture(autouse=True, scope="session")
def _runs_stay_in_this_process() -> Iterator[None]:
    """Hand no long run over to worker processes: whether it is long depends on what else the
    machine computes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bandits.runtime.cores.WORTH_IT", float("inf"))
        yield


@pytest.fixture(autouse=True, scope="session")
def _gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """Load the gate in all processes that tests start.

    The test process itself has imported the package before.
    """
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("gate")
        patch.setenv("BANDITS_GATE", str(folder))
        patch.setenv("BANDITS_PLUGINS", str(FOLDER / "plugin_gate.py"))
        yield Gate(folder)


@pytest.fixture
def gate(_gate: Gate) -> Iterator[Gate]:
    """Provide a gate that holds runs and opens after the test."""
    yield _gate
    _gate.open()
