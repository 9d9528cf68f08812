"""The title of a run names its preset and what was changed."""

from __future__ import annotations

from typing import Any

import pytest

from bandits import read
from bandits.experiments.presets import presets
from bandits.results.comparison.run_title import compared_with, preset_title


def changed(name: str) -> dict[str, Any]:
    """A preset's experiment as plain data."""
    return presets()[name].experiment.model_dump(mode="json", by_alias=True)


@pytest.mark.parametrize("name", presets())
def test_a_preset_that_was_not_changed_is_named_alone(name: str) -> None:
    assert preset_title(presets()[name].experiment) == presets()[name].title


def test_what_was_changed_follows_the_preset() -> None:
    data = changed("off")
    data["agents"][0] = {"kind": "linucb", "label": "LinUCB alpha 0", "alpha": 0.3}
    data["seed"] = 7
    assert preset_title(read(data)) == "No exploration: seed 7, LinUCB alpha 0 alpha 0.3"
    data = changed("drift")
    data["simulator"]["changes"][0]["start"] = 4000
    assert preset_title(read(data)).startswith("Puppy parents grow up: change 1 Drift (start 4,000")
    data = changed("shock")
    del data["agents"][4]
    data["agents"].append({"kind": "ucb1", "alpha": 0.7})
    assert preset_title(read(data)) == "Market shock: without Random, with UCB1 (alpha 0.7)"


def test_a_run_that_resembles_no_preset_is_not_named_by_one() -> None:
    data = {"simulator": {"kind": "petshop"}, "agents": [{"kind": "linucb"}], "steps": 50}
    assert preset_title(read(data)) == ""


def test_the_first_conclusion_is_about_what_the_preset_shows_or_what_was_added() -> None:
    for preset in presets().values():
        assert preset.compared_with in ("", *preset.experiment.labels)
        assert compared_with(preset.experiment) == preset.compared_with
    data = changed("off")
    assert compared_with(read(data)) == "LinUCB alpha 0"
    data["agents"] += [{"kind": "ucb1"}, {"kind": "softmax"}]
    assert compared_with(read(data)) == "Softmax"
    data = changed("off")
    data["agents"].append({"kind": "epsilon_greedy", "label": "ε-greedy epsilon 0.25"})
    assert compared_with(read(data)) == "ε-greedy epsilon 0.25"
    # a guard is no agent
    data = changed("off")
    data["agents"][0]["guards"] = [{"kind": "floor"}]
    assert compared_with(read(data)) == "LinUCB alpha 0"
    # a name that follows its value is no other agent
    data = changed("off")
    data["agents"][0] = {"kind": "linucb", "label": "LinUCB alpha 0.3", "alpha": 0.3}
    assert compared_with(read(data)) == "LinUCB alpha 0.3"
    data = changed("off")
    data["agents"][1] = {"kind": "linucb", "label": "LinUCB alpha 2", "alpha": 2.0}
    assert compared_with(read(data)) == "LinUCB alpha 0"
    data = changed("off")
    del data["agents"][0]
    assert compared_with(read(data)) == ""
    few = {"simulator": {"kind": "petshop"}, "agents": [{"kind": "linucb"}], "steps": 50}
    assert compared_with(read(few)) == ""
