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
    # the simulator first: most have another
    near = [
        (title, settings([other, experiment]))
        for title, other in named
        if other.simulator.kind == experiment.simulator.kind
    ]
    title, changed = min(near, key=lambda each: len(each[1]), default=("", []))
    if not title or len(changed) > most:
        return ""
    said = ", ".join(_said(difference, experiment) for difference in changed)
    return f"{title}: {said}" if said else title


def _said(difference: Difference, experiment: Experiment) -> str:
    before, after = difference.values
    if difference.path.endswith(".kind") and MISSING in (before, after):
        if after == MISSING:
            return f"without {difference.name}"
        return f"with {experiment.names[difference.name]}"
    name = difference.name.removeprefix(f"{experiment.simulator_class().title}: ")
    return f"{name.replace(': ', ' ')} {after}"
