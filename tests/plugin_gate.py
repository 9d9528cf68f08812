"""Plug-in that tests load in all processes (``BANDITS_PLUGINS``): it holds runs until a test opens
a gate.

It registers no kinds. A file in the folder ``BANDITS_GATE``, written by `tests.gate.Gate` and named
after a seed, states the step at which runs of that seed are held. Runs are held between chunks and
blocks of sweeps between calls of `advance`: there they are reported, saved, paused and stopped as
usual, and results do not depend on the step at which they were held. A file named ``cost`` holds
measurements of cost after that many points; those that begin meanwhile have small budgets."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bandits.base.processes import Line
from bandits.simulators.petshop import PetShop

FOLDER = Path(os.environ.get("BANDITS_GATE", os.devnull))
# seconds after which a held run fails
LIMIT = 300.0
describe = PetShop.describe.__func__  # type: ignore[attr-defined]
# start time, by seed (or name), turn and step
held_since: dict[tuple[int | str, str, int], float] = {}


class Order(NamedTuple):
    """Contents of the file of a seed (`tests.gate.Gate.hold`)."""

    turn: str
    step: int
    passes: int
    training: bool


def order(seed: int | str) -> Order | None:
    try:
        return Order(**json.loads((FOLDER / f"{seed}").read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return None


def stand(seed: int | str, held: Order, step: int) -> None:
    """Sleep for a moment and report the step to the test."""
    since = held_since.setdefault((seed, held.turn, step), now := time.monotonic())
    if since == now:
        (FOLDER / f"{seed}.{held.turn}.stands").write_text(f"{step}")
    if now - since > LIMIT:
        raise TimeoutError(
            f"the gate of seed {seed} at step {step} was not opened for {LIMIT:.0f} s"
        )
    time.sleep(0.02)


def passes(seed: int, held: Order) -> bool:
    """Return whether this block is not held: each such block creates one of a limited number of
    files.
    """
    for i in range(held.passes):
        try:
            (FOLDER / f"{seed}.{held.turn}.pass-{i}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return True
    return False


def install() -> None:
    """Install the gate in runs, blocks and measurements of cost."""
    from bandits.agents.neural.static_mlp import StaticMLP
    from bandits.experiments import lockstep
    from bandits.experiments.lockstep import Lockstep
    from bandits.sweeps import blocks
    from bandits.width_cost import measurement
    from bandits.width_cost.measurement import Measurement

    advance, is_trained = Lockstep.advance, StaticMLP.is_trained
    make_lane, receive = blocks.make_lane, Measurement.receive
    begin, in_full = Measurement.__init__, measurement.measured

    def advance_with_gate(self: Lockstep, n: int = lockstep.CHUNK) -> Iterator[Any]:
        if (held := order(self.experiment.seed)) is not None:
            if self.step >= held.step:
                stand(self.experiment.seed, held, self.step)
                n = min(n, self.step)
                # repeat the last chunk: agents that are behind catch up
                self.step -= n
            else:
                n = min(n, held.step - self.step)
        yield from advance(self, n)

    class TrainingWithGate(lockstep.ChildTask):
        """A training that goes on while the test holds it."""

        def __init__(
            self, line: Line, function: Callable[..., Any], experiment: Any, agent: int
        ) -> None:
            self.seed = experiment.seed
            super().__init__(line, function, experiment, agent)

        @property
        def active(self) -> bool:
            held = order(self.seed)
            return (held is not None and held.training) or super().active

    def is_trained_with_gate(self: StaticMLP) -> bool:
        held = order(self.streams.seed)
        return is_trained(self) and not (held is not None and held.training)

    def lane_with_gate(experiment: Any, *arguments: Any, **options: Any) -> Any:
        lane = make_lane(experiment, *arguments, **options)
        lane_advance, free = lane.advance, False

        def lane_advance_with_gate(n: int) -> Any:
            nonlocal free
            held = None if free else order(experiment.seed)
            if held is None:
                return lane_advance(n)
            if lane.step < held.step:
                return lane_advance(min(n, held.step - lane.step))
            if free := passes(experiment.seed, held):
                return lane_advance(n)
            stand(experiment.seed, held, lane.step)
            return lane_advance(0)

        lane.advance = lane_advance_with_gate
        return lane

    def begin_with_gate(self: Measurement, request: Any) -> None:
        from tests.pages import small_measurement

        small = order("cost") is not None
        measurement.measured = small_measurement.measured if small else in_full
        begin(self, request)

    def receive_with_gate(self: Measurement, message: Any) -> None:
        while (held := order("cost")) is not None and len(self.report.timings) >= held.step:
            stand("cost", held, held.step)
        receive(self, message)

    Lockstep.advance, lockstep.ChildTask = advance_with_gate, TrainingWithGate  # type: ignore[method-assign, misc]
    StaticMLP.is_trained = is_trained_with_gate  # type: ignore[method-assign]
    blocks.make_lane, Measurement.receive = lane_with_gate, receive_with_gate  # type: ignore[method-assign]
    Measurement.__init__ = begin_with_gate  # type: ignore[method-assign]


def first(cls: type[PetShop], params: Any) -> Any:
    """Install the gate at the first use: plug-ins are loaded while the package is being
    imported.
    """
    PetShop.describe = classmethod(describe)  # type: ignore[assignment]
    install()
    return describe(cls, params)


PetShop.describe = classmethod(first)  # type: ignore[assignment]
