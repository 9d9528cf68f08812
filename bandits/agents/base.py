"""What every agent is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Literal

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.params import Params, param
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, PredrawnSteps, Round, WorldAccess, WorldSpec
from bandits.models import position_bias
from bandits.models.position_bias import Position

Propensity = Literal["exact", "monte_carlo", "deterministic"]
Uncertainty = Literal["bonus", "posterior"]
Representation = Literal["features", "fourier", "network"]


class AgentParams(Params):
    """Parameters that every agent has."""

    kind: str
    label: str | None = param(
        None, title="Name", help="How this agent is called in plots and tables.", pattern=r"^[\w.-][\w .-]{0,39}$"
    )


class LearnerParams(AgentParams):
    """Parameters of agents that learn from clicks."""

    position: Position = param(
        "examined", title="Slots of a slate", structural=True, later=True, slates=True,
        help="examined: learns from what was looked at. ignored: takes every slot for looked at, a mistake that is "
        "often made. aware: counts an item further down as shown less, by as much as it is clicked less there.",
    )  # fmt: skip


class Agent(ABC):
    """A policy over R rows: it scores the candidates, the engine shows the best, it learns from the feedback.

    Parameters
    ----------
    params : sequence of Params
        One per row; structural fields are equal in all of them.
    setting : WorldSpec
    streams : Streams
    world : WorldAccess
        Doors to the truth or a log, for the agents whose ``needs`` name them.
    """

    Params: ClassVar[type[AgentParams]]
    title: ClassVar[str]
    formula: ClassVar[str]
    """Its score of a candidate, in LaTeX."""
    needs: ClassVar[frozenset[str]] = frozenset()
    offered_for: ClassVar[frozenset[str]] = frozenset()
    """Capabilities without which forms do not offer it, because it cannot tell the arms apart; it runs all the same."""
    propensity: ClassVar[Propensity] = "deterministic"
    learns: ClassVar[bool] = True
    """Whether it changes during a run."""
    uncertainty: ClassVar[Uncertainty | None] = None
    """What it explores with: an upper confidence bound (``bonus``), posterior draws (``posterior``), or neither.

    Diagnostics read it through `uncertainty_of`; override that where a parameter decides.
    """
    linear: ClassVar[bool] = False
    """Whether the expected reward is a linear function of what its model reads (see `representation`)."""
    colour: ClassVar[str | None] = None
    """Colour of its curves, ``#RRGGBB``; None: the first colour that no other agent of the figure has."""
    dash: ClassVar[str] = "solid"
    """Line style of its curves, as plotly names it: solid, dash, dot or dashdot."""
    alone: ClassVar[bool] = True
    """Whether a row's numbers are the same bits without the rows beside it; they never differ but by rounding."""
    state: tuple[str, ...] = ()
    """Names (dotted) of the arrays that learning changes: all there is to save."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        if ("scores" in own or "learn" in own) and "play" not in own:
            cls.play = Agent.play  # type: ignore[method-assign]  # an inherited one would pass over what is new here

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        self.params, self.spec, self.streams, self.access = list(params), spec, streams, access
        self.position: Position = self.slot_treatment(self.params[0]) or "examined"

    @abstractmethod
    def scores(self, round: Round) -> FloatArray:
        """How much it wants to show each candidate, float64 (R, K); +inf is allowed, NaN stops the row."""

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:  # noqa: B027 - a choice
        """Take in what happened to ``slate (R, S)``. Agents that do not learn leave this empty."""

    def shows(self, feedback: Feedback) -> FloatArray:
        """How often each slot counts as shown, float64 (R, S); see `positions.shows`."""
        return position_bias.shows(feedback, self.position, self.spec.positions)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:  # noqa: ARG002
        """Choose for, and learn from, a whole stretch at once: items (T, R), the same bits as step by step.

        None if this agent cannot. A row whose scores hold a NaN is marked in ``alive`` and gets -1 from there on.
        """
        return None

    def probabilities(self, round: Round) -> FloatArray:
        """Probability that each candidate fills the first slot, float64 (R, K); see ``propensity``."""
        scores = np.where(round.available, self.scores(round), -np.inf)
        return np.asarray(np.eye(scores.shape[1])[scores.argmax(axis=1)])

    def explain(self, round: Round) -> Explanation:
        """What `scores` are made of. It changes nothing."""
        return Explanation("score", self.scores(round))

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:  # noqa: ARG002
        """What `scores` would be under other dice, (R, K) after (R, K) without end; none if it draws no samples."""
        return iter(())

    def note(self) -> str:
        """How it keeps what it knows, in a few words, where there is a choice that it makes by itself."""
        return ""

    def prepare(self) -> None:  # noqa: B027 - a choice
        """Whatever must be learned before the first step, for example from a log. May take seconds."""

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:  # noqa: ARG002
        """Eigenvalues of its design matrix on the span of the features, (R, M, m), or None without one."""
        return None

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:  # noqa: ARG003
        """True if the spectrum has one model per arm, False if one for all, None if there is none."""
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
        """How it weighs the slots of a slate, or None for an agent that learns nothing from slates."""
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
    def memory(cls, params: Any, spec: WorldSpec) -> int:  # noqa: ARG003
        """Bytes per row, by arithmetic, before anything is allocated."""
        return 4096

    @classmethod
    def shared_memory(cls, params: Any, spec: WorldSpec, layouts: int) -> int:  # noqa: ARG003
        """Bytes that the rows share, for so many layouts, by arithmetic."""
        return 0

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:  # noqa: ARG003
        """Capabilities that it needs of a world under these parameters."""
        return cls.needs

    def column(self, name: str) -> FloatArray:
        """One numeric hyperparameter as an array (R,)."""
        return np.array([getattr(p, name) for p in self.params], dtype=np.float64)

    def state_dict(self) -> dict[str, Any]:
        """Copies of the state arrays, by name."""
        return {name: attrgetter(name)(self).copy() for name in self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put saved arrays back."""
        for name in self.state:
            attrgetter(name)(self)[...] = state[name]
