"""Replay of a real log: a choice counts where it equals the one that was logged at random."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from bandits.base.formatting import short
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, Round, SimulatorSpec, Truth

from .base import Encoding, Simulator, SimulatorParams
from .datasets import kept_logs, logs
from .datasets.scaling import Scale, constant_param, scale_param
from .datasets.table_notes import table_notes


class Logged(Simulator):
    """Replay a log of uniformly random decisions: an agent's choice counts only where it equals the
    logged one.

    A step is a logged event. Where the agent chooses what was shown, it learns the logged reward
    and the event counts; otherwise nothing is known and nothing is learned. As the log's choice is
    independent of the agent's, the events that count are distributed as those of a live run. Each
    replication replays a part of the log of its own, in the order of time and once: after its end
    nothing counts. Expected rewards are not known, and agents count different events: nothing is
    paired.

    References
    ----------
    Li, Chu, Langford, Wang (2011), Unbiased offline evaluation of contextual-bandit-based news
    article recommendation algorithms, Algorithm 2."""

    class Params(SimulatorParams):
        kind: Literal["logged"] = "logged"
        log: str = param(
            "open_bandit/random/men",
            title="Log",
            basic=True,
            pattern=r"^[a-z0-9/_-]{1,60}$",
            help=(
                "Open Bandit: 10,000 random decisions of a fashion shop in one campaign, with 80 "
                "(all), 34 (men) or 46 (women) items. With more items fewer choices equal the "
                "logged ones: about one in 80, 34 or 46 counts. Further entries are logs of your "
                "own, uploaded in *What if?* on the page Data, one row per decision."
            ),
        )
        parts: int = param(
            16,
            title="Parts",
            symbol="P",
            ge=1,
            le=100,
            basic=True,
            help=(
                "Number of equal parts of the log; each replication replays one of its own, so "
                "that replications are independent. More parts are shorter: with 4 parts each "
                "has 2,500 events; usually 1 to 16."
            ),
        )
        encoding: Encoding = param(
            "context",
            title="Encoding",
            basic=True,
            help=(
                "context: the same vector for all items, for models per arm. block: the "
                "interaction of item and features, a block of features per item with which one "
                "shared model can learn each item."
            ),
        )
        scale: Scale = scale_param(" Indicators of the Open Bandit logs stay 0 and 1.")
        constant: bool = constant_param()

        @classmethod
        def choices(cls, name: str) -> dict[str, str] | None:
            if name != "log":
                return None
            infos = kept_logs.listing()
            titles = [info.title for info in infos]
            suffix = {
                info.id: f" {info.id[-4:]}" if titles.count(info.title) > 1 else ""
                for info in infos
            }
            own = {info.id: f"{info.title}{suffix[info.id]} (kept)" for info in infos}
            return {
                **{name: f"Open Bandit, {name.rpartition('/')[2]}" for name in logs.SHIPPED},
                **own,
            }

    title = "Logged decisions (replay)"
    family = "Data sets"
    preset = "replay"
    item_noun = "item"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        self._log = logs.load(params.log, params.scale, constant=params.constant)
        self._length = self.events(params)
        R, K = len(streams.rows), self.spec.n_items
        d = _width(params)
        self._offset = (
            d * np.arange(K)[:, None] if params.encoding == "block" else np.zeros((K, 1), np.int64)
        )
        self._part = np.array([row % params.parts for row in streams.rows], np.int64)
        self._values = np.ones((R, K, self.spec.n_stored))
        self._items = np.broadcast_to(np.arange(K), (R, K)).copy()
        self._available, self._rows = np.ones((R, K), np.bool_), np.arange(R)
        self._zeros, self._unknown = np.zeros(R, np.int64), np.full(R, np.nan)

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        d, (_, _, K) = _width(params), logs.sizes(params.log)
        wide = params.encoding == "block"
        capabilities = {"replay"} | ({"arm_features"} if wide else set())
        capabilities |= {"binary"} if logs.is_binary(params.log) else set()
        return SimulatorSpec(
            n_items=K,
            n_candidates=K,
            n_features=d * K if wide else d,
            n_stored=logs.width(params.log) + params.constant,
            capabilities=frozenset(capabilities),
        )

    @classmethod
    def slate_size(cls, params: Any) -> int:  # noqa: ARG003
        return 1

    @classmethod
    def obstacle(cls, params: Any, replications: int) -> str:
        if not cls.events(params):
            return (
                f"simulator.parts is {params.parts}; the log has only {logs.sizes(params.log)[0]} "
                "events"
            )
        if replications <= params.parts:
            return ""
        parts = "1 part" if params.parts == 1 else f"{params.parts} parts"
        return (
            f"replications is {replications:,}; the log has {parts} (simulator.parts), and each "
            "replication replays one of its own"
        )

    @classmethod
    def events(cls, params: Any) -> int:
        """Return the number of events of each part: no later step counts."""
        return logs.sizes(params.log)[0] // int(params.parts)

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        d, (n, _, K) = _width(params), logs.sizes(params.log)
        N = logs.width(params.log) + params.constant
        spans = 3 * (K * d) ** 2 if params.encoding == "block" else 0
        # the table, the columns, and those that are factorised
        copies = 1 if logs.is_shipped(params.log) else 3
        return int(8 * (copies * n * (2 + N) + rows * K * (3 * N + 6) + spans))

    def round_at(self, step: int) -> Round:
        event = self._event(step)
        columns = np.ascontiguousarray(self._log.columns[event][:, None, :] + self._offset)
        values = self._values
        if self._log.values is not None:
            values = np.repeat(self._log.values[event][:, None, :], self.spec.n_items, axis=1)
        contexts = Contexts(values, columns, self.spec.n_features)
        return Round(
            step, self._zeros, self._items, contexts, self._rows, self._available, self._zeros
        )

    def respond(
        self,
        round: Round,
        slate: IntArray,
        uniforms: FloatArray,  # noqa: ARG002
    ) -> tuple[Feedback, Truth]:
        event = self._event(round.step)
        counts = (slate == self._log.items[event][:, None]) & (round.step < self._length)
        rewards = np.where(counts, self._log.rewards[event][:, None], 0.0)
        return Feedback(rewards, counts), Truth(*[self._unknown] * 4)

    def probabilities(self, round: Round) -> FloatArray:  # noqa: ARG002
        return np.full(self._available.shape, np.nan)

    def features(self, item: int | None) -> FloatArray:
        K, d = self.spec.n_items, _width(self.params)
        if self._log.values is not None:
            # the same span in at most d rows
            X = np.asarray(np.linalg.qr(self._log.values, mode="r"))
        else:
            distinct = np.unique(self._log.columns, axis=0)
            X = np.zeros((len(distinct), d))
            np.put_along_axis(X, distinct, 1.0, axis=1)
        if self.params.encoding == "context":
            return X
        # the same span in d rows
        basis = np.linalg.qr(X, mode="r")
        blocks = np.kron(np.eye(K), basis).reshape(K, -1, K * d)
        return blocks.reshape(-1, K * d) if item is None else blocks[item]

    def name(self, item: int, row: int = 0) -> str:
        text = short(self._log.names[item], 40) if self._log.names else str(item)
        return super().name(int(text), row) if text.isdecimal() else text

    @classmethod
    def attribution(cls, params: Any) -> str:
        if logs.is_shipped(params.log):
            return logs.ATTRIBUTION
        info = kept_logs.find(params.log)
        return f"{info.id}, a log of {info.events:,} decisions that a user has kept" if info else ""

    @classmethod
    def unscaled(cls, params: Any) -> FloatArray:
        values = logs.load(params.log).values if params.scale == "none" else None
        return super().unscaled(params) if values is None else np.abs(values).max(axis=0)

    @classmethod
    def notes(cls, params: Any) -> list[str]:
        log = logs.load(params.log)
        if log.values is None:
            return []
        return table_notes(log.values, log.feature_names, params.scale, constant=params.constant)

    @classmethod
    def portable(cls, params: Any) -> bool:
        return logs.is_shipped(params.log)

    def _event(self, step: int) -> IntArray:
        """Return the event of each row, int64 (R,).

        Those after the end are repeated and do not count.
        """
        event: IntArray = step % self._length * self.params.parts + self._part
        return event


def _width(params: Any) -> int:
    """Return d, the number of features of an event, with the constant one."""
    return logs.sizes(params.log)[1] + bool(params.constant)
