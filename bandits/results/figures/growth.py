"""Lines of known growth beside the cumulative regret: √T and log T."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.results import metrics
from bandits.results.metrics import Band
from bandits.results.run import Run, headline

SHAPES = {"√T": np.sqrt, "log T": np.log1p}


class Growth(NamedTuple):
    """√T and log T, scaled to meet the regret of the leading agent.

    Attributes
    ----------
    label : str
        The agent with the highest mean reward per step; the oracle does not lead.
    step : int
        Where they meet: half of the steps that the agent has taken.
    lines : dict of str to Band
        By name, over the steps of the agent.
    """

    label: str
    step: int
    lines: dict[str, Band]

    @property
    def note(self) -> str:
        """What the lines are, in one sentence."""
        return (
            f" Dashed: √T, the growth of regret on the hardest problems, and log T, the growth on "
            f"one problem whose arms differ clearly; both meet {self.label} at step {self.step:,}."
        )


def growth(result: Run) -> Growth | None:
    """Scale the lines; None where regret is unknown, or the leading agent has lost nothing yet."""
    leader = headline(result.experiment, result.histories)
    if leader is None or not result.experiment.offers("truth"):
        return None
    curve = metrics.pseudo_regret(result.histories[leader.label])
    half = int(np.searchsorted(curve.x, curve.x[-1] / 2))
    if half == 0 or not curve.mid[half] > 0:
        return None
    lines = {}
    for name, shape in SHAPES.items():
        line = curve.mid[half] * shape(curve.x) / shape(curve.x[half])
        lines[name] = Band(curve.x, line, line, line, 0)
    return Growth(leader.label, int(curve.x[half]), lines)
