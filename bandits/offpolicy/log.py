"""A log of decisions: what was shown, with which probability, and what it earned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandits.base.errors import UserError
from bandits.base.row_names import ROWS, RowNames
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.tables.problems import Wrong, check

from . import checks

TextArray = NDArray[np.object_]

MAX_ROWS = 2_000_000
# of a matrix of rows by actions
MAX_CELLS = 200_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionLog:
    """Decisions of a logging policy, one row per event and position.

    n rounds, K actions, D features; S positions. Two logs are equal if all their arrays are.

    Attributes
    ----------
    actions : int64 (n,)
        Index of the action that was shown, from 0.
    rewards : float64 (n,)
    names : tuple of str (K,)
        Names of the actions.
    propensities : float64 (n,), optional
        Probability with which the logging policy chose the action.
    kinds : str (n,), optional
        How the propensity is known: exact, monte_carlo, deterministic or estimated.
    distributions : float64 (n, K), optional
        Propensities of all actions.
    features : float64 (n, D), optional
        The context.
    feature_names : tuple of str (D,)
    available : bool (n, K), optional
        The candidates; by default all actions.
    positions : int64 (n,), optional
    segments, event_ids, times, versions : str (n,), optional
        Segment of the user, identifier of the event, time, version of the model.
    rows, steps, contexts : int64 (n,), optional
        Replication, step and index of the context in the simulator.
    visits : int64 (n,), optional
        Number of the visit, where what was shown moves the visitor; its rows are in their order.
    row_weights : float64 (n,), optional
        How many decisions each row stands for, where a log keeps some kinds of decisions more
        often than others; by default one each.
    columns : mapping of str to float64 (n,)
        Other numeric columns, such as probabilities of a target policy.
    places : RowNames
        Names of the rows in their file, for messages.
    by_place : bool
        Actions are known by their place in lists of candidates that vary.
    reward_range : (float, float), optional
        Least and largest possible reward, where the kind of reward states them.
    notes : tuple of str
        What the reader left out or assumed, in sentences. Not compared, and not kept.
    experiment : str
        Of a simulated run: the experiment as JSON, from which the truth is known. Empty for other
        logs.
    agent : str
        Of a simulated run: the label of the agent that chose.
    unique_ids : bool
        The event ids are made unique by their writer, and not compared. Not kept.

    Raises
    ------
    UserError
        The shapes do not fit.
    RowsError
        Values are not allowed; each sentence names row and column.
    """

    actions: IntArray
    rewards: FloatArray
    names: tuple[str, ...]
    propensities: FloatArray | None = None
    kinds: TextArray | None = None
    distributions: FloatArray | None = None
    features: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    available: BoolArray | None = None
    positions: IntArray | None = None
    segments: TextArray | None = None
    event_ids: TextArray | None = None
    times: TextArray | None = None
    versions: TextArray | None = None
    rows: IntArray | None = None
    steps: IntArray | None = None
    contexts: IntArray | None = None
    visits: IntArray | None = None
    row_weights: FloatArray | None = None
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    by_place: bool = False
    reward_range: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    places: RowNames = ROWS
    experiment: str = ""
    agent: str = ""
    unique_ids: InitVar[bool] = False

    def __post_init__(self, unique_ids: bool) -> None:
        n, K, at = len(self.actions), len(self.names), self.places
        if not 1 <= n <= MAX_ROWS:
            raise UserError(f"a log must have 1 to {MAX_ROWS:,} rows; got {n:,}")
        for name, array in self._arrays().items():
            if len(array) != n:
                raise UserError(f"{name}: must have {n:,} rows as actions has; got {len(array):,}")
        for name in ("available", "distributions"):
            wide = getattr(self, name)
            if wide is not None and wide.shape != (n, K):
                raise UserError(
                    f"{name}: must have the shape (n, K) = ({n}, {K}); got {wide.shape}"
                )
        D = 0 if self.features is None else self.features.shape[1]
        if self.feature_names and len(self.feature_names) != D:
            raise UserError(
                f"feature_names: must have {D} names, one for each feature; got "
                f"{len(self.feature_names)}"
            )
        # later checks take actions as indices
        check([checks.wrong_actions(self.actions, K)], at)
        check(self._wrong(unique_ids), at)

    def _wrong(self, unique_ids: bool) -> Iterator[Wrong]:
        """Find the rows with values that are not allowed."""
        if self.available is not None:
            yield checks.wrong_candidates(self.actions, self.available, self.names)
        yield checks.wrong_rewards(self.rewards)
        if self.propensities is not None:
            yield checks.wrong_propensities(self.propensities)
        if self.distributions is not None:
            yield checks.wrong_distributions(self.distributions)
            if self.propensities is not None:
                yield checks.wrong_logged_probabilities(
                    self.distributions, self.actions, self.propensities
                )
        if self.row_weights is not None:
            yield checks.wrong_weights(self.row_weights)
        if self.event_ids is not None and not unique_ids:
            yield checks.wrong_ids(self.event_ids, self.positions)
        if self.features is not None:
            yield checks.wrong_features(self.features, self.feature_names)

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def n_actions(self) -> int:
        """K, the number of actions."""
        return len(self.names)

    @property
    def groups(self) -> IntArray | None:
        """Index of the event of each row, int64 (n,); None where each row is its own event."""
        if self.event_ids is None or self.positions is None:
            return None
        import pandas as pd

        codes, unique = pd.factorize(self.event_ids)
        return codes.astype(np.int64) if len(unique) < len(codes) else None

    def with_propensities(self, propensities: FloatArray, kind: str) -> DecisionLog:
        """Return the log with other propensities, of one kind, without vectors of propensities."""
        kinds = np.full(len(self), kind, dtype=object)
        return replace(self, propensities=propensities, kinds=kinds, distributions=None)

    def select(self, index: IntArray | BoolArray) -> DecisionLog:
        """Return some of the rows."""
        mine = {
            name: array for name, array in self._arrays().items() if not name.startswith("columns.")
        }
        arrays: dict[str, Any] = {name: array[index] for name, array in mine.items()}
        columns = {name: array[index] for name, array in self.columns.items()}
        return replace(self, **arrays, columns=columns, places=self.places.select(index, len(self)))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that are there, by name; those of ``columns`` as ``columns.NAME``."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        arrays = {name: array for name, array in own.items() if isinstance(array, np.ndarray)}
        return arrays | {f"columns.{name}": array for name, array in self.columns.items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DecisionLog):
            return NotImplemented
        mine, theirs = self._arrays(), other._arrays()
        same_names = (
            self.names,
            self.feature_names,
            self.experiment,
            self.agent,
        ) == (other.names, other.feature_names, other.experiment, other.agent)
        return (
            same_names
            and mine.keys() == theirs.keys()
            and all(np.array_equal(mine[k], theirs[k]) for k in mine)
        )

    __hash__ = None  # type: ignore[assignment]
