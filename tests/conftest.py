"""Tests keep their files to themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.gate import Gate

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # as workers run; before anybody imports
    os.environ.setdefault(name, "1")

FOLDER = Path(__file__).parent
settings.register_profile("bandits", deadline=None, derandomize=True)  # the same examples everywhere, no clock
settings.register_profile("stress", deadline=None, derandomize=True, max_examples=1000)  # make stress
settings.load_profile("stress" if os.environ.get("BANDITS_STRESS") == "1" else "bandits")

WAITING = ("browser", "slow/test_kill", "slow/test_pool", "pages")  # for pages, ticks and workers, while others compute


SLOW = ("browser", "slow")  # folders whose tests are slow, unless they are marked quick


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by its folder, and begin with tests that mostly wait: other tests compute meanwhile."""
    for item in items:
        if item.path.relative_to(FOLDER).parts[0] in SLOW and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not f"{item.path.relative_to(FOLDER)}".startswith(WAITING))


@pytest.fixture(autouse=True, scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("BANDITS_HOME")
    os.environ["BANDITS_HOME"] = str(tmp_path_factory.mktemp("home"))
    yield
    os.environ.pop("BANDITS_HOME") if before is None else os.environ.update(BANDITS_HOME=before)


@pytest.fixture(autouse=True, scope="session")
def _gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """All processes that tests start can be held; the tests' own has imported the package before, and cannot."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("gate")
        patch.setenv("BANDITS_GATE", str(folder))
        patch.setenv("BANDITS_PLUGINS", str(FOLDER / "plugin_gate.py"))
        yield Gate(folder)


@pytest.fixture
def gate(_gate: Gate) -> Iterator[Gate]:
    """Holds runs until the test is over."""
    yield _gate
    _gate.open()
