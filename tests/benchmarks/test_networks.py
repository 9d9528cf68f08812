"""Verdicts on networks trained alike and on MC dropout follow from the numbers."""

from __future__ import annotations

import re

import numpy as np

from bandits.experiments.presets import presets
from bandits.results.metrics import Estimate
from benchmarks.reproduction import networks
from benchmarks.reproduction.showdown import ClickCurves

AHEAD, BEHIND, LEVEL = Estimate(5, 1, 9), Estimate(-5, -9, -1), Estimate(1, -3, 5)


def verdicts(text: str) -> list[str]:
    return re.findall(r"\*\*(\w+)\*\*", text)


def test_verdicts_of_the_showdown_follow_from_its_intervals() -> None:
    back, lost = [(networks.FORGETTING[0], "yes")], [("Ensemble", "no")]
    assert verdicts(networks.claims({"A": AHEAD, "B": LEVEL}, [*back, *lost])) == [
        "confirmed",
        "confirmed",
        "refuted",
    ]
    open_too = [*lost, ("NeuralTS", "inconclusive")]
    assert verdicts(networks.claims({"A": AHEAD}, open_too))[2] == "inconclusive"
    assert verdicts(networks.claims({"A": AHEAD, "B": BEHIND}, back)) == [
        "mixed",
        "confirmed",
        "inconclusive",
    ]
    assert verdicts(networks.claims({"B": LEVEL}, [(networks.FORGETTING[1], "no"), *back]))[:2] == [
        "inconclusive",
        "mixed",
    ]


def test_networks_are_trained_alike_and_compared_with_the_greedy_one() -> None:
    e = presets()["showdown-again"].experiment
    alike = (
        "hidden",
        "learning_rate",
        "training",
        "every",
        "updates",
        "batch",
        "optimiser",
        "loss",
    )
    chosen = [agent for agent in e.agents if hasattr(agent, "hidden")]
    assert len({tuple(getattr(agent, name) for name in alike) for agent in chosen}) == 1
    clicks = {
        label: np.array([[0.0, 0.0], [9.0 + i, 11.0 + i]]) for i, label in enumerate(e.labels)
    }
    found = networks.against_greedy(ClickCurves(np.array([0, 100]), clicks))
    assert list(found) == [
        "Neural-LinUCB",
        "NeuralUCB",
        "NeuralTS",
        "Neural-linear TS",
        "Ensemble",
        "MC dropout",
    ]
    assert [round(gain.mean) for gain in found.values()] == [1, 2, 3, 4, 5, 6]
    assert set(networks.FORGETTING) < set(e.labels)


def test_statements_on_dropout_are_judged_by_the_ends_of_the_sweep() -> None:
    """Clicks rise from p = .1 to .2 and fall to .8, and rise with T.

    The smallest p covers and explores least.
    """
    noise = np.array([-0.001, 0.0, 0.001, 0.0])
    level = {0.1: 0.3, 0.2: 0.4, 0.8: 0.2}
    rates = {(p, t): level[p] + 0.002 * t + noise for p in level for t in (2, 10)}
    measured = {p: (p + noise, p + 0.5 + noise) for p in level}
    rows = networks.trade_offs(rates, measured)
    assert [verdicts(row[2])[0] for row in rows] == ["confirmed"] * 5
    assert rows[2][1] == "clicks per step at p = 0.1, minus those at 0.2: -0.100 (-0.100 to -0.100)"
    turned = networks.trade_offs({(p, t): 1 - rate for (p, t), rate in rates.items()}, measured)
    assert [verdicts(row[2])[0] for row in turned][3:] == ["inconclusive", "refuted"]
