"""Rows of an uploaded table that hold what is not allowed: named all at once, or left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bandits.base.errors import UserError
from bandits.base.row_names import RowNames
from bandits.tables.problems import RowsError, Wrong, check, left_out

from .csv_table import Column, Table


def check_rows(
    table: Table,
    *,
    target: str = "",
    rewards: Sequence[str] = (),
    leave_out: Collection[str] = (),
) -> None:
    """Refuse a table with wrong rows; the arguments are those of `uploads.save_dataset`.

    Raises
    ------
    RowsError
        A row has more or fewer cells than the header, no class or reward, or a feature that is no
        number, unlike the rest of its column.
    """
    role = "target" if target else "reward"
    needed = "every example needs its class" if target else "every arm needs its reward"
    found = [
        *(_missing(column, role, needed) for column in table.columns if column.name in rewards),
        *(_missing(column, role, needed) for column in table.columns if column.name == target),
        *(
            _invalid(column)
            for column in table.columns
            if column.name != target and column.name not in leave_out
        ),
    ]
    check(found, RowNames("row {0}", table.rows), table.wrong)


def without_wrong_rows(
    table: Table,
    *,
    target: str = "",
    rewards: Sequence[str] = (),
    leave_out: Collection[str] = (),
) -> tuple[Table, str]:
    """Return a table without its wrong rows, and a sentence that states how many were left out.

    The sentence is empty where none was.

    Raises
    ------
    UserError
        All rows are wrong.
    """
    try:
        check_rows(table, target=target, rewards=rewards, leave_out=leave_out)
    except RowsError as error:
        if error.rows.all():
            raise UserError(f"all rows are wrong; {error.sentences[0]}") from None
        n = len(table.rows) + len(table.wrong)
        return table.select(~error.rows), left_out(error.count, n, error.sentences[0])
    return table, ""


def _missing(column: Column, role: str, needed: str) -> Wrong:
    return Wrong(column.absent(), lambda _: f"{role} column '{column.name}': is empty; {needed}")


def _invalid(column: Column) -> Wrong:
    advice = "repair it, or leave the column out"
    return Wrong(column.strays(), lambda i: f"{column.describe_stray(i)}: {advice}")
