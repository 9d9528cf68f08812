"""Selection entropy of what is shown, of all decisions and within each segment, and coverage of
arms.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.base.formatting import number, percent
from bandits.base.params import param
from bandits.base.types import IntArray
from bandits.results.metrics import normalised_entropy

from .alarm import Setting, Steps
from .base import Judgement, MonitorParams, WindowMonitor, window_param


def entropy_param() -> Any:
    """Declare the smallest entropy without an alarm."""
    return param(
        0.5,
        title="Smallest entropy",
        ge=0,
        le=1,
        help=(
            "Normalised selection entropy below which an alarm is raised. Larger values require "
            "more exploration; usually 0.2 to 0.8."
        ),
    )


def counts(window: Steps, setting: Setting, groups: int = 1) -> IntArray:
    """Count how often each item was shown to each segment of users, or to all of them, int64 (R,
    groups, n_counted).

    Parameters
    ----------
    groups : int
        Number of segments; 1: all users together.
    """
    out = np.zeros((len(setting.rows), groups, setting.n_counted), np.int64)
    kernel: Any = _count
    kernel(window.items, window.segments, setting.bucket_size, out)
    return out


@njit(cache=True, nogil=True)
def _count(items: IntArray, segments: IntArray, bucket_size: int, out: IntArray) -> None:
    """Add the shows of T steps to ``out (R, groups, n_counted)``."""
    T, R, S = items.shape
    for t in range(T):
        for r in range(R):
            group = segments[t, r] if out.shape[1] > 1 else 0
            for s in range(S):
                item = items[t, r, s]
                out[r, group, item if bucket_size == 1 else item // bucket_size] += 1


class Entropy(WindowMonitor):
    """Report a selection entropy below a bound: -sum p log p / log min(K, window), as
    `bandits.results.metrics` has it.

    An agent that has learned which arms are best has a low entropy too.
    """

    class Params(MonitorParams):
        kind: Literal["entropy"] = "entropy"
        window: int = window_param(500)
        lowest: float = entropy_param()

    title = "Selection entropy"

    def judge(self, window: Steps) -> Judgement:
        shown = counts(window, self.setting)[:, 0]
        entropy, lowest = normalised_entropy(shown), self.params.lowest
        text = "The selection entropy is {}, below {}."
        return Judgement(
            entropy < lowest,
            entropy,
            lowest,
            lambda r: text.format(number(entropy[r]), number(lowest)),
        )


class SegmentEntropy(WindowMonitor):
    """Report the lowest selection entropy within a segment of users.

    Segments with few visitors are left out.
    """

    class Params(MonitorParams):
        kind: Literal["segment_entropy"] = "segment_entropy"
        window: int = window_param(1000)
        lowest: float = entropy_param()
        visitors: int = param(
            50,
            title="Fewest visitors",
            ge=2,
            le=1_000_000,
            help=(
                "Visitors of a segment in a window that are required. Larger values leave out "
                "more segments; usually 50 to 500."
            ),
        )

    title = "Entropy by segment"
    needs = frozenset({"segments"})

    def judge(self, window: Steps) -> Judgement:
        names, lowest = self.setting.segments, self.params.lowest
        shown = counts(window, self.setting, len(names))
        slots = window.items.shape[2]
        enough = shown.sum(axis=2) >= self.params.visitors * slots
        entropy = np.where(enough, normalised_entropy(shown), np.inf)
        segment, smallest = entropy.argmin(axis=1), entropy.min(axis=1)

        def sentence(r: int) -> str:
            return (
                f"The selection entropy for {names[segment[r]]} is {number(smallest[r])}, below "
                f"{number(lowest)}."
            )

        return Judgement(smallest < lowest, smallest, lowest, sentence)


class Coverage(WindowMonitor):
    """Report that many arms get less than min(1 %, half of 1/K) of the shows of the last window.

    Large catalogues are counted in buckets of neighbouring items.
    """

    class Params(MonitorParams):
        kind: Literal["coverage"] = "coverage"
        window: int = window_param(1000)
        share: float = param(
            0.5,
            title="Share of arms",
            ge=0,
            le=1,
            help=(
                "Share of the arms that may be shown less than this. Larger values tolerate "
                "more; usually 0.1 to 0.8."
            ),
        )

    title = "Coverage of arms"

    def judge(self, window: Steps) -> Judgement:
        shown = counts(window, self.setting)[:, 0]
        bound = min(0.01, 0.5 / self.setting.n_counted)
        rare, share = (
            (shown < bound * shown.sum(axis=1, keepdims=True)).mean(axis=1),
            self.params.share,
        )
        text = "{} of the arms got less than {} of the shows each."
        return Judgement(
            rare > share, rare, share, lambda r: text.format(percent(rare[r]), percent(bound, 2))
        )
