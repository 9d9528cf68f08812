"""Ready-made experiments: JSON files that the same validation reads."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from bandits.experiments.experiment import Experiment, read


class Preset(NamedTuple):
    """A named experiment and one sentence on what it shows."""

    title: str
    about: str
    experiment: Experiment


@lru_cache(maxsize=1)
def presets() -> dict[str, Preset]:
    """All presets by name, in the order of their files."""
    found = {}
    folder = files("bandits.experiments.presets")
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if path.name.endswith(".json"):
            data = json.loads(path.read_text(encoding="utf-8"))
            name = path.name.removesuffix(".json").partition("-")[2]
            found[name] = Preset(data["title"], data["about"], read(data["experiment"]))
    return found


def on_data(name: str) -> Experiment:
    """A race to begin with on a data set that was brought.

    Raises
    ------
    UserError
        The data set is not here.
    """
    agents = [
        {"kind": "linucb", "alpha": 0.5},
        {"kind": "lints", "sigma2": 0.05},
        {"kind": "epsilon_greedy"},
        {"kind": "popularity"},
        {"kind": "random"},
    ]
    world = {"kind": "classification", "data": name, "encoding": "context"}
    return read({"simulator": world, "agents": agents, "steps": 5000, "replications": 8})
