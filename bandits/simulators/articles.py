"""Three articles whose features have different units: the article recommendation of chapter 16,
listing 16.3.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from bandits.base.params import param
from bandits.base.types import Contexts, FloatArray, Round

from .base import SimulatorParams
from .datasets.scaling import scaled
from .dense import DenseSimulator

DEVICES = ("desktop", "mobile", "tablet")
NAMES = ("tech (new)", "sports (new)", "tech (a day old)")
# tech, sports; age in hours; popularity
ARTICLES = np.array([[1, 0, 2.5, 0.7], [0, 1, 0.5, 0.3], [1, 0, 24, 0.9]])
# of the listing: desktop, mobile, tablet; hour of the day; engagement
VISITOR = np.array([0, 1, 0, 14, 0.8])
VISITORS = np.array(
    [[*np.eye(3)[d], hour, e / 10] for d in range(3) for hour in range(24) for e in range(11)]
)
# of each device for each article
RATES = np.array([[0.45, 0.10, 0.20], [0.10, 0.40, 0.05], [0.15, 0.10, 0.35]])
# how much more the most engaged visitors click than the least engaged
_ENGAGED = 0.1
_V, _A = len(VISITOR), ARTICLES.shape[1]


def concatenated(visitors: FloatArray) -> FloatArray:
    """Return the features of each visitor (n, 5) with each article side by side, as in the listing,
    (n, 3, 9).
    """
    n, K = len(visitors), len(ARTICLES)
    parts = np.broadcast_to(visitors[:, None], (n, K, _V)), np.broadcast_to(ARTICLES, (n, K, _A))
    return np.concatenate(parts, axis=2)


@lru_cache(maxsize=8)
def _features(encoding: str, scale: Literal["none", "minmax"]) -> FloatArray:
    """Return the features of every possible visitor and, last, of the listing's, float64 (n + 1, 3,
    D).
    """
    every = concatenated(np.vstack([VISITORS, VISITOR]))
    x = scaled(every.reshape(-1, _V + _A), scale).reshape(every.shape)
    if encoding == "interaction":
        x = np.einsum("nkv,nka->nkva", x[..., :_V], x[..., _V:]).reshape(*x.shape[:2], _V * _A)
    x.flags.writeable = False
    return x


class Articles(DenseSimulator):
    """Three articles for visitors described by device, hour and engagement; one model of both [1]_.

    The first visitor of every replication is the listing's: a fresh LinUCB with one model, alpha
    1.5 and ridge 1, has the bonuses 21.50, 21.16 and 41.77, which are lengths of feature vectors in
    which hours dominate. Later visitors are random. The listing states no click probabilities. Here
    each device prefers another article, and engaged visitors click a little more often, so that
    products of features can express who prefers what, and sums cannot.

    References
    ----------
    .. [1] Chapter 16, listing 16.3.
    """

    class Params(SimulatorParams):
        kind: Literal["articles"] = "articles"
        encoding: Literal["concatenation", "interaction"] = param(
            "concatenation",
            title="Encoding",
            basic=True,
            help=(
                "How features of visitor and article are combined. concatenation: side by side, "
                "as in the listing; a linear model then prefers the same article for all "
                "visitors. interaction: all products of the two."
            ),
        )
        scale: Literal["none", "minmax"] = param(
            "none",
            title="Feature scaling",
            basic=True,
            help=(
                "none: times in hours, as in the listing; they dominate the exploration bonuses. "
                "minmax: each feature of visitors and articles from 0 to 1."
            ),
        )

    title = "Three articles"
    family = "Known functions"
    preset = "articles"
    item_noun = "article"

    @classmethod
    def sizes(cls, params: Any) -> tuple[int, int]:
        return len(ARTICLES), _V * _A if params.encoding == "interaction" else _V + _A

    def draw_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        return np.asarray(self._table[generator.integers(0, len(VISITORS), size=n)])

    def expected_rewards(self, features: FloatArray, weights: FloatArray) -> FloatArray:  # noqa: ARG002
        visitors = self._visitors(features)
        return np.asarray(visitors[..., :3] @ RATES + _ENGAGED * (visitors[..., 4:] - 0.5))

    def round_at(self, step: int) -> Round:
        round = super().round_at(step)
        if step > 0:
            return round
        R, (K, D) = len(self.streams.rows), self.sizes(self.params)
        first = np.broadcast_to(self._table[-1], (R, K, D)).copy()
        return round._replace(contexts=Contexts(first, round.contexts.columns, D))

    def features(self, item: int | None) -> FloatArray:
        return (
            self._table[:, item]
            if item is not None
            else self._table.reshape(-1, self._table.shape[-1])
        )

    def name(self, item: int, row: int = 0) -> str:  # noqa: ARG002
        return NAMES[item]

    @property
    def _table(self) -> FloatArray:
        return _features(self.params.encoding, self.params.scale)

    def _visitors(self, features: FloatArray) -> FloatArray:
        """Return the features of the visitors, float64 (R, 5), from those of visitors and articles
        together.
        """
        x = features[:, 0]
        if self.params.encoding == "concatenation":
            return x[:, :_V]
        # every article is about either tech or sports
        return np.asarray(x.reshape(-1, _V, _A)[..., :2].sum(axis=-1))
