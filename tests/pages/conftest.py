"""The pool of workers behind the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bandits.runtime.pool import Pool
from ui import owner, session


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """The app's own pool, which all sessions share."""
    workers = session.pool()
    yield workers
    workers.close()
    session.pool.clear()


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitors of a test sit at the server itself."""
    monkeypatch.setattr(owner, "at_console", lambda: True)
