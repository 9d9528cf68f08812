"""Types of the data that simulators and agents exchange.

Axis letters, here and everywhere: R rows (independent runs), K candidates, S slots of the slate, D
features, N stored (non-zero) features, C distinct contexts, T steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
KeyArray = NDArray[np.uint64]


class Contexts:
    """Feature vectors of the candidates in each distinct context, stored by their non-zero entries.

    One-hot and block features are mostly zeros: with N stored entries of D, linear agents compute
    with N features. Dense features have N = D.

    Parameters
    ----------
    values : float64 (C, K, N), or a function that returns it
        The stored entries. A function is called at the first access, so that agents without context
        do not pay for features that are computed at every step.
    columns : int64 (C, K, N)
        Their columns, each at most once per vector and ascending; 0 to D - 1 where N = D.
    n_features : int
        D.
    single : function, optional
        Returns the dense features in single precision, with n more columns that are not set,
        float32 (C, K, D + n), where that is faster than converting ``values``. The result must be
        equal to the last bit.
    distinct : tuple of Contexts and int64 (K,), optional
        The same contexts with each feature vector once, and the index of each candidate's vector
        in them, where many candidates have equal features; networks evaluate each once.
    """

    __slots__ = ("_single", "_values", "columns", "distinct", "n_features")

    def __init__(
        self,
        values: FloatArray | Callable[[], FloatArray],
        columns: IntArray,
        n_features: int,
        single: Callable[[int], Float32Array] | None = None,
        distinct: tuple[Contexts, IntArray] | None = None,
    ) -> None:
        self._values, self.columns, self.n_features, self._single = (
            values,
            columns,
            n_features,
            single,
        )
        self.distinct = distinct

    @property
    def values(self) -> FloatArray:
        """The stored entries, float64 (C, K, N)."""
        if callable(self._values):
            self._values = self._values()
        return self._values

    def __iter__(self) -> Iterator[Any]:
        """Unpack as ``values, columns, n_features = contexts``."""
        return iter((self.values, self.columns, self.n_features))

    def dense(self, context: IntArray | None = None) -> FloatArray:
        """Return features with their zeros, float64 (C, K, D), or (R, K, D) for the contexts (R,)
        given.
        """
        values = self.values if context is None else self.values[context]
        if values.shape[-1] == self.n_features:
            return values.copy() if context is None else values
        columns = self.columns if context is None else self.columns[context]
        out = np.zeros((*values.shape[:2], self.n_features))
        np.put_along_axis(out, columns, values, axis=-1)
        return out

    def dense_single(self, context: IntArray, more: int = 0) -> Float32Array:
        """Return the dense features of the contexts (R,) as networks use them, float32 (R, K, D +
        more).

        The last ``more`` columns are not set.
        """
        if self._single is None:
            features = self.dense(context)
            out = np.empty((*features.shape[:2], self.n_features + more), np.float32)
            out[..., : self.n_features] = features
            return out
        own = self._single(more)
        return own if np.array_equal(context, np.arange(len(own))) else own[context]


class Round(NamedTuple):
    """What an agent observes at one step; never an expected reward.

    Attributes
    ----------
    step : int
        Number of steps before this one.
    users : int64 (R,)
    items : int64 (R, K)
        Identity of every candidate; its index where all items are candidates.
    contexts : Contexts
        Features of the candidates in each of C contexts.
    context : int64 (R,)
        Index of the context of each row.
    available : bool (R, K)
        Candidates that can be shown; at least S of them.
    segments : int64 (R,)
        Segment of each user.
    """

    step: int
    users: IntArray
    items: IntArray
    contexts: Contexts
    context: IntArray
    available: BoolArray
    segments: IntArray

    @property
    def features(self) -> FloatArray:
        """Features of the candidates, float64 (R, K, D)."""
        return self.contexts.dense(self.context)


class PredrawnSteps(NamedTuple):
    """T steps drawn ahead, for simulators that do not react to what is shown.

    One of K items is shown; all items are candidates and always available, in one of C fixed
    contexts. Agents that implement `Agent.play` process the steps in one compiled loop, with
    bit-identical results. Like `Truth`, it holds expected rewards, which agents must not use to
    choose.

    Attributes
    ----------
    start : int
        Number of steps before the first of these.
    users, segments, context : int64 (T, R)
    contexts : Contexts
    probabilities : float64 (P, K)
        Tables of click probabilities, one below the other: one for all steps, or one for each where
        they move.
    best : int64 (P,)
        The optimal item.
    average : float64 (P,)
        Expected reward of a uniformly random item.
    row : int64 (T, R)
        Row of these tables that holds at each step.
    uniforms : float64 (T, R)
        Random number of every step: a click if it is below the click probability.
    """

    start: int
    users: IntArray
    segments: IntArray
    context: IntArray
    contexts: Contexts
    probabilities: FloatArray
    best: IntArray
    average: FloatArray
    row: IntArray
    uniforms: FloatArray


class Feedback(NamedTuple):
    """The response of the users.

    Attributes
    ----------
    rewards : float64 (R, S)
    examined : bool (R, S)
        Slots that the user examined; the other slots carry no information.
    ended : bool (R,), optional
        Whether the visit ended with this step, where choices move the state of a visit (capability
        ``visits``); the next state is the next round. None elsewhere: each step stands alone.
    """

    rewards: FloatArray
    examined: BoolArray
    ended: BoolArray | None = None


class Truth(NamedTuple):
    """Expected rewards, known to the simulator only: for metrics, diagnostics and the oracle.

    All are NaN in a simulator without the capability ``truth``.

    Attributes
    ----------
    value, best_value, random_value : float64 (R,)
        Expected reward of the slate shown, of the optimal slate, and of a uniformly random one.
    best_reward : float64 (R,)
        Reward of the optimal slate with the same random numbers.
    lost : float64 (R,), optional
        Expected reward of the rest of the visit that the choice loses, V*(s) - Q*(s, a); its sum
        over a visit is in expectation what the visit earns below the optimum. None without visits.
    """

    value: FloatArray
    best_value: FloatArray
    random_value: FloatArray
    best_reward: FloatArray
    lost: FloatArray | None = None


class LoggedData(NamedTuple):
    """Interactions logged under uniformly random choice, n of them.

    Attributes
    ----------
    users, items : int64 (n,)
    values : float64 (n, N)
    columns : int64 (n, N)
    rewards : float64 (n,)
    means : float64 (n,), optional
        Expected rewards: for the loss of a perfect model, never for learning. None where the
        simulator states none.
    """

    users: IntArray
    items: IntArray
    values: FloatArray
    columns: IntArray
    rewards: FloatArray
    means: FloatArray | None = None


class OfflineTraining(NamedTuple):
    """Training of an agent on a log, before its first step.

    Attributes
    ----------
    interactions : int
        Logged interactions with each layout.
    seconds : float
        Wall time of the training, when it was computed; NaN if it was not recorded.
    held_out : int
        The last interactions of each log, on which the losses below are measured; 0 if the training
        measured none.
    train_loss, validation_loss : float64 (L, E)
        Log loss of the networks of L layouts in each of E epochs: on what they were trained on,
        while they were trained, and on the interactions held out, after the epoch.
    perfect_loss : float64 (L,)
        Log loss of a model that predicts the true probabilities, on the same interactions held out;
        NaN where unknown.
    """

    interactions: int
    seconds: float = math.nan
    held_out: int = 0
    train_loss: FloatArray = np.empty((0, 0))
    validation_loss: FloatArray = np.empty((0, 0))
    perfect_loss: FloatArray = np.empty(0)

    @property
    def excess(self) -> FloatArray:
        """Final loss of each layout's network minus that of a perfect model, float64 (L,)."""
        return self.validation_loss[:, -1] - self.perfect_loss


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSpec:
    """Sizes and capabilities of a simulator, known without creating it.

    Attributes
    ----------
    n_items, n_candidates, n_features, slate, n_users : int
        Number of items in the catalogue, K, D, S, and number of distinct users (0: not identified).
    n_stored : int
        N.
    n_categories : int
        Number of categories of the items, at most (capability ``categories``); 0: not stated.
    n_distinct : int
        Feature vectors of a round that differ, at most, where contexts name them
        (`Contexts.distinct`); 0: not stated.
    bucket_size : int
        Neighbouring items that are counted together, where the catalogue is too large to count
        each.
    fixed_contexts : int
        Contexts per layout where every round has the same `Contexts` object, so that derived values
        can be cached; 0 where contexts change.
    positions : tuple of float
        Position bias: the factor of the click probability in each of the S slots; empty where all
        slots are equal.
    capabilities : frozenset of str
        ``ids`` (users and items have identities), ``truth`` (expected rewards), ``segments`` (users
        form groups), ``log`` (logged interactions), ``binary`` (rewards are 0 or 1),
        ``arm_features`` (features differ between the candidates of a round), ``categories`` (items
        belong to categories), ``vectors`` (the features are the user's vector, the item's, of one
        width, and constants of 1), ``replay`` (a log is replayed: a choice counts only where it
        equals what was logged, so that agents count different events and nothing is paired),
        ``visits`` (choices move the state of a visit of many steps), ``states`` (what agents see of
        a visit is one of ``fixed_contexts`` states, the context of the round).
    bounds : tuple of float
        Values between which all features lie, where they are known for all seeds and steps.
    """

    n_items: int
    n_candidates: int
    n_features: int
    n_stored: int
    slate: int = 1
    n_users: int = 0
    n_categories: int = 0
    n_distinct: int = 0
    bucket_size: int = 1
    capabilities: frozenset[str] = frozenset()
    fixed_contexts: int = 0
    positions: tuple[float, ...] = ()
    bounds: tuple[float, float] = (-math.inf, math.inf)


class Vectors(NamedTuple):
    """Vectors of users and items, of which the features consist.

    Attributes
    ----------
    users, items : float64 (L, n, d)
        Those that agents observe, in each of L layouts.
    layouts : int64 (R,)
        Index of each row's layout.
    """

    users: FloatArray
    items: FloatArray
    layouts: IntArray


def _missing(*_: object) -> Any:
    raise NotImplementedError("this simulator does not provide it")


class SimulatorAccess(NamedTuple):
    """What a simulator gives to agents that require it.

    Attributes
    ----------
    probabilities : callable, Round -> float64 (R, K)
        Expected reward of every candidate if shown first (requires ``truth``).
    log : callable, (layout, n) -> LoggedData
        Logged random interactions with one layout (requires ``log``).
    layouts : int64 (R,)
        Layout of each row: all 0 where the rows share one.
    key : str
        Text that identifies the layouts; models trained on a log are cached under it.
    vectors : callable, () -> Vectors
        The vectors of which the features consist (requires ``vectors``).
    round_at : callable, int -> Round
        What an agent observes at a step, for guards that show a past round to it again.
    categories : callable, () -> int64 (R, n_items)
        The category of every item, from 0 (requires ``categories``).
    n_segments : int
        Number of user segments; 1 where users form no groups.
    long_run : callable, Round -> float64 (R, K)
        Expected reward of the rest of the visit if each candidate is shown now and the best ones
        after it; that of ``probabilities`` where there are no visits (requires ``truth``).
    """

    probabilities: Callable[[Round], FloatArray]
    log: Callable[[int, int], LoggedData]
    layouts: IntArray
    key: str
    vectors: Callable[[], Vectors] = _missing
    round_at: Callable[[int], Round] = _missing
    categories: Callable[[], IntArray] = _missing
    n_segments: int = 1
    long_run: Callable[[Round], FloatArray] = _missing
