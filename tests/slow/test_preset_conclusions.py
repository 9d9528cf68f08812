"""What a preset shows of two agents does not depend silently on the values of their parameters."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from bandits import read, run
from bandits.experiments.kinds import agent_kinds
from bandits.experiments.labels import main_parameter
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.results.metrics import Estimate
from tests.support import thinned

Rates = dict[str, np.ndarray]
# of the default, for the search of the best value
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
SEARCHED, REPLICATIONS = 4, 8
# the parameter is what they compare, or the settings are those of a publication
SUBJECT = {"off", "too-much", "ridge", "magic", "adult", "slates-published", "published"}
# one run of an agent takes longer than a few seconds
SLOW = {"two-stages", "slates", "ranking-launch", "position"}
# trained before the run, without a parameter that decides the comparison
FIXED = "static_mlp"
NEURAL = {row.kind for row in agent_kinds() if row.family.lower() == "neural"} - {FIXED}
PRESETS = [
    name
    for name, preset in presets().items()
    if name not in SUBJECT | SLOW
    and not NEURAL & {agent.kind for agent in preset.experiment.agents}
    and not preset.experiment.offers("replay")
]


def variants(name: str, values: dict[str, float], seed: int, replications: int) -> Rates:
    """Return the clicks per step of a preset with these values of the main parameters."""
    e = presets()[name].experiment
    data, labels = e.model_dump(mode="json", by_alias=True), []
    for label, agent in zip(e.labels, data["agents"], strict=True):
        if label in values:
            agent[str(main_parameter(agent["kind"]))] = values[label]
        if agent["kind"] != FIXED:
            labels.append(label)
    data["agents"] = [agent for agent in data["agents"] if agent["kind"] != FIXED]
    found = run(read({**data, "seed": seed, "replications": replications}), workers=0)
    # in the order of the agents, whose names may state other values
    rates = map(metrics.click_rate, found.histories.values())
    return dict(zip(labels, rates, strict=True))


def tuned(name: str) -> dict[str, float]:
    """Return the value of each agent's main parameter that earns most in a small sweep."""
    e = presets()[name].experiment
    best: dict[str, float] = {}
    rates: dict[str, dict[float, float]] = {}
    for factor in FACTORS:
        values = {label: type(value)(value * factor) for label, value in defaults(name).items()}
        found = variants(name, values, e.seed + 1, SEARCHED)
        for label, value in values.items():
            if label in found:
                rates.setdefault(label, {})[value] = float(found[label].mean())
    for label, by_value in rates.items():
        best[label] = max(by_value, key=by_value.__getitem__)
    return best


def defaults(name: str) -> dict[str, float]:
    """Return the default of each agent's main parameter by label."""
    e, found = presets()[name].experiment, dict[str, Any]()
    for label, agent in zip(e.labels, e.agents, strict=True):
        if parameter := main_parameter(agent.kind):
            found[label] = type(agent).model_fields[parameter].default
    return found


def differences(rates: Rates) -> dict[tuple[str, str], Estimate]:
    """Return what one agent earns more than another per step, at the level of all pairs."""
    pairs = list(itertools.combinations(rates, 2))
    return {(a, b): metrics.estimate(rates[a] - rates[b], family=3 * len(pairs)) for a, b in pairs}


def sign(difference: Estimate) -> int:
    """Return the direction of a significant difference; 0 for one that is not."""
    return (difference.low > 0) - (difference.high < 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", thinned(PRESETS, lambda _: False, lambda n: PRESETS[n] in ("race", "sharing", "shock"))
)
def test_a_preset_states_where_a_difference_turns_round(name: str) -> None:
    """At the shown values, at the defaults and at the best of five values, each significant
    difference has one sign, or the preset states that it depends.
    """
    seed = presets()[name].experiment.seed + 2
    runs = [
        differences(variants(name, values, seed, REPLICATIONS))
        for values in ({}, defaults(name), tuned(name))
    ]
    turned = [pair for pair in runs[0] if {sign(found[pair]) for found in runs} >= {1, -1}]
    assert not turned or presets()[name].depends, turned
