"""Experiment: the validated input of a run, and its content hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, ValidationError, model_validator

from bandits import agents as _agents
from bandits import simulators as _simulators
from bandits.agents import Agent, AgentParams
from bandits.agents.guards.stack import check as check_guards
from bandits.agents.guards.stack import stack_memory

# re-exported beside `read`, which raises it
from bandits.base.errors import UserError as UserError
from bandits.base.files import LARGE
from bandits.base.params import Params, hash_content, param
from bandits.base.randomness import block_length
from bandits.base.types import SimulatorSpec
from bandits.simulators import Simulator, SimulatorParams
from bandits.simulators.petshop import PetShop

from .defaults import fill
from .history import History
from .labels import name_agent, spoken_name, unique_labels
from .precision import too_large
from .validation import MAX_TEXT as MAX_TEXT
from .validation import parse, refusal

# bytes that one experiment may use
MEMORY_LIMIT = 4 * 2**30
# bytes of a run itself: its records, and small arrays of agents and simulators
RUN = 2**24
# of the records of a run in the process that follows it
FOLLOWED = 2**22
# bytes per candidate while calibration is measured: means, widths and truth of its rounds
PROBED = 96
# capabilities by their names in messages
_CAPABILITY_NAMES = {
    "arm_features": "features that differ between arms",
    "binary": "rewards of 0 or 1",
    "categories": "categories of items",
    "ids": "user and item identifiers",
    "log": "logged interactions",
    "segments": "user segments",
    "states": "states that agents observe",
    "truth": "true expected rewards",
    "vectors": "user and item vectors as features",
    "visits": "visits of many steps",
}


def _one_of(registry: Mapping[str, type[Any]]) -> Any:
    """Return the union of the parameters of all registered kinds."""
    kinds: Any = Union[tuple(c.Params for c in registry.values())]  # noqa: UP007
    return Annotated[kinds, Field(discriminator="kind")]


if TYPE_CHECKING:
    AnySimulator = SimulatorParams
    AnyAgent = AgentParams
else:
    AnySimulator, AnyAgent = _one_of(_simulators.REGISTRY), _one_of(_agents.REGISTRY)


class Experiment(Params):
    """A simulator, the agents that are compared in it, the number of steps and replications, and
    the seed.

    Raises
    ------
    UserError
        One sentence: what is wrong, where, and what is allowed.

    Examples
    --------
    >>> from bandits import Experiment
    >>> experiment = Experiment(agents=[{"kind": "linucb", "alpha": 1.5}, {"kind": "random"}],
    ...     steps=1000)
    >>> experiment.labels
    ('LinUCB', 'Random')
    >>> experiment.simulator.kind, experiment.replications, experiment.seed
    ('petshop', 16, 42)
    """

    simulator: AnySimulator = Field(default_factory=PetShop.Params)
    agents: tuple[AnyAgent, ...] = param(
        ...,
        title="Agents",
        help="Agents to compare, 1 to 12.",
        min_length=1,
        max_length=12,
        strict=False,
    )
    steps: int = param(
        20_000, title="Steps", help="Decisions per replication.", symbol="T", ge=1, le=10_000_000
    )
    replications: int = param(
        16,
        title="Replications",
        help="Independent replications behind each confidence band.",
        symbol="R",
        ge=1,
        le=4096,
    )
    seed: int = param(42, title="Seed", help="Determines all random numbers.", ge=0, le=2**53 - 1)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise UserError(name_agent(refusal(error, Experiment), data)) from None

    # `model_validate` does without it, and keeps the error of each field
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def accept_new_kinds(cls) -> None:
        """Accept the kinds that were registered after this class was created."""
        fields: dict[str, Any] = cls.model_fields
        agent: Any = _one_of(_agents.REGISTRY)
        fields["simulator"].annotation = _one_of(_simulators.REGISTRY)
        fields["agents"].annotation = tuple[agent, ...]
        cls.model_rebuild(force=True)

    @property
    def labels(self) -> tuple[str, ...]:
        """Unique names of the agents: their labels, or the titles of their kinds, numbered where
        repeated.
        """
        return unique_labels([(a.label, _agents.REGISTRY[a.kind].title) for a in self.agents])

    @property
    def names(self) -> dict[str, str]:
        """How sentences name the agents, by label (`labels.spoken_name`)."""
        return {
            label: spoken_name(label, agent)
            for label, agent in zip(self.labels, self.agents, strict=True)
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON; experiments with equal hashes have equal results."""
        parts = {
            "simulator": hash_content(self.simulator),
            "agents": [hash_content(agent) for agent in self.agents],
        }
        canonical = json.dumps(
            {**self.model_dump(mode="json"), **parts}, sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(canonical.encode()).hexdigest()

    def simulator_class(self) -> type[Simulator]:
        """Return the registered class of the simulator."""
        return _simulators.REGISTRY[self.simulator.kind]

    def agent_class(self, index: int) -> type[Agent]:
        """Return the registered class of one agent."""
        return _agents.REGISTRY[self.agents[index].kind]

    def offers(self, capability: str) -> bool:
        """Return whether its simulator has a capability of `SimulatorSpec`."""
        cls = self.simulator_class()
        try:
            spec = cls.describe(self.simulator)
        except UserError:
            # its data are no longer stored: what such a simulator offers by default
            spec = cls.describe(cls.Params())  # type: ignore[call-arg]
        return capability in spec.capabilities

    def empty_history(self) -> History:
        """Create the history of one agent before the first step, without building the simulator."""
        cls = self.simulator_class()
        spec, groups = cls.describe(self.simulator), len(cls.segment_names())
        sizes = self.steps, self.replications, spec.n_items, groups
        return History(
            *sizes, n_launches=self._n_launches(spec.slate), bucket_size=spec.bucket_size
        )

    def _n_launches(self, slate: int) -> int:
        """Count the launches whose decisions are summed: all, where a decision shows one item."""
        return (
            sum(c.kind == "launch" for c in self.simulator.all_changes.values())
            if slate == 1
            else 0
        )

    def memory(self, processes: int = 1) -> int:
        """Estimate the bytes of memory that a run needs, before anything is allocated.

        Parameters
        ----------
        processes : int
            Processes that its agents are spread over: each holds the data that simulators share.
        """
        spec = self.simulator_class().describe(self.simulator)
        layouts = self.replications if self.simulator_class().layout_per_row(self.simulator) else 1
        groups = len(self.simulator_class().segment_names())
        total = RUN + len(self.agents) * self.simulator_class().memory(
            self.simulator, self.replications
        )
        total += processes * self.simulator_class().shared_memory(self.simulator, layouts)
        # bytes per row of each agent
        rows = []
        for i, agent in enumerate(self.agents):
            cls = self.agent_class(i)
            draws = 8 * block_length(spec.n_candidates) * spec.n_candidates + 16 * block_length(1)
            own = cls.memory(agent, spec)
            per_row = own + draws + 64 * spec.n_candidates * (1 + spec.n_stored)
            per_row += stack_memory(agent.guards, spec, own)
            if cls.uncertainty is not None:
                per_row += PROBED * spec.n_candidates
            rows.append(per_row)
            total += self.replications * per_row
            sizes, launches = (
                (self.steps, self.replications, spec.n_items, groups),
                self._n_launches(spec.slate),
            )
            history = History.memory(*sizes, n_launches=launches, bucket_size=spec.bucket_size)
            # a checkpoint copies one after the other, in every process
            total += history + (i < processes) * history
            total += cls.shared_memory(agent, spec, layouts)
        # every agent's kernels are compiled with one row of its own before its first step, one
        # agent after the other
        return total + max(rows) + self.simulator_class().memory(self.simulator, 1)

    def server_memory(self) -> int:
        """Estimate the bytes of memory that a run takes in the process that follows it: its
        histories with their spectra, twice while they are packed, and a state that is too small
        for a file.
        """
        spec = self.simulator_class().describe(self.simulator)
        classes = [self.agent_class(i) for i in range(len(self.agents))]
        agents = list(zip(classes, self.agents, strict=True))
        state = self.replications * sum(cls.memory(agent, spec) for cls, agent in agents)
        spectra = self.replications * sum(cls.spectra_memory(agent, spec) for cls, agent in agents)
        histories = len(agents) * self.empty_history().nbytes + spectra
        return FOLLOWED + 2 * histories + min(state, LARGE)

    def max_processes(self) -> int:
        """Return the number of processes that its agents can be spread over within the limit of
        memory.
        """
        n, one = len(self.agents), self.memory()
        return max(1, min(n, 1 + (MEMORY_LIMIT - one) // max(self.memory(2) - one, 1)))

    @model_validator(mode="after")
    def _possible(self) -> Experiment:
        given = [a.label for a in self.agents if a.label]
        if twice := next((label for label in given if given.count(label) > 1), None):
            raise ValueError(
                f"agents: the label '{twice}' is used twice; every agent needs its own"
            )
        spec = self.simulator_class().describe(self.simulator)
        largest = self.simulator_class().unscaled(self.simulator)
        for i, agent in enumerate(self.agents):
            if missing := missing_capabilities(
                self.agent_class(i).requires(agent), self.simulator_class(), spec
            ):
                raise ValueError(f"agents.{i} ({self.labels[i]}) {missing}")
            if reason := too_large(self.agent_class(i), agent, largest):
                raise ValueError(f"agents.{i} ({self.labels[i]}): {reason}")
            if (starts := getattr(agent, "learning_starts", 0)) >= self.steps:
                raise ValueError(
                    f"agents.{i}.learning_starts is {starts:,}; it must be below the steps of the "
                    f"run, {self.steps:,}"
                )
            segments = len(self.simulator_class().segment_names())
            check_guards(agent.guards, self.agent_class(i), spec, segments, f"agents.{i}.guards")
        if obstacle := self.simulator_class().obstacle(self.simulator, self.replications):
            raise ValueError(obstacle)
        for name, change in self.simulator.all_changes.items():
            # which was always allowed
            if change.begins >= self.steps and name != "simulator.shock_step":
                raise ValueError(
                    f"{name} begins at step {change.begins:,}; it must begin before the run's end, "
                    f"{self.steps:,}"
                )
        if (need := self.memory()) > MEMORY_LIMIT:
            raise ValueError(
                f"the experiment would need about {need / 2**30:,.1f} GiB of memory; "
                f"{MEMORY_LIMIT / 2**30:.0f} GiB are allowed: use fewer arms ({spec.n_items:,}), "
                f"features ({spec.n_features:,}), replications ({self.replications:,}) or smaller "
                "networks"
            )
        return self


def require_truth(experiment: Experiment, what: str) -> None:
    """Raise unless the true expected rewards are known.

    Raises
    ------
    UserError
        ``what`` requires them.
    """
    if not experiment.offers("truth"):
        title = experiment.simulator_class().title
        raise UserError(
            f"{what} requires {_CAPABILITY_NAMES['truth']}, which {title} does not provide"
        )


def missing_capabilities(
    required: frozenset[str], simulator: type[Simulator], spec: SimulatorSpec
) -> str:
    """Describe what a simulator lacks: "requires logged interactions, which Ranking does not
    provide", or "".
    """
    names = " and ".join(
        _CAPABILITY_NAMES.get(name, name) for name in sorted(required - spec.capabilities)
    )
    return f"requires {names}, which {simulator.title} does not provide" if names else ""


def read(source: str | bytes | dict[str, Any]) -> Experiment:
    """Read and validate an experiment from JSON text or plain data.

    Parameters
    ----------
    source : str, bytes or dict
        JSON text, as in a file, a link or an upload, or the parsed data. With ``"defaults": 1``
        omitted fields have the defaults of version 1.0 (see `defaults`).

    Raises
    ------
    UserError
        One sentence: what is wrong, where, and what is allowed.

    Examples
    --------
    >>> from bandits import read
    >>> read('{"agents": [{"kind": "linucb", "alpha": 11}]}')
    Traceback (most recent call last):
        ...
    bandits.base.errors.UserError: agents.0.alpha (LinUCB) is 11; it must be a number from 0 to 10
    """
    return parse(
        source, "experiment", Experiment, lambda data: Experiment.model_validate(fill(data))
    )
