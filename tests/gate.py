"""Runs and sweeps that are held where a test wants them, by their seed, in whatever process they are computed.

No test relies on how long a run takes: what must not have ended yet stands still until the test opens the gate. The
other half is `tests.plugin_gate`, which all processes but the test's own load.
"""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path

USUAL = 42  # the seed of what has none of its own; races of it that are not meant end by this step
USUAL_STEPS = 20_000
_turns = count()


class Gate:
    """Holds runs until they are let go.

    Parameters
    ----------
    folder : Path
        ``BANDITS_GATE`` of the processes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn: dict[int | str, str] = {}

    def hold(self, seed: int | str, step: int = 0, *, passes: int = 0, training: bool = False) -> None:
        """From now on runs and blocks of this seed go as far as a step, and stand still there.

        Parameters
        ----------
        seed : int, or ``cost``
            Measurements of cost, after as many points as ``step`` says.
        step : int
        passes : int
            So many blocks of sweeps go on to their end.
        training : bool
            Agents that are trained beside a race are not ready either.
        """
        assert seed != USUAL or step >= USUAL_STEPS, "workers warm up with this seed, and others race with it"
        self._turn[seed] = turn = f"{os.getpid()}-{next(_turns)}"
        told = {"turn": turn, "step": step, "passes": passes, "training": training}
        written = self._folder / f"{seed}.{turn}"
        written.write_text(json.dumps(told))
        written.replace(self._folder / f"{seed}")

    def stands(self, seed: int | str) -> int | None:
        """The step at which a run stands since it was last held; None if none does yet."""
        try:
            return int((self._folder / f"{seed}.{self._turn[seed]}.stands").read_text() or -1)
        except FileNotFoundError:
            return None

    def open(self, *seeds: int | str) -> None:
        """Let runs of these seeds go; of all, where none is named."""
        for seed in seeds or tuple(self._turn):
            (self._folder / f"{seed}").unlink(missing_ok=True)
