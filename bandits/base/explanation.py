"""Why an arm was shown: what an agent says of its scores, and the record of one decision."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from .types import BoolArray, FloatArray, IntArray

How = Literal["bonus", "sample", "greedy", "score"]


class Explanation(NamedTuple):
    """How the scores of one round came about.

    Attributes
    ----------
    how : {"bonus", "sample", "greedy", "score"}
        bonus: mean + scale * width. sample: one draw of what is plausible, around the mean. greedy: the mean alone.
        score: there is nothing to tell apart.
    score : float64 (R, K)
        What the choice was made by, equal to `Agent.scores` to the bit.
    mean : float64 (R, K), optional
        What it expects of each candidate; NaN where it has no idea.
    width : float64 (R, K), optional
        How much it doubts that, like a standard deviation, before it is scaled; infinite where it has no idea.
    scale : float64 (R, 1) or (R, K), or a number
        What multiplies the width: alpha, sigma.
    knob : str
        The parameter that the scale of a bonus is.
    logit : bool
        Score and mean are log-odds of a reward of 1.
    rolled : bool (R,), optional
        Rows in which dice decided: their scores are no opinion.
    """

    how: How
    score: FloatArray
    mean: FloatArray | None = None
    width: FloatArray | None = None
    scale: FloatArray | float = 1.0
    knob: str = ""
    logit: bool = False
    rolled: BoolArray | None = None


class Candidate(NamedTuple):
    """What went by one name; a NaN stands for what there is not.

    Attributes
    ----------
    name : str
    item : int
        The one of them that was shown, or else the one with the highest score. The numbers are its own.
    alike : int
        How many there are of that name.
    truth : float
        Expected reward.
    score, mean, width, spread : float
        See `Explanation`; the spread is the scaled width.
    chance : float
        Probability that one of them is shown first, over the agent's dice.
    slot : int
        Place on the slate, counted from 1; 0 if none of them was shown.
    best : bool
        Nothing has a higher expected reward.
    others : tuple of float
        Scores of the others.
    """

    name: str
    item: int
    alike: int
    truth: float
    score: float
    mean: float
    width: float
    spread: float
    chance: float
    slot: int
    best: bool
    others: tuple[float, ...]


class Switch(NamedTuple):
    """The scale of the bonus at which another candidate takes over, and its name."""

    at: float
    name: str


class Why(NamedTuple):
    """One decision, taken apart.

    Attributes
    ----------
    label : str
        The agent.
    step, replication : int
        The step is counted from 1, the replication from 0.
    visitor : str
        Who came, where the world has a name for them.
    item_noun, reward_noun : str
    how, knob, logit
        See `Explanation`.
    scale : float
        The bonus' alpha; NaN for all others.
    rolled : bool
        Dice decided.
    candidates : tuple of Candidate
        What was shown comes first, then the highest score.
    below, above : Switch, optional
        For a bonus: the nearest scales at which something of another name would have been shown.
    redraws : int
        Draws from which the chances are estimated; 0 where they are exact, or where there are none.
    reward : float
        What came of it.
    """

    label: str
    step: int
    replication: int
    visitor: str
    item_noun: str
    reward_noun: str
    how: How
    knob: str
    logit: bool
    scale: float
    rolled: bool
    candidates: tuple[Candidate, ...]
    below: Switch | None
    above: Switch | None
    redraws: int
    reward: float


def takes_over(
    mean: FloatArray, width: FloatArray, kind: IntArray, chosen: int, alpha: float, *, up: bool
) -> tuple[float, int] | None:
    """The nearest alpha at which the best of ``mean + alpha width (K,)`` is of another kind, and which it is then.

    Along the upper envelope of these lines: every candidate is overtaken by the steeper line (``up``), or the flatter
    one, that it meets first; ties go to the lowest index, as in every choice.

    Parameters
    ----------
    kind : int64 (K,)
        Candidates of the same kind may take over from each other unnoticed.
    chosen : int
        The best at ``alpha``.
    up : bool
        Look above ``alpha``; otherwise below, down to 0.
    """
    now, reached = chosen, alpha
    while True:
        rivals = np.flatnonzero(width > width[now] if up else width < width[now])
        if not len(rivals) or not np.isfinite(width[now]):
            return None
        meet = (mean[now] - mean[rivals]) / (width[rivals] - width[now])
        nearest = float(meet.min() if up else meet.max())
        first = rivals[meet == nearest]
        now = int(first[width[first].argmax() if up else width[first].argmin()])
        reached = max(nearest, reached) if up else min(nearest, reached)  # rounding goes no step back
        if reached <= 0 and not up:
            return None
        if kind[now] != kind[chosen]:
            return reached, now
