"""The pages with a run that replayed a log: numbers without a truth, refusals in one sentence."""

from __future__ import annotations

import pytest

from bandits import run
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.results.comparison.overlay import styles_of_runs
from bandits.runtime.pool import Pool
from bandits_app.run_view import board
from bandits_app.runs import comparison
from tests.pages.support import ended, open_page


@pytest.mark.slow
def test_tiles_of_a_run_in_which_nothing_counts_yet(pool: Pool) -> None:
    e = presets()["replay"].experiment
    job = ended(pool.submit(e.model_copy(update={"steps": 1, "seed": 4})))
    later = run(e.model_copy(update={"steps": 200, "seed": 4}), workers=0)
    assert {
        tile["rate"] + tile["spread"] + tile["detail"] for tile in board._tiles(job, job.result)
    } == {"–0 events count"}
    results = {"A": job.result, "B": later}
    looks = styles_of_runs({name: result.experiment for name, result in results.items()})
    tiles = comparison._tiles(results, looks)
    assert [tile["rate"] == "–" for tile in tiles] == [False] * len(e.agents) + [True] * len(
        e.agents
    )
    rates = [float(tile["rate"]) for tile in tiles[: len(e.agents)]]
    assert rates == sorted(rates, reverse=True)


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
        ("arena/diagnostics", "Diagnostics requires true expected rewards"),
        ("labs/guards", "neither guards nor alarms can be judged"),
        ("data/what_if", "cannot be logged: it replays a log"),
    ]:
        page = open_page(name, url.to_query(e))
        assert not page.exception
        shown = [*page.caption, *page.info, *page.warning]
        assert any(sentence in element.value for element in shown), name
