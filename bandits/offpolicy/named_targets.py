"""Learn a greedy policy from the log, and make target policies of their texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.selection import shares_of_largest
from bandits.base.types import FloatArray

from .log import DecisionLog
from .open_bandit import Production
from .regression import Model, cross_fit, read_model
from .targets import Always, Column, Random, Rows, Target


class Greedy(Target):
    """Choose the candidate with the highest predicted reward, by a model fitted to the other folds
    of the log.

    Tied candidates share the choice. Every row is decided by a model that has not seen its event,
    so that the same log can evaluate the policy.

    Parameters
    ----------
    model : Model
        Its predictions are cross-fitted.
    weighted : bool
        Weigh the rows by 1 / propensity when the model is fitted.
    generator : numpy.random.Generator
        Draws the folds.

    References
    ----------
    Beygelzimer, Langford (2009), The offset tree for learning with partial labels: learning from
    logs by regression."""

    by_name = True

    def __init__(
        self, model: Model, generator: np.random.Generator, *, weighted: bool = False
    ) -> None:
        self.model, self.generator, self.weighted = model, generator, weighted
        self.name = f"greedy{'_ips' if weighted else ''}:{model.kind}"
        self._best: tuple[DecisionLog, NDArray[np.uint8]] | None = None

    def probabilities(self, log: DecisionLog, rows: Rows) -> FloatArray:
        best = np.unpackbits(self._packed(log)[rows], axis=1, count=log.n_actions)
        shares: FloatArray = best / best.sum(axis=1, keepdims=True)
        return shares

    def _packed(self, log: DecisionLog) -> NDArray[np.uint8]:
        """Return which candidates are the best of each row, bits, uint8 (n, K / 8)."""
        if self._best is None or self._best[0] is not log:
            if self.weighted and log.propensities is None:
                raise UserError(f"target {self.name}: requires propensities; the log has none")
            weights = log.row_weights
            if self.weighted and log.propensities is not None:
                weights = (1.0 if weights is None else weights) / log.propensities
            packed = np.empty((len(log), (log.n_actions + 7) // 8), np.uint8)
            for rows, q in cross_fit(self.model, log, self.generator, weights=weights):
                allowed = q if log.available is None else np.where(log.available[rows], q, -np.inf)
                packed[rows] = np.packbits(shares_of_largest(allowed) > 0, axis=1)
            self._best = (log, packed)
        return self._best[1]


def read_target(spec: str, generator: np.random.Generator) -> Target:
    """Make a target policy of its text.

    Parameters
    ----------
    spec : str
        ``random``, ``always:ITEM``, ``column:NAME``, ``greedy:MODEL``, ``greedy_ips:MODEL`` or, for
        logs of the Open Bandit sample, ``bts:CAMPAIGN``.
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
        f"target '{short(spec)}': must be random, always:ITEM, column:NAME, greedy:MODEL, "
        "greedy_ips:MODEL, bts:CAMPAIGN, run:ID:LABEL or an agent as JSON"
    )
