"""Titles, pictures and users of the artwork simulator, and the retrieval of titles by collaborative
filtering.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base.params import param
from bandits.base.types import FloatArray, IntArray

from . import ann_index
from .launches import Launch, Withdraw

GENRES = (
    "drama",
    "comedy",
    "action",
    "romance",
    "thriller",
    "science fiction",
    "documentary",
    "family",
)
STARS = 3
ATTRIBUTES = (*GENRES, *(f"star {i + 1}" for i in range(STARS)), "face", "warmth")
# of the attributes, the first
OBSERVED = {"few": len(GENRES), "most": len(GENRES) + STARS + 1, "all": len(ATTRIBUTES)}
# groups of what is launched and withdrawn: titles, neither, pictures but the default
TITLES, KEPT, OTHERS = 0, 1, 2

_G, _A = len(GENRES), len(ATTRIBUTES)
# of the truncated singular value decomposition
_RANK = _G
# share of the pairs of user and title that the logged matrix knows
_LOGGED = 0.5
# lists of the index that are scanned
_BREADTH = 8
# most users like faces and warm colours
_MEAN_TASTE = np.r_[np.zeros(_G + STARS), 0.5, 0.4]


class TitleLaunch(Launch):
    """At one step, new titles become available, whose pictures were never shown."""

    title = "Launch"

    @property
    def group(self) -> int:
        return TITLES

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:
        return {**super().suggested(steps), "items": 10}

    def sentence(self) -> str:
        return super().sentence().replace(" item", " title")


class PictureWithdrawal(Withdraw):
    """At one step, pictures are withdrawn, and never return.

    The default picture of a title always stays.
    """

    kind: Literal["withdraw"] = "withdraw"
    items: int = param(
        50,
        title="Pictures",
        ge=1,
        le=1_000_000,
        help=(
            "Number of pictures that go, drawn at random from those available. Larger values "
            "leave fewer."
        ),
    )

    title = "Withdrawal"

    @property
    def group(self) -> int:
        return OTHERS

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:
        return {**super().suggested(steps), "items": 50}

    def sentence(self) -> str:
        return super().sentence().replace(" item", " picture")


def picture_counts(n_titles: int, n_pictures: tuple[int, int]) -> IntArray:
    """Return how many pictures the titles have, int64 (n_titles,): every number of the range
    equally often.
    """
    low, high = n_pictures
    return low + np.arange(n_titles) % (high - low + 1)


class Catalogue:
    """One layout: the titles with their pictures, the users with their tastes, and who likes which
    title.

    Attributes
    ----------
    clusters : int64 (U,)
        The genre that each user likes most: the taste cluster.
    tastes : float64 (U, A)
        Taste of each user for the attributes of pictures.
    genres : float64 (T, G)
        Shares of the genres of each title; the first of its pictures has the tone of the largest.
    sizes, first : int64 (T,)
        Number of pictures of each title, and the first of them, which is its default.
    attributes : float64 (N, A)
        Of each picture: tone (how strongly, in the column of its genre), star (0 or 1), face (0 or
        1), warmth.
    title_of : int64 (N,)
    interest : float64 (U, T)
        Of each user in each title.
    logged : bool (U, T)
        Views that the collaborative filtering knows.
    predicted : float64 (U, T)
        The interest as collaborative filtering predicts it.
    """

    def __init__(
        self, p: Any, generator: np.random.Generator, sizes: IntArray, cold: IntArray
    ) -> None:
        U, T = p.n_users, p.n_titles
        self.clusters = generator.integers(0, _G, U)
        self.tastes = _MEAN_TASTE + generator.normal(0, 0.4, (U, _A))
        self.tastes[np.arange(U), self.clusters] += 1.5
        self.sizes = sizes
        self.first = np.cumsum(self.sizes) - self.sizes
        self.title_of = np.repeat(np.arange(T), self.sizes)
        # three genres each, by decreasing share
        own = generator.random((T, _G)).argsort(axis=1)[:, :3]
        self.genres = np.zeros((T, _G))
        np.put_along_axis(self.genres, own, np.array([[0.5, 0.3, 0.2]]), axis=1)
        N = len(self.title_of)
        self.attributes = np.zeros((N, _A))
        place = generator.integers(0, 3, N)
        place[self.first] = 0
        tone = own[self.title_of, place]
        self.attributes[np.arange(N), tone] = generator.uniform(0.5, 1.5, N)
        # none in half of the pictures
        star = generator.integers(0, 2 * STARS, N)
        shown = np.flatnonzero(star < STARS)
        self.attributes[shown, _G + star[shown]] = 1
        self.attributes[:, _G + STARS] = generator.random(N) < 0.5
        self.attributes[:, _G + STARS + 1] = generator.standard_normal(N)
        self.interest = self.tastes[:, :_G] @ (2 * self.genres.T) + generator.normal(0, 0.5, T)
        watched = generator.random((U, T)) < 1 / (1 + np.exp(2 - 2 * self.interest))
        self.logged = watched & (generator.random((U, T)) < _LOGGED)
        self.logged[:, cold] = False
        # the same bits alone or beside other work
        with threadpool_limits(1):
            self.users, self.titles = self._factors(cold)
            self.predicted = np.round(self.users @ self.titles.T, 6)

    def _factors(self, cold: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return vectors of users (U, r) and titles (T, r): a truncated singular value
        decomposition [1]_.

        Titles of which nothing is logged, ``cold``, get the mean vector of the others of their main
        genre.

        References
        ----------
        .. [1] Sarwar, Karypis, Konstan, Riedl (2000), Application of dimensionality reduction in
               recommender systems.
        """
        m = self.logged.astype(np.float64)
        # right singular vectors, by ascending singular value
        _, vectors = np.linalg.eigh(m.T @ m)
        titles = vectors[:, -_RANK:].copy()
        users = m @ titles
        known = np.setdiff1d(np.arange(len(self.genres)), cold)
        main = self.genres.argmax(axis=1)
        for title in cold:
            alike = known[main[known] == main[title]]
            titles[title] = titles[alike if len(alike) else known].mean(axis=0)
        return users, titles

    def retrieve(self, available: IntArray, size: int, *, index: bool) -> IntArray:
        """Retrieve the ``size`` titles with the largest predicted interest among ``available``,
        int64 (U, size).
        """
        if not index:
            order = np.argsort(-self.predicted[:, available], axis=1, kind="stable")[:, :size]
            return np.asarray(np.sort(available[order], axis=1))
        found = ann_index.IVFIndex(self.titles[available]).search(self.users, size, _BREADTH)
        scores = np.take_along_axis(self.predicted[:, available], np.maximum(found, 0), axis=1)
        scores[found < 0] = -np.inf
        best = np.argsort(-scores, axis=1, kind="stable")[:, :size]
        return np.asarray(np.sort(available[np.take_along_axis(found, best, axis=1)], axis=1))

    def describe(self, picture: int) -> str:
        """Say what is on a picture: its tone, a star, a face, warm or cold colours."""
        a = self.attributes[picture]
        parts = [GENRES[int(a[:_G].argmax())]]
        parts += [name for name, there in zip(ATTRIBUTES[_G:-1], a[_G:-1], strict=True) if there]
        parts += ["warm" if a[-1] > 0.5 else "cold"] if abs(a[-1]) > 0.5 else []
        return ", ".join(parts)
