"""The pool of workers behind the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bandits.runtime.pool import Pool
from bandits_app.arena import controls
from bandits_app.session import owner, workers


@pytest.fixture(scope="session")
def _pools() -> Iterator[list[Pool]]:
    """Close the pools of this process after its last test: starting workers takes longer than most
    tests.
    """
    pools: list[Pool] = []
    yield pools
    for each in pools:
        each.close()
    workers.pool.clear()


@pytest.fixture(scope="module")
def pool(_pools: list[Pool]) -> Pool:
    """The app's own pool, which all sessions share."""
    made = workers.pool()
    if made not in _pools:
        _pools.append(made)
    return made


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitors of a test sit at the server itself."""
    monkeypatch.setattr(owner, "at_console", lambda: True)


@pytest.fixture(autouse=True)
def _unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the settings of all agents: Streamlit's test client has no click that opens a card."""
    monkeypatch.setattr(controls, "is_open", lambda *_: True)
