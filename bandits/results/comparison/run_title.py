"""Title a run by the preset that it resembles, and what was changed in it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from bandits.experiments.experiment import Experiment
from bandits.experiments.presets import presets

from .run_comparison import MISSING, Difference, settings

# differences from a preset; with more, the preset describes little of a run
MOST = 3


@lru_cache(maxsize=4096)
def preset_title(experiment: Experiment) -> str:
    """Name the nearest preset and what is changed in it: Market shock: LinUCB alpha 0.3, seed 7.

    Empty where every preset differs in more than `MOST` settings.
    """
    return nearest_title(experiment, [(p.title, p.experiment) for p in presets().values()], MOST)


def nearest_title(
    experiment: Experiment, named: Iterable[tuple[str, Experiment]], most: int
) -> str:
    """Name the nearest of some titled experiments and what is changed in it; empty where every one
    differs in more than so many settings.
    """
    title, changed = _nearest(experiment, named)
    if not title or len(changed) > most:
        return ""
    said = ", ".join(_said(difference, experiment) for difference in changed)
    return f"{title}: {said}" if said else title


@lru_cache(maxsize=4096)
def compared_with(experiment: Experiment) -> str:
    """Name the agent that the first conclusion compares with: the last one that was added to a
    preset, or the one that the preset is about.

    Empty for any other run, whose leader is compared with the second best agent.
    """
    by_title = {preset.title: preset for preset in presets().values()}
    title, changed = _nearest(experiment, [(p.title, p.experiment) for p in by_title.values()])
    if not title or len(changed) > MOST:
        return ""
    added = [one.path.split(".")[1] for one in changed if _is_added(one)]
    asked = added[-1] if added else by_title[title].compared_with
    return asked if asked in experiment.labels else ""


def _nearest(
    experiment: Experiment, named: Iterable[tuple[str, Experiment]]
) -> tuple[str, list[Difference]]:
    """Return the title of the nearest of some experiments and the differences from it."""
    # the simulator first: most have another
    near = [
        (title, settings([other, experiment]))
        for title, other in named
        if other.simulator.kind == experiment.simulator.kind
    ]
    return min(near, key=lambda each: len(each[1]), default=("", []))


def _is_added(difference: Difference) -> bool:
    agent = difference.path.startswith("agents.") and difference.path.endswith(".kind")
    return agent and difference.values[0] == MISSING


def _said(difference: Difference, experiment: Experiment) -> str:
    before, after = difference.values
    if difference.path.endswith(".kind") and MISSING in (before, after):
        if after == MISSING:
            return f"without {difference.name}"
        return f"with {experiment.names[difference.name]}"
    name = difference.name.removeprefix(f"{experiment.simulator_class().title}: ")
    return f"{name.replace(': ', ' ')} {after}"
