"""Ridge models per arm whose prior is estimated from those of other arms (see `empirical_bayes`)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, PredrawnSteps, Round

from .empirical_bayes import Prior, PriorState, noise_variance
from .ridge import Ridge


class PriorRidge(Ridge):
    """Ridge models, one per arm, with a prior that is estimated anew every ``every`` steps.

    With ``category`` it is the mean and the covariance of the models of the same category. With ``pooled`` its mean is
    the weights of one model shared by all arms, A^-1 b with A = ridge I + sum x x' over all of them, and its precision
    the ridge: in the hybrid of Li et al. the shared weights also know that arms differ.

    Parameters
    ----------
    ridge : float64 (R,)
    n_features, n_items : int
    kind : {"category", "pooled"}
    every : int
        m.
    groups : int64 (R, n_items)
        Category of each arm; all 0 where they are pooled.
    """

    STATE: ClassVar[tuple[str, ...]] = (*Ridge.STATE, "prior.precision", "prior.target", "squares")

    def __init__(
        self, ridge: FloatArray, n_features: int, n_items: int, kind: Prior, every: int, groups: IntArray
    ) -> None:
        super().__init__(ridge, n_features, n_items, "per_arm")
        self.every, self.prior = every, PriorState(kind, ridge, groups, n_features)
        self.squares = np.zeros(len(ridge))

    def update(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        super().update(round, slate, feedback)
        self.squares += np.where(feedback.examined, feedback.rewards**2, 0.0).sum(axis=1)
        if (round.step + 1) % self.every == 0:
            self.estimate()

    def play(
        self,
        steps: PredrawnSteps,
        alive: BoolArray,
        *,
        scale: FloatArray | None = None,
        noise: FloatArray | None = None,
        epsilon: FloatArray | None = None,
        exploration: FloatArray | None = None,
    ) -> IntArray | None:
        """Advance T predrawn steps, from one estimate of the prior to the next in compiled code; see `Ridge.play`."""
        found, begin = [], 0
        while begin < len(steps.context):
            step = steps.start + begin
            end = min(begin + self.every - step % self.every, len(steps.context))
            part = slice(begin, end)
            own = steps._replace(
                start=step, users=steps.users[part], segments=steps.segments[part], context=steps.context[part],
                row=steps.row[part], uniforms=steps.uniforms[part],
            )  # fmt: skip
            shown = super().play(
                own, alive, scale=scale, noise=None if noise is None else noise[part],
                epsilon=None if epsilon is None else epsilon[part],
                exploration=None if exploration is None else exploration[part],
            )  # fmt: skip
            if shown is None:
                return None
            clicked = (own.uniforms < own.probabilities[own.row, shown]) & (shown >= 0)
            self.squares += clicked.sum(axis=0)
            if (steps.start + end) % self.every == 0:
                self.estimate()
            found.append(shown)
            begin = end
        return np.concatenate(found)

    def estimate(self) -> None:
        """Estimate the priors from all data so far, and put them in place of those before."""
        for r in range(len(self.ridge)):
            if np.isfinite(self.theta[r]).all() and self.count[r].any():
                (self._pool if self.prior.kind == "pooled" else self._estimate_categories)(r)

    def _pool(self, r: int) -> None:
        prior = self.prior
        own = prior.precision[r, 0]
        gram, b = (self.A[r] - own).sum(axis=0), (self.b[r] - prior.target[r, 0]).sum(axis=0)
        mean = np.linalg.solve(self.ridge[r] * np.eye(len(own)) + gram, b)
        _, gained = prior.replace(r, 0, mean, None)
        self.b[r] += gained
        self.theta[r] = (self.inverse[r] @ self.b[r][..., None])[..., 0]

    def _estimate_categories(self, r: int) -> None:
        prior, groups = self.prior, self.prior.groups[r]
        gram, b = self.A[r] - prior.precision[r, groups], self.b[r] - prior.target[r, groups]
        noise = noise_variance(
            gram, b, self.theta[r], self.inverse[r], float(self.squares[r]), int(self.count[r].sum())
        )
        for g in range(prior.precision.shape[1]):
            found = prior.estimate_category(r, g, self.A[r], self.b[r], self.count[r] > 0, noise)
            if found is None:
                continue
            more, gained = prior.replace(r, g, *found)
            arms = np.flatnonzero(groups == g)
            self.A[r, arms] += more
            self.b[r, arms] += gained
            new = self.count[r, arms] == 0  # models without data: the prior itself
            self.A[r, arms[new]], self.b[r, arms[new]] = prior.precision[r, g], prior.target[r, g]
            self.inverse[r, arms[new]], self.theta[r, arms[new]] = found.covariance, found.mean
            inverse = np.linalg.inv(self.A[r, arms[~new]])
            self.inverse[r, arms[~new]] = (inverse + inverse.transpose(0, 2, 1)) / 2
            self.theta[r, arms[~new]] = (self.inverse[r, arms[~new]] @ self.b[r, arms[~new]][..., None])[..., 0]
