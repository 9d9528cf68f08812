"""Values that a sweep does not tell apart from the best: one wording wherever one is named best."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bandits import read
from bandits.advice import guide
from bandits.advice.evidence import evidence, filled
from bandits.sweeps import read as read_sweep
from bandits.sweeps import run
from bandits.sweeps.analysis.records import State
from bandits.sweeps.at_best import compared, tunings
from bandits.sweeps.not_worse import alike, not_worse
from bandits_app.sweep.conclusions import chosen
from benchmarks.reproduction import choosing

ALONE = "all others are significantly worse; other values between 0.1 and 0.5 were not tried"


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ("worse tied tied unclear", "not significantly worse: 0.2 to 1"),
        ("tied worse tied unclear", "not significantly worse: 0.1 and 0.5 to 1"),
        ("worse tied worse worse", ALONE),
        ("tied worse worse worse", ALONE.replace("0.5", "0.2")),
        (
            "dropped tied unclear worse",
            "not significantly worse: 0.2 to 0.5; others were dropped early",
        ),
        (
            "dropped tied worse worse",
            "all others are significantly worse, but for those that were dropped early",
        ),
        ("dropped tied dropped dropped", "others were dropped early"),
    ],
)
def test_neighbours_that_are_not_significantly_worse_are_a_range(states: str, words: str) -> None:
    assert alike([0.1, 0.2, 0.5, 1.0], states.split()) == words  # type: ignore[arg-type]


def test_choices_are_listed_one_by_one() -> None:
    choices = ["all", "segment"]
    assert alike(choices, ["tied", "unclear"]) == "not significantly worse: all and segment"
    assert alike(choices, ["tied", "worse"]) == "all others are significantly worse"


def test_between_whole_numbers_that_follow_each_other_nothing_is_left_to_try() -> None:
    states: list[State] = ["worse", "tied", "worse"]
    assert alike([5, 6, 7], states) == "all others are significantly worse"
    assert alike([4, 6, 7], states).endswith("other values between 4 and 7 were not tried")


def test_what_was_not_computed_or_diverged_is_not_called_worse() -> None:
    sweep = read_sweep(
        {
            "experiment": {
                "agents": [{"kind": "epsilon_greedy"}],
                "steps": 200,
                "replications": 4,
            },
            "axes": [{"path": "agents.0.epsilon", "values": [0.0, 0.05, 0.5, 0.9, 1.0]}],
        }
    )
    landscape = run(sweep)
    assert "diverged" not in not_worse(landscape, "ctr")
    landscape.completed[3] = False
    landscape.alive[4] = False
    landscape.numbers("ctr")[3:] = np.nan
    words = not_worse(landscape, "ctr")
    assert "diverged or were not computed" in words
    assert "0.9" not in words


def test_the_values_that_the_agent_has_are_kept_unless_they_are_worse() -> None:
    def said(values: list[float], **own: float) -> str:
        e = {"agents": [{"kind": "epsilon_greedy", **own}], "steps": 2000, "replications": 8}
        axes = [{"path": "agents.0.epsilon", "values": values}]
        return chosen(run(read_sweep({"experiment": e, "axes": axes})), "ctr")

    few = [0.05, 0.1, 1.0]
    lost = said(few, epsilon=1.0)
    assert not lost.startswith("Keep")
    had = r" The values so far, Exploration rate 1 \(.+\), are significantly worse than the best\."
    assert re.search(had, lost)
    assert "so far" not in said(few, epsilon=0.7)
    # equal values are tied, whichever earned most
    same = [0.1, 0.1001]
    for value in same:
        assert said(same, epsilon=value).startswith("Keep Exploration rate 0.1 (")


def test_values_that_move_together_are_found_and_diverged_ones_are_not_called_worse() -> None:
    e = {"agents": [{"kind": "linucb", "alpha": 3.0}], "steps": 1000, "replications": 4}
    axes = [{"path": "agents.0.alpha+ridge", "values": ["0.3+1.0", "0.5+1.0", "3.0+1.0"]}]
    landscape = run(read_sweep({"experiment": e, "axes": axes}))
    own = landscape.unchanged()
    assert own is not None
    assert own.point == 2
    assert own.state == "worse"
    assert "are significantly worse than the best." in chosen(landscape, "ctr")
    landscape.alive[2] = False
    landscape.numbers("ctr")[2] = np.nan
    assert "diverged." in chosen(landscape, "ctr").split("so far, ")[1]


def test_wherever_a_value_is_named_best_its_neighbours_are_named_too() -> None:
    """In a sweep, in a comparison of agents at their best, and in *Which should I use?*."""
    e = read({"agents": [{"kind": "linucb"}, {"kind": "random"}], "steps": 500, "replications": 4})
    landscapes = [run(sweep) if sweep else None for _, sweep in tunings(e)]
    swept = landscapes[0]
    assert swept is not None
    words = not_worse(swept, "ctr")
    assert f"(best of {swept.sweep.size}; {words})" in compared(e, landscapes).sentence
    assert chosen(swept, "ctr").endswith(f" {words[0].upper()}{words[1:]}.")
    for name, tried in (("alpha", choosing.ALPHAS), ("ridge", choosing.RIDGES)):
        values = evidence().lines[name].values
        low, high = values["alike_low"].mean, values["alike_high"].mean
        states: list[State] = ["tied" if low <= value <= high else "worse" for value in tried]
        (text,) = (s.text for s in guide().settings if f"{name}.best" in s.text)
        assert f"({alike(tried, states)})" in filled(text)
