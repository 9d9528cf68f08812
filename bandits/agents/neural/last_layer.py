"""Base class of the agents with a linear head on a network's last hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.linear.ridge import Ridge
from bandits.models.neural.distinct_candidates import expand_array
from bandits.models.neural.mlp import ForwardPass, count_weights
from bandits.models.position_bias import weighted

from .base import DIVERGED, NeuralAgent
from .params import NeuralParams

if TYPE_CHECKING:
    from torch import Tensor

_MAX_ENCODED = 500_000  # activations held at once while the buffer is encoded


class HeadParams(NeuralParams):
    """Parameters of a ridge model on the last hidden layer of a network."""

    ridge: float = param(
        1.0, title="Ridge penalty", symbol=r"\lambda", ge=1e-6, le=1e4, typical=(0.01, 100), log=True,
        help="L2 penalty, or prior precision, of the weights of the linear head. Larger values shrink the weights more "
        "strongly (usually 0.01 to 100).",
    )  # fmt: skip
    heads: Literal["shared", "per_arm"] = param(
        "shared", title="Linear heads", structural=True,
        help="shared: one linear head for all arms. per_arm: one head and one network output per arm.",
    )  # fmt: skip


class HeadAgent(NeuralAgent):
    """Agent with a ridge head on z = phi(x), the last hidden layer of a network.

    The head learns at every step, the network is trained at intervals.
    """

    joint = False
    """Whether samples are drawn from the joint posterior of the candidates."""
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
    def alternatives(cls, spec: WorldSpec) -> list[dict[str, Any]]:
        heads = [{"heads": "shared"}] if "arm_features" in spec.capabilities else []
        return [*super().alternatives(spec), *heads]

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        (small,) = super().test_params()
        return [small, {**small, "heads": "per_arm"}]

    @classmethod
    def count_outputs(cls, params: Any, spec: WorldSpec) -> int:
        return spec.n_items if params.heads == "per_arm" else 1

    def output(self, forward_pass: ForwardPass) -> Tensor:
        """Return an output that is checked for divergence only: the head predicts."""
        return forward_pass.out.amax(2) if self.per_arm else forward_pass.out[..., 0]

    def embedded_round(self, round: Round) -> Round:
        """Replace the features of a round by z.

        The candidates are the distinct ones, or all of them with one head per arm.
        """
        z = self.checked_embedding(self.forward_pass(round).inputs[-1])
        index = self.encode(round).candidate_index
        if self.per_arm and index is not None:
            z = np.take_along_axis(z, index[:, :, None], axis=1)
        R, K, m = z.shape
        columns = np.broadcast_to(np.arange(m), (R, K, m))
        contexts = Contexts(np.ascontiguousarray(z), np.ascontiguousarray(columns), m)
        items = round.items if self.per_arm else np.zeros((R, K), np.int64)
        return round._replace(items=items, contexts=contexts, context=np.arange(R))

    def expand(self, round: Round, values: FloatArray) -> FloatArray:
        """Expand values of the embedded round's candidates to all candidates, (R, K)."""
        return values if self.per_arm else expand_array(values, self.encode(round).candidate_index)

    def update_posterior(self, round: Round, shown: IntArray, slate: IntArray, feedback: Feedback) -> None:
        candidates = slate if self.per_arm else shown
        self.head.update(*weighted(self.embedded_round(round), candidates, feedback, self.exposure(feedback)))

    def rebuild(self) -> FloatArray:
        """Encode the replay buffer by the current network and refit the head to it.

        Returns
        -------
        float64 (R, M)
            Sum of the squared rewards in the data of each head.
        """
        n, R = self.replay.size, len(self.params)
        M, m = self.head.count.shape[1], self.widths[-2]
        gram, b, count = np.zeros((R, M, m, m)), np.zeros((R, M, m)), np.zeros((R, M), np.int64)
        squares = np.zeros((R, M))
        step = max(1, _MAX_ENCODED // (R * max(self.widths)))
        for start in range(0, n, step):
            part = slice(start, min(n, start + step))
            x = self.tensor(self.replay.x[part].transpose(1, 0, 2))
            z = self.checked_embedding(self.net.forward(x).inputs[-1])
            weight = self.replay.weight[part, :, 0].T.astype(np.float64)
            reward = self.replay.reward[part].T.astype(np.float64)
            items = self.replay.item[part].T if self.per_arm else np.zeros((R, z.shape[1]), np.int64)
            for r in range(R):
                order = np.argsort(items[r], kind="stable")
                ends = np.searchsorted(items[r, order], np.arange(M), side="right")
                for arm, own in enumerate(np.split(order, ends[:-1])):
                    if len(own):
                        w, y, phi = weight[r, own], reward[r, own], z[r, own]
                        gram[r, arm] += (phi * w[:, None]).T @ phi
                        b[r, arm] += (w * y) @ phi
                        count[r, arm] += (w > 0).sum()
                        squares[r, arm] += (w * y**2).sum()
        self.head.refit(gram, b, count)
        return squares

    def checked_embedding(self, z: Tensor) -> FloatArray:
        """Convert embeddings (R, B, m) to float64, NaN where a network has diverged."""
        array: FloatArray = z.cpu().double().numpy()
        array[~(np.abs(array).max(axis=(1, 2)) <= DIVERGED)] = np.nan
        return array

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:  # noqa: ARG002 - the design matrix is that of z
        finite = np.asarray(np.isfinite(self.head.A).all(axis=(2, 3)))
        safe = np.where(finite[..., None, None], self.head.A, np.eye(self.widths[-2]))
        return np.where(finite[..., None], np.linalg.eigvalsh(safe)[..., ::-1], np.nan)

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:
        return bool(params.heads == "per_arm")

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        m, M = params.hidden[-1], spec.n_items if params.heads == "per_arm" else 1
        head = 8 * (M * (6 * m * m + 3 * m + 1) + 41 * M * m)
        widths = (spec.n_features, *params.hidden, cls.count_outputs(params, spec))
        encoding = 12 * min(_MAX_ENCODED, params.buffer * sum(widths)) + 24 * spec.n_candidates * m
        return super().memory(params, spec) + int(head + encoding) + 8 * count_weights(widths)
