"""How often a sentence names a difference between agents that earn the same.

`tests/contract/test_conclusions.py` lists all conclusions with the tests of their errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bandits import Experiment, Result
from bandits.results import guard_cost, metrics, visit
from bandits.results.artwork_sharing import conclusions as sharing_conclusions
from bandits.results.comparison.conclusion import (
    learning_summary,
    main_comparison,
    shock_summary,
)
from bandits.results.instant import difference
from tests.support import experiment

RUNS, STEPS, ROWS = 400, 20, 8
# 5 % of the runs and three standard errors
MOST = RUNS * (0.05 + 3 * (0.05 * 0.95 / RUNS) ** 0.5)


def equal(e: Experiment, g: np.random.Generator) -> Result:
    """Return a run whose agents all earn 0.3 per step, that of random choice, by random numbers
    which they have in common and others.
    """
    common = g.normal(0.3, 0.2, (STEPS, ROWS))
    result = Result(e, {label: e.empty_history() for label in e.labels})
    for one in result.histories.values():
        one.step = STEPS
        more = ("visits",) if e.offers("visits") else ("fallbacks", "fallback_value")
        one.sums.update({name: np.zeros_like(one.sums["clicks"]) for name in more})
        fixed = {
            "best_value": 0.6,
            "best_clicks": 0.6,
            "random_value": 0.3,
            "visits": 0.2,
            "fallbacks": 0.4,
        }
        for name, sums in one.sums.items():
            drawn = common + g.normal(0, 0.2, (STEPS, ROWS))
            each = np.full_like(drawn, fixed[name]) if name in fixed else drawn
            # of two of five decisions
            each *= 0.4 if name == "fallback_value" else 1.0
            sums[1:] = each.cumsum(axis=0)[one.grid[1:] - 1]
    return result


def of(*agents: str | dict[str, Any], **changes: Any) -> Experiment:
    return experiment(*agents, steps=STEPS, replications=ROWS, **changes)


def with_delay(*kinds: str) -> list[dict[str, Any]]:
    late = {"guards": [{"kind": "delay", "steps": 5}]}
    return [
        agent
        for kind in kinds
        for agent in ({"kind": kind}, {"kind": kind, "label": f"{kind} late", **late})
    ]


def all_comparisons(result: Result) -> list[str]:
    first, others = main_comparison(result)
    return [first, *others]


def of_a_slider(result: Result) -> str:
    before, after = (metrics.total(h, "clicks") for h in result.histories.values())
    return difference(metrics.estimate(after - before), "alpha 1", result.experiment, whole=True)


SHOCK = {"kind": "petshop", "n_products": 10, "shock_step": 10}
PICTURES = {"kind": "artwork", "n_titles": 20, "n_users": 60, "n_retrieved": 3}
VISITS = {"kind": "sessions", "n_products": 20, "observed": "mood", "limit": 2}
PLANNERS = of("linucb", "q_learning", {"kind": "q_learning", "label": "B"}, simulator=VISITS)
FOUR = of("linucb", "lints", "epsilon_greedy", "ucb1")
GUARDED = of(*with_delay("linucb", "lints", "ucb1"))
SHARING = of(
    *(
        {"kind": "linucb", "label": f"{sharing} {ridge}", "ridge": ridge, "sharing": sharing}
        for ridge in (1, 2)
        for sharing in ("shared", "per_category")
    ),
    simulator=PICTURES,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("e", "stated", "nothing"),
    [
        (FOUR, all_comparisons, "do not differ significantly"),
        (FOUR, learning_summary, "^No learning agent is significantly better"),
        (of("linucb", "lints", "ucb1", simulator=SHOCK), shock_summary, "not significant"),
        (GUARDED, guard_cost.sentences, "not significant"),
        (GUARDED, guard_cost.conclusion, r"^The [^)]+\) are not shown to change"),
        (of("linucb"), guard_cost.fallback_sentences, "95 % CI −"),
        (SHARING, sharing_conclusions, "are not shown to differ"),
        (PLANNERS, visit.per_visit, "do not differ significantly"),
        (of("linucb", "lints"), of_a_slider, "^No significant difference"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_agents_that_earn_the_same_are_seldom_told_apart(
    e: Experiment, stated: Callable[[Result], str | list[str]], nothing: str
) -> None:
    """In at most 5 % of the runs, all sentences together."""
    g, wrong = np.random.default_rng(9), 0
    for _ in range(RUNS):
        found = stated(equal(e, g))
        sentences = [found] if isinstance(found, str) else found
        assert all(sentences)
        wrong += not all(re.search(nothing, sentence) for sentence in sentences)
    assert 0 < wrong < MOST
