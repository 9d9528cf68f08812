"""Learn a greedy policy from the log, and make target policies of their texts."""

from __future__ import annotations

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.types import FloatArray

from .log import DecisionLog
from .open_bandit import Production
from .regression import Model, cross_fit, read_model
from .targets import Always, Column, Random, Rows, Target


class Greedy(Target):
    """Choose the candidate with the highest predicted reward, by a model fitted to the other folds
    of the log.

    Ties go to the first candidate. Every row is decided by a model that has not seen its event, so
    that the same log can evaluate the policy.

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
        self._chosen: tuple[DecisionLog, FloatArray] | None = None

    def probabilities(self, log: DecisionLog, rows: Rows) -> FloatArray:
        chosen = self.choices(log)[rows]
        found: FloatArray = (chosen[:, None] == np.arange(log.n_actions)).astype(np.float64)
        return found

    def logged(self, log: DecisionLog) -> FloatArray:
        found: FloatArray = (self.choices(log) == log.actions).astype(np.float64)
        return found

    def choices(self, log: DecisionLog) -> FloatArray:
        """Return the chosen actions, float64 (n,)."""
        if self._chosen is None or self._chosen[0] is not log:
            if self.weighted and log.propensities is None:
                raise UserError(f"target {self.name}: requires propensities; the log has none")
            weights = log.row_weights
            if self.weighted and log.propensities is not None:
                weights = (1.0 if weights is None else weights) / log.propensities
            chosen = np.empty(len(log))
            for rows, q in cross_fit(self.model, log, self.generator, weights=weights):
                allowed = q if log.available is None else np.where(log.available[rows], q, -np.inf)
                chosen[rows] = allowed.argmax(axis=1)
            self._chosen = (log, chosen)
        return self._chosen[1]


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
