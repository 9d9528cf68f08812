"""The parts of the page Your data: a table that was uploaded, and the data sets that are here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import streamlit as st

from bandits import UserError
from bandits.base import formatting
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import Column, Table, inspect
from ui.text import refuse, safe_cell

NAMED = 6  # classes that are listed one by one


class Choice(NamedTuple):
    """What a visitor makes of a table."""

    table: Table
    target: str
    leave_out: Sequence[str]
    title: str
    possible: bool


def choose(file: Any) -> Choice:
    """Show the columns of an uploaded file and ask what they mean.

    Raises
    ------
    UserError
        The file is no table.
    """
    table = _read(file)
    names = [column.name for column in table.columns]
    st.dataframe(
        [_described(column) for column in table.columns], hide_index=True, width="stretch",
        column_config={"Note": st.column_config.TextColumn(width="large")},
    )  # fmt: skip
    left, right = st.columns(2)
    target = left.selectbox(
        "Target", names, index=names.index(table.suggested_target()), key=f"data-target-{file.file_id}",
        help="The column with the right answers. Its values are the arms, 2 to 50 of them.",
    )  # fmt: skip
    title = right.text_input(
        "Name", uploads.title_from(file.name), max_chars=40, key=f"data-title-{file.file_id}",
        help="What this data set is called in lists.",
    )  # fmt: skip
    leave_out = st.multiselect(
        "Leave out", [name for name in names if name != target], table.suggested_omissions(target),
        key=f"data-without-{file.file_id}-{target}", placeholder="Nothing: use all other columns",
        help="Columns that agents should not see: identifiers, say, or what is only known when the answer is.",
    )  # fmt: skip
    possible = True
    try:
        uploads.check(table, target=target, leave_out=leave_out)
        st.caption(_summary(table, target, leave_out))
    except UserError as sentence:
        possible = False
        refuse(sentence)
    return Choice(table, target, leave_out, title.strip(), possible)


def shelf() -> str | None:
    """The data sets that were brought; returns the one that is to be raced on."""
    asked = None
    kept = uploads.listing()
    if kept:
        st.subheader("Brought so far", anchor=False)
    for data in kept:
        with st.container(border=True):
            told, race_at, delete_at = st.columns([5, 1.6, 1.4], vertical_alignment="center")
            features = f"{data.features} feature{'' if data.features == 1 else 's'}"
            sizes = f"{formatting.count(data.rows)} rows · {features} · {data.classes} classes of “{data.target}”"
            told.html(f"<b>{escape(data.title)}</b><br><small>{escape(sizes)}</small>")
            if race_at.button("Race on it", key=f"race-{data.id}", icon=":material/play_arrow:", width="stretch"):
                asked = data.id
            with delete_at.popover("Delete", icon=":material/delete:", width="stretch"):
                st.markdown(
                    "Runs on these data can then no longer be opened or started, until the same CSV is brought again."
                )
                if st.button("Delete for good", key=f"delete-{data.id}", type="primary", width="stretch"):
                    uploads.delete(data.id)
                    st.rerun()
    return asked


def _read(file: Any) -> Table:
    """Read a file once, not again at every touch of a control."""
    known, table = st.session_state.get("data-table", ("", None))
    if known != file.file_id:
        table = inspect(file.getvalue())
        st.session_state["data-table"] = file.file_id, table
    found: Table = table
    return found


def _described(column: Column) -> dict[str, Any]:
    note = column.trouble or ("tells the rows apart and nothing else" if column.identifies else "")
    return {
        "Column": safe_cell(column.name), "Type": column.kind,
        "Example": column.example if column.kind == "number" else safe_cell(column.example),
        "Missing": column.missing, "Different values": column.distinct, "Note": note,
    }  # fmt: skip


def _quoted(text: str) -> str:
    """What a visitor typed, as code: neither markup nor an address to click on."""
    return "`" + text.replace("`", "'") + "`"


def _summary(table: Table, target: str, leave_out: Sequence[str]) -> str:
    classes, n = table.classes(target), len(table.rows)
    named = ", ".join(f"{_quoted(text)} {formatting.count(count)}" for text, count in list(classes.items())[:NAMED])
    more = f" and {len(classes) - NAMED} more" if len(classes) > NAMED else ""
    features = len(table.columns) - 1 - len(leave_out)
    most = formatting.percent(max(classes.values()) / n)
    return (
        f"{formatting.count(n)} examples, {features} feature{'' if features == 1 else 's'}, {len(classes)} classes: "
        f"{named}{more}. Always naming the most frequent class would be right {most} of the time."
    )
