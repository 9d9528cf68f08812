"""Refinement finds the best values on the pet shop, and keeps the error rate where all points are
equal.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest

from bandits import sweeps
from bandits.agents import REGISTRY as AGENTS
from bandits.base.errors import UserError
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps.parameters import suggest_axis
from bandits.sweeps.refinement import refine, unresolved
from tests.support import often, thinned
from tests.sweeps.test_sweep import ALPHA, small

METRIC = "pseudo_regret"


@pytest.mark.parametrize(
    ("kind", "name", "low", "high"),
    thinned(
        [("lints", "sigma2", 0.005, 0.02), ("epsilon_greedy", "epsilon", 0.025, 0.1)],
        lambda _: False,
        lambda number: number == 1,
    ),
)
def test_the_default_grid_is_refined_to_the_best_value_of_the_pet_shop(
    kind: str, name: str, low: float, high: float
) -> None:
    """Within a factor of 2 of .01 and .05.

    A fine grid there has no value with significantly less regret.
    """
    axis = {"path": f"agents.0.{name}", **suggest_axis(AGENTS[kind].Params, name)}
    experiment = {
        "simulator": {"kind": "petshop"},
        "agents": [{"kind": kind}],
        "steps": 10_000,
        "replications": 8,
    }
    sweep: Sweep | None = sweeps.read({"experiment": experiment, "axes": [axis]})
    while sweep is not None:
        landscape = sweeps.run(sweep)
        sweep = refine(landscape, METRIC)
    best = landscape.best(METRIC)
    assert best is not None
    assert isinstance(best.values[0], float)
    assert low <= best.values[0] <= high
    assert unresolved(landscape, METRIC) == []
    near = {
        "path": f"agents.0.{name}",
        "low": low,
        "high": high,
        "number": 7,
        "scale": "log",
        "extra": best.values,
    }
    fine = sweeps.run(sweeps.read({"experiment": experiment, "axes": [near]}))
    result = next(r for r in fine.results(METRIC) if r.values == best.values)
    assert result.best, (best.values, fine.best(METRIC))


@lru_cache(maxsize=4096)
def _read(refinements: tuple[tuple[float, ...], ...]) -> Sweep:
    first = small([{**ALPHA, "number": 5}], replications=8).model_dump(mode="json")
    return sweeps.read(
        {**first, "refinements": [{"agents.0.alpha": values} for values in refinements]}
    )


def _refined_landscapes(generator: np.random.Generator) -> list[Landscape]:
    """Return the landscape of every look at equal points, refined until it is resolved.

    Points keep their numbers.
    """
    common, rows = generator.normal(0, 0.5, 8), dict[object, np.ndarray]()
    looks, refinements = list[Landscape](), list[tuple[float, ...]]()
    while True:
        landscape = Landscape(_read(tuple(refinements)))
        landscape.completed[...] = landscape.alive[...] = True
        for point, value in enumerate(landscape.sweep.values[0]):
            rows.setdefault(value, common + generator.normal(0, 0.1, 8))
            landscape.numbers("ctr")[point] = rows[value]
        looks.append(landscape)
        found = unresolved(landscape, "ctr")
        if not found or len(looks) == 5:
            return looks
        refinements.append(found[0].added)


def test_refinement_keeps_the_error_rate_of_equal_points() -> None:
    """300 landscapes of equal points, refined around the best as long as the page would offer it.

    A given point is called worse at any look in at most 5 % of them. So is that any point is called
    worse at any look. Three standard errors are allowed."""
    generator, n = np.random.default_rng(17), often(300, 600)
    given = any_point = without_spending = looks = 0
    for _ in range(n):
        landscapes = _refined_landscapes(generator)
        looks += len(landscapes)
        value = landscapes[0].sweep.values[0][2]
        given += not all(
            one.best_region("ctr")[one.sweep.values[0].index(value)] for one in landscapes
        )
        any_point += not all(one.best_region("ctr").all() for one in landscapes)
        without_spending += any(not _region_at(one, 0.05).all() for one in landscapes)
    # they are refined indeed
    assert looks > 1.5 * n
    assert given <= 0.05 * n + 3 * math.sqrt(n * 0.05 * 0.95)
    assert any_point <= 0.05 * n + 3 * math.sqrt(n * 0.05 * 0.95)
    # equal levels at all looks would err more often
    assert any_point < without_spending / 1.5


def _region_at(landscape: Landscape, level: float) -> np.ndarray:
    """Return the best region at another level."""

    class AtLevel(Landscape):
        @property
        def level(self) -> float:
            return level

    other = AtLevel(landscape.sweep)
    other.__dict__.update(landscape.__dict__)
    return other.best_region("ctr")


def test_a_refinement_that_is_too_large_is_refused() -> None:
    axis = {"path": "agents.0.alpha", "low": 0.01, "high": 10, "number": 64, "scale": "log"}
    ridge = {"path": "agents.0.ridge", "low": 0.01, "high": 100, "number": 16, "scale": "log"}
    landscape = Landscape(small([axis, ridge]))
    landscape.completed[...] = landscape.alive[...] = True
    landscape.numbers("ctr")[...] = np.arange(landscape.sweep.size)[:, None] / 1e4
    landscape.numbers("ctr")[...] += np.arange(4) / 1e6
    with pytest.raises(UserError, match="at most 1,024 are allowed"):
        refine(landscape)
