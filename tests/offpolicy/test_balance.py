"""Propensities that are wrong within contexts alone: features lose their balance."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from bandits.base.formatting import number
from bandits.offpolicy import evaluate
from bandits.offpolicy.balance import balance
from tests.offpolicy.support import Setting, simulate

N = 400


def rare(g: np.random.Generator, setting: Setting) -> Setting:
    """Return a setting with 20 features that 2 % of the rows have."""
    features = (g.random((N, 20)) < 0.02).astype(np.float64)
    return setting._replace(log=replace(setting.log, features=features, feature_names=()))


@pytest.mark.parametrize("K", [5, 20])
@pytest.mark.parametrize("few", [False, True])
def test_right_propensities_ring_in_at_most_3_of_1000_logs(K: int, few: bool) -> None:
    """4 standard errors, whatever the number of features and however few rows have them."""
    g, rung = np.random.default_rng(K), 0
    for i in range(1000):
        setting = simulate(g, N, K)
        log = (rare(g, setting) if few else setting).log
        chosen = setting.target[np.arange(N), log.actions] if i % 2 else log.actions == 0
        rung += len(balance(log, chosen / np.asarray(log.propensities)))
    assert rung <= 3


@pytest.mark.parametrize("positions", [0, 2])
def test_propensities_that_are_right_on_average_alone_ring(positions: int) -> None:
    g, rung, mean = np.random.default_rng(3), 0, 0
    for _ in range(100):
        log = simulate(g, 1000, 3, positions=positions).log
        share = np.bincount(log.actions, minlength=3) / len(log)
        wrong = replace(log, propensities=share[log.actions], distributions=None)
        found = {alarm.kind for alarm in evaluate(wrong, "always:item 0").alarms}
        rung, mean = rung + ("balance" in found), mean + ("mean_weight" in found)
    assert rung >= 95
    # which the mean weight cannot tell
    assert mean == 0


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_unit_of_a_feature_changes_nothing(unit: float) -> None:
    log = simulate(np.random.default_rng(7), 1000, 3).log
    features = np.asarray(log.features)
    weights = 3.0 * (log.actions == 0)
    (alarm,), (scaled,) = (
        balance(replace(log, features=x), weights) for x in (features, features * unit)
    )
    (errors,), (found,) = (
        re.findall(r"\S+ standard errors", each.sentence) for each in (alarm, scaled)
    )
    assert errors == found


def test_the_feature_that_moves_most_is_named() -> None:
    g = np.random.default_rng(4)
    log = simulate(g, 1000, 3).log
    features = np.column_stack([g.normal(size=1000), log.actions == 0, np.full(1000, 0.1)])
    log = replace(log, features=features, feature_names=("noise", "shown | first", "constant"))
    (alarm,) = balance(log, (log.actions == 0) / np.asarray(log.propensities))
    assert alarm.sentence.startswith("Weighted, the mean of shown | first is 1 instead of 0.")
    assert "shown | first depends on what was shown" in alarm.sentence
    assert balance(replace(log, features=None, feature_names=()), np.ones(1000)) == []
    assert balance(log, np.ones(1000)) == balance(log, np.zeros(1000)) == []


def test_rows_that_stand_for_several_decisions_weigh_as_these() -> None:
    g = np.random.default_rng(5)
    log = simulate(g, 1000, 3).log
    share = np.bincount(log.actions, minlength=3) / len(log)
    weights, times = (log.actions == 0) / share[log.actions], g.integers(1, 4, len(log))
    (alarm,) = balance(replace(log, row_weights=times.astype(np.float64)), weights)
    name = alarm.sentence.removeprefix("Weighted, the mean of ")[:2]
    x = np.asarray(log.features)[:, log.feature_names.index(name)]
    weighted, plain = np.average(x, weights=weights * times), np.average(x, weights=times)
    assert f"{name} is {number(weighted)} instead of {number(plain)}, " in alarm.sentence


def test_an_item_that_was_never_shown_silences_nothing() -> None:
    g = np.random.default_rng(6)
    log = simulate(g, 1000, 3).log
    share = np.bincount(log.actions, minlength=3) / len(log)
    log = replace(
        log,
        propensities=share[log.actions],
        distributions=None,
        names=(*log.names, "never shown"),
    )
    target = np.tile([0.995, 0.001, 0.001, 0.003], (1000, 1))
    assert "balance" in {alarm.kind for alarm in evaluate(log, target).alarms}
