"""Make target policies of their texts."""

from __future__ import annotations

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short

from .greedy import Greedy
from .production import Production
from .regression import read_model
from .targets import Always, Column, Random, Target


def read_target(spec: str, generator: np.random.Generator) -> Target:
    """Make a target policy of its text.

    Parameters
    ----------
    spec : str
        ``random``, ``always:ITEM``, ``column:NAME``, ``greedy:MODEL``, ``greedy_ips:MODEL`` or, for logs of
        the Open Bandit sample, ``bts:CAMPAIGN``.
    generator : numpy.random.Generator
        Draws the folds of greedy targets.

    Raises
    ------
    UserError
        The text is none of these.
    """
    kind, _, rest = spec.partition(":")
    if spec == "random":
        return Random()
    if kind == "always" and rest:
        return Always(rest)
    if kind == "column" and rest:
        return Column(rest)
    if kind in ("greedy", "greedy_ips"):
        return Greedy(read_model(rest or "ridge"), generator, weighted=kind == "greedy_ips")
    if kind == "bts":
        return Production(rest)
    raise UserError(
        f"target '{short(spec)}': must be random, always:ITEM, column:NAME, greedy:MODEL, greedy_ips:MODEL, "
        "bts:CAMPAIGN, run:ID:LABEL or an agent as JSON"
    )
