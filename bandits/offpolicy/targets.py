"""Target policies: which probabilities they give to the actions of a log.

A target states probabilities of a block of rows, so that no matrix of all rows and actions is made
for those that can be computed. A text becomes a target in `read_target` (`named_targets.py`), an
agent in `learned_agent`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.row_names import ROWS
from bandits.base.types import FloatArray, IntArray
from bandits.tables.problems import check

from . import checks
from .log import DecisionLog

Rows = slice | IntArray
# cells of a block of rows and actions
BLOCK = 2**21


class Target(ABC):
    """A target policy pi_e.

    Attributes
    ----------
    name : str
    whole : bool
        Whether the probabilities of all actions are known, not only those of the logged ones.
    by_name : bool
        Whether its choices depend on the names of actions.
    """

    name = "matrix"
    whole = True
    by_name = False

    def check(self, log: DecisionLog) -> None:  # noqa: B027
        """Check that the target fits a log.

        Raises
        ------
        UserError
            It does not.
        """

    @abstractmethod
    def probabilities(self, log: DecisionLog, rows: Rows) -> FloatArray:
        """Return pi_e(a | x) of m of the rows and all actions, float64 (m, K)."""

    def logged(self, log: DecisionLog) -> FloatArray:
        """Return pi_e(a | x) of the logged actions, float64 (n,)."""
        found = np.empty(len(log))
        for rows in blocks(log):
            block = self.probabilities(log, rows)
            found[rows] = block[np.arange(len(block)), log.actions[rows]]
        return found


class Random(Target):
    """Choose each candidate with the same probability."""

    name = "random"

    def probabilities(self, log: DecisionLog, rows: Rows) -> FloatArray:
        if log.available is None:
            m, K = len(log.actions[rows]), log.n_actions
            return np.broadcast_to(1 / K, (m, K))
        available = log.available[rows]
        shares: FloatArray = available / available.sum(axis=1, keepdims=True)
        return shares

    def logged(self, log: DecisionLog) -> FloatArray:
        if log.available is None:
            return np.full(len(log), 1 / log.n_actions)
        return np.asarray(1 / log.available.sum(axis=1))


class Always(Target):
    """Choose one item, in every row where it is a candidate, and a random candidate elsewhere.

    Parameters
    ----------
    item : str
        Name of the action.
    """

    by_name = True

    def __init__(self, item: str) -> None:
        self.item, self.name = item, f"always:{item}"

    def check(self, log: DecisionLog) -> None:
        if self.item not in log.names:
            known = ", ".join(short(name, 20) for name in log.names[:5])
            raise UserError(
                f"target: '{short(self.item)}' is no action of the log; its {log.n_actions} "
                f"actions are {known}{', ...' if log.n_actions > 5 else ''}"
            )

    def probabilities(self, log: DecisionLog, rows: Rows) -> FloatArray:
        action, m = log.names.index(self.item), len(log.actions[rows])
        found = np.zeros((m, log.n_actions))
        found[:, action] = 1
        if log.available is not None:
            without = ~log.available[rows, action]
            found[without] = Random().probabilities(log, rows)[without]
        return found


class Matrix(Target):
    """Choose by given probabilities.

    Parameters
    ----------
    probabilities : float64 (n, K), (K,) or (K, S)
        Of each row; of all rows; or of each of the S positions, in their order.
    name : str
    """

    def __init__(self, probabilities: FloatArray, name: str = "matrix") -> None:
        self.matrix, self.name = np.asarray(probabilities, np.float64), name

    def check(self, log: DecisionLog) -> None:
        n, K, shape = len(log), log.n_actions, self.matrix.shape
        if shape == (n, K) and n != K:
            check([checks.wrong_distributions(self.matrix, "target")], log.places)
        elif shape == (K,):
            check([checks.wrong_distributions(self.matrix[None], "target")], ROWS)
        elif len(shape) == 2 and shape[0] == K and log.positions is not None:
            S = len(np.unique(log.positions))
            if shape[1] != S:
                raise UserError(
                    f"target: must have a column for each of the {S} positions; got {shape[1]}"
                )
            check([checks.wrong_distributions(self.matrix.T, "target, position")], ROWS)
        elif shape == (n, K):
            check([checks.wrong_distributions(self.matrix, "target")], log.places)
        else:
            raise UserError(
                f"target: must have the shape (n, K) = ({n}, {K}), (K,) or (K, S); got {shape}"
            )

    def probabilities(self, log: DecisionLog, rows: Rows) -> FloatArray:
        n, K = len(log), log.n_actions
        if self.matrix.ndim == 1:
            return np.broadcast_to(self.matrix, (len(log.actions[rows]), K))
        if self.matrix.shape == (n, K) and (n != K or log.positions is None):
            return self.matrix[rows]
        _, place = np.unique(np.asarray(log.positions), return_inverse=True)
        return np.ascontiguousarray(self.matrix.T)[place[rows]]

    def logged(self, log: DecisionLog) -> FloatArray:
        n, K = len(log), log.n_actions
        if self.matrix.shape == (n, K) and (n != K or log.positions is None):
            return self.matrix[np.arange(n), log.actions]
        return super().logged(log)


class Column(Target):
    """Choose the logged action by the probability in a column of the log.

    Other actions' are not known.
    """

    whole = False

    def __init__(self, column: str) -> None:
        self.column, self.name = column, f"column:{column}"

    def check(self, log: DecisionLog) -> None:
        values = self._values(log)
        wrong = ~((values >= 0) & (values <= 1))
        if wrong.any():
            i = int(wrong.argmax())
            raise UserError(
                f"{log.places[i]}, {short(self.column)}: must be between 0 and 1; got {values[i]:g}"
            )

    def probabilities(self, log: DecisionLog, rows: Rows) -> FloatArray:  # noqa: ARG002
        raise UserError(
            f"target {short(self.name)}: only the probabilities of the logged actions are known"
        )

    def logged(self, log: DecisionLog) -> FloatArray:
        return self._values(log)

    def _values(self, log: DecisionLog) -> FloatArray:
        if self.column in ("propensity", "propensity_score") and self.column not in log.columns:
            if log.propensities is None:
                raise UserError(f"target: the log has no column '{short(self.column)}'")
            return log.propensities
        if self.column not in log.columns:
            known = ", ".join(short(name, 30) for name in log.columns) or "none"
            raise UserError(
                f"target: the log has no numeric column '{short(self.column)}'; further columns: "
                f"{known}"
            )
        return log.columns[self.column]


def blocks(log: DecisionLog) -> Iterator[slice]:
    """Yield slices of rows, so that a block of rows and actions stays small."""
    step = max(1, BLOCK // log.n_actions)
    for start in range(0, len(log), step):
        yield slice(start, min(start + step, len(log)))
