"""Hold runs and sweeps at a given step, by seed, in any process that computes them.

No test depends on the duration of a run: a run that must not end yet is held until the test opens
the gate. The counterpart is `tests.plugin_gate`, which all processes except the test process load.
"""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path

# the default seed; unrelated runs with it end by this step
USUAL = 42
USUAL_STEPS = 20_000
_turns = count()


class Gate:
    """Holds runs until they are released.

    Parameters
    ----------
    folder : Path
        ``BANDITS_GATE`` of the processes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn: dict[int | str, str] = {}

    def hold(
        self, seed: int | str, step: int = 0, *, passes: int = 0, training: bool = False
    ) -> None:
        """Hold runs and blocks of this seed at a step, from now on.

        Parameters
        ----------
        seed : int, or ``cost``
            ``cost`` holds measurements of cost after ``step`` points.
        step : int
        passes : int
            Number of blocks of sweeps that are not held.
        training : bool
            Hold the training of agents in a subprocess too.
        """
        assert seed != USUAL or step >= USUAL_STEPS, (
            "workers warm up with this seed, and other runs use it"
        )
        self._turn[seed] = turn = f"{os.getpid()}-{next(_turns)}"
        order = {"turn": turn, "step": step, "passes": passes, "training": training}
        written = self._folder / f"{seed}.{turn}"
        written.write_text(json.dumps(order))
        written.replace(self._folder / f"{seed}")

    def stands(self, seed: int | str) -> int | None:
        """Return the step at which a run is held since the last `hold`.

        None if no run is held yet.
        """
        try:
            return int((self._folder / f"{seed}.{self._turn[seed]}.stands").read_text() or -1)
        except FileNotFoundError:
            return None

    def open(self, *seeds: int | str) -> None:
        """Release runs of these seeds; of all seeds if none is given."""
        for seed in seeds or tuple(self._turn):
            (self._folder / f"{seed}").unlink(missing_ok=True)
