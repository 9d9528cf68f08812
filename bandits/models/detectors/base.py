"""The interface of change detectors: one stream of numbers per row, one state array per name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandits.base.types import BoolArray, FloatArray


class Detections(NamedTuple):
    """What a detector finds in T steps.

    Attributes
    ----------
    there : bool (T, R)
        A change is detected at this value.
    statistic, threshold : float64 (T, R)
        The test statistic, negative for a decrease, and the value that its size exceeds; NaN where
        nothing is detected.
    """

    there: BoolArray
    statistic: FloatArray
    threshold: FloatArray


class Detector(ABC):
    """A change detector of R rows. After a detection, a row begins anew with the next value.

    Parameters
    ----------
    rows : int
        R.
    """

    state: ClassVar[tuple[str, ...]]
    """Names of the arrays that values change, each with leading axis R."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    @abstractmethod
    def _run(self, values: FloatArray, there: BoolArray) -> tuple[Any, ...]:
        """Process T steps in compiled code.

        Return first where changes are detected, bool (T, R).
        """

    @abstractmethod
    def detect(self, values: FloatArray, there: BoolArray | None = None) -> Detections:
        """Process T steps in one compiled loop.

        Parameters
        ----------
        values : float64 (T, R)
        there : bool (T, R), optional
            Where there is a value; all by default. Other entries leave their row as it is.
        """

    @abstractmethod
    def reset(self, rows: BoolArray) -> None:
        """Forget all values of some rows, bool (R,)."""

    @classmethod
    @abstractmethod
    def memory(cls) -> int:
        """Return the bytes of the state per row."""

    def update(self, values: FloatArray, there: BoolArray | None = None) -> BoolArray:
        """Process one step: values (R,), where ``there (R,)``.

        Return where a change is detected, bool (R,).
        """
        found: BoolArray = self._run(
            *prepared(values[None], None if there is None else there[None])
        )[0][0]
        return found

    def state_dict(self) -> dict[str, Any]:
        """Copy the state arrays, by name."""
        return {name: attrgetter(name)(self).copy() for name in self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore saved state arrays."""
        for name in self.state:
            attrgetter(name)(self)[...] = state[name]


def prepared(values: FloatArray, there: BoolArray | None) -> tuple[FloatArray, BoolArray]:
    """Return values and mask as contiguous arrays, an empty mask for none.

    A value that is NaN is never there.
    """
    mask = np.zeros((0, 0), np.bool_) if there is None else np.ascontiguousarray(there, np.bool_)
    return np.ascontiguousarray(values, np.float64), mask
