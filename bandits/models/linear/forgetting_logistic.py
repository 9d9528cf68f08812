"""Logistic models for non-stationary environments: a sliding window, or a discount factor.

theta = argmin of sum w log loss + lambda/2 |theta|^2, where an observation k steps old has the
weight w = gamma^k, or w = 1 within the window and 0 before it; the prior keeps its whole weight.
Every ``refit`` steps all models are fitted exactly (`logistic`), shown since or not, so that what
is not shown becomes uncertain again. In between, new observations are added one by one, and none is
forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, Round, SimulatorSpec

from .logistic import Covariance, Logistic, Sharing, history_memory
from .logistic_fit import History, find_entry
from .logistic_kernels import Posterior, fit_exactly


@njit(cache=True, nogil=True)
def discount(history: History, gamma: FloatArray) -> None:
    """Multiply exposures and clicks of every row by its gamma."""
    R = history.shows.shape[0]
    for r in range(R):
        for entry in range(history.used[r]):
            history.shows[r, entry] *= gamma[r]
            history.clicks[r, entry] *= gamma[r]


@njit(cache=True, nogil=True)
def keep_heaviest(history: History, bits: IntArray, most: int, least: float) -> None:
    """Keep at most the ``most`` entries of each row with the largest exposures, all of them of at
    least ``least``.

    ``bits`` is ``history.values`` viewed as integers.
    """
    R = history.shows.shape[0]
    for r in range(R):
        used = history.used[r]
        if used == 0:
            continue
        order = np.argsort(-history.shows[r, :used])
        kept = 0
        while kept < min(used, most) and history.shows[r, order[kept]] >= least:
            kept += 1
        if kept == used:
            continue
        chosen = np.sort(order[:kept])
        shows, clicks = history.shows[r, chosen], history.clicks[r, chosen]
        model, values, columns = (
            history.model[r, chosen],
            history.values[r, chosen],
            history.columns[r, chosen],
        )
        raw = bits[r, chosen]
        clear(history, r)
        for i in range(kept):
            entry = find_entry(history, r, model[i], values[i], raw[i], columns[i])
            history.shows[r, entry] = shows[i]
            history.clicks[r, entry] = clicks[i]


@njit(cache=True, nogil=True)
def clear(history: History, r: int) -> None:
    """Remove all entries of a row."""
    history.used[r] = 0
    for slot in range(history.slots.shape[1]):
        history.slots[r, slot] = -1


@njit(cache=True, nogil=True)
def collect(
    history: History,
    values: FloatArray,
    bits: IntArray,
    columns: IntArray,
    model: IntArray,
    rewards: FloatArray,
    shows: FloatArray,
    seen: BoolArray,
) -> None:
    """Make the history of a window: ``values, bits, columns (W, R, S, N)``, the others (W,
    R, S).
    """
    W, R, S = model.shape
    for r in range(R):
        clear(history, r)
        for w in range(W):
            for s in range(S):
                if seen[w, r, s]:
                    entry = find_entry(
                        history, r, model[w, r, s], values[w, r, s], bits[w, r, s], columns[w, r, s]
                    )
                    history.shows[r, entry] += shows[w, r, s]
                    history.clicks[r, entry] += rewards[w, r, s]


@njit(cache=True, nogil=True)
def fit_all(posterior: Posterior, history: History) -> None:
    """Fit every model of every row exactly to its history."""
    R, M, _ = posterior.theta.shape
    for r in range(R):
        for m in range(M):
            fit_exactly(posterior, history, r, m)


NEVER = 2**62
# exposures below this weight are dropped
LEAST = 1e-12


class DiscountedLogistic(Logistic):
    """Logistic models in which an observation k steps old has weight gamma^k.

    Parameters
    ----------
    gamma : float64 (R,)
    history : int
        Distinct pairs of model and feature vector that are kept; beyond them, those of the least
        weight are dropped.
    """

    def __init__(
        self,
        ridge: FloatArray,
        gamma: FloatArray,
        spec: SimulatorSpec,
        sharing: Sharing,
        *,
        refit: int,
        history: int,
        covariance: Covariance = "full",
        joint: bool = False,
    ) -> None:
        # of the observations until the next fit
        room = refit * spec.slate
        super().__init__(
            ridge,
            spec,
            sharing,
            refit=NEVER,
            history=history + room,
            covariance=covariance,
            joint=joint,
        )
        self.gamma, self.interval, self.most = gamma, refit, history

    def update(
        self, round: Round, slate: IntArray, feedback: Feedback, shows: FloatArray | None = None
    ) -> None:
        discount(self.history, self.gamma)
        super().update(round, slate, feedback, shows)
        if (round.step + 1) % self.interval == 0:
            history = self.history
            keep_heaviest(history, history.values.view(np.int64), self.most, LEAST)
            fit_all(self.posterior, history)


class WindowedLogistic(Logistic):
    """Logistic models of the last ``window`` steps."""

    RING = ("ring_values", "ring_columns", "ring_model", "ring_reward", "ring_shows", "ring_seen")

    def __init__(
        self,
        ridge: FloatArray,
        spec: SimulatorSpec,
        sharing: Sharing,
        window: int,
        *,
        refit: int,
        covariance: Covariance = "full",
        joint: bool = False,
    ) -> None:
        size = (window + refit) * spec.slate
        super().__init__(
            ridge, spec, sharing, refit=NEVER, history=size, covariance=covariance, joint=joint
        )
        self.window, self.interval = window, refit
        shape = (window, len(ridge), spec.slate)
        self.ring_values = np.zeros((*shape, spec.n_stored))
        self.ring_columns = np.zeros((*shape, spec.n_stored), np.int64)
        self.ring_model = np.zeros(shape, np.int64)
        self.ring_reward, self.ring_shows = np.zeros(shape), np.zeros(shape)
        self.ring_seen = np.zeros(shape, np.bool_)
        self._rows = np.arange(len(ridge))[:, None]

    @property
    def state(self) -> tuple[str, ...]:
        return super().state + self.RING

    def update(
        self, round: Round, slate: IntArray, feedback: Feedback, shows: FloatArray | None = None
    ) -> None:
        shows = feedback.examined.astype(np.float64) if shows is None else shows
        super().update(round, slate, feedback, shows)
        at, context = round.step % self.window, round.context[:, None]
        values, columns, _ = round.contexts
        self.ring_values[at], self.ring_columns[at] = (
            values[context, slate],
            columns[context, slate],
        )
        self.ring_model[at] = self.models(round)[self._rows, slate]
        self.ring_reward[at], self.ring_shows[at], self.ring_seen[at] = (
            feedback.rewards,
            shows,
            shows > 0,
        )
        if (round.step + 1) % self.interval == 0:
            collect(
                self.history,
                self.ring_values,
                self.ring_values.view(np.int64),
                self.ring_columns,
                self.ring_model,
                self.ring_reward,
                self.ring_shows,
                self.ring_seen,
            )
            fit_all(self.posterior, self.history)


def make_logistic(
    ridge: FloatArray,
    gamma: FloatArray,
    spec: SimulatorSpec,
    params: Any,
    covariance: Covariance,
    *,
    joint: bool,
) -> Logistic:
    """Create the models that the parameters ask for: ``sharing, refit, history, gamma`` and
    ``window``.
    """
    kept: dict[str, Any] = {"refit": params.refit, "covariance": covariance, "joint": joint}
    if params.window is not None:
        return WindowedLogistic(ridge, spec, params.sharing, params.window, **kept)
    if params.gamma < 1:
        return DiscountedLogistic(
            ridge, gamma, spec, params.sharing, history=params.history, **kept
        )
    return Logistic(ridge, spec, params.sharing, history=params.history, **kept)


def forgetting_memory(params: Any, spec: SimulatorSpec) -> int:
    """Compute the bytes per row that the models of `make_logistic` need beyond those of
    `Logistic`.
    """
    if params.window is not None:
        ring = params.window * spec.slate * (16 * spec.n_stored + 25)
        return int(
            ring + history_memory((params.window + params.refit) * spec.slate, spec.n_stored)
        )
    return history_memory(params.refit * spec.slate, spec.n_stored) if params.gamma < 1 else 0
