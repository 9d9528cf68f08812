"""The experiment that a user is editing, kept in the session, with undo and redo, and the request
to run it.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, Literal

import streamlit as st

from bandits import Experiment, UserError, read
from bandits.agents import REGISTRY as AGENTS
from bandits.agents import AgentParams
from bandits.base.types import SimulatorSpec
from bandits.experiments.adaptation import adapt, suited_agent
from bandits.experiments.labels import following_label, main_parameter
from bandits.experiments.presets import presets
from bandits.experiments.suitability import parse
from bandits.simulators import REGISTRY as SIMULATORS

# in the session: why the link in the address cannot be opened
REFUSED_LINK = "refused-link"
# in the session: the run of a link whose checksum does not match
EDITED_LINK = "edited-link"
# states that can be undone
MAX_STATES = 100

# widget keys only need to be new
_numbers = itertools.count(1)
Source = Literal["button", "slider"]
_REQUEST = "run-requested"


class Draft:
    """An experiment as plain data, not validated yet, with an id per agent for its widgets."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.version = next(_numbers)
        self.simulator: dict[str, Any] = data["simulator"]
        self.agents: dict[int, dict[str, Any]] = {next(_numbers): agent for agent in data["agents"]}
        self.steps, self.replications, self.seed = data["steps"], data["replications"], data["seed"]
        # agents whose settings are shown: one for each main parameter, as many as a window holds
        sliders: dict[str, int] = {}
        for number, agent in self.agents.items():
            if name := main_parameter(agent["kind"]):
                sliders.setdefault(name, number)
        self.open_cards = set(list(sliders.values())[:3] or list(self.agents)[:1])
        # what the choice of a simulator has changed
        self.notice = ""
        # the experiment before that choice
        self.before: dict[str, Any] | None = None
        # the agents after it
        self.adapted: list[AgentParams | None] = []

    def data(self) -> dict[str, Any]:
        """Return the experiment as plain data."""
        return {
            "simulator": self.simulator,
            "agents": list(self.agents.values()),
            "steps": self.steps,
            "replications": self.replications,
            "seed": self.seed,
        }

    def experiment(self) -> Experiment | None:
        """Return the experiment, or None if it is not valid."""
        try:
            return read(self.data())
        except UserError:
            return None

    def moved_to(self, kind: str) -> Draft:
        """Return a draft with another simulator and what suits it.

        While the agents stay as a choice of simulator has left them, the next choice starts from
        the experiment before it, so that trying out simulators loses nothing."""
        own = self.data()
        start = self.before if self.before is not None and self._params() == self.adapted else own
        start = {**start, "seed": self.seed}
        if start["simulator"]["kind"] == kind:
            return Draft(start)
        # nothing that suits a simulator depends on the seed
        adaptation = adapt({**start, "seed": 0}, kind)
        moved = Draft(json.loads(adaptation.experiment.model_dump_json()))
        # also one that is out of range, which is refused in words
        moved.seed = self.seed
        moved.before, moved.adapted, moved.notice = start, moved._params(), adaptation.describe()
        return moved

    def _params(self) -> list[AgentParams | None]:
        """Return the agents' parameters, which are equal however they were entered.

        None where they are not valid.
        """
        return [parse(AGENTS[agent["kind"]].Params, agent) for agent in self.agents.values()]

    def add(self, kind: str) -> None:
        """Add an agent with its defaults, or the settings closest to them that this simulator can
        run.
        """
        number = next(_numbers)
        self.open_cards = {number}
        self.agents[number] = suited_agent(kind, self.data())

    def change(self, number: int, agent: dict[str, Any]) -> None:
        """Give an agent other values.

        A name that states one of them follows, unless another agent has it.
        """
        label = following_label(agent.get("label"), self.agents[number], agent)
        taken = {other.get("label") for key, other in self.agents.items() if key != number}
        changed = label != agent.get("label")
        self.agents[number] = {**agent, "label": None if changed and label in taken else label}

    def duplicate(self, agent: int) -> None:
        """Insert a copy of an agent after it."""
        copies = {}
        for key, values in self.agents.items():
            copies[key] = values
            if key == agent:
                copies[next(_numbers)] = {**values, "label": None}
        self.agents = copies

    def remove(self, agent: int) -> None:
        """Remove an agent."""
        del self.agents[agent]

    def spec(self) -> SimulatorSpec | None:
        """Return what agents know of the simulator in advance, or None if its parameters are not
        valid.
        """
        cls = SIMULATORS[self.simulator["kind"]]
        try:
            return cls.describe(cls.Params.model_validate(self.simulator))
        except ValueError:
            return None

    def available_kinds(self) -> list[str]:
        """Return the kinds of agents that this simulator has the capabilities for."""
        spec = self.spec()
        return [
            kind
            for kind, agent in AGENTS.items()
            if spec is None or agent.needs | agent.offered_for <= spec.capabilities
        ]


class EditHistory:
    """The states of the controls since the first one was loaded, and the current one among them."""

    def __init__(self, start: str) -> None:
        self.states, self.at = [start], 0

    def remember(self, state: str) -> None:
        """Append a new state; states that could be redone are dropped."""
        if state != self.states[self.at]:
            self.states = [*self.states[: self.at + 1], state][-MAX_STATES:]
            self.at = len(self.states) - 1

    def can_move(self, by: int) -> bool:
        """Return whether there is a state to undo (-1) or to redo (1)."""
        return 0 <= self.at + by < len(self.states)


def current() -> Draft:
    """Return this session's draft; it starts with the first preset."""
    if "draft" not in st.session_state:
        _load(next(iter(presets().values())).experiment)
    draft: Draft = st.session_state.draft
    return draft


def forget_link() -> None:
    """Forget what was wrong with the link in the address: the user has opened something else."""
    st.session_state.pop(REFUSED_LINK, None)
    st.session_state.pop(EDITED_LINK, None)


def load(experiment: Experiment) -> None:
    """Load an experiment into the controls; this can be undone, and `reset` returns to it."""
    forget_link()
    _load(experiment)


def _load(experiment: Experiment) -> None:
    text = experiment.model_dump_json()
    st.session_state.draft, st.session_state.origin = Draft(json.loads(text)), text
    if "edit_history" in st.session_state:
        remember()
    else:
        st.session_state.edit_history = EditHistory(_state())


def choose_simulator(kind: str) -> None:
    """Move the draft to another simulator; this can be undone."""
    if kind != current().simulator["kind"]:
        st.session_state.draft = current().moved_to(kind)
        remember()


def replace(experiment: Experiment) -> None:
    """Replace the values of the controls; `reset` still returns to what was loaded."""
    st.session_state.draft = Draft(json.loads(experiment.model_dump_json()))
    remember()


def remember() -> None:
    """Append the state of the controls to the history."""
    history().remember(_state())


def history() -> EditHistory:
    """Return the states that this session's controls were in."""
    current()
    states: EditHistory = st.session_state.edit_history
    return states


def move(by: int) -> None:
    """Undo (-1) or redo (1)."""
    if history().can_move(by):
        history().at += by
        st.session_state.draft = Draft(json.loads(history().states[history().at]))


def reset() -> None:
    """Restore what was loaded last: a preset, a link, a file or a run."""
    st.session_state.draft = Draft(json.loads(st.session_state.origin))
    remember()


def _state() -> str:
    """Return the controls' values as text: the same for equal experiments, however they were
    entered.
    """
    experiment = current().experiment()
    return json.dumps(current().data()) if experiment is None else experiment.model_dump_json()


def request_run(source: Source = "button") -> None:
    """Ask for a run of the experiment in the controls."""
    st.session_state[_REQUEST] = source


def requested_run() -> Source | None:
    """Return where a run was asked for that has not been submitted."""
    source: Source | None = st.session_state.get(_REQUEST)
    return source


def forget_request() -> None:
    """Note that the run was submitted or refused, or that the user has left the page."""
    st.session_state.pop(_REQUEST, None)
