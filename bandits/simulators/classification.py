"""Tables as bandits: each class of a labelled data set is an arm."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    Round,
    SimulatorSpec,
    Truth,
)
from bandits.simulators.datasets.csv_table import in_order

from .base import ClickTable, Encoding, Simulator, SimulatorParams, single_response
from .changed_inputs import break_dense
from .changes import Features, ShocksAndFaults, changes_param, check, order_at
from .datasets import uploads
from .datasets.scaling import Scale, coded, constant_param, prepared, scale_param
from .datasets.supervised import supervised_note
from .datasets.table_notes import table_notes

# rows, features, classes: known without loading, so that sizes are checked before anything is read
SIZES = {
    "magic": (19020, 10, 2),
    "adult": (48842, 14, 2),
    "digits": (1797, 64, 10),
    "wine": (178, 13, 3),
    "breast_cancer": (569, 30, 2),
}
_TITLES = {
    "magic": "MAGIC telescope",
    "adult": "Adult incomes",
    "digits": "Handwritten digits",
    "wine": "Wines",
    "breast_cancer": "Breast cancer",
}
_ATTRIBUTIONS = {
    "magic": "MAGIC gamma telescope, Bock (2004), UCI Machine Learning Repository, CC BY 4.0",
    "adult": "Adult, Becker and Kohavi (1996), UCI Machine Learning Repository, CC BY 4.0",
}


class DataSet(NamedTuple):
    """Examples and what each arm earns there.

    Attributes
    ----------
    features : float64 (n, d)
    labels : int64 (n,)
        Row of ``rewards`` that holds for each example: its class, where there are classes.
    rewards : float64 (C, K)
    classes : tuple of str (K,)
        Names of the arms.
    columns : tuple of str
        Names of the features, without the constant.
    """

    features: FloatArray
    labels: IntArray
    rewards: FloatArray
    classes: tuple[str, ...]
    columns: tuple[str, ...]


def sizes(name: str) -> tuple[int, int, int]:
    """Return the rows, features and classes of a data set, without loading it.

    Raises
    ------
    UserError
        The data set is neither built in nor uploaded.
    """
    if name in SIZES:
        return SIZES[name]
    if info := uploads.find(name):
        return info.rows, info.features, info.classes
    known = ", ".join([*SIZES, *(info.id for info in uploads.listing())])
    raise UserError(
        f"data '{short(name)}' is not stored here: upload the CSV again on the page Data; known "
        f"are {known}"
    )


def _sizes(params: Any) -> tuple[int, int, int]:
    """Return the rows, features with the constant one, and classes."""
    n, d, K = sizes(params.data)
    return n, d + params.constant, K


@lru_cache(maxsize=8)
def load(name: str, scale: Scale = "none", *, constant: bool = False) -> DataSet:
    """Load a data set, by default as it is in its table.

    Missing values are -1, categories are coded alphabetically; features are scaled, and a constant
    one is added: see `bandits.simulators.datasets.scaling.prepared`. The protocol of
    Zhang et al. (2021) is ``norm`` without one."""
    info = None if name in SIZES else uploads.find(name)
    if name in ("digits", "wine", "breast_cancer"):
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{name}")()
        features, labels = bunch.data, bunch.target.astype(np.int64)
        classes = tuple(str(c) for c in bunch.target_names)
        columns, rewards = tuple(map(str, bunch.feature_names)), np.eye(len(classes))
    else:
        import pandas as pd

        shipped = files("bandits.simulators.datasets") / f"{name}.parquet"
        frame = pd.read_parquet(str(shipped)) if name in SIZES else uploads.load(name)
        if info is not None and not info.target:
            classes = tuple(frame.columns[-info.classes :])
            rewards = np.column_stack([frame.pop(arm) for arm in classes])
            labels = np.arange(len(frame))
        else:
            target = frame.pop(frame.columns[-1])
            classes = in_order(target)
            labels = target.map({text: i for i, text in enumerate(classes)}).to_numpy(np.int64)
            rewards = np.eye(len(classes))
        columns = tuple(frame.columns)
        features = coded(frame[column] for column in columns)
    features = prepared(features, scale, constant=constant)
    return DataSet(features, labels, rewards, classes, columns)


@lru_cache(maxsize=64)
def _supervised(name: str) -> tuple[str, str]:
    """State what is reached on a data set without exploration, briefly and in full; computed
    once.
    """
    data = load(name, "standard")
    return supervised_note(data.features, data.labels)


def data_param(default: str, help: str) -> Any:
    """Declare the table of a simulator."""
    return param(default, title="Data set", basic=True, pattern=r"^[a-z0-9_.-]{1,60}$", help=help)


class TableSimulator(Simulator):
    """One example of a table per step as context.

    Every row shuffles the data separately, and again after each epoch.
    """

    class Params(SimulatorParams):
        of_classes: ClassVar[bool] = True
        """Whether the table has one column with a class, and not a column of rewards per arm."""
        data: str = data_param("magic", "")
        encoding: Encoding = param(
            "block",
            title="Encoding",
            basic=True,
            help=(
                "block: the interaction of class and features, a block of features per class "
                "with which one shared model can learn each class, as published. context: the "
                "same vector for all classes, for models per arm."
            ),
        )
        scale: Scale = scale_param()
        constant: bool = constant_param()
        changes: ShocksAndFaults = changes_param("preferences (shock)")

        @model_validator(mode="after")
        def _agree(self) -> Self:
            info = None if self.data in SIZES else uploads.find(self.data)
            if info is not None and bool(info.target) != self.of_classes:
                what, kind = (
                    ("rewards", "rewards") if self.of_classes else ("classes", "classification")
                )
                raise ValueError(f"data '{self.data}' has {what}: use the simulator {kind}")
            if self.changes:
                check(self.all_changes, sizes(self.data)[1])
            return self

        @classmethod
        def choices(cls, name: str) -> dict[str, str] | None:
            if name != "data":
                return None
            infos = [info for info in uploads.listing() if bool(info.target) == cls.of_classes]
            titles = [info.title for info in infos]
            suffix = {
                info.id: f" {info.id[-4:]}" if titles.count(info.title) > 1 else ""
                for info in infos
            }
            return {
                **_TITLES,
                **{info.id: f"{info.title}{suffix[info.id]} (uploaded)" for info in infos},
            }

    family = "Data sets"
    offered: ClassVar[frozenset[str]] = frozenset({"truth", "log"})
    """Capabilities, besides ``arm_features``."""

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        self.data = load(params.data, params.scale, constant=params.constant)
        R, K, d = len(streams.rows), len(self.data.classes), self.data.features.shape[1]
        offset = (
            d * np.arange(K)[:, None] if params.encoding == "block" else np.zeros((K, 1), np.int64)
        )
        self._columns = np.broadcast_to(offset + np.arange(d), (R, K, d)).copy()
        self._rows = np.arange(R)
        self._items = np.broadcast_to(np.arange(K), (R, K)).copy()
        self._available = np.ones((R, K), np.bool_)
        # no user ids: the number of an example reveals its class
        self._zeros = np.zeros(R, np.int64)
        self._epoch, self._order = -1, np.empty((0, R), np.int64)

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        _, d, K = _sizes(params)
        wide = params.encoding == "block"
        capabilities = cls.offered | ({"arm_features"} if wide else set())
        return SimulatorSpec(
            n_items=K,
            n_candidates=K,
            n_features=d * K if wide else d,
            n_stored=d,
            capabilities=capabilities,
        )

    @classmethod
    def slate_size(cls, params: Any) -> int:  # noqa: ARG003
        return 1

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        n, d, K = _sizes(params)
        spans = 3 * (K * d) ** 2 if params.encoding == "block" else 0
        return 8 * (n * (d + 2) + rows * (n + 3 * K * d) + spans)

    def round_at(self, step: int) -> Round:
        examples = self._example(step)
        observed = break_dense(self.data.features[examples], self.params.changes, step)
        values = np.repeat(observed[:, None, :], len(self.data.classes), axis=1)
        contexts = Contexts(values, self._columns, self.spec.n_features)
        return Round(
            step, self._zeros, self._items, contexts, self._rows, self._available, self._zeros
        )

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        # the table holds what every arm earns: nothing is drawn
        return single_response(
            self.probabilities(round), slate, uniforms, lambda means, _: means, round.available
        )

    def probabilities(self, round: Round) -> FloatArray:
        rewards = self.data.rewards[self.data.labels[self._example(round.step)]]
        order = order_at(self.params.changes, round.step, len(self.data.classes))
        return rewards if order is None else rewards[:, np.argsort(order)]

    def features(self, item: int | None) -> FloatArray:
        K, changes = len(self.data.classes), self.params.changes
        steps = [0, *(change.begins for change in changes if isinstance(change, Features))]
        X = np.concatenate([break_dense(self.data.features, changes, step) for step in steps])
        if self.params.encoding == "context":
            return X
        # the same span in d rows
        basis = np.linalg.qr(X, mode="r")
        blocks = np.kron(np.eye(K), basis).reshape(K, -1, K * X.shape[1])
        return blocks.reshape(-1, K * X.shape[1]) if item is None else blocks[item]

    def log(self, layout: int, n: int) -> LoggedData:
        """Return random choices for examples drawn with replacement from the data set of the run.

        A network trained on this log has seen nearly every example: its accuracy is not that on
        unseen data."""
        generator = self.streams.generator("log", row=layout)
        examples = generator.integers(0, len(self.data.labels), size=n)
        items = generator.integers(0, len(self.data.classes), size=n)
        rewards = self.data.rewards[self.data.labels[examples], items]
        return LoggedData(
            examples, items, self.data.features[examples], self._columns[0][items], rewards, rewards
        )

    def name(self, item: int, row: int = 0) -> str:  # noqa: ARG002
        text = short(self.data.classes[item], 40)
        return f"{self.item_noun} {text}" if text.isdecimal() else text

    @classmethod
    def attribution(cls, params: Any) -> str:
        if params.data in SIZES:
            return _ATTRIBUTIONS.get(params.data, f"{params.data}, shipped with scikit-learn")
        info = uploads.find(params.data)
        return f"{info.id}, uploaded as a CSV of {info.rows:,} examples" if info else ""

    @classmethod
    def unscaled(cls, params: Any) -> FloatArray:
        if params.scale != "none":
            return super().unscaled(params)
        return np.asarray(np.abs(load(params.data).features).max(axis=0))

    @classmethod
    def notes(cls, params: Any) -> list[str]:
        raw = load(params.data)
        return table_notes(raw.features, raw.columns, params.scale, constant=params.constant)

    @classmethod
    def table_rows(cls, params: Any) -> int | None:
        info = uploads.find(params.data)
        return info and info.rows

    @classmethod
    def portable(cls, params: Any) -> bool:
        return params.data in SIZES

    def _example(self, step: int) -> IntArray:
        """Return the index of the example of each row, int64 (R,)."""
        epoch, position = divmod(step, len(self.data.labels))
        if epoch != self._epoch:
            n, rows = len(self.data.labels), self.streams.rows
            # a large array: neither beside that of the epoch before nor beside its own columns
            self._order = np.empty((0, len(rows)), np.int64)
            self._order = np.empty((n, len(rows)), np.int64)
            for i, row in enumerate(rows):
                shuffle = self.streams.generator("world", row=row, block=epoch)
                self._order[:, i] = shuffle.permutation(n)
            self._epoch = epoch
        examples: IntArray = self._order[position]
        return examples


class Classification(TableSimulator):
    """One example per step as context; every class is an arm, and the right class has reward 1.

    Regret is the number of wrong answers. Every row shuffles the data separately, and again after
    each epoch."""

    class Params(TableSimulator.Params):
        kind: Literal["classification"] = "classification"
        data: str = data_param(
            "magic",
            "magic: telescope images of gamma rays or hadrons. adult: census incomes. digits, "
            "wine, breast_cancer: shipped with scikit-learn. Further entries are CSV files "
            "uploaded on the page Data.",
        )

    title = "Real data (classification)"
    preset = "magic"
    reward_noun = "right answers"
    rate_title = "Share of right answers"
    item_noun = "class"
    oracle_knows = ", which knows the class of every row"
    offered = frozenset({"truth", "log", "binary"})

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        self._table = ClickTable.of(self.data.rewards)

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        return self._table.respond(self._labels(round), slate, uniforms)

    @classmethod
    def notes(cls, params: Any) -> list[str]:
        found = super().notes(params)
        return [*found, _supervised(params.data)[1]] if uploads.find(params.data) else found

    @classmethod
    def yardstick(cls, params: Any) -> str:
        if not uploads.find(params.data) or params.changes:
            return ""
        return _supervised(params.data)[0]

    def _labels(self, round: Round) -> IntArray:
        labels: IntArray = self.data.labels[self._example(round.step)]
        order = order_at(self.params.changes, round.step, len(self.data.classes))
        return labels if order is None else order[labels]
