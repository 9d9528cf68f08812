"""Regret as a share of what could be gained, and its two sources, from known histories."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from bandits import run
from bandits.diagnostics.regret import is_locked_in, regret_shares, regret_sources
from bandits.diagnostics.rules.exploration import regret
from bandits.experiments.history import History
from bandits.experiments.lane import Trace
from bandits.experiments.snapshots import ExplorationCheck
from bandits.results import metrics
from tests.support import experiment

STEPS, ROWS, K = 900, 4, 3
# per step, by thirds of the run
LOSS = np.repeat([0.3, 0.2, 0.1], 300)[:, None] + 0.01 * np.arange(ROWS)


def known(shown: np.ndarray | None = None, loss: np.ndarray = LOSS) -> History:
    """Return a history in which the oracle earns 0.6 and random choice 0.2 per step."""
    best, random = np.full((STEPS, ROWS), 0.6), np.full((STEPS, ROWS), 0.2)
    items = (np.arange(STEPS)[:, None] + np.zeros(ROWS, np.int64)) % K if shown is None else shown
    history, segments = History(STEPS, ROWS, K), np.zeros((STEPS, ROWS), np.int64)
    value = best - loss
    history.extend(
        Trace(
            0,
            items[:, :, None],
            segments,
            value,
            best,
            value,
            best,
            random,
            np.ones(ROWS, np.bool_),
        )
    )
    return history


def test_shares_are_the_regret_over_the_gain_of_each_part() -> None:
    shares = regret_shares(known())
    assert shares is not None
    own = 0.01 * np.arange(ROWS)
    np.testing.assert_allclose(shares.total, (0.2 + own) / 0.4)
    np.testing.assert_allclose(shares.middle, (0.2 + own) / 0.4)
    np.testing.assert_allclose(shares.late, (0.1 + own) / 0.4)


def test_the_source_with_the_smaller_error_is_measured_and_the_other_is_the_rest() -> None:
    history, noise = known(), np.array([0.1, -0.1, 0.1, -0.1])
    for step in range(90, STEPS + 1, 90):
        late = step > 600
        # rate, chosen, greedy, optimum, random: exploring loses .1 exactly, estimating .1 or .04,
        # measured with noise
        greedy = 0.6 - np.where(late, 0.04, 0.1) + noise
        columns = [
            np.full(ROWS, 0.3 if late else 0.5),
            greedy - 0.1,
            greedy,
            np.full(ROWS, 0.6),
            np.full(ROWS, 0.2),
        ]
        history.exploration_checks.append(ExplorationCheck(step, np.stack(columns, axis=1)))
    shares, sources = regret_shares(history), regret_sources(history)
    assert shares is not None
    assert sources is not None
    np.testing.assert_allclose(sources.exploring, 0.1 / 0.4)
    np.testing.assert_allclose(sources.estimating, shares.total - 0.25)
    np.testing.assert_allclose(sources.trend, (0.04 - 0.1) / 0.4)
    np.testing.assert_allclose(sources.late_rate, 0.3)
    assert (sources.rate > 0.3).all()


def test_the_interval_of_the_exploration_rate_holds_that_of_an_agent_that_is_known() -> None:
    greedy = {"kind": "epsilon_greedy", "epsilon": 0.2}
    result = run(experiment(greedy, steps=400, replications=400), workers=0)
    (history,) = result.histories.values()
    sources = regret_sources(history)
    assert sources is not None
    # one of ten random choices is the greedy one
    truth, runs = 0.2 * 0.9, sources.late_rate.reshape(100, 4)
    found = [metrics.estimate(rates) for rates in runs]
    errors = np.array([abs(e.mean - truth) for e in found])
    widths = np.array([e.high - e.mean for e in found])
    most = binom.ppf(0.999, len(found), 0.05)
    assert (errors > widths).sum() <= most
    # intervals of half the width are caught
    assert (errors > widths / 2).sum() > most


@pytest.mark.parametrize(
    ("shown", "locked"), [("all", False), ("one", True), ("two", True), ("late", True)]
)
def test_replications_that_show_different_items_are_locked_in(shown: str, locked: bool) -> None:
    steps, rows = np.arange(STEPS)[:, None], np.arange(ROWS)
    own = {"all": steps + rows, "one": rows + 0 * steps, "two": steps % 2 + 0 * rows}.get(shown)
    # all items at first, and two rows each show one of two items at the end
    if own is None:
        own = np.where(steps < 600, steps, rows % 2)
    own = own % K
    assert is_locked_in(known(own)) is locked


@pytest.mark.parametrize(
    ("thirds", "verdict", "ends"),
    [
        ((0.3, 0.02, 0.01), "healthy", "the loss per step is falling. What remains is small."),
        (
            (0.3, 0.01, 0.01),
            "healthy",
            "the loss per step is not changing significantly. What remains is small, but regret "
            "goes on to grow in a straight line.",
        ),
        ((0.3, 0.3, 0.15), "watch", "the loss per step is falling."),
        ((0.3, 0.3, 0.3), "alarm", "the loss per step is not changing significantly."),
    ],
)
def test_what_remains_is_called_small_only_where_it_is(
    thirds: tuple[float, ...], verdict: str, ends: str
) -> None:
    """Small: at most a tenth of the gain of 0.4 over the last third, whether it still falls or
    not.
    """
    noise = np.repeat([0, 0, 0.001], 300)[:, None] * np.array([1, -1, 1, -1])
    finding = regret(known(loss=np.repeat(thirds, 300)[:, None] + noise))
    assert finding.verdict == verdict
    assert finding.text.endswith(ends)
