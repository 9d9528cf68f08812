"""Why an arm was shown: what an agent says of its scores, and the record of one decision."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .types import BoolArray, FloatArray

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
    parameter : str
        The parameter that the scale of a bonus is.
    logit : bool
        Score and mean are log-odds of a reward of 1.
    randomised : bool (R,), optional
        Rows in which dice decided: their scores are no opinion.
    """

    how: How
    score: FloatArray
    mean: FloatArray | None = None
    width: FloatArray | None = None
    scale: FloatArray | float = 1.0
    parameter: str = ""
    logit: bool = False
    randomised: BoolArray | None = None
