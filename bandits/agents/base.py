"""The base class of agents: what the author of one writes.

`facts` holds what tools read of an agent besides, `rows` what all agents have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from inspect import getattr_static
from types import FunctionType
from typing import Any, ClassVar, Literal

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.selection import best_slots, shares_of_largest, top_k
from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, PredrawnSteps, Round

from .facts import AgentFacts
from .params import AgentParams
from .propensity import REDRAWS, choice_counts, slot_counts
from .rows import AgentRows

Propensity = Literal["exact", "monte_carlo", "deterministic"]
_CODE = (FunctionType, property, cached_property, classmethod, staticmethod)


class Agent(AgentRows, ABC):
    """A policy over R rows: it scores the candidates, the best are shown, and it learns from the
    feedback.

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
    propensity: Propensity = "deterministic"
    """What `probabilities` returns: the distribution of the first slot, an estimate of it, or 1 for
    what is shown, shared among candidates that are tied.

    An agent whose parameters decide sets it in its constructor.
    """
    n_redraws: int = REDRAWS
    """Redraws from which `probabilities` estimates, where ``propensity`` is monte_carlo."""

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        """Return parameters that lead through each of its code paths, small and fast, for the
        contract tests.

        The first set is run in every simulator, the others in those that demand most.
        """
        return [{}]

    def prepare(self) -> None:
        """Train before the first step, for example on a log. May take seconds."""

    @abstractmethod
    def scores(self, round: Round) -> FloatArray:
        """Score the candidates, float64 (R, K); the best available ones are shown, ties at random.

        +inf is allowed; NaN stops a row.
        """

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        """Learn from the feedback on ``slate (R, S)``.

        Agents that do not learn leave this empty.
        """

    def explain(self, round: Round) -> Explanation:
        """Decompose `scores` into mean, width or draw, without side effects."""
        return Explanation("score", self.scores(round))

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:  # noqa: ARG002
        """Yield `scores` under other random draws, float64 (R, K), without end.

        Nothing if it draws no samples.

        A row's scores depend on the numbers of that row alone where they come from the generator's
        ``random``, ``standard_normal`` and ``beta``, with the axis of rows first
        (`bandits.base.randomness.RowGenerator`)."""
        return iter(())

    def probabilities(self, round: Round) -> FloatArray:
        """State the probability that each candidate fills the first slot, float64 (R, K).

        See ``propensity``. Redraws are counted together with the draw of this round: given all of
        them, each is the one that decides with equal probability, so that inverse propensities are
        unbiased, also where guards mix the estimate with probabilities that are known.
        """
        if self.propensity != "monte_carlo":
            return shares_of_largest(np.where(round.available, self.scores(round), -np.inf))
        n = self.n_redraws
        return np.asarray((choice_counts(self, round, n=n) + self._shown(round, 1)[:, 0]) / (n + 1))

    @property
    def slot_propensity(self) -> Propensity:
        """What `slot_probabilities` returns: exact in classes that state it in closed form, else
        from redraws.
        """
        return "deterministic" if self.propensity == "deterministic" else "monte_carlo"

    def slot_probabilities(self, round: Round) -> FloatArray:
        """State the probability that each candidate fills each of the S slots, float64 (R, S, K).

        That of a slot is marginal: whatever the other slots show. See ``slot_propensity``; of
        agents that choose at random, `redraws` are counted, together with the draw of this
        round."""
        S = self.spec.slate
        if self.slot_propensity != "monte_carlo":
            return best_slots(self.scores(round), round.available, S)
        n = self.n_redraws
        return np.asarray((slot_counts(self, round, n=n) + self._shown(round, S)) / (n + 1))

    def _shown(self, round: Round, size: int) -> FloatArray:
        """Return 1 for the candidate that each of S slots shows, float64 (R, S, K)."""
        scores, alive = self.scores(round), np.ones(len(round.items), np.bool_)
        slate = top_k(scores, round.available, alive, size, self.streams.ties, round.step)
        return np.asarray(slate[:, :, None] == np.arange(scores.shape[1]), np.float64)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:  # noqa: ARG002
        """Advance T predrawn steps in one compiled loop, with the same bits as step by step.

        Ties are broken as in `bandits.base.selection.top_k`, by the keys ``self.streams.ties``.

        A subclass does not inherit the loop if it overrides code that this may follow: it writes
        one of its own, or is played step by step.

        Returns
        -------
        int64 (T, R), optional
            The items shown; None if this agent has no compiled loop. A row whose scores hold a NaN
            is marked False in ``alive`` and has -1 from there on.
        """
        return None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        author = next(base for base in cls.__mro__ if "play" in vars(base))
        added = {name for base in set(cls.__mro__) - set(author.__mro__) for name in vars(base)}
        # what tools read changes no choice
        added -= {*vars(AgentFacts), "explain", "test_params"}
        # an inherited compiled loop would skip what is overridden
        if any(isinstance(getattr_static(author, name, None), _CODE) for name in added):
            cls.play = Agent.play  # type: ignore[method-assign]
