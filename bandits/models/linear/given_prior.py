"""Clicks and misses that are given before a run, as observations of models per arm.

Every arm starts as if it had been shown n = clicks + misses times, evenly to the visitors of the
first `VISITS` steps, and as if each of them had clicked with probability clicks / n. An observation
is split: a ridge model holds A = ridge I + n E[x x'] and b = clicks E[x], a logistic model the
maximum a posteriori of clicks log mu + misses log(1 - mu), averaged over these visitors, and its
curvature (Laplace). E is the mean over the visits in which the arm is a candidate; an arm that is
none starts like the first candidate of each visit. Only features are read, never rewards. With one
constant feature and a vanishing ridge the mean is that of a Beta prior of the same clicks and
misses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import Contexts, FloatArray, IntArray, Round, SimulatorSpec

from .logistic import Logistic
from .logistic_fit import History
from .logistic_kernels import fit_each

VISITS = 100
# largest gradient of a fit that has converged, relative to the sum of the terms that cancel in it
TOLERANCE = 1e-8
# numbers in the arrays of one batch, about
_CHUNK = 500_000


class Candidacies(NamedTuple):
    """Visits in which arms of one row are candidates; the arms have equally many, n.

    Attributes
    ----------
    arms : int64 (G,)
    contexts : Contexts
        Features of each arm in each of its visits, (G, n, D); (1, n, D) where they are those of all
        these arms.
    share : float64 (G, n) or (1, n)
        Share of each visit; the shares of an arm sum to 1.
    """

    arms: IntArray
    contexts: Contexts
    share: FloatArray


def candidacies(
    rounds: Callable[[int], Round], spec: SimulatorSpec
) -> Iterator[tuple[int, Candidacies]]:
    """Yield each row and its arms, batched by the number of visits among the first `VISITS`.

    Where contexts are fixed, a visit is a context that occurs, and its share how often.
    """
    first = rounds(0)
    visits = [first, *(rounds(step) for step in range(1, VISITS))]
    for r in range(len(first.items)):
        if spec.fixed_contexts:
            context, times = np.unique([round.context[r] for round in visits], return_counts=True)
            values, columns = first.contexts.values[context], first.contexts.columns[context]
            items = np.broadcast_to(first.items[r], values.shape[:2])
        else:
            values = np.stack([round.contexts.values[round.context[r]] for round in visits])
            columns = np.stack([round.contexts.columns[round.context[r]] for round in visits])
            items, times = np.stack([round.items[r] for round in visits]), np.ones(VISITS, np.int64)
        for batch in _batches(items, values, columns, times.astype(np.float64), spec):
            yield r, batch


def _batches(
    items: IntArray, values: FloatArray, columns: IntArray, times: FloatArray, spec: SimulatorSpec
) -> Iterator[Candidacies]:
    """Sort the candidates of V visits by arm: ``items (V, K)``, ``values``, ``columns (V, K, N)``,
    ``times (V,)``.
    """
    D, N = spec.n_features, values.shape[2]
    order = np.argsort(items, axis=None, kind="stable")
    arms, start, count = np.unique(items.ravel()[order], return_index=True, return_counts=True)
    flat_values, flat_columns, flat_times = (
        values.reshape(-1, N),
        columns.reshape(-1, N),
        times.repeat(items.shape[1]),
    )
    for n in np.unique(count):
        same = np.flatnonzero(count == n)
        size = max(1, _CHUNK // (D * (D + int(n))))
        for part in (same[i : i + size] for i in range(0, len(same), size)):
            places = order[start[part][:, None] + np.arange(n)]
            share = flat_times[places]
            contexts = Contexts(flat_values[places], flat_columns[places], D)
            yield Candidacies(arms[part], contexts, share / share.sum(axis=1, keepdims=True))
    unseen = np.setdiff1d(np.arange(spec.n_items), arms)
    if len(unseen):
        contexts = Contexts(values[None, :, 0].copy(), columns[None, :, 0].copy(), D)
        yield Candidacies(unseen, contexts, times[None] / times.sum())


def given_memory(spec: SimulatorSpec) -> int:
    """Compute the bytes per row of the visits and sums, while they are made."""
    D, M = spec.n_features, spec.n_items
    visits = min(VISITS, spec.fixed_contexts or VISITS) * spec.n_candidates * spec.n_stored
    return 8 * (M * (5 * D**2 + 6 * D) + 5 * visits + 3 * min(_CHUNK, M * D * (D + VISITS)))


def given_sums(
    rounds: Callable[[int], Round], spec: SimulatorSpec, clicks: FloatArray, misses: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute n E[x x'] and clicks E[x] of every arm: float64 (R, M, D, D) and (R, M, D).

    Parameters
    ----------
    rounds : callable, int -> Round
        What the models read at a step.
    spec : SimulatorSpec
    clicks, misses : float64 (R,)
    """
    R, M, D = len(clicks), spec.n_items, spec.n_features
    gram, b = np.empty((R, M, D, D)), np.empty((R, M, D))
    for r, (arms, contexts, share) in candidacies(rounds, spec):
        x = contexts.dense()
        shared = share[..., None] * x
        gram[r, arms] = (clicks[r] + misses[r]) * (shared.swapaxes(1, 2) @ x)
        b[r, arms] = clicks[r] * shared.sum(axis=1)
    return gram, b


def give_logistic(
    model: Logistic,
    rounds: Callable[[int], Round],
    spec: SimulatorSpec,
    ridge: FloatArray,
    clicks: FloatArray,
    misses: FloatArray,
) -> None:
    """Start logistic models per arm from clicks and misses: the Laplace approximation of their
    posterior, in place.

    Parameters
    ----------
    ridge, clicks, misses : float64 (R,)
        For the others see `given_sums`.

    Raises
    ------
    UserError
        If Newton's method does not reach the maximum: the norm of the gradient exceeds `TOLERANCE`.
    """
    p, D = model.posterior, spec.n_features
    for r, (arms, contexts, share) in candidacies(rounds, spec):
        G, n = share.shape
        history = History(
            values=contexts.values,
            columns=contexts.columns,
            model=np.zeros((G, n), np.int64),
            shows=(clicks[r] + misses[r]) * share,
            clicks=clicks[r] * share,
            used=np.full(G, n),
            slots=np.zeros((G, 0), np.int64),
        )
        theta, H, inverse, gradient = (
            np.empty((G, D)),
            np.empty((G, D, D)),
            np.empty((G, D, D)),
            np.empty(G),
        )
        fit_each(history, ridge[r], theta, H, inverse, gradient)
        if not (gradient <= TOLERANCE).all():
            raise UserError(
                f"prior given: the fit of the logistic models to prior_clicks {clicks[r]:g} and "
                f"prior_misses {misses[r]:g} does not converge; use a larger ridge than "
                f"{ridge[r]:g}, or scale the features"
            )
        p.theta[r, arms], p.H[r, arms], p.inverse[r, arms] = theta, H, inverse
    if model.refit:
        p.center[...], p.anchor[...] = p.theta, p.H
