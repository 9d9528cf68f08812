"""Base class of the agents with a linear head on a network's last hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bandits.agents.model_params import ForgettingParams, gamma_param, ridge_param, window_param
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.linear.nonstationary import DiscountedRidge, SlidingWindowRidge
from bandits.models.linear.ridge import Ridge
from bandits.models.neural.distinct_candidates import expand_array
from bandits.models.neural.mlp import ForwardPass, count_weights
from bandits.models.position_bias import weighted

from .base import DIVERGED, NeuralAgent
from .params import NeuralParams

if TYPE_CHECKING:
    from torch import Tensor

# activations held at once while the buffer is encoded
_MAX_ENCODED = 500_000


class HeadParams(ForgettingParams, NeuralParams):
    """Parameters of a ridge model on the last hidden layer of a network."""

    ridge: float = ridge_param(
        1.0, "act on the linear head alone; usually 0.01 to 100", title="Ridge penalty"
    )
    heads: Literal["shared", "per_arm"] = param(
        "shared",
        title="Linear heads",
        structural=True,
        help=(
            "shared: one linear head for all arms. per_arm: one head and one network output per "
            "arm."
        ),
    )
    gamma: float = gamma_param()
    window: int | None = window_param()


class HeadAgent(NeuralAgent):
    """Agent with a ridge head on z = phi(x), the last hidden layer of a network.

    The head learns at every step, the network is trained at intervals. The head can forget, by a
    discount factor or a sliding window, and its prior is never discounted; the network forgets what
    leaves the replay buffer."""

    PRETRAIN_READS: ClassVar[tuple[str, ...]] = (
        "hidden",
        "optimiser",
        "loss",
        "heads",
        "pretrain",
        "learning_rate",
    )
    joint = False
    """Whether samples are drawn from the joint posterior of the candidates."""

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        self.per_arm = params[0].heads == "per_arm"
        super().__init__(params, spec, streams, access)
        self.n_heads = spec.n_items if self.per_arm else 1
        self.head = self.make_head()
        self.state = tuple(f"head.{name}" for name in self.head.state)

    def make_head(self) -> Ridge | DiscountedRidge:
        """Create the ridge models of the last hidden layer."""
        p, ridge, m = self.params[0], self.column("ridge"), self.widths[-2]
        sharing: Literal["per_arm", "shared"] = "per_arm" if self.per_arm else "shared"
        spec = replace(self.spec, n_features=m, n_stored=m)
        if p.window is not None:
            return SlidingWindowRidge(ridge, spec, sharing, p.window)
        if p.gamma < 1:
            return DiscountedRidge(ridge, self.column("gamma"), spec, sharing)
        return Ridge(ridge, m, spec.n_items, sharing, joint=self.joint)

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        heads = [{"heads": "shared"}] if "arm_features" in spec.capabilities else []
        return [*super().alternatives(spec), *heads]

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        (small,) = super().test_params()
        forgetting: list[dict[str, Any]] = [{"gamma": 0.98}, {"window": 20}]
        more = [
            {**small, **change, "heads": heads}
            for change in forgetting
            for heads in ("shared", "per_arm")
        ]
        return [small, {**small, "heads": "per_arm"}, *more]

    @classmethod
    def count_outputs(cls, params: Any, spec: SimulatorSpec) -> int:
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

    def update_posterior(
        self, round: Round, shown: IntArray, slate: IntArray, feedback: Feedback
    ) -> None:
        candidates = slate if self.per_arm else shown
        self.head.update(
            *weighted(self.embedded_round(round), candidates, feedback, self.exposure(feedback))
        )

    def rebuild(self) -> FloatArray:
        """Encode the replay buffer by the current network and refit the head to it.

        A head that forgets weighs each observation by its age in steps.

        Returns
        -------
        float64 (R, M)
            Sum of the squared rewards in the data of each head.
        """
        n, R, M, m = self.replay.size, len(self.params), self.n_heads, self.widths[-2]
        gram, b, count = np.zeros((R, M, m, m)), np.zeros((R, M, m)), np.zeros((R, M), np.int64)
        squares, gram2 = np.zeros((R, M)), np.zeros((R, M, m, m))
        # step and slot of each observation
        taken, slot = np.divmod(self.replay.numbers(), self.spec.slate)
        age, discounted = taken.max() - taken, isinstance(self.head, DiscountedRidge)
        # of a window: what it will take back
        within: list[tuple[Any, ...]] = []
        step = max(1, _MAX_ENCODED // (R * max(self.widths)))
        for start in range(0, n, step):
            part = slice(start, min(n, start + step))
            x = self.tensor(self.replay.x[part].transpose(1, 0, 2))
            z = self.checked_embedding(self.net.forward(x).inputs[-1])
            decay = self.decay(age[part])
            weight = decay * self.replay.weight[part, :, 0].T.astype(np.float64)
            reward = self.replay.reward[part].T.astype(np.float64)
            items = (
                self.replay.item[part].T if self.per_arm else np.zeros((R, z.shape[1]), np.int64)
            )
            if isinstance(self.head, SlidingWindowRidge):
                root, kept = np.sqrt(weight), np.flatnonzero(age[part] < self.head.window)
                arrays = z * root[..., None], items, reward * root, weight > 0
                within.append(
                    (
                        taken[part][kept],
                        slot[part][kept],
                        *(a[:, kept].swapaxes(0, 1) for a in arrays),
                    )
                )
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
                        if discounted:
                            gram2[r, arm] += (phi * (w * decay[r, own])[:, None]).T @ phi
        if isinstance(self.head, DiscountedRidge):
            self.head.refit(gram, gram2, b, int(taken.max()))
            return squares
        self.head.refit(gram, b, count)
        if isinstance(self.head, SlidingWindowRidge):
            self.head.replace_window(
                *(np.concatenate(arrays) for arrays in zip(*within, strict=True))
            )
        return squares

    def decay(self, age: IntArray) -> FloatArray:
        """Compute the weight that the head gives to observations of these ages in steps, float64
        (R, n).
        """
        if isinstance(self.head, DiscountedRidge):
            return np.asarray(self.head.gamma[:, None] ** age)
        recent = age < (self.head.window if isinstance(self.head, SlidingWindowRidge) else np.inf)
        return np.repeat(recent[None].astype(np.float64), len(self.params), axis=0)

    def checked_embedding(self, z: Tensor) -> FloatArray:
        """Convert embeddings (R, B, m) to float64, NaN where a network has diverged."""
        array: FloatArray = z.cpu().double().numpy()
        array[~(np.abs(array).max(axis=(1, 2)) <= DIVERGED)] = np.nan
        return array

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:  # noqa: ARG002
        if isinstance(self.head, DiscountedRidge):
            return self.head.spectrum([np.eye(self.widths[-2])] * self.n_heads)
        finite = np.asarray(np.isfinite(self.head.A).all(axis=(2, 3)))
        safe = np.where(finite[..., None, None], self.head.A, np.eye(self.widths[-2]))
        return np.where(finite[..., None], np.linalg.eigvalsh(safe)[..., ::-1], np.nan)

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:
        return bool(params.heads == "per_arm")

    @classmethod
    def spectrum_width(cls, params: Any, spec: SimulatorSpec) -> int:  # noqa: ARG003
        return int(params.hidden[-1])

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        m, M = params.hidden[-1], spec.n_items if params.heads == "per_arm" else 1
        # with those of a refit, and a saved copy
        matrices = 12 if params.gamma < 1 else 6
        head = 8 * (M * (matrices * m * m + 3 * m + 1))
        if params.window is not None:
            stored = replace(spec, n_features=m, n_stored=m)
            head += 3 * SlidingWindowRidge.ring_memory(stored, params.window)
        widths = (spec.n_features, *params.hidden, cls.count_outputs(params, spec))
        encoding = 12 * min(_MAX_ENCODED, params.buffer * sum(widths)) + 24 * spec.n_candidates * m
        head += cls.spectra_memory(params, spec)
        return super().memory(params, spec) + int(head + encoding) + 8 * count_weights(widths)
