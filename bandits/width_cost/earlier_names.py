"""The names of earlier versions (`bandits.cost`) for what `bandits.width_cost` holds today."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from .complexity import METHODS as WAYS
from .measure import measure
from .request import ProfileRequest as Question
from .request import Sizes, read
from .results import Agreement, CostReport
from .results import Progress as Step
from .results import Timing as Point


class Costs(CostReport):
    """`CostReport` with the earlier name of `CostReport.from_progress`."""

    @classmethod
    def of(cls, question: Question, steps: Iterable[Step]) -> Self:
        """Collect all results of a measurement."""
        return cls.from_progress(question, steps)


__all__ = ["WAYS", "Agreement", "Costs", "Point", "Question", "Sizes", "Step", "measure", "read"]
