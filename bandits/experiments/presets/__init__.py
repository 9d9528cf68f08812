"""Presets: experiments stored as JSON files, read with the same validation as uploads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from bandits.base.files import numbered_json
from bandits.experiments.experiment import Experiment, read
from bandits.simulators import classification
from bandits.simulators.datasets import logs, uploads


class Preset(NamedTuple):
    """An experiment of the menu.

    Attributes
    ----------
    title : str
    group : str
        In the menu.
    line : str
        Beside the title in the menu.
    about : str
        What it shows.
    experiment : Experiment
    depends : str
        Which of its comparisons another value of a parameter reverses or levels; the end of
        ``about``.
    compared_with : str
        The agent that the first conclusion compares with; empty: the leader.
    """

    title: str
    group: str
    line: str
    about: str
    experiment: Experiment
    depends: str = ""
    compared_with: str = ""


@lru_cache(maxsize=1)
def presets() -> dict[str, Preset]:
    """Return all presets by name, in the order of their files."""
    found = numbered_json("bandits.experiments.presets")
    return {name: _preset(data) for name, data in found.items()}


def _preset(data: dict[str, Any]) -> Preset:
    about = f"{data['about']} {data.get('depends', '')}".strip()
    return Preset(**{**data, "about": about, "experiment": read(data["experiment"])})


def on_log(name: str) -> Experiment:
    """Return a first replay of a log that a user has kept, in parts of at least about 1,000 events.

    Raises
    ------
    UserError
        There is no such log.
    """
    events = logs.sizes(name)[0]
    parts = min(max(events // 1000, 2), 16)
    agents = [
        {"kind": "linucb", "alpha": 0.5},
        {"kind": "beta_ts" if logs.is_binary(name) else "ucb1"},
        {"kind": "epsilon_greedy", "epsilon": 0.05},
        {"kind": "random"},
    ]
    simulator = {"kind": "logged", "log": name, "parts": parts}
    steps = max(1, events // parts)
    return read({"simulator": simulator, "agents": agents, "steps": steps, "replications": parts})


def on_data(name: str) -> Experiment:
    """Return a first experiment on an uploaded data set.

    Raises
    ------
    UserError
        There is no such data set.
    """
    agents: list[dict[str, Any]] = [
        {"kind": "linucb", "alpha": 0.5},
        {"kind": "lints", "sigma2": 0.05},
        {"kind": "epsilon_greedy"},
        {"kind": "popularity"},
        {"kind": "random"},
    ]
    info = uploads.find(name)
    kind = "rewards" if info is not None and not info.target else "classification"
    simulator = {"kind": kind, "data": name, "encoding": "context"}
    if kind == "rewards":
        # in the unit of the rewards, within the ranges of the parameters
        spread = float(classification.load(name).rewards.std())
        agents[0]["alpha"] = min(spread, 10.0)
        agents[1]["sigma2"] = min(0.2 * spread**2, 100.0)
    return read({"simulator": simulator, "agents": agents, "steps": 5000, "replications": 8})
