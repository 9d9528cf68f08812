"""The experiment that a visitor is putting together, kept in the session."""

from __future__ import annotations

import itertools
import json
from typing import Any

import streamlit as st

from bandits import Experiment, Refused, read
from bandits.agents import REGISTRY as AGENTS
from bandits.presets import presets
from bandits.simulators import REGISTRY as SIMULATORS

_numbers = itertools.count(1)  # widget keys only need to be new


class Draft:
    """Plain data that `bandits.read` will judge, with an id per agent for its widgets."""

    def __init__(self, experiment: Experiment) -> None:
        self.version = next(_numbers)
        data = json.loads(experiment.model_dump_json())
        self.simulator: dict[str, Any] = data["simulator"]
        self.agents: dict[int, dict[str, Any]] = {next(_numbers): agent for agent in data["agents"]}
        self.steps, self.replications, self.seed = experiment.steps, experiment.replications, experiment.seed

    def data(self) -> dict[str, Any]:
        """The experiment as plain data."""
        return {
            "simulator": self.simulator,
            "agents": list(self.agents.values()),
            "steps": self.steps,
            "replications": self.replications,
            "seed": self.seed,
        }

    def differs(self, experiment: Experiment) -> bool:
        """Whether it would run something else than this experiment."""
        try:
            return read(self.data()) != experiment
        except Refused:
            return True

    def switch(self, kind: str) -> None:
        """Another world, with its own defaults."""
        self.simulator = {"kind": kind}

    def add(self, kind: str) -> None:
        """One more agent with its defaults."""
        self.agents[next(_numbers)] = {"kind": kind}

    def duplicate(self, agent: int) -> None:
        """The same agent again, right behind itself."""
        copies = {}
        for key, values in self.agents.items():
            copies[key] = values
            if key == agent:
                copies[next(_numbers)] = {**values, "label": None}
        self.agents = copies

    def remove(self, agent: int) -> None:
        """One agent less."""
        del self.agents[agent]

    def fitting(self) -> list[str]:
        """Kinds of agents that this world offers all they need."""
        world = SIMULATORS[self.simulator["kind"]]
        try:
            offers = world.describe(world.Params.model_validate(self.simulator)).offers
        except ValueError:
            return list(AGENTS)
        return [kind for kind, agent in AGENTS.items() if agent.needs <= offers]


def current() -> Draft:
    """This session's draft; the first preset to begin with."""
    if "draft" not in st.session_state:
        st.session_state.draft = Draft(next(iter(presets().values())).experiment)
    draft: Draft = st.session_state.draft
    return draft


def load(experiment: Experiment) -> None:
    """Begin anew from an experiment."""
    st.session_state.draft = Draft(experiment)
