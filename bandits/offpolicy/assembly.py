"""Put a log together from columns, some of whose rows may be wrong or pending."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import count, count_of
from bandits.base.row_names import RowNames
from bandits.base.types import BoolArray
from bandits.tables.problems import DESCRIBED, RowsError, Wrong, check, left_out

from .log import DecisionLog


def assembled(
    fields: Mapping[str, Any],
    found: Iterable[Wrong],
    rest: Mapping[str, Any],
    *,
    skip: bool = False,
    pending: float | None = None,
    more: Sequence[str] = (),
) -> DecisionLog:
    """Make a log of columns; all that is wrong is reported at once, or left out.

    Parameters
    ----------
    fields : mapping of str to array or None
        Arguments of `DecisionLog` with one entry per row, and ``columns``. A reward that is NaN is
        pending.
    found : iterable of Wrong
        Rows that their reader could not read.
    rest : mapping
        Other arguments of `DecisionLog`, with ``places``.
    skip : bool
        Leave out wrong rows, and state how many in the notes.
    pending : float, optional
        What a pending reward counts as; by default its row is left out.
    more : sequence of str
        What is wrong with rows that are not among the fields.

    Raises
    ------
    UserError
        No row is left.
    RowsError
        Rows are wrong.
    """
    at: RowNames = rest["places"]
    rewards = np.asarray(fields["rewards"], np.float64)
    n, wrong, sentences = len(rewards), np.zeros(len(rewards), bool), list(more)
    try:
        check(found, at)
    except RowsError as error:
        wrong, sentences = error.rows, [*more, *error.sentences]
    waiting = np.isnan(rewards) & ~wrong
    notes = list(rest.get("notes", ()))
    if waiting.any():
        first = at[int(waiting.argmax())]
        known = "counts" if waiting.sum() == 1 else "count"
        notes.append(
            f"{count(waiting.sum())} of {count_of(n, 'decisions')} left out, because the reward is "
            f"missing (first: {first})."
            if pending is None
            else f"{count(waiting.sum())} of {count_of(n, 'rewards')} missing; they {known} as "
            f"{pending:g} (first: {first})."
        )
        if pending is not None:
            fields = {**fields, "rewards": np.where(waiting, pending, rewards)}
            waiting = np.zeros(n, bool)
    keep = ~(wrong | waiting)
    try:
        if not keep.any() and not sentences:
            raise UserError("reward: is required; it is missing in all rows")
        log = _log(fields, keep, rest) if keep.any() else None
    except RowsError as error:
        index = np.flatnonzero(keep)[error.rows]
        wrong[index] = True
        sentences += error.sentences
        log = None
    if not sentences:
        assert log is not None
        return _with_notes(log, notes)
    if not skip or (wrong | waiting).all():
        raise RowsError(wrong, sentences[:DESCRIBED], len(more))
    notes.append(left_out(int(wrong.sum()) + len(more), n + len(more), sentences[0]))
    return _with_notes(log or _log(fields, ~(wrong | waiting), rest), notes)


def _log(fields: Mapping[str, Any], keep: BoolArray, rest: Mapping[str, Any]) -> DecisionLog:
    if keep.all():
        return DecisionLog(**fields, **rest)

    def part(values: Any) -> Any:
        return None if values is None else values[keep]

    columns = {name: part(values) for name, values in fields.get("columns", {}).items()}
    own = {name: part(values) for name, values in fields.items() if name != "columns"}
    places = rest["places"].select(keep, len(keep))
    return DecisionLog(**own, columns=columns, **{**rest, "places": places})


def _with_notes(log: DecisionLog, notes: Sequence[str]) -> DecisionLog:
    # not replace(), which would check all values again
    object.__setattr__(log, "notes", tuple(notes))
    return log
