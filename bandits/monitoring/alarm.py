"""What monitors see, what they report, and what they require."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.lane import joined

Need = Literal["features", "means", "probabilities", "fallbacks", "segments", "single", "binary"]
"""What a monitor requires: features of the items; the agent's estimated means; its probabilities;
whether it fell back;
users in groups; one item shown at once; rewards of 0 or 1. All monitors receive rewards and
items."""


class Alarm(NamedTuple):
    """One alarm of one monitor in one row.

    Attributes
    ----------
    monitor : str
        Kind of the monitor.
    step : int
        Steps done when it was raised.
    row : int
        Replication number.
    label : str
        Of the agent.
    statistic, threshold : float
        The number that was tested, and the bound that it crossed.
    sentence : str
        What was observed, in one sentence.
    """

    monitor: str
    step: int
    row: int
    label: str
    statistic: float
    threshold: float
    sentence: str


class Setting(NamedTuple):
    """Sizes and names of a run, known before it starts.

    Attributes
    ----------
    label : str
        Of the agent.
    rows : tuple of int
        Replication number of each of the R rows.
    n_items, bucket_size : int
        Number of items, and neighbouring items that are counted together.
    segments : tuple of str
        Names of the groups of users.
    """

    label: str
    rows: tuple[int, ...]
    n_items: int
    bucket_size: int = 1
    segments: tuple[str, ...] = ()

    @property
    def n_counted(self) -> int:
        """Number of items or buckets that are counted."""
        return -(-self.n_items // self.bucket_size)


class Samples(NamedTuple):
    """What is recorded at N steps, every n-th of a run; None where no monitor requires it.

    Attributes
    ----------
    steps : int64 (N,)
        Steps done before each.
    rewards : float64 (N, R)
    features : float64 (N, R, D), optional
        Of the first item shown.
    context : float64 (N, R, D), optional
        Mean of the features of the available candidates, which does not depend on what the agent
        chooses.
    means : float64 (N, R), optional
        The agent's own estimate of the reward of the first item shown; NaN without one.
    explored : float64 (N, R), optional
        Share of the items shown whose estimated mean is not among the highest.
    weights : float64 (N, R), optional
        Probability of the first item under uniformly random choice, divided by the one that the
        agent states.
    weight_law : float64 (N, R, 3), optional
        Expected value, variance and largest value of that weight, given the stated probabilities.
    """

    steps: IntArray
    rewards: FloatArray
    features: FloatArray | None = None
    context: FloatArray | None = None
    means: FloatArray | None = None
    explored: FloatArray | None = None
    weights: FloatArray | None = None
    weight_law: FloatArray | None = None

    def select(self, there: BoolArray) -> Self:
        """Return some of the samples, chosen by bool (N,)."""
        columns: list[Any] = [None if column is None else column[there] for column in self]
        return type(self)(*columns)


class Steps(NamedTuple):
    """T consecutive steps of R rows, as a system in production sees them; never an expected reward.

    Attributes
    ----------
    start : int
        Steps done before the first of these.
    items : int64 (T, R, S)
        Items shown.
    segments : int64 (T, R)
        Segment of the user.
    rewards : float64 (T, R)
        NaN in rows that have stopped.
    samples : Samples, optional
    fell_back : bool (T, R), optional
        Decisions that a fallback took in place of the agent.
    """

    start: int
    items: IntArray
    segments: IntArray
    rewards: FloatArray
    samples: Samples | None = None
    fell_back: BoolArray | None = None

    def part(self, begin: int, end: int) -> Self:
        """Return the steps from ``begin`` to ``end``, counted from the first of these."""
        samples = self.samples
        if samples is not None:
            samples = samples.select(
                (samples.steps >= self.start + begin) & (samples.steps < self.start + end)
            )
        fell_back = None if self.fell_back is None else self.fell_back[begin:end]
        return type(self)(
            self.start + begin,
            self.items[begin:end],
            self.segments[begin:end],
            self.rewards[begin:end],
            samples,
            fell_back,
        )


def join_samples(parts: list[Samples]) -> Samples | None:
    """Concatenate samples; None without any."""
    return Samples(**joined(parts, Samples._fields)) if parts else None


def join(parts: list[Steps]) -> Steps:
    """Concatenate consecutive steps."""
    if len(parts) == 1:
        return parts[0]
    samples = join_samples([part.samples for part in parts if part.samples is not None])
    columns = joined(parts, ("items", "segments", "rewards", "fell_back"))
    return Steps(parts[0].start, **columns, samples=samples)
