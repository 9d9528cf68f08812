"""The experiment that a visitor is putting together, kept in the session, with the way back."""

from __future__ import annotations

import itertools
import json
from typing import Any

import streamlit as st

from bandits import Experiment, UserError, read
from bandits.agents import REGISTRY as AGENTS
from bandits.base.types import WorldSpec
from bandits.experiments.presets import presets
from bandits.simulators import REGISTRY as SIMULATORS

KEPT = 100  # steps that can be taken back

_numbers = itertools.count(1)  # widget keys only need to be new


class Draft:
    """Plain data that `bandits.read` will judge, with an id per agent for its widgets."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.version = next(_numbers)
        self.simulator: dict[str, Any] = data["simulator"]
        self.agents: dict[int, dict[str, Any]] = {next(_numbers): agent for agent in data["agents"]}
        self.steps, self.replications, self.seed = data["steps"], data["replications"], data["seed"]

    def data(self) -> dict[str, Any]:
        """The experiment as plain data."""
        return {
            "simulator": self.simulator,
            "agents": list(self.agents.values()),
            "steps": self.steps,
            "replications": self.replications,
            "seed": self.seed,
        }

    def experiment(self) -> Experiment | None:
        """The experiment, if it is one that can be run."""
        try:
            return read(self.data())
        except UserError:
            return None

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

    def spec(self) -> WorldSpec | None:
        """What the world would tell its agents, if there can be such a world."""
        world = SIMULATORS[self.simulator["kind"]]
        try:
            return world.describe(world.Params.model_validate(self.simulator))
        except ValueError:
            return None

    def fitting(self) -> list[str]:
        """Return the kinds of agents that this simulator has the capabilities for."""
        spec = self.spec()
        return [
            kind for kind, agent in AGENTS.items()
            if spec is None or agent.needs | agent.offered_for <= spec.capabilities
        ]  # fmt: skip


class Trail:
    """Every state the controls were in since the last one that was loaded, and where on it they are."""

    def __init__(self, start: str) -> None:
        self.states, self.at = [start], 0

    def remember(self, state: str) -> None:
        """A new state ends what could have been done again."""
        if state != self.states[self.at]:
            self.states = [*self.states[: self.at + 1], state][-KEPT:]
            self.at = len(self.states) - 1

    def can_move(self, by: int) -> bool:
        """Whether there is a state so many steps back (-1) or ahead (1)."""
        return 0 <= self.at + by < len(self.states)


def current() -> Draft:
    """This session's draft; the first preset to begin with."""
    if "draft" not in st.session_state:
        load(next(iter(presets().values())).experiment)
    draft: Draft = st.session_state.draft
    return draft


def load(experiment: Experiment) -> None:
    """Put an experiment into the controls. It can be undone, and `reset` comes back to it."""
    text = experiment.model_dump_json()
    st.session_state.draft, st.session_state.origin = Draft(json.loads(text)), text
    if "trail" in st.session_state:
        remember()
    else:
        st.session_state.trail = Trail(_state())


def remember() -> None:
    """Keep what the controls say now."""
    trail().remember(_state())


def trail() -> Trail:
    """Where this session's controls have been."""
    current()
    found: Trail = st.session_state.trail
    return found


def move(by: int) -> None:
    """Undo (-1) or redo (1)."""
    if trail().can_move(by):
        trail().at += by
        st.session_state.draft = Draft(json.loads(trail().states[trail().at]))


def reset() -> None:
    """Back to what was loaded last: a preset, a link, a file, a run."""
    st.session_state.draft = Draft(json.loads(st.session_state.origin))
    remember()


def _state() -> str:
    """What the controls say, the same text for the same experiment however it was put together."""
    found = current().experiment()
    return json.dumps(current().data()) if found is None else found.model_dump_json()
