"""Title a run by the preset that it resembles, and what was changed in it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from bandits.experiments.experiment import Experiment
from bandits.experiments.presets import presets

from .run_comparison import MISSING, Difference, settings

# differences from a preset; with more, the preset describes little of a run
MOST = 3


def preset_title(experiment: Experiment) -> str:
    """Name the nearest preset and what is changed in it: Market shock: LinUCB alpha 0.3, seed 7.

    Empty where every preset differs in more than `MOST` settings.
    """
    return _titled(experiment, *_nearest_preset(experiment), MOST)


def nearest_title(
    experiment: Experiment, named: Iterable[tuple[str, Experiment]], most: int
) -> str:
    """Name the nearest of some titled experiments and what is changed in it; empty where every one
    differs in more than so many settings.
    """
    return _titled(experiment, *_nearest(experiment, named), most)


def _titled(experiment: Experiment, title: str, changed: list[Difference], most: int) -> str:
    if not title or len(changed) > most:
        return ""
    said = ", ".join(_said(difference, experiment) for difference in changed)
    return f"{title}: {said}" if said else title


def compared_with(experiment: Experiment) -> str:
    """Name the agent that the first conclusion compares with: the last one that was added to a
    preset, or the one that the preset is about.

    Empty for any other run, whose leader is compared with the second best agent.
    """
    title, changed = _nearest_preset(experiment)
    if not title or len(changed) > MOST:
        return ""
    agents = [
        one
        for one in changed
        if one.path.startswith("agents.") and one.path.endswith(".kind") and MISSING in one.values
    ]
    # an agent whose name follows its value is another one by name alone
    gone = {one.values[0]: one.name for one in agents if one.values[1] == MISSING}
    renamed, added = {}, []
    for one in agents:
        if one.values[0] == MISSING and one.values[1] in gone:
            renamed[gone.pop(one.values[1])] = one.name
        elif one.values[0] == MISSING:
            added.append(one.name)
    asked = next(p.compared_with for p in presets().values() if p.title == title)
    asked = added[-1] if added else renamed.get(asked, asked)
    return asked if asked in experiment.labels else ""


@lru_cache(maxsize=4096)
def _nearest_preset(experiment: Experiment) -> tuple[str, list[Difference]]:
    return _nearest(experiment, [(p.title, p.experiment) for p in presets().values()])


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


def _said(difference: Difference, experiment: Experiment) -> str:
    before, after = difference.values
    if difference.path.endswith(".kind") and MISSING in (before, after):
        if after == MISSING:
            return f"without {difference.name}"
        return f"with {experiment.names[difference.name]}"
    name = difference.name.removeprefix(f"{experiment.simulator_class().title}: ")
    return f"{name.replace(': ', ' ')} {after}"
