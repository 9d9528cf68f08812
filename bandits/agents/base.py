"""The base class of agents and the parameters that all of them have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Literal

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.params import Params, param
from bandits.base.randomness import Streams
from bandits.base.selection import indicator_of_largest, top_k
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    OfflineTraining,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models import position_bias
from bandits.models.position_bias import Position

from .guards.params import GuardList, guards_param
from .propensity import REDRAWS, choice_counts, slot_counts

Propensity = Literal["exact", "monte_carlo", "deterministic"]
Uncertainty = Literal["bonus", "posterior"]
Representation = Literal["features", "fourier", "network"]


class AgentParams(Params):
    """Parameters that every agent has."""

    kind: str
    label: str | None = param(
        None, title="Name", help="Label of this agent in plots and tables.", pattern=r"^[\w.-][\w .-]{0,39}$"
    )
    guards: GuardList = guards_param()


class LearnerParams(AgentParams):
    """Parameters of agents that learn from clicks."""

    position: Position = param(
        "examined", title="Slot treatment", structural=True, later=True, slates=True,
        help="How the slots of a slate count in learning. examined: a slot counts once if the user examined it. "
        "ignored: every slot counts once, examined or not (a common mistake). aware: an examined slot counts in "
        "proportion to its position bias.",
    )  # fmt: skip


def row_axis(name: str) -> int:
    """Return the axis of rows of a state array: the first one, or the second of ring buffers, named ``ring_...``."""
    return int(name.rpartition(".")[2].startswith("ring_"))


class Agent(ABC):
    """A policy over R rows: it scores the candidates, the best are shown, and it learns from the feedback.

    Parameters
    ----------
    params : sequence of Params
        One per row; structural fields are equal in all of them.
    spec : SimulatorSpec
        Sizes and capabilities of the simulator.
    streams : Streams
    access : SimulatorAccess
        Access to the true probabilities or a log, for agents whose ``needs`` name them.
    """

    Params: ClassVar[type[AgentParams]]
    title: ClassVar[str]
    formula: ClassVar[str]
    """Score of a candidate, in LaTeX."""
    needs: ClassVar[frozenset[str]] = frozenset()
    offered_for: ClassVar[frozenset[str]] = frozenset()
    """Capabilities without which forms do not offer it, because it cannot tell the arms apart; it runs all the same."""
    propensity: Propensity = "deterministic"
    """What `probabilities` returns: the distribution of the first slot, an estimate of it, or 1 for what is shown.

    An agent whose parameters decide sets it in its constructor.
    """
    n_redraws: int = REDRAWS
    """Redraws from which `probabilities` estimates, where ``propensity`` is monte_carlo."""
    learns: ClassVar[bool] = True
    """Whether it changes during a run."""
    uncertainty: ClassVar[Uncertainty | None] = None
    """What it explores with: an upper confidence bound (``bonus``), posterior draws (``posterior``), or neither.

    Diagnostics read it through `uncertainty_of`; override that where a parameter decides.
    """
    exploration_param: ClassVar[str | None] = None
    """The numeric parameter that sets how much it explores and nothing that it learns; None if there is none.

    Diagnostics compares agents that differ in it alone.
    """
    linear: ClassVar[bool] = False
    """Whether the expected reward is a linear function of what its model reads (see `representation`)."""
    colour: ClassVar[str | None] = None
    """Colour of its curves, ``#RRGGBB``; None: the first colour that no other agent of the figure has."""
    dash: ClassVar[str] = "solid"
    """Line style of its curves, as plotly names it: solid, dash, longdash or dashdot (dotted: the previous run)."""
    caveat: ClassVar[str] = ""
    """One sentence on why its defaults do not clearly beat agents without context; empty where they do.

    Help shows it. "Clearly": paired 95 % interval above 0 against each of them, pet shop, 5,000 steps, 8 replications.
    """
    alone: ClassVar[bool] = True
    """Whether a row's numbers are the same bits with and without other rows; otherwise they agree up to rounding."""
    offline_training: OfflineTraining | None = None
    """What `prepare` trained on, in agents that have learned from a log."""
    row_by_row: ClassVar[bool] = True
    """Whether every array of its state has an axis of rows, so that one row can begin anew."""
    state: tuple[str, ...] = ()
    """Names (dotted) of the arrays that learning changes: what a checkpoint saves; see `row_axis`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        if ("scores" in own or "learn" in own) and "play" not in own:
            cls.play = Agent.play  # type: ignore[method-assign]  # an inherited one would skip the override

    def __init__(self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess) -> None:
        self.params, self.spec, self.streams, self.access = list(params), spec, streams, access
        self.position: Position = self.slot_treatment(self.params[0]) or "examined"

    @abstractmethod
    def scores(self, round: Round) -> FloatArray:
        """Score the candidates; the best available ones are shown.

        Returns
        -------
        float64 (R, K)
            +inf is allowed; NaN stops the row.
        """

    @property
    def fell_back(self) -> BoolArray | None:
        """The rows in which a fallback decided at the last call of `scores`, bool (R,); None without a fallback."""
        return None

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:  # noqa: B027 - a choice
        """Learn from the feedback on ``slate (R, S)``; agents that do not learn leave this empty."""

    def exposure(self, feedback: Feedback) -> FloatArray:
        """Weight each slot as an exposure, float64 (R, S); see `bandits.models.position_bias.exposure`."""
        return position_bias.exposure(feedback, self.position, self.spec.positions)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:  # noqa: ARG002
        """Advance T predrawn steps in one compiled loop, with the same bits as step by step.

        Returns
        -------
        int64 (T, R), optional
            The items shown; None if this agent has no compiled loop. A row whose scores hold a NaN is marked False in
            ``alive`` and has -1 from there on.
        """
        return None

    def probabilities(self, round: Round) -> FloatArray:
        """State the probability that each candidate fills the first slot, float64 (R, K); see ``propensity``.

        Where it is estimated, `bandits.agents.propensity.standard_error` states how well.
        """
        if self.propensity == "monte_carlo":
            return choice_counts(self, round, n=self.n_redraws) / self.n_redraws
        scores = np.where(round.available, self.scores(round), -np.inf)
        return indicator_of_largest(scores)

    @property
    def slot_propensity(self) -> Propensity:
        """What `slot_probabilities` returns: exact in classes that state it in closed form, else from redraws."""
        return "deterministic" if self.propensity == "deterministic" else "monte_carlo"

    def slot_probabilities(self, round: Round) -> FloatArray:
        """State the probability that each candidate fills each of the S slots, float64 (R, S, K).

        That of a slot is marginal: whatever the other slots show. See ``slot_propensity``; of agents that choose at
        random, `redraws` are counted.
        """
        if self.slot_propensity == "monte_carlo":
            return slot_counts(self, round, n=self.n_redraws) / self.n_redraws
        R, K = round.items.shape
        slate = top_k(self.scores(round), round.available, np.ones(R, np.bool_), self.spec.slate)
        return np.asarray(slate[:, :, None] == np.arange(K), np.float64)

    def explain(self, round: Round) -> Explanation:
        """Decompose `scores` into mean, width or draw, without side effects."""
        return Explanation("score", self.scores(round))

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:  # noqa: ARG002
        """Yield `scores` under other random draws, float64 (R, K), without end; nothing if it draws no samples.

        A row's scores depend on the numbers of that row alone where they come from the generator's ``random``,
        ``standard_normal`` and ``beta``, with the axis of rows first (`bandits.base.randomness.RowGenerator`).
        """
        return iter(())

    def note(self) -> str:
        """Describe in a few words a representation that the agent chose by itself; empty if it chose none."""
        return ""

    def prepare(self) -> None:  # noqa: B027 - a choice
        """Train before the first step, for example on a log. May take seconds."""

    def is_trained(self) -> bool:
        """Return whether `prepare` takes no training, for example because its result is in the cache."""
        return False

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:  # noqa: ARG002
        """Compute the eigenvalues of the design matrix on the span of the features, (R, M, m); None without one."""
        return None

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:  # noqa: ARG003
        """Whether the spectrum has one model per arm (True) or one for all arms (False); None without a spectrum."""
        return None

    @classmethod
    def forgets(cls, params: Any) -> bool:  # noqa: ARG003
        """Whether old observations lose their weight by design (discount factor, sliding window)."""
        return False

    @classmethod
    def uncertainty_of(cls, params: Any) -> Uncertainty | None:  # noqa: ARG003
        """Return ``uncertainty``, or what these parameters choose."""
        return cls.uncertainty

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:  # noqa: ARG003
        """Eigenvalue of the design matrix before any data (the ridge), or None without such a matrix."""
        return None

    @classmethod
    def starts_with_data(cls, params: Any) -> bool:  # noqa: ARG003
        """Whether its models hold observations before the first step, so that eigenvalues exceed `prior_precision`."""
        return False

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        """Name what its model reads, or None for an agent without context.

        ``features``: the candidates' features themselves. ``fourier``: random Fourier features of them.
        ``network``: the features, through a neural network.
        """
        return None

    @classmethod
    def generalises(cls, params: Any) -> bool:  # noqa: ARG003
        """Whether an observation of one arm changes the estimates of others."""
        return False

    @classmethod
    def slot_treatment(cls, params: Any) -> Position | None:
        """Name how it weighs the slots of a slate; None for an agent that does not learn."""
        if isinstance(params, LearnerParams):
            return params.position
        return "examined" if cls.learns else None

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        """Parameters that lead through each of its code paths, small and fast, for the contract tests.

        The first set is run in every simulator, the others in those that demand most.
        """
        return [{}]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:  # noqa: ARG003
        """Compute the bytes per row before anything is allocated."""
        return 4096

    @classmethod
    def shared_memory(cls, params: Any, spec: SimulatorSpec, layouts: int) -> int:  # noqa: ARG003
        """Compute the bytes that all rows share, given the number of layouts."""
        return 0

    @classmethod
    def least_work(cls, params: Any, spec: SimulatorSpec, steps: int) -> float:  # noqa: ARG003
        """Compute a lower bound of the floating-point operations of one row in so many steps; 0 if none is known."""
        return 0.0

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:  # noqa: ARG003
        """Return the simulator capabilities that these parameters require."""
        return cls.needs

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:  # noqa: ARG003
        """List changes of parameters that need fewer capabilities or less memory, the first one to try first.

        Each is tried together with those before it, where an agent does not fit a simulator (`experiments.adaptation`).
        """
        return []

    def column(self, name: str) -> FloatArray:
        """Return a numeric hyperparameter of all rows, float64 (R,)."""
        return np.array([getattr(p, name) for p in self.params], dtype=np.float64)

    def state_dict(self) -> dict[str, Any]:
        """Copy the state arrays, by name."""
        return {name: attrgetter(name)(self).copy() for name in self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore saved state arrays."""
        for name in self.state:
            attrgetter(name)(self)[...] = state[name]
