"""A linear model on a network's embedding: what the neural-linear agents share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.linear.ridge import Ridge
from bandits.models.neural import mlp
from bandits.models.neural.mlp import ForwardPass
from bandits.models.neural.replay_buffer import of_all
from bandits.models.position_bias import weighted

from .base import EXPLODED, NeuralAgent, NeuralParams

if TYPE_CHECKING:
    from torch import Tensor

_ENCODED = 500_000  # numbers of the buffer's embeddings that are held at once


class HeadParams(NeuralParams):
    """Parameters of a ridge model that reads a network's last hidden layer."""

    ridge: float = param(
        1.0, title="Ridge", symbol=r"\lambda", ge=1e-6, le=1e4, typical=(0.01, 100), log=True,
        help="Strength of the belief, before any data, that all weights of the linear head are small.",
    )  # fmt: skip
    heads: Literal["shared", "per_arm"] = param(
        "shared", title="Heads", structural=True,
        help="shared: one linear head for all arms. per_arm: one for each, and the network has an output for each.",
    )  # fmt: skip


class HeadAgent(NeuralAgent):
    """Two speeds: a ridge head on z = phi(x) learns from every observation, the network below it now and then."""

    joint = False  # True: it draws from a posterior that candidates share
    STATE: ClassVar[tuple[str, ...]] = ("A", "inverse", "b", "theta", "count", "factor")

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        self.per_arm = params[0].heads == "per_arm"
        super().__init__(params, spec, streams, access)
        sharing: Literal["per_arm", "shared"] = "per_arm" if self.per_arm else "shared"
        width = self.widths[-2]
        self.head = Ridge(self.column("ridge"), width, spec.n_items, sharing, joint=self.joint)
        self.state = tuple(f"head.{name}" for name in self.STATE)

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        (small,) = super().test_params()
        return [small, {**small, "heads": "per_arm"}]

    @classmethod
    def count_outputs(cls, params: Any, spec: WorldSpec) -> int:
        return spec.n_items if params.heads == "per_arm" else 1

    def output(self, passed: ForwardPass) -> Tensor:
        """The head is what it believes; the network's own output only drives its training."""
        return passed.out.amax(2) if self.per_arm else passed.out[..., 0]

    def encoded(self, round: Round) -> Round:
        """The round with z in place of the features: distinct candidates, or all where every arm has its own head."""
        z = self.sound(self.passed(round).inputs[-1])
        which = self.look(round).which
        if self.per_arm and which is not None:
            z = np.take_along_axis(z, which[:, :, None], axis=1)
        R, K, m = z.shape
        columns = np.broadcast_to(np.arange(m), (R, K, m))
        contexts = Contexts(np.ascontiguousarray(z), np.ascontiguousarray(columns), m)
        items = round.items if self.per_arm else np.zeros((R, K), np.int64)
        return round._replace(items=items, contexts=contexts, context=np.arange(R))

    def of_all(self, round: Round, values: FloatArray) -> FloatArray:
        """Values of the encoded round's candidates as those of all, (R, K)."""
        return values if self.per_arm else of_all(values, self.look(round).which)

    def absorb(self, round: Round, at: IntArray, slate: IntArray, feedback: Feedback) -> None:
        shown = slate if self.per_arm else at
        self.head.update(*weighted(self.encoded(round), shown, feedback, self.shows(feedback)))

    def rebuild(self) -> FloatArray:
        """Encode everything remembered by the network as it is now, and fit the head to it anew.

        Returns
        -------
        float64 (R, M)
            Sum of the squared rewards that each head has been fitted to.
        """
        n, R = self.replay.size, len(self.params)
        M, m = self.head.count.shape[1], self.widths[-2]
        gram, b, count = np.zeros((R, M, m, m)), np.zeros((R, M, m)), np.zeros((R, M), np.int64)
        squares = np.zeros((R, M))
        step = max(1, _ENCODED // (R * max(self.widths)))
        for start in range(0, n, step):
            part = slice(start, min(n, start + step))
            x = self.tensor(self.replay.x[part].transpose(1, 0, 2))
            z = self.sound(self.net.forward(x).inputs[-1])
            weight = self.replay.weight[part, :, 0].T.astype(np.float64)
            reward = self.replay.reward[part].T.astype(np.float64)
            items = self.replay.item[part].T if self.per_arm else np.zeros((R, z.shape[1]), np.int64)
            for r in range(R):
                order = np.argsort(items[r], kind="stable")
                ends = np.searchsorted(items[r, order], np.arange(M), side="right")
                for arm, mine in enumerate(np.split(order, ends[:-1])):
                    if len(mine):
                        w, y, phi = weight[r, mine], reward[r, mine], z[r, mine]
                        gram[r, arm] += (phi * w[:, None]).T @ phi
                        b[r, arm] += (w * y) @ phi
                        count[r, arm] += (w > 0).sum()
                        squares[r, arm] += (w * y**2).sum()
        self.head.refit(gram, b, count)
        return squares

    def sound(self, z: Tensor) -> FloatArray:
        """Embeddings (R, B, m) in float64, NaN in rows whose network has diverged."""
        array: FloatArray = z.cpu().double().numpy()
        array[~(np.abs(array).max(axis=(1, 2)) <= EXPLODED)] = np.nan
        return array

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:  # noqa: ARG002 - z has a space of its own
        sound = np.asarray(np.isfinite(self.head.A).all(axis=(2, 3)))
        safe = np.where(sound[..., None, None], self.head.A, np.eye(self.widths[-2]))
        return np.where(sound[..., None], np.linalg.eigvalsh(safe)[..., ::-1], np.nan)

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:
        return bool(params.heads == "per_arm")

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        m, M = params.hidden[-1], spec.n_items if params.heads == "per_arm" else 1
        head = 8 * (M * (6 * m * m + 3 * m + 1) + 41 * M * m)
        widths = (spec.n_features, *params.hidden, cls.count_outputs(params, spec))
        encoding = 12 * min(_ENCODED, params.buffer * sum(widths)) + 24 * spec.n_candidates * m
        return super().memory(params, spec) + int(head + encoding) + 8 * mlp.size(widths)
