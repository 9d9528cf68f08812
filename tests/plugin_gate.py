"""A plug-in that the tests give to all processes (``BANDITS_PLUGINS``): runs stand still until a test opens a gate.

It brings no kinds. A file in the folder ``BANDITS_GATE``, written by `tests.gate.Gate` and named after a seed, says how
far runs of that seed go. Races stand still between chunks, blocks of sweeps between stretches: there they are heard of,
saved, paused and stopped as ever, and no bit depends on where they stood. Measurements of cost stand still after so
many points, where a file is named ``cost``.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bandits.simulators.petshop import PetShop

FOLDER = Path(os.environ.get("BANDITS_GATE", os.devnull))
LIMIT = 300.0  # seconds after which nobody is expected to open the gate any more
describe = PetShop.describe.__func__  # type: ignore[attr-defined]
stood: dict[tuple[int | str, str, int], float] = {}  # since when, by seed (or name), turn and step


class Order(NamedTuple):
    """What the file of a seed says (`tests.gate.Gate.hold`)."""

    turn: str
    step: int
    passes: int
    training: bool


def order(seed: int | str) -> Order | None:
    try:
        return Order(**json.loads((FOLDER / f"{seed}").read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return None


def stand(seed: int | str, told: Order, step: int) -> None:
    """Stand still for a moment, and let the test know where."""
    since = stood.setdefault((seed, told.turn, step), now := time.monotonic())
    if since == now:
        (FOLDER / f"{seed}.{told.turn}.stands").write_text(f"{step}")
    if now - since > LIMIT:
        raise TimeoutError(f"the gate of seed {seed} at step {step} was not opened for {LIMIT:.0f} s")
    time.sleep(0.02)


def passes(seed: int, told: Order) -> bool:
    """Whether this block is one of those that may go on: each takes a file that nobody has taken."""
    for i in range(told.passes):
        try:
            (FOLDER / f"{seed}.{told.turn}.pass-{i}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return True
    return False


def install() -> None:
    """Put the gate into races and blocks."""
    from bandits.experiments import race
    from bandits.experiments.race import Race
    from bandits.profiling.background import Measurement
    from bandits.sweeps import blocks

    advance, train, make_lane, hear = Race.advance, race._train_in_subprocess, blocks.make_lane, Measurement.handle_line

    def advance_as_told(self: Race, n: int = race.CHUNK) -> Iterator[Any]:
        if (told := order(self.experiment.seed)) is not None:
            if self.step >= told.step:
                stand(self.experiment.seed, told, self.step)
                n = min(n, self.step)
                self.step -= n  # once more to where it stands: who is behind catches up
            else:
                n = min(n, told.step - self.step)
        yield from advance(self, n)

    def train_as_told(experiment: Any, agent: int) -> subprocess.Popen[str]:
        process = train(experiment, agent)
        poll = process.poll

        def poll_as_told() -> int | None:
            told = order(experiment.seed)
            return None if told is not None and told.training else poll()

        process.poll = poll_as_told  # type: ignore[method-assign]
        return process

    def lane_as_told(experiment: Any, *arguments: Any, **options: Any) -> Any:
        lane = make_lane(experiment, *arguments, **options)
        go, free = lane.advance, False

        def go_as_told(n: int) -> Any:
            nonlocal free
            told = None if free else order(experiment.seed)
            if told is None:
                return go(n)
            if lane.step < told.step:
                return go(min(n, told.step - lane.step))
            if free := passes(experiment.seed, told):
                return go(n)
            stand(experiment.seed, told, lane.step)
            return go(0)

        lane.advance = go_as_told
        return lane

    def hear_as_told(self: Measurement, line: str) -> None:
        while (told := order("cost")) is not None and len(self.report.timings) >= told.step:
            stand("cost", told, told.step)
        hear(self, line)

    Race.advance, race._train_in_subprocess = advance_as_told, train_as_told  # type: ignore[method-assign]
    blocks.make_lane, Measurement.handle_line = lane_as_told, hear_as_told  # type: ignore[method-assign]


def first(cls: type[PetShop], params: Any) -> Any:
    """Plug-ins are loaded in the middle of an import; by the time anybody asks for a pet shop the package is there."""
    PetShop.describe = classmethod(describe)  # type: ignore[assignment]
    install()
    return describe(cls, params)


PetShop.describe = classmethod(first)  # type: ignore[assignment]
