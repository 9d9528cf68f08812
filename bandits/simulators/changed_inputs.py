"""What changes do to the contexts that agents observe, and to the visitors of a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandits.base.types import Contexts, FloatArray, IntArray

from .changes import NEVER, Change, Features, Traffic


class ObservedContexts:
    """The contexts as agents observe them, whose features break at known steps.

    Parameters
    ----------
    contexts : Contexts
        Those without a fault.
    changes : sequence of Change
    n_stored : int
        Stored entries per vector: see `more_stored`.
    """

    def __init__(self, contexts: Contexts, changes: Sequence[Change], n_stored: int) -> None:
        faults = [c for c in changes if isinstance(c, Features)]
        self._faults = sorted(faults, key=lambda fault: fault.at)
        self._versions = [_widened(contexts, n_stored) if faults else contexts]

    def at(self, step: int) -> Contexts:
        """Return those of a step: the same object while nothing changes."""
        n = sum(fault.at <= step for fault in self._faults)
        while len(self._versions) <= n:
            self._versions.append(
                _broken(self._versions[-1], self._faults[len(self._versions) - 1])
            )
        return self._versions[n]

    def next_change(self, step: int) -> int:
        """Return the first step after ``step`` with other contexts."""
        return min((fault.at for fault in self._faults if fault.at > step), default=NEVER)

    def all(self) -> list[Contexts]:
        """Return those of all steps."""
        return [self.at(step) for step in (0, *(fault.at for fault in self._faults))]


def _widened(contexts: Contexts, n_stored: int) -> Contexts:
    """Add stored entries of 0."""
    values, columns, n_features = contexts
    for _ in range(n_stored - columns.shape[-1]):
        columns = np.concatenate([columns, _first_free(columns)[..., None]], axis=-1)
        values = np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)
    return _ascending(values, columns, n_features)


def _broken(contexts: Contexts, fault: Features) -> Contexts:
    values, columns, n_features = contexts
    at = columns == fault.column
    if fault.how == "missing":
        values = np.where(at, 0.0, values)
    elif fault.how == "scaled":
        values = np.where(at, fault.by * values, values)
    elif fault.how == "swapped":
        assert fault.other is not None
        columns = np.where(at, fault.other, np.where(columns == fault.other, fault.column, columns))
    else:
        columns, absent = columns.copy(), ~at.any(axis=-1)
        # in place of a zero
        columns[(*np.nonzero(absent), np.argmax(values == 0, axis=-1)[absent])] = fault.column
        values = np.where(columns == fault.column, values + fault.by, values)
    return _ascending(values, columns, n_features)


def _ascending(values: FloatArray, columns: IntArray, n_features: int) -> Contexts:
    order = np.argsort(columns, axis=-1, kind="stable")
    values = np.ascontiguousarray(np.take_along_axis(values, order, axis=-1))
    return Contexts(
        values, np.ascontiguousarray(np.take_along_axis(columns, order, axis=-1)), n_features
    )


def _first_free(columns: IntArray) -> IntArray:
    """Return the lowest column that each vector does not store."""
    out = np.full(columns.shape[:-1], -1)
    for candidate in range(columns.shape[-1], -1, -1):
        out = np.where((columns == candidate).any(axis=-1), out, candidate)
    return out


def break_dense(features: NDArray[Any], changes: Iterable[Change], step: int) -> NDArray[Any]:
    """Return dense features (..., D) as they arrive at a step.

    The same array while none is broken.
    """
    faults = sorted(
        (c for c in changes if isinstance(c, Features) and c.at <= step), key=lambda fault: fault.at
    )
    if not faults:
        return features
    out = features.copy()
    for fault in faults:
        if fault.how == "missing":
            out[..., fault.column] = 0
        elif fault.how == "scaled":
            out[..., fault.column] *= fault.by
        elif fault.how == "shifted":
            out[..., fault.column] += fault.by
        else:
            assert fault.other is not None
            out[..., [fault.column, fault.other]] = out[..., [fault.other, fault.column]]
    return out


class VisitorShares:
    """Shares of the segments among the visitors, which change at known steps.

    A user whose number was drawn uniformly is exchanged for one of the segment whose share holds
    the number, so that a step's visitor depends on nothing but its own draw. Segments without users
    leave their share to the others.

    Parameters
    ----------
    segments : int64 (L, U)
        Segment of each user, in each of L layouts.
    changes : sequence of Change
    """

    def __init__(self, segments: IntArray, changes: Sequence[Change]) -> None:
        self._changes = sorted((c for c in changes if isinstance(c, Traffic)), key=lambda c: c.at)
        self._n_users = segments.shape[1]
        if self._changes:
            G = len(self._changes[0].shares)
            self._order = np.argsort(segments, axis=1, kind="stable")
            self._counts = np.stack([np.bincount(layout, minlength=G) for layout in segments])

    def users(self, users: IntArray, layout: IntArray, step: int) -> IntArray:
        """Return the visitors of a step for uniformly drawn ``users (..., R)`` of the layouts
        ``layout (R,)``.
        """
        change = next((c for c in reversed(self._changes) if c.at <= step), None)
        if change is None:
            return users
        shares = np.where(self._counts > 0, change.shares, 0.0)
        shares = np.where(shares.sum(axis=1, keepdims=True) > 0, shares, self._counts)
        edges = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)[layout]  # (R, G)
        position = (users + 0.5) / self._n_users
        segment = np.minimum((position[..., None] >= edges).sum(axis=-1), edges.shape[-1] - 1)
        width = np.diff(edges, axis=1, prepend=0.0)
        rows = np.arange(len(layout))
        within = (position - edges[rows, segment]) / np.maximum(width[rows, segment], 1e-300) + 1
        count = self._counts[layout, segment]
        index = np.clip((within * count).astype(np.int64), 0, np.maximum(count - 1, 0))
        first = np.cumsum(self._counts, axis=1)[layout, segment] - count
        return np.asarray(self._order[layout, first + index])

    def next_change(self, step: int) -> int:
        """Return the first step after ``step`` with other shares."""
        return min((change.at for change in self._changes if change.at > step), default=NEVER)
