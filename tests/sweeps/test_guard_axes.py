"""Sweeps over the parameters of an agent's guards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import Estimate, Experiment, UserError
from bandits.experiments.lockstep import make_lane
from bandits.sweeps import Sweep, read, run, url
from bandits.sweeps.analysis.nearest import nearest_points
from tests.sweeps.test_refinement import with_means

GUARDS = [{"kind": "floor", "epsilon": 0.1}, {"kind": "delay", "steps": 20}]
FLOOR, DELAY = "agents.0.guards.0.epsilon", "agents.0.guards.1.steps"


def sweep(*axes: dict[str, Any], guards: list[dict[str, Any]] = GUARDS) -> Sweep:
    agent = {"kind": "linucb", "label": "Guarded", "guards": guards}
    shop = {"kind": "petshop", "n_products": 10}
    e = {"simulator": shop, "agents": [agent], "steps": 200, "replications": 3}
    given = axes or (
        {"path": FLOOR, "values": [0.0, 0.4]},
        {"path": DELAY, "low": 10, "high": 30, "number": 2},
    )
    return read({"experiment": e, "axes": list(given)})


def test_each_point_is_the_run_with_its_guards() -> None:
    s = sweep()
    assert s.values == ((0.0, 0.4), (10, 30))
    landscape = run(s)
    for point, (epsilon, steps) in enumerate([(0.0, 10), (0.0, 30), (0.4, 10), (0.4, 30)]):
        e = s.point(point)
        assert [guard.model_dump()["kind"] for guard in e.agents[0].guards] == ["floor", "delay"]
        assert (e.agents[0].guards[0].epsilon, e.agents[0].guards[1].steps) == (epsilon, steps)
        rewards = make_lane(e, 0).advance(200).rewards.mean(axis=0)
        assert np.allclose(landscape.numbers("ctr")[point], rewards, rtol=0, atol=1e-12)
    assert len({s.point(point).hash for point in range(4)}) == 4


def test_links_keep_axes_of_guards_and_runs_find_their_point() -> None:
    s = sweep()
    assert url.parse_query(url.to_query(s)).hash == s.hash

    def found(experiment: Experiment) -> list[int]:
        return [
            one.point
            for one in nearest_points([(s, lambda _: (Estimate(0.4, 0.3, 0.5), 8))], experiment)
        ]

    assert found(s.point(1)) == [1]
    other = sweep(guards=[{"kind": "floor", "epsilon": 0.1, "shows": 3}, GUARDS[1]])
    # a field that no axis varies
    assert not found(other.point(1))
    assert not found(sweep({"path": FLOOR, "values": [0.0, 0.4]}, guards=GUARDS[:1]).point(0))


@pytest.mark.parametrize(
    ("axis", "guards", "words"),
    [
        (
            {"path": "agents.0.guards.2.epsilon", "values": [0.1, 0.2]},
            GUARDS,
            "has 2 guards, numbered from 0",
        ),
        ({"path": FLOOR, "values": [0.1, 0.2]}, [], "the agent has no guards"),
        (
            {"path": FLOOR, "values": [0.1, 0.7]},
            GUARDS,
            "takes the value 0.7; it must be a number from 0 to 0.5",
        ),
        (
            {"path": DELAY, "values": [0, 5]},
            GUARDS,
            "takes the value 0; it must be a whole number from 1 to 100,000",
        ),
        (
            {"path": "agents.0.guards.1.epsilon", "values": [0.1, 0.2]},
            GUARDS,
            "delay has no such parameter",
        ),
        ({"path": "agents.0.guards.0.kind", "values": ["cap", "floor"]}, GUARDS, "neither"),
    ],
)
def test_impossible_axes_are_refused(
    axis: dict[str, Any], guards: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(UserError) as error:
        sweep(axis, guards=guards)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_values_that_fit_one_by_one_but_not_together_are_refused() -> None:
    stack = [{"kind": "floor", "epsilon": 0.02, "per": "arm"}]
    with pytest.raises(UserError, match=r"10 arms with a share of 0\.2 each need 2 of the traffic"):
        sweep({"path": FLOOR, "values": [0.02, 0.2]}, guards=stack)


def test_axes_of_guards_are_named_by_their_guard() -> None:
    from bandits.sweeps.figures import grid

    s = sweep()
    assert [axis.spoken for axis in s.axes] == ["guards.0.epsilon", "guards.1.steps"]
    assert grid.parameter_label(s, 0) == "Exploration floor: Share"
    assert grid.parameter_label(s, 1) == "Delayed rewards: Delay (steps)"
    assert np.all([axis.guard == i for i, axis in enumerate(s.axes)])


def test_two_guards_with_a_parameter_of_the_same_name_are_told_apart() -> None:
    from bandits.cli.sweep import summary_text

    both = [{"kind": "floor", "epsilon": 0.1}] * 2
    axes = [{"path": f"agents.0.guards.{i}.epsilon", "values": [0.1, 0.2]} for i in (0, 1)]
    lines = summary_text(with_means(sweep(*axes, guards=both), [1, 2, 3, 4])).splitlines()
    assert sorted(line.partition(":")[0] for line in lines[2:4]) == [
        "guards.0.epsilon",
        "guards.1.epsilon",
    ]
    edges = [line for line in lines if "of the grid" in line]
    assert [line.partition(",")[0] for line in edges] == [
        "The best share of guard 0 (exploration floor)",
        "The best share of guard 1 (exploration floor)",
    ]
