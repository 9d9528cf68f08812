"""Thompson sampling in the leaves of decision trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.base import Agent, Propensity
from bandits.agents.model_params import window_param
from bandits.agents.params import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import (
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.observations import refit_params

from .base import RefittedAgent

EVERY, GROWTH, HISTORY = refit_params()


class TreeTS(RefittedAgent, Agent):
    """Thompson sampling in segments [1]_: a decision tree divides the observations of an arm into
    segments, and each leaf has a Beta posterior of its CTR.

    p~_a ~ Beta(a + clicks, b + misses) of the leaf of x_a; ONE draw per leaf and step

    The trees are fitted afresh to the history on a schedule (CART, squared error). Between two fits
    the leaves count. This is the heuristic of [1]_, with one tree per arm, or one for all arms
    (sharing shared). Propensities are exact.

    References
    ----------
    .. [1] Elmachtoub, McNellis, Oh, Petrik (2017), A practical method for solving contextual bandit
           problems using decision trees, section 4.2 (TreeHeuristic).

    Attributes
    ----------
    feature, left, right : int64 (R, M, N)
        The nodes of each tree: the feature that divides it, or -1 in a leaf, and its children.
    threshold : float64 (R, M, N)
        A node's left child has what does not exceed it.
    shows, clicks : float64 (R, M, N)
        What the leaves have counted.
    """

    class Params(LearnerParams):
        kind: Literal["tree_ts"] = "tree_ts"
        depth: int = param(
            4,
            title="Tree depth",
            ge=1,
            le=8,
            structural=True,
            basic=True,
            help=(
                "Largest number of questions from the root of a tree to a leaf. Larger values "
                "divide finer and need more data; usually 2 to 6."
            ),
            sweep=(1, 8),
        )
        leaf: int = param(
            10,
            title="Smallest leaf",
            unit="observations",
            ge=1,
            le=10_000,
            typical=(5, 200),
            basic=True,
            help=(
                "Smallest number of observations in a leaf. Larger values divide later; usually "
                "5 to 100."
            ),
            sweep=(5, 100),
        )
        sharing: Literal["per_arm", "shared"] = param(
            "per_arm",
            title="Sharing",
            structural=True,
            help="Which arms share a tree. per_arm: one per arm. shared: one for all arms.",
        )
        prior_clicks: float = param(
            1.0,
            title="Prior clicks",
            symbol=r"\alpha_0",
            ge=0.1,
            le=1000,
            help=(
                "Pseudo-clicks of each leaf (Beta prior). Larger values start from a higher CTR; "
                "a = b = 1 is the uniform prior."
            ),
        )
        prior_misses: float = param(
            1.0,
            title="Prior misses",
            symbol=r"\beta_0",
            ge=0.5,
            le=1000,
            help=(
                "Pseudo-exposures of each leaf without a click (Beta prior). Larger values start "
                "from a lower CTR; a = b = 1 is the uniform prior."
            ),
        )
        every: int = EVERY
        fit_growth: float = GROWTH
        history: int = HISTORY
        window: int | None = window_param(later=False)

    title = "Tree TS"
    formula = r"\tilde p_a\sim\mathrm{Beta}\big(\alpha_0+\text{clicks in the leaf of }x_a,\ \beta_0+\text{misses}\big)"  # noqa: E501
    uncertainty = "posterior"
    needs = frozenset({"binary"})
    colour = "#009E73"
    dash = "longdash"
    propensity: Propensity = "exact"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        # both compile where they are imported
        from bandits.models.beta_draws import BetaStreams

        p, R = self.params[0], len(self.params)
        M, N = 1 if self.shared else spec.n_items, 2 ** (p.depth + 1) - 1
        self.a, self.b = self.column("prior_clicks")[:, None], self.column("prior_misses")[:, None]
        self.feature = np.full((R, M, N), -1)
        self.left, self.right = np.zeros((2, R, M, N), np.int64)
        self.threshold, self.shows, self.clicks = np.zeros((3, R, M, N))
        self.state += ("feature", "left", "right", "threshold", "shows", "clicks")
        self._rows = np.arange(R)[:, None]
        self._draws = BetaStreams([streams.generator("agent", row=row) for row in streams.rows])

    def leaves(self, round: Round) -> tuple[IntArray, IntArray]:
        """Return the tree and the leaf of every candidate, two of int64 (R, K)."""
        tree = np.zeros_like(round.items) if self.shared else round.items
        return tree, _leaves(
            round.features, tree, self.feature, self.threshold, self.left, self.right
        )

    def posterior(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Return the Beta parameters of the candidates, two of float64 (R, K)."""
        at = (self._rows, *self.leaves(round))
        shows, clicks = self.shows[at], self.clicks[at]
        return self.a + clicks, self.b + np.maximum(shows - clicks, 0)

    def first_of_leaf(self, round: Round) -> IntArray:
        """Return the first available candidate in the leaf of each one, or itself, int64 (R, K)."""
        own = np.broadcast_to(np.arange(round.items.shape[1]), round.items.shape)
        if not self.shared:
            return own
        _, leaf = self.leaves(round)
        same = (leaf[:, :, None] == leaf[:, None, :]) & round.available[:, None, :]
        return np.where(round.available, same.argmax(axis=2), own)

    def scores(self, round: Round) -> FloatArray:
        drawn = self._draws.draw(round.step, *self.posterior(round))
        return np.take_along_axis(drawn, self.first_of_leaf(round), axis=1)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        a, b = self.posterior(round)
        first = self.first_of_leaf(round)
        while True:
            yield np.take_along_axis(generator.beta(a, b), first, axis=1)

    def probabilities(self, round: Round) -> FloatArray:
        from bandits.models.largest import beta_largest

        first = self.first_of_leaf(round)
        leads = round.available & (first == np.arange(first.shape[1]))
        of_leaf = beta_largest(*self.posterior(round), leads)
        size = np.zeros_like(of_leaf)
        np.add.at(size, (self._rows, first), round.available)
        shares = of_leaf / np.maximum(size, 1)
        return np.where(round.available, np.take_along_axis(shares, first, axis=1), 0.0)

    def explain(self, round: Round) -> Explanation:
        a, b = self.posterior(round)
        width = np.sqrt(a * b / (a + b + 1)) / (a + b)
        return Explanation("sample", self.scores(round), a / (a + b), width)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        exposures, (trees, leaves), x = self.exposure(feedback), self.leaves(round), round.features
        for r, s in np.argwhere(exposures > 0).tolist():
            k, reward, exposure = slate[r, s], feedback.rewards[r, s], exposures[r, s]
            self.observed.add(r, round.step, x[r, k], int(round.items[r, k]), reward, exposure)
            self.shows[r, trees[r, k], leaves[r, k]] += exposure
            self.clicks[r, trees[r, k], leaves[r, k]] += reward
        for r in range(len(slate)):
            if self.observed.due(r):
                self.observed.begin_fit(r, round.step)
                self.fit(r)

    def fit(self, row: int) -> None:
        """Fit the trees of a row afresh, and count its observations in their leaves."""
        from sklearn.tree import DecisionTreeRegressor

        x, items, rewards, exposures = self.observed.of_fit(row)
        trees = np.zeros_like(items) if self.shared else items
        self.feature[row], self.shows[row], self.clicks[row] = -1, 0.0, 0.0
        for m in np.unique(trees).tolist():
            own, p = trees == m, self.params[row]
            tree = DecisionTreeRegressor(
                max_depth=p.depth, min_samples_leaf=p.leaf, random_state=0
            ).fit(x[own], rewards[own] / exposures[own], sample_weight=exposures[own])
            found = tree.tree_
            n = found.node_count
            self.feature[row, m, :n] = np.maximum(found.feature, -1)
            self.threshold[row, m, :n] = found.threshold
            self.left[row, m, :n], self.right[row, m, :n] = (
                found.children_left,
                found.children_right,
            )
            leaf = tree.apply(x[own])
            np.add.at(self.shows[row, m], leaf, exposures[own])
            np.add.at(self.clicks[row, m], leaf, rewards[own])

    def tree_text(self, row: int = 0, tree: int = 0) -> str:
        """Describe a tree as text: one line per question, and one per leaf with its counts.

        Parameters
        ----------
        row : int
        tree : int
            The item whose tree it is, or 0 with sharing shared.
        """
        feature, threshold = self.feature[row, tree], self.threshold[row, tree]
        lines = []

        def describe(node: int, indent: str, question: str) -> None:
            if feature[node] < 0:
                shows, clicks = self.shows[row, tree, node], self.clicks[row, tree, node]
                rate = f", CTR {clicks / shows:.3f}" if shows > 0 else ""
                lines.append(f"{indent}{question}{clicks:g} clicks of {shows:g}{rate}")
                return
            if question:
                lines.append(f"{indent}{question.rstrip(': ')}")
            deeper, name = indent + "  " * bool(question), f"x{feature[node]}"
            describe(self.left[row, tree, node], deeper, f"{name} <= {threshold[node]:.4g}: ")
            describe(self.right[row, tree, node], deeper, f"{name} > {threshold[node]:.4g}: ")

        describe(0, "", "")
        return "\n".join(lines)

    def note(self) -> str:
        inner = (self.feature >= 0).sum(axis=2)
        return f"{inner.mean() + 1:.1f} segments per tree"

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        trees = 1 if params.sharing == "shared" else spec.n_items
        observed = cls.observed_memory(params, spec)
        nodes = trees * 2 ** (params.depth + 1)
        # with their copy in a checkpoint
        return int(super().memory(params, spec) + 2 * observed + 48 * nodes)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small = {"depth": 2, "leaf": 2, "every": 25, "history": 40}
        return [{**small, "sharing": "shared", "window": 20}, {**small, "depth": 1}]


@njit(cache=True, nogil=True)
def _leaves(
    x: FloatArray,
    tree: IntArray,
    feature: IntArray,
    threshold: FloatArray,
    left: IntArray,
    right: IntArray,
) -> IntArray:
    """Return the leaf of every candidate, int64 (R, K); x (R, K, D) is compared in single precision
    as scikit-learn does.
    """
    out = np.zeros(tree.shape, np.int64)
    for r in range(tree.shape[0]):
        for k in range(tree.shape[1]):
            m, node = tree[r, k], 0
            while feature[r, m, node] >= 0:
                below = np.float32(x[r, k, feature[r, m, node]]) <= threshold[r, m, node]
                node = left[r, m, node] if below else right[r, m, node]
            out[r, k] = node
    return out
