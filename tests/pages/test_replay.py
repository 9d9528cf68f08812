"""The pages with a run that replayed a log: numbers without a truth, refusals in one sentence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.runtime.pool import Pool
from tests.pages.support import ended, open_page
from ui import session


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """The app's own."""
    made = session.pool()
    yield made
    made.close()
    session.pool.clear()


@pytest.mark.slow
def test_pages_claim_nothing_that_a_log_does_not_show(pool: Pool) -> None:
    e = presets()["replay"].experiment.model_copy(update={"steps": 200, "seed": 4})
    ended(pool.submit(e))
    at = open_page("arena", url.to_query(e))
    assert not at.exception
    bullets = " ".join(m.value for m in at.markdown)
    assert "so nothing is paired; true rewards are not known" in bullets
    assert "common random numbers" not in bullets
    assert "visitor sequences" not in bullets
    for name, sentence in [
        ("diagnostics", "Diagnostics requires true expected rewards"),
        ("guard_rails", "neither guards nor alarms can be judged"),
        ("what_if", "cannot be logged: it replays a log"),
    ]:
        page = open_page(name, url.to_query(e))
        assert not page.exception
        shown = [*page.caption, *page.info, *page.warning]
        assert any(sentence in element.value for element in shown), name
