"""What was found, and the lines of theory through it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from bandits.base.types import FloatArray

from .complexity import WAYS
from .request import Axis, ProfileRequest, Sizes

Quantity = Literal["seconds", "bytes"]
LAST = 4  # measured points of each ladder that the constants are fitted to
LOWEST: dict[Axis, float] = {"p": 60, "t": 40, "K": 4}  # where lines begin
FAR = 1e10  # nobody asks for more
STEPS, THIN = 1000, 4  # sizes of which a line of theory is made, and of how many one is drawn


class Point(NamedTuple):
    """One way at certain sizes: median seconds of a decision and of its update, and bytes that its tensors took."""

    kind: str
    sizes: Sizes
    decide: float
    update: float
    held: int

    @property
    def seconds(self) -> float:
        """A decision with its update."""
        return self.decide + self.update


class Agreement(NamedTuple):
    """One way beside the exact one, at the same decisions.

    Attributes
    ----------
    kind, world : str
    p, past, decisions : int
        Weights of the network, observations before the first of the decisions, and how many these are.
    rank : float
        Spearman's rank correlation of the candidates' widths with the exact ones, mean over decisions.
    same : float
        Share of decisions with the same choice by mean plus width.
    scale : float
        Its widths as a multiple of the exact ones, geometric mean.
    exact, widths : tuple of float
        Some of the widths, for a picture.
    """

    kind: str
    world: str
    p: int
    past: int
    decisions: int
    rank: float
    same: float
    scale: float
    exact: tuple[float, ...] = ()
    widths: tuple[float, ...] = ()


class Step(NamedTuple):
    """News of a measurement: share that is done, what goes on, what was found; whether all times are known."""

    share: float
    doing: str
    found: Point | Agreement | None
    timed: bool = False


class Line(NamedTuple):
    """A way along one axis: what was measured, and how theory goes on, from there (joined) or all along."""

    x: FloatArray
    y: FloatArray
    theory_x: FloatArray
    theory_y: FloatArray
    joined: bool


class Curve(NamedTuple):
    """A way along one axis: what was measured, how theory goes on, and where it becomes too much (if anywhere)."""

    x: FloatArray
    y: FloatArray
    theory_x: FloatArray
    theory_y: FloatArray
    limit: tuple[float, float] | None


@dataclass(frozen=True)
class CostReport:
    """All that was found so far.

    Attributes
    ----------
    question : ProfileRequest
    points : tuple of Point
    agreements : tuple of Agreement
    timed : bool
        All points are there, so that lines can be drawn through them.
    """

    question: ProfileRequest
    points: tuple[Point, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    timed: bool = False

    @classmethod
    def of(cls, question: ProfileRequest, steps: Iterable[Step]) -> CostReport:
        """Everything that a measurement finds."""
        costs = cls(question)
        for step in steps:
            costs = costs.after(step)
        return costs

    def after(self, step: Step) -> CostReport:
        """With one more piece of news."""
        points, agreements = self.points, self.agreements
        if isinstance(step.found, Point):
            points = (*points, step.found)
        elif step.found is not None:
            agreements = (*agreements, step.found)
        return replace(self, points=points, agreements=agreements, timed=self.timed or step.timed)

    def here(self, kind: str) -> Point | None:
        """A way at the sizes asked for: measured, or (once all times are known) as the lines foretell; else None."""
        base = self.question.sizes
        for point in self.points:
            if point.kind == kind and point.sizes == base:
                return point
        if not self.timed or kind not in self._constants:
            return None
        decide, update = (self._foretold(kind, base, part) for part in (0, 1))
        return Point(kind, base, decide, update, int(WAYS[kind].held(base)))

    def measured(self, kind: str) -> bool:
        """Whether a way was measured at the sizes asked for."""
        return any(p.kind == kind and p.sizes == self.question.sizes for p in self.points)

    def along(self, kind: str, axis: Axis) -> list[Point]:
        """What was measured of a way where only this axis is varied, in order."""
        rest = self.question.sizes.without(axis)
        found = {p.sizes: p for p in self.points if p.kind == kind and p.sizes.without(axis) == rest}
        return sorted(found.values(), key=lambda p: p.sizes.at(axis))

    def curve(self, kind: str, axis: Axis, quantity: Quantity, limit: float, until: float = FAR) -> Curve:
        """One line of a plot: drawn up to ``until`` on its axis, too much beyond ``limit`` seconds or bytes."""
        x, y, far, beyond, joined = self._line(kind, axis, quantity)
        whole_x, whole_y = (np.append(x, far[1:]), np.append(y, beyond[1:])) if joined else (far, beyond)
        shown = far[::THIN] <= until
        return Curve(x, y, far[::THIN][shown], beyond[::THIN][shown], _crossing(whole_x, whole_y, limit))

    def limits(self, kind: str, axis: Axis, patience: float, memory: float) -> tuple[float, Quantity] | None:
        """Where a way becomes infeasible along an axis, and by what; None if nowhere (up to 10^10)."""
        asked: tuple[tuple[Quantity, float], ...] = (("seconds", patience), ("bytes", memory))
        found = [(c.limit[0], q) for q, most in asked if (c := self.curve(kind, axis, q, most)).limit is not None]
        return min(found, default=None)

    def _line(self, kind: str, axis: Axis, quantity: Quantity) -> Line:
        """A line without a limit; made once, for hundreds of sizes at every look of every visitor take their time."""
        if (kind, axis, quantity) not in self._lines:
            self._lines[kind, axis, quantity] = self._drawn(kind, axis, quantity)
        return self._lines[kind, axis, quantity]

    @cached_property
    def _lines(self) -> dict[tuple[str, Axis, Quantity], Line]:
        return {}

    def _drawn(self, kind: str, axis: Axis, quantity: Quantity) -> Line:
        points = self.along(kind, axis)
        x = np.array([p.sizes.at(axis) for p in points], dtype=np.float64)
        y = np.array([p.seconds if quantity == "seconds" else p.held for p in points], dtype=np.float64)
        if not self.timed or (quantity == "seconds" and kind not in self._constants):
            return Line(x, y, np.empty(0), np.empty(0), joined=False)
        ends = x[-1] if len(x) and WAYS[kind].steepest[axis] else None  # what does not grow is drawn all along
        steps = self._steps(axis, ends)
        far = np.array([s.at(axis) for s in steps])
        if quantity == "bytes":
            return Line(x, y, far, np.array([WAYS[kind].held(s) for s in steps]), joined=ends is not None)
        beyond = np.array([self._foretold(kind, s, 0) + self._foretold(kind, s, 1) for s in steps])
        if len(y):
            beyond *= y[-1] / beyond[0]
        return Line(x, y, far, beyond, joined=ends is not None)

    def _steps(self, axis: Axis, start: float | None) -> list[Sizes]:
        """Sizes along an axis, from where measuring ended (else from small ones) to far beyond."""
        base = self.question.sizes
        if axis == "p":
            scales = np.geomspace(1e-3, 1e6, STEPS)
            steps = [base.scaled(float(s)) for s in scales]
            low = LOWEST["p"] if start is None else start
            return [*([_exactly(base, start)] if start else []), *(s for s in steps if low < s.p <= FAR)]
        values = np.geomspace(start or LOWEST[axis], FAR, STEPS)
        return [base._replace(K=float(v)) if axis == "K" else base._replace(t=float(v)) for v in values]

    def _foretold(self, kind: str, sizes: Sizes, part: int) -> float:
        way = WAYS[kind]
        terms = (way.decide if part == 0 else way.update)(sizes)
        return float(np.dot(self._constants[kind][part], terms))

    @cached_property
    def _constants(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """The machine's constants of each way's terms, for decisions and updates: none is negative."""
        found = {}
        for kind, way in WAYS.items():
            points = self._last(kind)
            if points:
                decide = _fitted([way.decide(p.sizes) for p in points], [p.decide for p in points])
                found[kind] = decide, _fitted([way.update(p.sizes) for p in points], [p.update for p in points])
        return found

    def _last(self, kind: str) -> list[Point]:
        """The last few points of every ladder: it is from there that lines go on."""
        kept: dict[Sizes, Point] = {}
        points = [p for p in self.points if p.kind == kind]
        for axis in ("p", "t", "K"):
            ladders: dict[Sizes, list[Point]] = {}
            for p in points:
                ladders.setdefault(p.sizes.without(axis), []).append(p)
            for ladder in (found for found in ladders.values() if len(found) > 1):
                kept |= {p.sizes: p for p in sorted(ladder, key=lambda p: p.sizes.at(axis))[-LAST:]}
        return list(kept.values()) or points


def _exactly(base: Sizes, p: float) -> Sizes:
    """The base with hidden layers of such widths that it has p weights."""
    low, high = 1e-6, 1e6
    while high / low > 1 + 1e-12:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if base.scaled(middle).p < p else (low, middle)
    return base.scaled(high)


def _fitted(terms: Sequence[Sequence[float]], seconds: Sequence[float]) -> FloatArray:
    """Least squares of the relative errors with constants >= 0."""
    from scipy.optimize import nnls

    y = np.array(seconds)
    X = np.array(terms, dtype=np.float64) / y[:, None]
    size = np.maximum(X.max(axis=0), 1e-300)  # columns of like size
    return np.asarray(nnls(X / size, np.ones(len(y)))[0] / size)


def _crossing(x: FloatArray, y: FloatArray, limit: float) -> tuple[float, float] | None:
    """Where a curve first passes the limit, on straight lines between logarithms; 0 if it begins beyond."""
    over = np.flatnonzero(y > limit)
    if not len(over):
        return None
    i = int(over[0])
    if i == 0:
        return 0.0, float(y[0])
    share = math.log(limit / y[i - 1]) / math.log(y[i] / y[i - 1])
    return float(x[i - 1] * (x[i] / x[i - 1]) ** share), limit
