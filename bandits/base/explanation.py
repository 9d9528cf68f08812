"""Explanation of an agent's scores: mean, uncertainty and how they were combined."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from .types import BoolArray, FloatArray

How = Literal["bonus", "sample", "greedy", "score"]


class Explanation(NamedTuple):
    """Components of the scores of one round.

    Attributes
    ----------
    how : {"bonus", "sample", "greedy", "score"}
        bonus: mean + scale * width. sample: one sample around the mean. greedy: the mean alone.
        score: no components; a mean, where there is one, has no part in it.
    score : float64 (R, K)
        The scores that the choice used, bit-identical to `Agent.scores`.
    mean : float64 (R, K), optional
        Estimated mean of each candidate; NaN without observations.
    width : float64 (R, K), optional
        Confidence width or posterior standard deviation, unscaled; infinite without observations.
    scale : float64 (R, 1) or (R, K), or a number
        Multiplier of the width: alpha, sigma.
    parameter : str
        Name of the parameter that is the scale of a bonus.
    logit : bool
        Score and mean are log-odds of a reward of 1.
    randomised : bool (R,), optional
        Rows whose choice was random: drawn apart from the scores, or by scores that are themselves
        random draws. Those that a guard decided are among them.
    guard : str (R,), optional
        Why a guard decided instead of the agent; empty where it did not.
    """

    how: How
    score: FloatArray
    mean: FloatArray | None = None
    width: FloatArray | None = None
    scale: FloatArray | float = 1.0
    parameter: str = ""
    logit: bool = False
    randomised: BoolArray | None = None
    guard: NDArray[Any] | None = None
