"""Pre-training of an agent's networks on logged interactions, before the first step."""

from __future__ import annotations

import json
import time
from typing import Any, ClassVar

import numpy as np

from bandits.base.files import cached_arrays, is_cached
from bandits.base.params import declaration, param
from bandits.base.types import (
    Float32Array,
    FloatArray,
    IntArray,
    LoggedData,
    OfflineTraining,
    SimulatorSpec,
)

from .training import NetworkTraining

BATCH, PASSES = 256, 5
# of the row's agent stream: what pre-training draws
PRETRAIN_PART = 6


def pretrain_param(*, later: bool = True) -> Any:
    """Declare the number of logged interactions.

    ``later``: added after the first release of its class.
    """
    return param(
        0,
        title="Pre-training",
        unit="interactions",
        ge=0,
        le=200_000,
        structural=True,
        later=later,
        help=(
            "Number of logged random interactions that train the network before the run. Larger "
            "values start with a better embedding (usually 1,000 to 50,000); 0 starts from "
            "random weights."
        ),
    )


class WarmStart(NetworkTraining):
    """Pre-training on a log, for every agent with networks.

    The networks make `PASSES` passes through the first ``pretrain`` interactions of the layout's
    log, in their order and in batches of `BATCH`, with the agent's own loss, optimiser and learning
    rate. Only the networks are trained: what measures uncertainty (covariance, linear head) and the
    replay buffer start without data. The weights are cached by the content of the training."""

    PRETRAIN_READS: ClassVar[tuple[str, ...]] = (
        "hidden",
        "optimiser",
        "loss",
        "pretrain",
        "learning_rate",
    )
    """Fields that the pretrained weights depend on; of a plug-in, all fields count."""
    PRETRAIN_OPTIONS: ClassVar[tuple[str, ...]] = ()
    """Further such fields; they were added later and count only where they differ from their
    defaults.
    """
    pretraining = False
    """Whether the networks are being trained on the log."""

    def prepare(self) -> None:
        """Train the networks on logged interactions, or read them from the cache."""
        n = self.params[0].pretrain
        if n and not self.train_steps:
            arrays = cached_arrays("weights", self.pretrain_recipe(), self.pretrained_arrays)
            self.load_weights(arrays)
            self.start_from_weights()
            self.offline_training = OfflineTraining(n, float(arrays.get("seconds", np.nan)))

    def is_trained(self) -> bool:
        return is_cached("weights", self.pretrain_recipe())

    def pretrain_recipe(self) -> str:
        """Return everything that the pretrained weights depend on."""
        params, fields = self.params[0], type(self.params[0]).model_fields
        digest = [params.source_digest] if params.source_digest else []
        names = (
            [name for name in fields if name not in ("label", "guards")]
            if digest
            else self.PRETRAIN_READS
        )
        recipe = [
            getattr(params, name)
            if declaration(fields[name])["structural"]
            else [getattr(p, name) for p in self.params]
            for name in names
        ]
        place = [self.access.key, self.streams.seed, *self.streams.rows]
        changed = [
            n
            for n in self.PRETRAIN_OPTIONS
            if any(getattr(p, n) != fields[n].default for p in self.params)
        ]
        options = (
            [{name: [getattr(p, name) for p in self.params] for name in changed}] if changed else []
        )
        return json.dumps([params.kind, 1, recipe, place, *options, *digest])

    def pretrained_arrays(self) -> dict[str, Any]:
        """Train the networks; returns their state and the seconds it took."""
        began, n, layouts = (
            time.perf_counter(),
            self.params[0].pretrain,
            [int(each) for each in self.access.layouts],
        )
        logs = {layout: self.access.log(layout, n) for layout in set(layouts)}
        inputs = {layout: self.log_input(log) for layout, log in logs.items()}
        batch, self.pretraining = min(BATCH, n), True
        for _ in range(PASSES):
            for block, start in enumerate(range(0, n, batch)):
                part = slice(start, min(start + batch, n))
                x = np.stack([inputs[layout][part] for layout in layouts])
                items = np.stack([logs[layout].items[part] for layout in layouts])
                rewards = np.stack([logs[layout].rewards[part] for layout in layouts])
                weight = self.pretrain_weights(block, part.stop - start)
                self.pretrain_step(x, items, rewards, weight)
        self.pretraining = False
        state = {name: np.asarray(value) for name, value in self.weights().items()}
        return {**state, "seconds": np.array(time.perf_counter() - began)}

    def pretrain_step(
        self, x: Float32Array, items: IntArray, rewards: FloatArray, weight: FloatArray
    ) -> None:
        """Make one step of the optimiser on logged interactions.

        Parameters
        ----------
        x : float32 (R, B, ...)
        items : int64 (R, B)
        rewards : float64 (R, B)
        weight : float64 (R, B, copies)
        """
        self.train_step(
            self.tensor(x), self.index_tensor(items), self.tensor(rewards), self.tensor(weight)
        )

    def pretrain_weights(self, block: int, n: int) -> FloatArray:  # noqa: ARG002
        """Weigh the n interactions of a batch for each network, float64 (R, n, copies)."""
        return np.ones((len(self.params), n, self.copies))

    def log_input(self, log: LoggedData) -> Float32Array:
        """Convert logged interactions to the network's input, float32 (n, ...)."""
        x = np.zeros((len(log.rewards), self.spec.n_features), np.float32)
        np.put_along_axis(x, log.columns, log.values.astype(np.float32), axis=1)
        return x

    def start_from_weights(self) -> None:
        """Take the pretrained weights as the initial ones, in agents that refer to these later."""

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | (frozenset({"log"}) if params.pretrain else frozenset())

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        return [
            *([{"pretrain": 0}] if "log" not in spec.capabilities else []),
            *super().alternatives(spec),
        ]

    @classmethod
    def shared_memory(cls, params: Any, spec: SimulatorSpec, layouts: int) -> int:
        log = params.pretrain * layouts * (4 * spec.n_features + 24 * (1 + spec.n_stored))
        return int(log) + super().shared_memory(params, spec, layouts)
