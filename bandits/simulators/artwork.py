"""Artwork: which picture of a title is shown to a visitor, after a retrieval has chosen the
title.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import (
    BoolArray,
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    Round,
    SimulatorSpec,
    Truth,
)

from . import ann_index, changes
from .artwork_titles import (
    ATTRIBUTES,
    GENRES,
    KEPT,
    OBSERVED,
    OTHERS,
    TITLES,
    Catalogue,
    PictureWithdrawal,
    TitleLaunch,
    picture_counts,
)
from .base import Simulator, SimulatorParams, layout_param, single_response
from .changed_inputs import break_dense
from .changes import Features, changes_param
from .launches import Stock, check_stock
from .petshop_rates import scaled

# users times titles, of the logged matrix
MAX_PAIRS = 4_000_000
KEPT_RETRIEVALS = 4

Changes = Annotated[TitleLaunch | PictureWithdrawal | Features, Field(discriminator="kind")]
Range = tuple[Annotated[int, Field(ge=2, le=20)], Annotated[int, Field(ge=2, le=20)]]


class Artwork(Simulator):
    """A streaming service that retrieves a title for each visitor and shows one of its pictures
    [1]_.

    Stage one retrieves titles by collaborative filtering, a truncated singular value decomposition
    of logged views; one of the nearest is shown, drawn at random. Stage two, the bandit, chooses
    among the pictures of this title. The first of them is its default picture. The visitor clicks
    with probability

    sigmoid(s taste . attributes + interest / 2 - c)

    Pictures have a tone (one of the genres), a star, a face and a colour warmth; agents observe
    some of these, each multiplied by the visitor's taste for it, so that one shared model fits all
    titles. Titles are the categories of the pictures: a model per category learns every title by
    itself, a model per arm every picture. The CTR is called take fraction: clicks per impression.

    References
    ----------
    .. [1] Chandrashekar, Amat, Basilico, Jebara (2017), Artwork personalization at Netflix.
    """

    class Params(SimulatorParams):
        kind: Literal["artwork"] = "artwork"
        n_titles: int = param(
            200,
            title="Titles",
            ge=1,
            le=4000,
            typical=(20, 1000),
            basic=True,
            help=(
                "Number of titles. More titles leave fewer impressions to each; usually 20 to "
                "1,000."
            ),
        )
        n_pictures: Range = param(
            (5, 20),
            title="Pictures per title",
            basic=True,
            help=(
                "Fewest and most pictures of a title, from 2 to 20. More pictures raise the "
                "optimum and need more exploration."
            ),
        )
        attributes: Literal["all", "most", "few"] = param(
            "most",
            title="Observed attributes",
            basic=True,
            help=(
                "What agents observe of pictures. all: tone, star, face and colour warmth. most: "
                "not the warmth. few: the tone alone. Those that they do not observe still move "
                "clicks."
            ),
        )
        n_users: int = param(
            1000,
            title="Users",
            ge=1,
            le=100_000,
            typical=(100, 10_000),
            help=(
                "Number of users, each in one of eight taste clusters. More users return less "
                "often; usually 100 to 10,000."
            ),
        )
        taste: float = param(
            1.0,
            title="Taste",
            symbol="s",
            ge=0,
            le=5,
            help=(
                "Multiplies the tastes for pictures. Larger values make pictures matter more; "
                "usually 0.5 to 2."
            ),
        )
        intercept: float = param(
            4.0,
            title="Intercept",
            symbol="c",
            ge=-10,
            le=20,
            typical=(0, 8),
            help=(
                "Subtracted from the log-odds of a click. Larger values mean fewer clicks; "
                "usually 2 to 6."
            ),
        )
        n_retrieved: int = param(
            10,
            title="Retrieved titles",
            ge=1,
            le=100,
            help=(
                "Number of titles retrieved for a visitor, of which one is shown. Larger values "
                "spread the visitors over more titles; usually 5 to 20."
            ),
        )
        retrieval: Literal["exact", "nearest"] = param(
            "exact",
            title="Retrieval",
            help=(
                "How titles are retrieved. exact: largest inner product with the user, by "
                "exhaustive search. nearest: the same by an approximate index."
            ),
        )
        new_titles: int = param(
            0,
            title="New titles",
            ge=0,
            le=4000,
            sweep=(0, 150),
            help=(
                "Number of the titles that are not there at the start and arrive one after the "
                "other. Larger values leave fewer to begin with."
            ),
        )
        arrival: int = param(
            500,
            title="Arrival interval",
            unit="steps",
            ge=1,
            le=changes.LAST,
            sweep=(100, 5_000),
            help=(
                "Steps between two new titles. With larger values they come later; usually 100 "
                "to 5,000."
            ),
        )
        layout: Literal["shared", "per_row"] = layout_param("titles and users")
        changes: tuple[Changes, ...] = changes_param("titles (launch), pictures (withdraw)")

        @property
        def counts(self) -> IntArray:
            """How many pictures the titles have, int64 (n_titles,), in another order than in the
            catalogue.
            """
            return picture_counts(self.n_titles, self.n_pictures)

        @classmethod
        def idle(cls, values: dict[str, Any]) -> frozenset[str]:
            return frozenset() if values.get("new_titles") else frozenset({"arrival"})

        @classmethod
        def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
            given = {
                name: values.get(name, field.default) for name, field in cls.model_fields.items()
            }
            titles = min(given["n_titles"], max(1, MAX_PAIRS // given["n_users"]))
            new = min(given["new_titles"], titles - 1)
            changed = {
                "n_titles": titles,
                "new_titles": new,
                "n_retrieved": min(given["n_retrieved"], titles - new),
            }
            changed["n_pictures"] = sorted(given["n_pictures"])
            if given["retrieval"] == "nearest" and titles - new < ann_index.MIN_ITEMS:
                changed["retrieval"] = "exact"
            return {**values, **{n: v for n, v in changed.items() if v != _plain(given[n])}}

        @model_validator(mode="after")
        def _fits(self) -> Self:
            low, high = self.n_pictures
            if low > high:
                raise ValueError(
                    f"simulator.n_pictures is {low}, {high}; the first must be at most the second"
                )
            if self.n_users * self.n_titles > MAX_PAIRS:
                raise ValueError(
                    f"simulator.n_titles is {self.n_titles:,} for {self.n_users:,} users; at most "
                    f"{MAX_PAIRS:,} pairs of user and title are allowed"
                )
            if self.new_titles >= self.n_titles:
                raise ValueError(
                    f"simulator.new_titles is {self.new_titles:,}; it must be less than n_titles, "
                    f"{self.n_titles:,}"
                )
            launched = sum(c.items for c in self.changes if isinstance(c, TitleLaunch))
            there = self.n_titles - self.new_titles
            if self.n_retrieved > there:
                raise ValueError(
                    f"simulator.n_retrieved is {self.n_retrieved}; it must be at most the number "
                    f"of titles at the start, {there:,}"
                )
            if self.retrieval == "nearest" and there - launched < ann_index.MIN_ITEMS:
                raise ValueError(
                    f"simulator.n_titles is {self.n_titles}; retrieval nearest needs at least "
                    f"{ann_index.MIN_ITEMS} titles at the start"
                )
            changes.check(self.all_changes, _width(self))
            pictures = int(self.counts.sum())
            check_stock(
                self.all_changes,
                [there - self.n_retrieved, self.n_titles, pictures - self.n_titles],
            )
            return self

    title = "Artwork"
    family = "Recommendation"
    preset = "artwork"
    rate_title = "Take fraction"
    item_noun = "picture"
    launch_noun = "title"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, D = len(streams.rows), self.spec.n_features
        self._K = self.spec.n_candidates
        layouts, index = np.unique(self.layouts(), return_inverse=True)
        self._layout_index = index.astype(np.int64)
        # the first step of each title, but for launches
        self._arrivals = np.zeros(params.n_titles, np.int64)
        late = np.arange(params.n_titles - params.new_titles, params.n_titles)
        self._arrivals[late] = params.arrival * (1 + np.arange(params.new_titles))
        own = [int(layout) for layout in layouts]
        sizes = [
            streams.generator("layout", row=layout, part=1).permutation(params.counts)
            for layout in own
        ]
        self._stock = self._make_stock(own, sizes)
        self.catalogues: list[Catalogue] = [
            Catalogue(
                params,
                streams.generator("layout", row=layout),
                sizes[i],
                np.flatnonzero(~self._titles_at(0)[i]),
            )
            for i, layout in enumerate(own)
        ]
        (
            self._tastes,
            self._attributes,
            self._interest,
            self._predicted,
            self._first,
            self._sizes,
            self._title_of,
        ) = (
            np.stack([getattr(c, name) for c in self.catalogues])
            for name in (
                "tastes",
                "attributes",
                "interest",
                "predicted",
                "first",
                "sizes",
                "title_of",
            )
        )
        self._clusters = np.stack([c.clusters for c in self.catalogues])
        # of each picture (L, N): that of its title
        self._quality = None
        if self._stock.quality is not None:
            factors = self._stock.quality[:, : params.n_titles]
            self._quality = np.take_along_axis(factors, self._title_of, axis=1)
        # (L, U, n_retrieved) by what is available
        self._retrieved: dict[tuple[int, int], IntArray] = {}
        self._columns = np.broadcast_to(np.arange(D), (R, self._K, D)).copy()
        self._slots = np.arange(self._K)
        self._users = streams.blocks("world", lambda g, n: g.integers(0, params.n_users, size=n))
        self._places = streams.blocks(
            "world", lambda g, n: g.integers(0, params.n_retrieved, size=n), part=1
        )

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        counts, D = params.counts, _width(params)
        return SimulatorSpec(
            n_items=int(counts.sum()),
            n_candidates=int(counts.max()),
            n_features=D,
            n_stored=D,
            n_users=params.n_users,
            n_categories=params.n_titles,
            capabilities=frozenset(
                {"ids", "truth", "segments", "log", "binary", "arm_features", "categories"}
            ),
        )

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        spec = cls.describe(params)
        # stacked from the parts
        layouts = 2 * rows if params.layout == "per_row" else 2
        U, T, N, A = params.n_users, params.n_titles, spec.n_items, len(ATTRIBUTES)
        stocks = 1 + len(params.changes)
        per_layout = (
            2 * U * T
            + U * A
            + N * (A + 3)
            + 3 * T * len(GENRES)
            + KEPT_RETRIEVALS * U * params.n_retrieved
        )
        temporary = 4 * U * T + 3 * T * T
        per_row = 2 * block_length(1) + spec.n_candidates * (3 * spec.n_features + 10)
        return int(
            8 * (layouts * per_layout + temporary + rows * per_row) + layouts * stocks * (N + T)
        )

    def round_at(self, step: int) -> Round:
        return self.round_of(step, self._users.at(step), self.shown_titles(step))

    def shown_titles(self, step: int) -> IntArray:
        """Return the title of which each row's visitor is shown a picture, int64 (R,)."""
        retrieved = self._retrieved_at(step)
        return np.asarray(
            retrieved[self._layout_index, self._users.at(step), self._places.at(step)]
        )

    def retrieved_for(self, step: int, title: int, row: int = 0) -> IntArray:
        """Return the users for whom a title is among those retrieved at a step, int64 (n,)."""
        return np.flatnonzero(
            (self._retrieved_at(step)[self._layout_index[row]] == title).any(axis=1)
        )

    def round_of(self, step: int, users: IntArray, titles: IntArray) -> Round:
        """Return the round of a step in which ``users (R,)`` are shown pictures of ``titles (R,)``.

        Candidates beyond the pictures of a title are not available.
        """
        layout = self._layout_index
        items = (self._first[layout, titles][:, None] + self._slots) % self.spec.n_items
        available = self._slots < self._sizes[layout, titles][:, None]
        if not self._stock.complete(step):
            available &= self._pictures_at(step)[layout[:, None], items]

        def features() -> FloatArray:
            n = self.spec.n_features - 2
            out = np.empty((*items.shape, n + 2))
            np.multiply(
                self._attributes[layout[:, None], items, :n],
                self._tastes[layout, users][:, None, :n],
                out=out[..., :n],
            )
            out[..., n] = 1
            out[..., n + 1] = self._predicted[layout, users, titles][:, None]
            return break_dense(out, self.params.changes, step)

        contexts = Contexts(features, self._columns, self.spec.n_features)
        return Round(
            step,
            users,
            items,
            contexts,
            np.arange(len(users)),
            available,
            self._clusters[layout, users],
        )

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        return single_response(self.probabilities(round), slate, uniforms, _click, round.available)

    def probabilities(self, round: Round) -> FloatArray:
        layout, users = self._layout_index, round.users
        titles = self._title_of[layout, round.items[:, 0]]
        liked = np.einsum(
            "rka,ra->rk",
            self._attributes[layout[:, None], round.items],
            self._tastes[layout, users],
        )
        logits = (
            self.params.taste * liked
            + (self._interest[layout, users, titles] / 2 - self.params.intercept)[:, None]
        )
        p = 1 / (1 + np.exp(-logits))
        return (
            p if self._quality is None else scaled(p, self._quality[layout[:, None], round.items])
        )

    def features(self, item: int | None) -> FloatArray:
        D, n = self.spec.n_features, self.spec.n_features - 2
        if item is None or any(isinstance(change, Features) for change in self.params.changes):
            return np.eye(D)
        there = (self._attributes[:, item, :n] != 0).any(axis=0)
        return np.eye(D)[np.r_[there, True, True]]

    def categories(self) -> IntArray:
        """Return the title of every picture, int64 (R, n_items)."""
        return np.asarray(self._title_of[self._layout_index])

    def launched(self) -> dict[int, list[IntArray]]:
        pictures = {}
        for i, titles in self._stock.cohorts.items():
            own = [
                np.flatnonzero(np.isin(self._title_of[at], new)) for at, new in enumerate(titles)
            ]
            pictures[i] = [own[at] for at in self._layout_index]
        return pictures

    def log(self, layout: int, n: int) -> LoggedData:
        """Return interactions in which random users were shown random pictures of what is there at
        the start.
        """
        generator = self.streams.generator("log", row=layout)
        at = (
            int(np.flatnonzero(self.layouts() == layout)[0])
            if self.params.layout == "per_row"
            else 0
        )
        place = int(self._layout_index[at])
        catalogue, visible = self.catalogues[place], self.spec.n_features - 2
        offered = np.flatnonzero(
            self._titles_at(0)[place][catalogue.title_of] & self._pictures_at(0)[place]
        )
        users = generator.integers(0, self.params.n_users, size=n)
        items = offered[generator.integers(0, len(offered), size=n)]
        titles = catalogue.title_of[items]
        liked = (catalogue.attributes[items] * catalogue.tastes[users]).sum(axis=1)
        logits = (
            self.params.taste * liked
            + catalogue.interest[users, titles] / 2
            - self.params.intercept
        )
        means = 1 / (1 + np.exp(-logits))
        rewards = (generator.random(n) < means).astype(np.float64)
        values = np.empty((n, visible + 2))
        values[:, :visible] = (catalogue.attributes[items] * catalogue.tastes[users])[:, :visible]
        values[:, visible], values[:, visible + 1] = 1, catalogue.predicted[users, titles]
        columns = np.broadcast_to(np.arange(visible + 2), values.shape).copy()
        return LoggedData(users, items, values, columns, rewards, means)

    def titles_at(self, step: int, row: int = 0) -> IntArray:
        """Return the titles that can be retrieved at a step in one row, int64 (n,), ascending."""
        return np.flatnonzero(self._titles_at(step)[self._layout_index[row]])

    def catalogue(self, row: int = 0) -> Catalogue:
        """Return the titles, pictures and users of one row."""
        return self.catalogues[int(self._layout_index[row])]

    def name(self, item: int, row: int = 0) -> str:
        catalogue = self.catalogue(row)
        title = int(catalogue.title_of[item])
        return (
            f"title {title + 1}, picture {item - int(catalogue.first[title]) + 1}: "
            f"{catalogue.describe(item)}"
        )

    @classmethod
    def segment_names(cls) -> list[str]:
        return list(GENRES)

    def _make_stock(self, layouts: list[int], sizes: list[IntArray]) -> Stock:
        """Draw what is launched and withdrawn among titles and pictures, which lie one after the
        other.
        """
        p, N = self.params, self.spec.n_items
        groups = np.full((len(layouts), p.n_titles + N), OTHERS)
        groups[:, : p.n_titles] = np.where(self._arrivals > 0, KEPT, TITLES)
        for own, n in zip(groups, sizes, strict=True):
            # the default pictures
            own[p.n_titles + np.cumsum(n) - n] = KEPT
        return Stock(
            p.changes,
            groups,
            lambda at, part: self.streams.generator("layout", row=layouts[at], part=part),
        )

    def _titles_at(self, step: int) -> BoolArray:
        return self._stock.at(step)[:, : self.params.n_titles] & (self._arrivals <= step)

    def _pictures_at(self, step: int) -> BoolArray:
        return self._stock.at(step)[:, self.params.n_titles :]

    def _retrieved_at(self, step: int) -> IntArray:
        """Return the titles retrieved for every user, int64 (L, U, n_retrieved)."""
        now = self._stock.interval(step)[0], int((self._arrivals <= step).sum())
        if now not in self._retrieved:
            if len(self._retrieved) >= KEPT_RETRIEVALS:
                del self._retrieved[next(iter(self._retrieved))]  # the oldest
            index = self.params.retrieval == "nearest"
            there = zip(self.catalogues, self._titles_at(step), strict=True)
            self._retrieved[now] = np.stack(
                [
                    c.retrieve(np.flatnonzero(titles), self.params.n_retrieved, index=index)
                    for c, titles in there
                ]
            )
        return self._retrieved[now]


def _width(params: Any) -> int:
    """Count the features, D: taste times attribute, 1, and the predicted interest in the title."""
    return OBSERVED[params.attributes] + 2


def _click(means: FloatArray, uniforms: FloatArray) -> FloatArray:
    return (uniforms < means).astype(np.float64)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
