"""What the lab New items states: shares of traffic and regret of launches, exactly, and who never
finds them.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from bandits import History, Result, read, run
from bandits.experiments.lockstep import Lockstep
from bandits.results.items import new_items
from bandits.results.items.demand import demand
from bandits.results.items.launches import Launched, cohort_shares
from bandits.results.metrics import Estimate
from tests.support import thinned

LAUNCHES = [
    {"kind": "launch", "at": 1000, "items": 4, "category": "Fish", "quality": 1.5},
    {"kind": "launch", "at": 2000, "items": 3, "quality": 0.5},
]


def experiment(**options: Any) -> Any:
    simulator = {
        "kind": "petshop",
        "n_products": 30,
        "n_users": 100,
        "changes": LAUNCHES,
        **options,
    }
    agents = [{"kind": "random"}, {"kind": "oracle"}, {"kind": "linucb", "alpha": 0.4}]
    return read({"simulator": simulator, "agents": agents, "steps": 4000, "replications": 3})


@pytest.fixture(scope="module")
def result() -> Result:
    return run(experiment(), workers=0, progress=False)


PICTURES = {
    "kind": "artwork",
    "n_titles": 25,
    "n_pictures": [3, 6],
    "n_users": 100,
    "n_retrieved": 4,
    "changes": [{"kind": "launch", "at": 500, "items": 8}],
}
SLATES = {
    "kind": "ranking",
    "n_users": 30,
    "n_items": 60,
    "n_candidates": 20,
    "slate": 3,
    "embedding": 4,
    "changes": [
        {"kind": "launch", "at": 500, "items": 30, "quality": 2},
        {"kind": "withdraw", "at": 700, "items": 3},
    ],
}


@pytest.mark.parametrize(
    "options",
    thinned(
        [
            pytest.param({}, id="shared"),
            pytest.param({"layout": "per_row", "variety": 0.3}, id="per row"),
            pytest.param(
                {"changes": [*LAUNCHES, {"kind": "drift", "start": 500, "end": 1500}]}, id="drift"
            ),
        ],
        lambda number: number == 2,
    ),
)
def test_the_share_of_regret_is_that_of_every_single_decision(options: dict[str, Any]) -> None:
    e = experiment(**options)
    found = run(e, workers=0, progress=False)
    wanted = demand(e)
    assert wanted is not None
    history = found.histories["Random"]
    trace = Lockstep(e).runners["Random"].lane.advance(e.steps)
    lost = trace.best_value - trace.value
    for i, cohort in enumerate(wanted.cohorts):
        shown = np.stack([cohort.items[r, trace.items[:, r, 0]] for r in range(3)], axis=1)
        # the sums are stored at steps of the launches
        since = np.arange(e.steps) >= cohort.step
        by_new = np.where(shown & since[:, None], lost, 0).sum(axis=0)
        share = by_new / lost[since].sum(axis=0)
        measured = new_items.regret_share(history, cohort, i)
        assert measured is not None
        assert measured.share.mean == pytest.approx(share.mean(), rel=1e-9)
        assert measured.clicks.mean == pytest.approx(by_new.mean(), rel=1e-9)


def test_new_titles_are_judged_by_what_their_pictures_earn() -> None:
    """The retrieval decides how often a title is shown: every agent has the same share of
    traffic.
    """
    agents = [{"kind": "default"}, {"kind": "oracle"}, {"kind": "random"}]
    e = read({"simulator": PICTURES, "agents": agents, "steps": 2000, "replications": 3})
    found = run(e, workers=0, progress=False)
    table, (sentence,) = new_items.launch_table(found), new_items.conclusions(found)
    assert table is not None
    assert (
        table["Share of traffic"].nunique()
        == table["Launch"].nunique()
        == table["Optimal"].nunique()
        == 1
    )
    assert table["Launch"][0] == "8 titles at step 500"
    assert table.query("Agent == 'Oracle'")["Take fraction"].tolist() == [table["Optimal"][0]]
    assert sentence.startswith("Take fraction on the 8 titles launched at step 500: Oracle 0.")
    assert sentence.index("Default") < sentence.index("; optimal 0.")
    wanted = demand(e)
    assert wanted is not None
    (cohort,) = wanted.cohorts
    trace = Lockstep(e).runners["Default"].lane.advance(e.steps)
    shown = np.stack([cohort.items[r, trace.items[:, r, 0]] for r in range(3)], axis=1)
    means = [
        np.where(shown, c, 0).sum(axis=0) / shown.sum(axis=0)
        for c in (trace.value, trace.best_value)
    ]
    measured = new_items.rates(found.histories["Default"], cohort, 0)
    assert measured is not None
    for own, mean in zip(measured, means, strict=True):
        assert own.mean == pytest.approx(mean.mean(), rel=1e-9)
    curve, best = new_items.rate_bands(found.histories["Default"], cohort, 0)
    late = shown[1000:]
    assert curve.x[-1] == 2000
    assert curve.mid[-1] == pytest.approx(
        (np.where(late, trace.value[1000:], 0).sum(axis=0) / late.sum(axis=0)).mean(), rel=1e-9
    )
    assert (best.mid > curve.mid).all()
    (figure,) = new_items.cohort_figures(found)
    assert figure["layout"]["title"]["text"] == "Take fraction of 8 titles launched at 500"
    assert "the same for all agents" in new_items.about(found)


def test_slates_have_shares_of_their_slots() -> None:
    """Every step of a short run is looked at, so the oracle's share of the new items is the fair
    one.
    """
    e = read(
        {"simulator": SLATES, "agents": [{"kind": "oracle"}, {"kind": "random"}], "steps": 1800}
    )
    found = run(e, workers=0, progress=False)
    summary = found.summary()["agents"]
    (oracle,), (random,) = (summary[label]["launches"] for label in ("Oracle", "Random"))
    assert oracle["share"]["mean"] == pytest.approx(oracle["fair_share"], abs=1e-9)
    assert 0.5 < oracle["fair_share"] < 0.9
    assert random["share"]["mean"] == pytest.approx(0.5, abs=0.02)
    assert oracle["steps_to_fair_share"] == 0
    table = new_items.launch_table(found)
    assert table is not None
    assert set(table["Share of regret"]) == {"–"}
    assert "Shares are those of slots" in new_items.about(found)


def test_the_oracle_loses_nothing_and_has_its_fair_share(result: Result) -> None:
    table = new_items.launch_table(result)
    assert table is not None
    assert list(table["Launch"]) == ["4 at step 1,000", "3 at step 2,000"] * 3
    oracle = table[table["Agent"] == "Oracle"]
    assert list(oracle["Share of regret"]) == ["–", "–"]
    assert all(text.startswith("after ") for text in oracle["Fair share reached"])
    first, second = new_items.conclusions(result)
    rows = result.experiment.replications
    assert first.startswith(
        "The 4 products launched at step 1,000 get their fair share for good after "
    )
    assert re.search(rf"\d steps with Oracle \({rows} of {rows} replications\)", first)
    assert f"; never with Random ({rows} of {rows}), shown too little" in first
    random = table.query("Agent == 'Random'")["Fair share reached"].tolist()
    assert random[0] == "never, shown too little (0 % of the replications reached it)"
    assert "3 products launched at step 2,000" in second


@pytest.mark.parametrize(
    ("reached", "rows", "expected"),
    [
        (8, 8, True),
        (7, 8, True),
        (6, 8, False),
        (5, 8, False),
        (4, 8, False),
        (1, 8, True),
        (0, 8, True),
        (1, 1, True),
        (2, 3, False),
    ],
)
def test_a_launch_is_decided_where_most_replications_tell_the_same(
    reached: int, rows: int, expected: bool
) -> None:
    """A sign test at 5 % on one side: (8 + 1) / 2^8 for seven of eight."""
    one = Launched(0, 1, Estimate(0.1, 0.0, 0.2), 0.1, 0, 0, None, reached / rows)
    history = History(10, rows, 3)
    assert new_items.decided(one, history) == expected


@pytest.mark.parametrize("rows", [5, 8, 16, 32])
def test_a_launch_is_seldom_decided_wrongly(rows: int) -> None:
    """Where half of all replications would reach the fair share, at most 5 % on each side. Fewer
    than five must all agree, and the sentence counts them.
    """
    for reach in (True, False):
        wrong = sum(
            float(binom.pmf(n, rows, 0.5))
            for n in range(rows + 1)
            if (n > rows / 2) == reach
            and new_items.decided(
                Launched(0, 1, Estimate(0.1, 0.0, 0.2), 0.1, 0, 0, None, n / rows),
                History(10, rows, 3),
            )
        )
        assert wrong <= 0.05


def test_a_launch_that_some_replications_reach_is_not_stated_as_reached(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = new_items.launches

    def some(history: History, wanted: Any) -> list[Launched]:
        return [
            one._replace(steps_to_fair_share=0, reached=2 / 3) for one in measured(history, wanted)
        ]

    monkeypatch.setattr(new_items, "launches", some)
    first, _ = new_items.conclusions(result)
    rows = result.experiment.replications
    assert "for good after" not in first
    assert f"({round(2 / 3 * rows)} of {rows} replications)" in first
    assert first.endswith(", too few to tell whether in most.")


def test_one_replication_has_no_median_and_one_item_is_singular() -> None:
    launch = [{"kind": "launch", "at": 1000, "items": 1, "category": "Fish", "quality": 1.5}]
    e = experiment(changes=launch).model_copy(update={"replications": 1})
    (sentence,) = new_items.conclusions(run(e, workers=0, progress=False))
    assert sentence.startswith(
        "The product launched at step 1,000 gets its fair share for good after "
    )
    assert "(" not in sentence
    assert sentence.endswith("shown too little.")


def test_curves_are_shares_of_the_last_thousand_decisions(result: Result) -> None:
    wanted = demand(result.experiment)
    assert wanted is not None
    history, cohort = result.histories["Random"], wanted.cohorts[0]
    band = new_items.share_band(history, cohort)
    grid, shown = cohort_shares(history, cohort)
    at = int(np.searchsorted(band.x, 3500))
    end, start = (int(np.searchsorted(grid, step)) for step in (band.x[at], band.x[at] - 1000))
    assert band.mid[at] == pytest.approx((shown[end] - shown[start]).mean() / 1000)
    # the first window is shorter
    first = (shown[1] - shown[0]) / (grid[1] - grid[0])
    assert band.mid[0] == pytest.approx(first.mean())
    assert band.low.min() >= 0
    names = [figure["layout"]["title"]["text"] for figure in new_items.cohort_figures(result)]
    assert names == [
        "Share of 4 products launched at 1,000",
        "Share of 3 products launched at 2,000",
    ]
    assert new_items.fair_band(wanted, history, cohort).mid[-1] == pytest.approx(
        cohort.deserved[-1]
    )


@pytest.mark.slow
def test_intervals_of_the_share_of_regret_hold_the_mean() -> None:
    """Of 60 experiments of 8 replications, at least 51 intervals hold the mean of all: 95 % on
    average.
    """
    shares = []
    e = experiment().model_copy(update={"replications": 64, "steps": 2400})
    found = run(e, workers=0, progress=False)
    wanted = demand(e)
    assert wanted is not None
    history = found.histories["LinUCB"]
    whole = new_items.regret_share(history, wanted.cohorts[0], 0)
    assert whole is not None
    generator = np.random.default_rng(1)
    for _ in range(60):
        alive = np.zeros(64, np.bool_)
        alive[generator.choice(64, 8, replace=False)] = True
        history.alive = alive
        part = new_items.regret_share(history, wanted.cohorts[0], 0)
        assert part is not None
        shares.append(part.share.low <= whole.share.mean <= part.share.high)
    assert sum(shares) >= 51
