"""Collect measurements and extrapolate them by the methods' complexity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from bandits.base.types import FloatArray

from .complexity import CostAxis, Method, Sizes
from .request import CostRequest

Quantity = Literal["seconds", "bytes"]
# largest sizes of each grid to which the constants are fitted
FITTED = 4
# end of the extrapolation
HIGHEST = 1e10
# sizes of an extrapolated curve, of which every fourth is drawn
STEPS, THIN = 1000, 4


class Timing(NamedTuple):
    """Median seconds of a decision and of its update, and allocated bytes.

    Field names are keys of the printed JSON.
    """

    kind: str
    sizes: Sizes
    decide: float
    update: float
    held: int

    @property
    def seconds(self) -> float:
        """Seconds of a decision with its update."""
        return self.decide + self.update


class Agreement(NamedTuple):
    """Comparison of one method with the exact widths at the same decisions.

    Attributes
    ----------
    kind, simulator : str
    p, past, decisions : int
        Weights of the network, observations before the first compared decision, and compared
        decisions.
    rank : float
        Spearman's rank correlation of the candidates' widths with the exact ones, mean over
        decisions.
    same : float
        Share of decisions with the same choice by mean plus bonus.
    scale : float
        Ratio of its widths to the exact ones, geometric mean.
    exact, widths : tuple of float
        Some of the widths, for the figure.
    """

    kind: str
    simulator: str
    p: int
    past: int
    decisions: int
    rank: float
    same: float
    scale: float
    exact: tuple[float, ...] = ()
    widths: tuple[float, ...] = ()


class Condition(NamedTuple):
    """Condition number of A before inversion after t observations, and the errors of A^-1.

    Attributes
    ----------
    t, d, arms : int
        Observations (of all requested arms), features, and arms that were simulated.
    median, largest : float
        Over the arms: ratio of the largest to the smallest eigenvalue of A.
    errors : dict
        Largest entry of |A A^-1 - I| over the arms, by method.
    """

    t: int
    d: int
    arms: int
    median: float
    largest: float
    errors: dict[str, float]


class Progress(NamedTuple):
    """Completed fraction, current activity, new result, and whether timing has ended."""

    fraction: float
    activity: str
    result: Timing | Agreement | Condition | None
    timed: bool = False


class _Line(NamedTuple):
    """Measured points of a method along an axis, and their extrapolation.

    The extrapolation starts at the last point if ``joined``, else at the lowest size.
    """

    x: FloatArray
    y: FloatArray
    extrapolated_x: FloatArray
    extrapolated_y: FloatArray
    joined: bool


class CostCurve(NamedTuple):
    """Measured points of a method along an axis, extrapolation, and limit.

    ``limit`` is the point where the curve exceeds a given limit, if it does.
    """

    x: FloatArray
    y: FloatArray
    extrapolated_x: FloatArray
    extrapolated_y: FloatArray
    limit: tuple[float, float] | None


@dataclass(frozen=True)
class CostReport:
    """Results of a measurement so far; times are extrapolated by the complexity of the methods.

    Attributes
    ----------
    request : CostRequest
    timings : tuple of Timing
    timed : bool
        Whether all timings are complete, so that they can be extrapolated.
    agreements : tuple of Agreement
        Of networks.
    conditions : tuple of Condition
        Of LinUCB, in the order of t.
    """

    request: CostRequest
    timings: tuple[Timing, ...] = ()
    timed: bool = False
    agreements: tuple[Agreement, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def from_progress(cls, request: CostRequest, steps: Iterable[Progress]) -> Self:
        """Collect all results of a measurement."""
        report = cls(request)
        for progress in steps:
            report = report.updated(progress)
        return report

    def updated(self, progress: Progress) -> Self:
        """Add the result of one more step."""
        names = {Timing: "timings", Agreement: "agreements", Condition: "conditions"}
        added: dict[str, Any] = {"timed": self.timed or progress.timed}
        if (result := progress.result) is not None:
            name = names[type(result)]
            added[name] = (*getattr(self, name), result)
        return replace(self, **added)

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods that are compared."""
        return self.request.methods

    def at_request(self, kind: str) -> Timing | None:
        """Return a method's cost at the request: measured, extrapolated, or None."""
        base = self.request.sizes
        for timing in self.timings:
            if timing.kind == kind and timing.sizes == base:
                return timing
        if not self.timed or kind not in self._constants:
            return None
        decide, update = (self._predicted(kind, base, part) for part in (0, 1))
        return Timing(kind, base, decide, update, int(self.methods[kind].memory(base)))

    def is_measured(self, kind: str) -> bool:
        """Tell whether a method was measured at the requested sizes."""
        return any(p.kind == kind and p.sizes == self.request.sizes for p in self.timings)

    def along(self, kind: str, axis: CostAxis) -> list[Timing]:
        """Return the timings of a method where only this axis varies, in order."""
        rest = self.request.sizes.without(axis)
        timings = {
            p.sizes: p for p in self.timings if p.kind == kind and p.sizes.without(axis) == rest
        }
        return sorted(timings.values(), key=lambda p: p.sizes.along(axis))

    def curve(
        self, kind: str, axis: CostAxis, quantity: Quantity, limit: float, until: float = HIGHEST
    ) -> CostCurve:
        """Compute one curve of a plot, up to ``until``, and where it exceeds ``limit``."""
        x, y, far, beyond, joined = self._line(kind, axis, quantity)
        whole_x, whole_y = (
            (np.append(x, far[1:]), np.append(y, beyond[1:])) if joined else (far, beyond)
        )
        shown = far[::THIN] <= until
        return CostCurve(
            x, y, far[::THIN][shown], beyond[::THIN][shown], _crossing(whole_x, whole_y, limit)
        )

    def infeasible_from(
        self, kind: str, axis: CostAxis, max_seconds: float, max_bytes: float
    ) -> tuple[float, Quantity] | None:
        """Find the size from which a method exceeds a limit, and which; None up to 10^10."""
        limits: tuple[tuple[Quantity, float], ...] = (
            ("seconds", max_seconds),
            ("bytes", max_bytes),
        )
        found = [
            (c.limit[0], q)
            for q, most in limits
            if (c := self.curve(kind, axis, q, most)).limit is not None
        ]
        return min(found, default=None)

    def _line(self, kind: str, axis: CostAxis, quantity: Quantity) -> _Line:
        """Return a curve without its limit, computed only once."""
        if (kind, axis, quantity) not in self._lines:
            self._lines[kind, axis, quantity] = self._computed_line(kind, axis, quantity)
        return self._lines[kind, axis, quantity]

    @cached_property
    def _lines(self) -> dict[tuple[str, CostAxis, Quantity], _Line]:
        return {}

    def _computed_line(self, kind: str, axis: CostAxis, quantity: Quantity) -> _Line:
        timings = self.along(kind, axis)
        x = np.array([p.sizes.along(axis) for p in timings], dtype=np.float64)
        y = np.array(
            [p.seconds if quantity == "seconds" else p.held for p in timings], dtype=np.float64
        )
        if not self.timed or (quantity == "seconds" and kind not in self._constants):
            return _Line(x, y, np.empty(0), np.empty(0), joined=False)
        # constant costs are drawn along the axis
        end = x[-1] if len(x) and self.methods[kind].exponents[axis] else None
        steps = self._steps(axis, end)
        far = np.array([s.along(axis) for s in steps])
        if quantity == "bytes":
            return _Line(
                x,
                y,
                far,
                np.array([self.methods[kind].memory(s) for s in steps]),
                joined=end is not None,
            )
        beyond = np.array(
            [self._predicted(kind, s, 0) + self._predicted(kind, s, 1) for s in steps]
        )
        if len(y):
            beyond *= y[-1] / beyond[0]
        return _Line(x, y, far, beyond, joined=end is not None)

    def _steps(self, axis: CostAxis, start: float | None) -> list[Sizes]:
        """Return sizes along an axis, from ``start`` or the lowest to the highest."""
        base = self.request.sizes
        if axis == "p":
            scales = np.geomspace(1e-3, 1e6, STEPS)
            steps = [base.scaled(float(s)) for s in scales]
            low = self.request.axes["p"].lowest if start is None else start
            return [
                *([_with_weights(base, start)] if start else []),
                *(s for s in steps if low < s.p <= HIGHEST),
            ]
        values = np.geomspace(start or self.request.axes[axis].lowest, HIGHEST, STEPS)
        return [
            base._replace(K=float(v)) if axis == "K" else base._replace(t=float(v)) for v in values
        ]

    def _predicted(self, kind: str, sizes: Sizes, part: int) -> float:
        method = self.methods[kind]
        terms = (method.decide if part == 0 else method.update)(sizes)
        return float(np.dot(self._constants[kind][part], terms))

    @cached_property
    def _constants(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Fitted nonnegative constants of each method's terms, decisions and updates."""
        constants = {}
        for kind, method in self.methods.items():
            timings = self._largest(kind)
            if timings:
                decide = _fit(
                    [method.decide(p.sizes) for p in timings], [p.decide for p in timings]
                )
                constants[kind] = (
                    decide,
                    _fit([method.update(p.sizes) for p in timings], [p.update for p in timings]),
                )
        return constants

    def _largest(self, kind: str) -> list[Timing]:
        """Return the timings at the largest sizes of every grid, used for the fit."""
        selected: dict[Sizes, Timing] = {}
        timings = [p for p in self.timings if p.kind == kind]
        for axis in self.request.axes:
            grids: dict[Sizes, list[Timing]] = {}
            for p in timings:
                grids.setdefault(p.sizes.without(axis), []).append(p)
            for grid in (found for found in grids.values() if len(found) > 1):
                selected |= {
                    p.sizes: p for p in sorted(grid, key=lambda p: p.sizes.along(axis))[-FITTED:]
                }
        return list(selected.values()) or timings


def _with_weights(base: Sizes, p: float) -> Sizes:
    """Scale the hidden layers so that the network has p weights."""
    low, high = 1e-6, 1e6
    while high / low > 1 + 1e-12:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if base.scaled(middle).p < p else (low, middle)
    return base.scaled(high)


def _fit(terms: Sequence[Sequence[float]], seconds: Sequence[float]) -> FloatArray:
    """Fit nonnegative constants by least squares of the relative errors."""
    from scipy.optimize import nnls

    y = np.array(seconds)
    X = np.array(terms, dtype=np.float64) / y[:, None]
    # normalise the columns
    size = np.maximum(X.max(axis=0), 1e-300)
    return np.asarray(nnls(X / size, np.ones(len(y)))[0] / size)


def _crossing(x: FloatArray, y: FloatArray, limit: float) -> tuple[float, float] | None:
    """Find where a curve first exceeds the limit; 0 if it starts above.

    Interpolation is linear between logarithms.
    """
    over = np.flatnonzero(y > limit)
    if not len(over):
        return None
    i = int(over[0])
    if i == 0:
        return 0.0, float(y[0])
    share = math.log(limit / y[i - 1]) / math.log(y[i] / y[i - 1])
    return float(x[i - 1] * (x[i] / x[i - 1]) ** share), limit
