"""Whether the features of a table leave enough digits to the models of an agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.agents.base import Agent
from bandits.base.formatting import number
from bandits.base.types import FloatArray

# squared features over the ridge above which double precision does not keep six digits
LIMIT = 1e10


def too_large(agent: type[Agent], params: Any, largest: FloatArray) -> str:
    """Explain why models lose their digits on unscaled features; empty if they do not.

    A design matrix holds the ridge beside sums of squares. Ridge models factorise it, which a
    single large column does not harm, as its unit does not matter; two are distinguished by the
    ridge alone where they grow together. Models that weigh observations or take them back are not
    factorised.

    Parameters
    ----------
    agent : subclass of Agent
    params : Params
    largest : float64 (d,)
        Largest absolute value of each feature; empty where they are scaled.
    """
    ridge = agent.prior_precision(params)
    if ridge is None or not len(largest) or getattr(params, "fourier", None):
        return ""
    squares = np.sort(largest**2)
    counted = squares[:-1] if agent.linear and not agent.forgets(params) else squares
    if counted.sum() <= LIMIT * ridge:
        return ""
    return (
        f"its ridge {number(ridge)} is lost in double precision beside features up to "
        f"{number(np.sqrt(counted.max()))}: choose simulator.scale standard"
    )
