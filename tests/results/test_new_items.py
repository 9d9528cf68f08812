"""What the page New items states: shares of traffic and regret of launches, exactly, and who never finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import Result, read, run
from bandits.experiments.race import Race
from bandits.results import new_items
from bandits.results.demand import demand
from bandits.results.launches import cohort_shares

LAUNCHES = [
    {"kind": "launch", "at": 1000, "items": 4, "category": "Fish", "quality": 1.5},
    {"kind": "launch", "at": 2000, "items": 3, "quality": 0.5},
]


def experiment(**options: Any) -> Any:
    simulator = {"kind": "petshop", "n_products": 30, "n_users": 100, "changes": LAUNCHES, **options}
    agents = [{"kind": "random"}, {"kind": "oracle"}, {"kind": "linucb", "alpha": 0.4}]
    return read({"simulator": simulator, "agents": agents, "steps": 4000, "replications": 3})


@pytest.fixture(scope="module")
def result() -> Result:
    return run(experiment(), workers=0, progress=False)


@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_the_share_of_regret_is_that_of_every_single_decision(layout: str) -> None:
    e = experiment(layout=layout)
    found = run(e, workers=0, progress=False)
    wanted = demand(e)
    assert wanted is not None
    history = found.histories["Random"]
    trace = Race(e).runners["Random"].lane.advance(e.steps)
    lost = trace.best_value - trace.value
    for cohort in wanted.cohorts:
        shown = np.stack([cohort.items[r, trace.items[:, r, 0]] for r in range(3)], axis=1)
        since = np.arange(e.steps) >= cohort.step  # the counts are stored at steps of the launches
        by_new = np.where(shown & since[:, None], lost, 0).sum(axis=0)
        share = by_new / lost[since].sum(axis=0)
        measured = new_items.regret_share(found, history, cohort)
        assert measured is not None
        assert measured.share.mean == pytest.approx(share.mean(), rel=1e-9)
        assert measured.clicks.mean == pytest.approx(by_new.mean(), rel=1e-9)


def test_the_oracle_loses_nothing_and_has_its_fair_share(result: Result) -> None:
    table = new_items.launch_table(result)
    assert table is not None
    assert list(table["Launch"]) == ["4 at step 1,000", "3 at step 2,000"] * 3
    oracle = table[table["Agent"] == "Oracle"]
    assert list(oracle["Share of regret"]) == ["–", "–"]
    assert all(text.startswith("after ") for text in oracle["Fair share reached"])
    first, second = new_items.conclusions(result)
    assert first.startswith(
        "When the 4 products launched at step 1,000 reached their fair share and kept it to the end: "
    )
    assert "never: Random" in first
    assert "3 products launched at step 2,000" in second


@pytest.mark.parametrize("change", [None, {"kind": "drift", "start": 500, "end": 1500}, {"kind": "season"}])
def test_the_share_of_regret_is_marked_where_it_is_approximate(change: dict[str, Any] | None) -> None:
    changes = [LAUNCHES[0], *([change] if change else [])]
    found = run(experiment(changes=changes).model_copy(update={"steps": 1500}), workers=0, progress=False)
    table = new_items.launch_table(found)
    assert table is not None
    shares = dict(zip(table["Agent"], table["Share of regret"], strict=True))
    assert shares["Random"].startswith("≈ 0.") == (change is not None)
    assert shares["Oracle"] == "–"
    assert "it is approximate (≈)" in new_items.ABOUT


def test_curves_are_shares_of_the_last_thousand_decisions(result: Result) -> None:
    wanted = demand(result.experiment)
    assert wanted is not None
    history, cohort = result.histories["Random"], wanted.cohorts[0]
    band = new_items.share_band(history, cohort)
    grid, shown = cohort_shares(history, cohort)
    at = int(np.searchsorted(band.x, 3500))
    end, start = (int(np.searchsorted(grid, step)) for step in (band.x[at], band.x[at] - 1000))
    assert band.mid[at] == pytest.approx((shown[end] - shown[start]).mean() / 1000)
    first = (shown[1] - shown[0]) / (grid[1] - grid[0])  # the first window is shorter
    assert band.mid[0] == pytest.approx(first.mean())
    assert band.low.min() >= 0
    names = [figure["layout"]["title"]["text"] for figure in new_items.cohort_figures(result)]
    assert names == ["Share of 4 products launched at 1,000", "Share of 3 products launched at 2,000"]
    assert new_items.fair_band(wanted, history, cohort).mid[-1] == pytest.approx(cohort.deserved[-1])


@pytest.mark.slow
def test_intervals_of_the_share_of_regret_hold_the_mean() -> None:
    """Of 60 experiments of 8 replications, at least 51 intervals hold the mean of all: 95 % on average."""
    shares = []
    e = experiment().model_copy(update={"replications": 64, "steps": 2400})
    found = run(e, workers=0, progress=False)
    wanted = demand(e)
    assert wanted is not None
    history = found.histories["LinUCB"]
    whole = new_items.regret_share(found, history, wanted.cohorts[0])
    assert whole is not None
    generator = np.random.default_rng(1)
    for _ in range(60):
        alive = np.zeros(64, np.bool_)
        alive[generator.choice(64, 8, replace=False)] = True
        history.alive = alive
        part = new_items.regret_share(found, history, wanted.cohorts[0])
        assert part is not None
        shares.append(part.share.low <= whole.share.mean <= part.share.high)
    assert sum(shares) >= 51
