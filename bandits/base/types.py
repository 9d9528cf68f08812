"""What a world and an agent say to each other. Knows neither.

Axis letters, here and everywhere: R rows (independent runs), K candidates, S slots of the slate,
D features, N stored (non-zero) features, C distinct contexts, T steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Contexts:
    """Feature vectors of the candidates in each distinct context, by their non-zero entries.

    One-hot and block features are mostly zeros: storing N entries of D lets the linear agents do the work
    of N features. A dense world simply has N = D.

    Parameters
    ----------
    values : float64 (C, K, N), or a function that makes it
        The stored entries. A function is called when they are first looked at: agents that do without features
        need not wait for those of worlds that make new ones at every step.
    columns : int64 (C, K, N)
        Their columns, each at most once per vector and ascending; 0 to D - 1 where N = D.
    n_features : int
        D.
    """

    __slots__ = ("_values", "columns", "n_features")

    def __init__(self, values: FloatArray | Callable[[], FloatArray], columns: IntArray, n_features: int) -> None:
        self._values, self.columns, self.n_features = values, columns, n_features

    @property
    def values(self) -> FloatArray:
        """The stored entries, float64 (C, K, N)."""
        if callable(self._values):
            self._values = self._values()
        return self._values

    def __iter__(self) -> Iterator[Any]:
        """``values, columns, n_features = contexts``."""
        return iter((self.values, self.columns, self.n_features))

    @classmethod
    def from_dense(cls, features: FloatArray) -> Contexts:
        """Keep as many entries as the fullest vector of ``features (C, K, D)`` has non-zeros."""
        width = max(1, int((features != 0).sum(axis=-1).max()))
        order = np.argsort(features == 0, axis=-1, kind="stable")[..., :width]
        columns = np.ascontiguousarray(np.sort(order, axis=-1).astype(np.int64))
        values = np.ascontiguousarray(np.take_along_axis(features, columns, axis=-1))
        return cls(values, columns, features.shape[-1])

    def dense(self, context: IntArray | None = None) -> FloatArray:
        """Features with their zeros, float64 (C, K, D), or (R, K, D) of the contexts asked for."""
        values = self.values if context is None else self.values[context]
        if values.shape[-1] == self.n_features:
            return values.copy() if context is None else values
        columns = self.columns if context is None else self.columns[context]
        out = np.zeros((*values.shape[:2], self.n_features))
        np.put_along_axis(out, columns, values, axis=-1)
        return out


class Round(NamedTuple):
    """What an agent may see at one step. Never a probability.

    Attributes
    ----------
    step : int
        Steps done before this one.
    users : int64 (R,)
    items : int64 (R, K)
        Identity of every candidate; equal to its position where all items are candidates.
    contexts : Contexts
        Features of the candidates in each of C contexts.
    context : int64 (R,)
        Which of them each row is in.
    available : bool (R, K)
        Candidates that may be shown now; at least as many as the slate has slots.
    segments : int64 (R,)
        The group the user belongs to.
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
    """A stretch of T steps drawn ahead, for worlds that do not react to what is shown.

    One product is shown out of K items that are all candidates and always available, in one of C contexts that stay
    the same throughout. Agents that can play it at once (`Agent.play`) save themselves the step by step of the engine,
    and must come to the same bits. Like a `Truth`, it is for the engine to hand over, not for an agent to peek into.

    Attributes
    ----------
    start : int
        Steps done before the first of these.
    users, segments, context : int64 (T, R)
    contexts : Contexts
    probabilities : float64 (C, K)
        Click probabilities.
    best : int64 (C,)
        The optimal item.
    average : float64 (C,)
        Expected reward of a uniformly random item.
    uniforms : float64 (T, R)
        The coin of every step: a click if it is below the probability.
    """

    start: int
    users: IntArray
    segments: IntArray
    context: IntArray
    contexts: Contexts
    probabilities: FloatArray
    best: IntArray
    average: FloatArray
    uniforms: FloatArray


class Feedback(NamedTuple):
    """What the user did.

    Attributes
    ----------
    rewards : float64 (R, S)
    examined : bool (R, S)
        Slots the user looked at; what was not looked at is no evidence.
    """

    rewards: FloatArray
    examined: BoolArray


class Truth(NamedTuple):
    """What only the simulator knows: for metrics, diagnostics and the oracle.

    Attributes
    ----------
    value, best_value, random_value : float64 (R,)
        Expected reward of the slate shown, of the optimal slate, and of a uniformly random one.
    best_reward : float64 (R,)
        Reward that the optimal slate would have earned with the same luck.
    """

    value: FloatArray
    best_value: FloatArray
    random_value: FloatArray
    best_reward: FloatArray


class LoggedData(NamedTuple):
    """Interactions logged under uniformly random choice, n of them.

    Attributes
    ----------
    users, items : int64 (n,)
    values : float64 (n, N)
    columns : int64 (n, N)
    rewards : float64 (n,)
    """

    users: IntArray
    items: IntArray
    values: FloatArray
    columns: IntArray
    rewards: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSpec:
    """What an agent is told about its world before the first step; known without building the world.

    Attributes
    ----------
    n_items, n_candidates, n_features, slate, n_users : int
        Number of items in the catalogue, K, D, S, and the number of distinct users (0: not identified).
    n_stored : int
        N.
    shelf : int
        Neighbouring items that are counted together, where a catalogue is too large to count each.
    fixed_contexts : int
        Contexts per layout where every round has the same `Contexts` object, so that what follows from it may be
        kept; 0 where they are made anew.
    positions : tuple of float
        What an item's chance of a click is multiplied by in each slot, S of them; empty where the slots are alike.
    capabilities : frozenset of str
        Capabilities: ``ids`` (users and items have identities), ``truth``, ``segments``, ``log``, ``binary``
        (rewards are 0 or 1), ``vectors`` (the features are the user's vector and then the item's, of one width).
    """

    n_items: int
    n_candidates: int
    n_features: int
    n_stored: int
    slate: int = 1
    n_users: int = 0
    bucket_size: int = 1
    capabilities: frozenset[str] = frozenset()
    fixed_contexts: int = 0
    positions: tuple[float, ...] = ()


class WorldAccess(NamedTuple):
    """The doors a world opens to an agent that declared a need for them.

    Attributes
    ----------
    probabilities : callable, Round -> float64 (R, K)
        Expected reward of every candidate if shown first (need ``truth``).
    log : callable, (layout row, n) -> Log
        Logged random interactions of the layout a row lives in (need ``log``).
    layouts : int64 (R,)
        Layout of each row: all 0 when the rows share one.
    key : str
        Names the layouts' content; what is learned from a log can be cached under it.
    """

    probabilities: Callable[[Round], FloatArray]
    log: Callable[[int, int], LoggedData]
    layouts: IntArray
    key: str
