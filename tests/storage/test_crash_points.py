"""A process may be killed at any writing system call: what it did is there completely, or not at
all.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from bandits import sweeps
from bandits.base.files import cached_arrays
from bandits.storage.run_store import Store
from bandits.sweeps import Sweep
from bandits.sweeps.storage.block_files import BlockFiles, remove_damaged
from tests.storage.crash_points import crash_states
from tests.storage.crash_work import WORK, fill, searched, view
from tests.support import often
from tests.sweeps.test_sweep import small


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("filled") / "home"
    fill(home)
    return home


@pytest.fixture(scope="module")
def numbers() -> dict[str, np.ndarray]:
    return {
        sweep.hash: sweeps.run(sweep).numbers("ctr")
        for sweep in (small(), small(seed=4), searched())
    }


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK)
def test_a_kill_at_any_writing_call_leaves_all_or_nothing(
    work: str,
    filled: Path,
    numbers: dict[str, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = shutil.copytree(filled, tmp_path / "home")
    calls, states = crash_states(work, home, tmp_path / "states")
    assert calls >= len(states) - 1 >= 1
    monkeypatch.setenv("BANDITS_HOME", str(states[0]))
    before = view(states[0])
    monkeypatch.setenv("BANDITS_HOME", str(states[-1]))
    after = view(states[-1])
    for state in states[:: often(1 + len(states) // 5, 1)]:
        monkeypatch.setenv("BANDITS_HOME", str(state))
        assert view(state) in (before, after), state
        store = Store(state)
        store.check()
        assert view(state) in (before, after), state
        assert store.check() == []
        for sweep in changed_sweeps(work):
            again = sweeps.run(sweep, files=BlockFiles(sweep, state / "sweeps"))
            np.testing.assert_array_equal(again.numbers("ctr"), numbers[sweep.hash])
        if work == "cache":
            cached = cached_arrays("weights", "network", lambda: {"w": np.arange(5.0)})
            np.testing.assert_array_equal(cached["w"], np.arange(5.0))
        remove_damaged(state / "sweeps")
        assert remove_damaged(state / "sweeps") == []
    print(f"{work}: {calls} writing calls, {len(states)} different states")


def changed_sweeps(work: str) -> list[Sweep]:
    """Return the sweeps that a piece of work writes."""
    return {"block": [small(seed=4)], "thin": [small()], "search": [searched()]}.get(work, [])
