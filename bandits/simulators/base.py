"""Base class of all simulators, and the responses that several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numba import njit
from pydantic import BeforeValidator

from bandits.base.params import Params, param
from bandits.base.randomness import Streams
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
    Truth,
    Vectors,
)

from .changes import Change

Encoding = Annotated[
    Literal["block", "context"],
    BeforeValidator(lambda value: "block" if value == "interaction" else value),
]
"""How features of contexts become features of arms.

``interaction`` is read as another name of ``block``.
"""


class SimulatorParams(Params):
    """Parameters of a simulator."""

    kind: str

    @property
    def all_changes(self) -> dict[str, Change]:
        """What changes during a run, by the name of the field that states it."""
        return {
            f"simulator.changes.{i}": change
            for i, change in enumerate(getattr(self, "changes", ()))
        }

    def without_changes(self) -> Self:
        """Return the same parameters without anything that changes during a run."""
        return (
            self.model_copy(update={"changes": ()})
            if "changes" in type(self).model_fields
            else self
        )


def layout_param(what: str, more: str = "") -> Any:
    """Declare which replications have the same layout, and what it consists of."""
    return param(
        "shared",
        title="Layout",
        help=(
            f"shared: the same {what} in every replication. per_row: each replication draws its "
            f"own, which widens the confidence bands.{more}"
        ),
    )


class Simulator(ABC):
    """An environment for R rows at once; a pure function of the step, and of ``state``, if any.

    Parameters
    ----------
    params : Params
    streams : Streams
        Contexts and clicks of a row depend on its replication number alone, never on the agent.
    """

    Params: ClassVar[type[SimulatorParams]]
    title: ClassVar[str]
    family: ClassVar[str] = "Plug-ins"
    """Heading under which menus list it."""
    preset: ClassVar[str] = ""
    """Preset with steps, replications and agents that suit it, loaded where a user chooses it.

    Empty: none.
    """
    reward_noun: ClassVar[str] = "clicks"
    rate_title: ClassVar[str] = "Click-through rate"
    item_noun: ClassVar[str] = "product"
    oracle_knows: ClassVar[str] = ""
    """What the oracle knows beside the expected rewards, as words that follow it."""
    launch_noun: ClassVar[str] = ""
    """What a launch adds, where all candidates of a decision belong to one such thing.

    Empty: single items.
    """

    state: tuple[str, ...] = ()
    """Names of the arrays (R, ...) that choices move (capability ``visits``); `move` alone changes
    them, and checkpoints save them. Without any, lanes of several agents share a simulator.
    """

    def __init__(self, params: Any, streams: Streams) -> None:
        self.params, self.streams = params, streams
        self.spec = self.describe(params)
        S = self.spec.slate
        self.uniforms = streams.blocks("clicks", lambda g, n: g.random((n, S)), width=S)

    @classmethod
    @abstractmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        """Return sizes and capabilities, without creating the simulator."""

    @abstractmethod
    def round_at(self, step: int) -> Round:
        """Return the users of a step and the candidates that can be shown to them."""

    @abstractmethod
    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        """Return the users' response to ``slate (R, S)``, decided by ``uniforms (R, S)``, and its
        expected value.
        """

    @abstractmethod
    def probabilities(self, round: Round) -> FloatArray:
        """Return the expected reward of each candidate if shown first, float64 (R, K).

        NaN without ``truth``.
        """

    def move(self, round: Round, slate: IntArray, uniforms: FloatArray) -> None:  # noqa: B027
        """Move the state by the response to ``slate (R, S)``, decided by the same ``uniforms``.

        Nothing by default. Rounds are those of the present state, whatever their step."""

    def rounds(self, items: IntArray, start: int = 0) -> Iterator[Round]:
        """Yield the rounds of steps that showed ``items (T, R, S)``, and move on after each.

        Parameters
        ----------
        items : int64 (T, R, S)
        start : int
            Number of steps before the first of these.
        """
        for step, shown in enumerate(items, start):
            round = self.round_at(step)
            yield round
            if self.state:
                slate = (round.items[:, None] == shown[:, :, None]).argmax(axis=2)
                self.move(round, slate, self.uniforms.at(step))

    def long_run(self, round: Round) -> FloatArray:
        """Return the expected reward of the rest of the visit if each candidate is shown now and
        the best ones after it, float64 (R, K).

        The expected reward of the step itself where there are no visits."""
        return self.probabilities(round)

    def features(self, item: int | None) -> FloatArray:  # noqa: ARG002
        """Return feature vectors that span those of one item, or (None) of all items, float64 (n,
        D).

        All unit vectors by default.
        """
        return np.eye(self.spec.n_features)

    def log(self, layout: int, n: int) -> LoggedData:
        """Return n interactions with one layout, logged under uniformly random choice (capability
        ``log``).
        """
        raise NotImplementedError(f"{type(self).__name__} provides no logged interactions")

    def vectors(self) -> Vectors:
        """Return the vectors of users and items of which the features consist (capability
        ``vectors``).
        """
        raise NotImplementedError(f"{type(self).__name__} provides no vectors of users and items")

    def launched(self) -> dict[int, list[IntArray]]:
        """Return the items of each launch, by its place among the changes: those of each row,
        ascending.
        """
        return {}

    def categories(self) -> IntArray:
        """Return the category of every item, from 0, int64 (R, n_items) (capability
        ``categories``).
        """
        raise NotImplementedError(f"{type(self).__name__} provides no categories of items")

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        """Return the bytes that ``rows`` rows need, by arithmetic, before anything is allocated."""
        spec = cls.describe(params)
        return 8 * rows * spec.n_candidates * (3 * spec.n_stored + 6)

    @classmethod
    def shared_memory(cls, params: Any, layouts: int) -> int:  # noqa: ARG003
        """Return the bytes of so many layouts, which the simulators of all agents share."""
        return 0

    @classmethod
    def layout_per_row(cls, params: Any) -> bool:
        """Return whether each row draws a layout (catalogue, personas, weights) of its own: by a
        field ``layout``.
        """
        return getattr(params, "layout", "shared") == "per_row"

    @classmethod
    def slate_size(cls, params: Any) -> int:
        """Return the number of items shown at once, S.

        Known even where the data are missing on this machine.
        """
        return cls.describe(params).slate

    @classmethod
    def obstacle(cls, params: Any, replications: int) -> str:  # noqa: ARG003
        """Return in one sentence what prevents a run of so many replications; empty: nothing."""
        return ""

    @classmethod
    def events(cls, params: Any) -> int | None:  # noqa: ARG003
        """Return the number of steps that can count where a log is replayed; None: all."""
        return None

    @classmethod
    def shock(cls, params: Any) -> int | None:
        """Return the step of the first shock, from which on preferences are others.

        None without one.
        """
        return min(
            (c.begins for c in params.all_changes.values() if c.kind == "shock"), default=None
        )

    @classmethod
    def variation(cls, params: Any, steps: int) -> float | None:  # noqa: ARG003
        """Compute the variation budget: the sum over steps of the largest change of an expected
        reward, or None.
        """
        return None

    @classmethod
    def attribution(cls, params: Any) -> str:  # noqa: ARG003
        """Return the source of the data, where a licence requires it."""
        return ""

    @classmethod
    def unscaled(cls, params: Any) -> FloatArray:  # noqa: ARG003
        """Return the largest absolute value of each feature of a table that is not scaled, float64
        (d,); elsewhere empty.
        """
        return np.empty(0)

    @classmethod
    def notes(cls, params: Any) -> list[str]:  # noqa: ARG003
        """State in a sentence each what makes the features hard to learn from.

        Raises
        ------
        UserError
            The data are not stored here.
        """
        return []

    @classmethod
    def yardstick(cls, params: Any) -> str:  # noqa: ARG003
        """State in a few words what is reached without exploration; empty where it is not known.

        Raises
        ------
        UserError
            The data are not stored here.
        """
        return ""

    @classmethod
    def table_rows(cls, params: Any) -> int | None:  # noqa: ARG003
        """Return the number of rows of a user's table; None without one."""
        return None

    @classmethod
    def portable(cls, params: Any) -> bool:  # noqa: ARG003
        """Return whether the parameters alone reproduce this simulator on another machine."""
        return True

    def predraw(self, step: int, n: int) -> PredrawnSteps | None:  # noqa: ARG002
        """Draw up to ``n`` steps ahead (at most one block of draws of width K).

        None where that is impossible.
        """
        return None

    def name(self, item: int, row: int = 0) -> str:  # noqa: ARG002
        """Return the name of an item; items of the same name are equivalent for every user."""
        return f"{self.item_noun} {item}"

    @classmethod
    def segment_names(cls) -> list[str]:
        """Return the names of the segments; empty where users form no groups."""
        return []

    @classmethod
    def category_names(cls) -> list[str]:
        """Return the names of the categories, where every round offers items of all of them;
        elsewhere empty.
        """
        return []

    def layouts(self) -> IntArray:
        """Return the layout of each row, int64 (R,): all 0 unless each row draws its own
        (`layout_per_row`).
        """
        rows = self.streams.rows
        return np.array(rows if self.layout_per_row(self.params) else [0] * len(rows), np.int64)

    def bases(self, per_arm: bool) -> list[FloatArray]:
        """Return orthonormal bases (D, m) of the span of the features: one per arm, or one of all
        arms together.
        """
        items: Sequence[int | None] = range(self.spec.n_items) if per_arm else [None]
        return [span(self.features(item)) for item in items]

    def access(self) -> SimulatorAccess:
        """Return what agents may read if they require it."""
        key = f"{self.log_key()}|{self.streams.seed}"
        observed = self.vectors, self.round_at, self.categories, max(1, len(self.segment_names()))
        return SimulatorAccess(
            self.probabilities, self.log, self.layouts(), key, *observed, self.long_run
        )

    def log_key(self) -> str:
        """Return a text that names everything the log depends on, besides the seed."""
        return str(self.params.model_dump_json())


def span(features: FloatArray) -> FloatArray:
    """Return an orthonormal basis (D, m) of the row space of ``features (n, D)``."""
    values, vectors = np.linalg.eigh(features.T @ features)
    return np.ascontiguousarray(vectors[:, values > max(values[-1], 1e-300) * 1e-10])


class ClickTable(NamedTuple):
    """Click probabilities of K items in each of C contexts, where one item is shown, and what
    follows from them.

    Attributes
    ----------
    probabilities : float64 (C, K)
    best : int64 (C,)
        The optimal item.
    average : float64 (C,)
        Expected reward of a uniformly random item.
    """

    probabilities: FloatArray
    best: IntArray
    average: FloatArray

    @classmethod
    def of(cls, probabilities: FloatArray, available: BoolArray | None = None) -> ClickTable:
        """Derive the optimum (ties to the lowest index) and the average, of the items ``available
        (C, K)``.
        """
        table = np.ascontiguousarray(probabilities, dtype=np.float64)
        return cls(table, *_optimum(table, available))

    def respond(
        self, context: IntArray, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        """Draw Bernoulli clicks by the uniform numbers."""
        rewards, value, best_value, random_value, best_reward = click(
            *self, context, slate, uniforms
        )
        return (
            Feedback(rewards, np.ones(slate.shape, np.bool_)),
            Truth(value, best_value, random_value, best_reward),
        )


def single_response(
    means: FloatArray,
    slate: IntArray,
    uniforms: FloatArray,
    reward: Callable[[FloatArray, FloatArray], FloatArray],
    available: BoolArray | None = None,
) -> tuple[Feedback, Truth]:
    """Respond where one of K candidates is shown.

    Parameters
    ----------
    means : float64 (R, K)
        Expected rewards.
    reward : callable
        Draws rewards from means (R,) by uniforms (R,). The item shown and the best item (ties to
        the lowest index) get the same uniform number, so that agents stay paired.
    available : bool (R, K), optional
        Candidates that can be shown; all by default.
    """
    rows, uniform = np.arange(len(slate)), uniforms[:, 0]
    best, average = _optimum(means, available)
    value, best_value = means[rows, slate[:, 0]], means[rows, best]
    truth = Truth(value, best_value, average, reward(best_value, uniform))
    return Feedback(reward(value, uniform)[:, None], np.ones(slate.shape, np.bool_)), truth


def _optimum(means: FloatArray, available: BoolArray | None) -> tuple[IntArray, FloatArray]:
    """Return the best item in each row of ``means`` (ties to the lowest index), and the average of
    the row.
    """
    if available is None or available.all():
        return means.argmax(axis=1), means.mean(axis=1)
    best = np.where(available, means, -np.inf).argmax(axis=1)
    return best, np.where(available, means, 0.0).sum(axis=1) / available.sum(axis=1)


def normal(uniforms: FloatArray) -> FloatArray:
    """Transform uniforms in [0, 1) to standard normals, by the inverse of the distribution
    function.
    """
    from scipy.special import ndtri

    # the quantile of 0 is infinite
    return np.asarray(ndtri(np.maximum(uniforms, 2.0**-54)))


@njit(cache=True, nogil=True)
def click(
    probabilities: FloatArray,
    best: IntArray,
    average: FloatArray,
    context: IntArray,
    slate: IntArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Show one item and draw its click: rewards (R, 1).

    Value, best_value, random_value, best_reward (R,).
    """
    R = context.shape[0]
    rewards = np.empty((R, 1))
    value, best_value = np.empty(R), np.empty(R)
    random_value, best_reward = np.empty(R), np.empty(R)
    for r in range(R):
        c = context[r]
        value[r] = probabilities[c, slate[r, 0]]
        best_value[r] = probabilities[c, best[c]]
        random_value[r] = average[c]
        rewards[r, 0] = 1.0 if uniforms[r, 0] < value[r] else 0.0
        best_reward[r] = 1.0 if uniforms[r, 0] < best_value[r] else 0.0
    return rewards, value, best_value, random_value, best_reward
