"""Parts of the view Your data: the columns of an uploaded table, and the list of uploaded data
sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from bandits import UserError
from bandits.base.formatting import count, count_of, number, percent
from bandits.base.processes import ChildTask
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import (
    MAX_CLASSES,
    SAMPLES,
    Column,
    Sample,
    Table,
    inspect,
)
from bandits.simulators.datasets.protection import GROUPS, RARE, protect
from bandits.simulators.datasets.scaling import coded
from bandits.simulators.datasets.table_notes import table_notes
from bandits.simulators.datasets.wrong_rows import without_wrong_rows
from bandits.tables.problems import RowsError
from bandits.tables.reading_line import READINGS
from bandits_app.session import workers
from bandits_app.session.owner import deleter, may_delete, owner, refusal
from bandits_app.session.page import TABLE, known_of_file
from bandits_app.widgets import buttons
from bandits_app.widgets.row_problems import row_problems
from bandits_app.widgets.text import bullets, escape_markdown, refuse, safe_cell

# classes that are listed by name
NAMED = 6


# In the session: file name of the chosen sample, number of the uploader.
_SAMPLE, _UPLOADER = "data-sample", "data-uploader"


class SampleFile(NamedTuple):
    """A sample in the form of an uploaded file."""

    name: str
    file_id: str
    content: bytes

    def getvalue(self) -> bytes:
        """Return the bytes of the file."""
        return self.content


class Choice(NamedTuple):
    """What the user chose for a table."""

    table: Table
    target: str
    rewards: Sequence[str]
    leave_out: Sequence[str]
    title: str
    run: bool


def samples() -> None:
    """List the sample data sets: each is one click away, and can be downloaded.

    They are folded once a file is loaded, so that its columns are in sight.
    """
    uploaded = st.session_state.get(uploader_key())
    loaded = None if uploaded else st.session_state.get(_SAMPLE)
    folded = bool(uploaded or loaded)
    if not folded:
        st.subheader("Samples", anchor=False)
    with st.expander("Samples", icon=":material/dataset:") if folded else st.container():
        for sample in SAMPLES:
            _offer(sample)
    if loaded:
        title = next(sample.title for sample in SAMPLES if sample.file == loaded)
        st.markdown(f"**{title}** is loaded. Check its columns, then press **Save and run**.")
    else:
        st.subheader("Your file", anchor=False)


def _offer(sample: Sample) -> None:
    with st.container(border=True):
        text_at, try_at, download_at = st.columns([5, 1.4, 1.6], vertical_alignment="center")
        text_at.html(f"<b>{escape(sample.title)}</b><br><small>{escape(sample.about)}</small>")
        try_at.button(
            "Try",
            key=f"try-{sample.file}",
            icon=":material/play_arrow:",
            width="stretch",
            on_click=_try,
            args=(sample.file,),
            help=f"Load {sample.title} as if you had uploaded it.",
        )
        with download_at:
            buttons.download(
                "Download",
                sample.make,
                sample.file,
                "text/csv",
                key=f"download-{sample.file}",
                width="stretch",
            )


def _try(name: str) -> None:
    st.session_state[_SAMPLE] = name
    # a new uploader is empty
    st.session_state[_UPLOADER] = st.session_state.get(_UPLOADER, 0) + 1


def uploader_key() -> str:
    """Return the key of the file uploader.

    It changes when a sample takes the place of an uploaded file.
    """
    return f"data-file-{st.session_state.get(_UPLOADER, 0)}"


def current(uploaded: Any) -> Any:
    """Return the file to show: the uploaded one, or else the chosen sample, or None."""
    if uploaded is not None:
        st.session_state.pop(_SAMPLE, None)
        return uploaded
    chosen = st.session_state.get(_SAMPLE)
    for sample in SAMPLES:
        if sample.file == chosen:
            return SampleFile(sample.file, f"sample-{sample.file}", sample.make())
    return None


def choose(file: Any) -> Choice:
    """Show the columns of an uploaded file, with controls for target, name and columns to leave
    out.

    Raises
    ------
    UserError
        The file is not a table.
    """
    table = _read(file)
    names = [column.name for column in table.columns]
    left, right, run_at = st.columns([2, 2, 1], vertical_alignment="bottom")
    target = left.selectbox(
        "Target",
        names,
        index=names.index(table.suggested_target()),
        key=f"data-target-{file.file_id}",
        help=f"Column with the class of each example. Its values are the arms: 2 to {MAX_CLASSES}.",
    )
    title = right.text_input(
        "Name",
        uploads.title_from(file.name),
        max_chars=40,
        key=f"data-title-{file.file_id}",
        help="Name of the data set in lists.",
    )
    rewards = st.multiselect(
        "Reward columns",
        [column.name for column in table.columns if column.kind != "category"],
        table.suggested_rewards(),
        key=f"data-rewards-{file.file_id}",
        placeholder="None: the target holds the class",
        help=(
            "Instead of a target: one column per arm with what that arm would have earned in each "
            "row, any numbers. Agents then maximise these rewards, and all of them are known."
        ),
    )
    if rewards:
        target = ""
    leave_out = st.multiselect(
        "Leave out",
        [name for name in names if name not in (target, *rewards)],
        [n for n in table.suggested_omissions(target) if n not in rewards],
        key=f"data-without-{file.file_id}-{target}",
        placeholder="None: use all other columns",
        help=(
            "Columns that agents do not observe: identifiers, or values known only once the "
            "class is known."
        ),
    )
    valid = True
    with st.expander("Privacy", icon=":material/shield_lock:"):
        hashed, coarsened = _protected(table, target, leave_out, file.file_id)
    skip_key, columns = f"data-skip-{file.file_id}", table.columns
    try:
        if st.session_state.get(skip_key):
            table, left_out = without_wrong_rows(
                table, target=target, rewards=rewards, leave_out=leave_out
            )
            if left_out:
                st.caption(escape_markdown(left_out))
        table = protect(table, target=target, hashed=hashed, coarsened=coarsened)
        uploads.check(table, target=target, rewards=rewards, leave_out=leave_out)
        st.caption(_summary(table, target, rewards, leave_out))
        features = table.features((target, *rewards, *leave_out))
        bullets(table_notes(coded(c.values for c in features), [c.name for c in features]))
    except RowsError as error:
        valid = False
        row_problems(error.count, error.sentences, skip_key)
    except UserError as error:
        valid = False
        refuse(error)
    st.dataframe(
        [_described(column) for column in columns],
        hide_index=True,
        width="stretch",
        column_config={"Note": st.column_config.TextColumn(width="large")},
    )
    pressed = run_at.button(
        "Save and run",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        disabled=not valid,
    )
    return Choice(table, target, rewards, leave_out, title.strip(), pressed)


def _protected(
    table: Table, target: str, leave_out: Sequence[str], file_id: str
) -> tuple[Sequence[str], Sequence[str]]:
    """Draw the choice of columns that are hashed and of those that are coarsened, and say what is
    kept.
    """
    kept = [column.name for column in table.columns if column.name not in leave_out]
    left, right = st.columns(2)
    hashed = left.multiselect(
        "Hash",
        kept,
        key=f"data-hash-{file_id}",
        placeholder="None",
        help=(
            "Columns of which hashes with a secret key of this installation are stored in place "
            "of the values. Equal values stay equal within a data set, so how often each occurs "
            "stays visible: a column with few values can be guessed from that."
        ),
    )
    coarsened = right.multiselect(
        "Coarsen",
        [name for name in kept if name != target],
        key=f"data-coarsen-{file_id}",
        placeholder="None",
        help=(
            f"Columns whose numbers are put into up to {GROUPS} groups of at least {RARE} rows, "
            f"and whose texts in fewer than {RARE} rows are put together."
        ),
    )
    clear = [name for name in kept if name not in (*hashed, *coarsened)]
    st.caption(
        f"Kept on this server: {count_of(len(table.rows), 'rows')}. In clear text: "
        f"{', '.join(map(_quoted, clear)) or 'no column'}. Hashed: "
        f"{', '.join(map(_quoted, hashed)) or 'no column'}. Coarsened: "
        f"{', '.join(map(_quoted, coarsened)) or 'no column'}. Columns that are left out and the "
        "file itself are not stored. Runs and logs read what is kept; **Delete** below removes it."
    )
    return hashed, coarsened


def uploaded_data_sets() -> str | None:
    """List the uploaded data sets; returns the id of the one to run, if its button was pressed."""
    chosen = None
    infos = uploads.listing()
    if infos:
        st.subheader("Uploaded data sets", anchor=False)
    for info in infos:
        sizes = (
            f"{count_of(info.rows, 'rows')} · {count_of(info.features, 'features')} · "
            f"{info.classes} {f'classes of “{info.target}”' if info.target else 'reward columns'}"
        )
        lost = (
            "Runs on these data cannot be opened or started until the same CSV is uploaded again "
            "with the same choices of columns."
        )
        if stored_file(
            "data set", info.id, info.title, sizes, lost, partial(uploads.delete, info.id)
        ):
            chosen = info.id
    return chosen


def record_owner(name: str, stored: Iterable[str]) -> None:
    """Record who uploaded a data set or log, unless it was stored already.

    Parameters
    ----------
    name : str
    stored : iterable of str
        What was stored before.
    """
    if name not in stored:
        workers.pool().owners.record(name, owner())


def stored_file(
    kind: str, name: str, title: str, sizes: str, lost: str, delete: Callable[[], None]
) -> bool:
    """Draw a stored file, and what runs it or deletes it; return whether it is to be run.

    Parameters
    ----------
    kind, name : str
        What it is, in words, and its identifier. Who uploaded it deletes it, or the console.
    lost : str
        What is lost when it is deleted.
    """
    with st.container(border=True):
        text_at, run_at, delete_at = st.columns([5, 1.6, 1.4], vertical_alignment="center")
        text_at.html(f"<b>{escape(title)}</b><br><small>{escape(sizes)}</small>")
        with delete_at.popover("Delete", icon=":material/delete:", width="stretch"):
            st.markdown(lost)
            refused = refusal(may_delete([name], workers.pool().owners))
            if buttons.delete(
                f"Delete {kind}",
                key=name,
                type="primary",
                width="stretch",
                disabled=refused is not None,
                help=refused,
            ):
                delete_stored(name, delete)
                st.rerun()
        return run_at.button(
            "Run", key=f"run-{name}", icon=":material/play_arrow:", width="stretch"
        )


def delete_stored(name: str, delete: Callable[[], None]) -> None:
    """Delete a stored file and the record of its owner.

    Raises
    ------
    UserError
        It belongs to another visitor.
    """
    owners = workers.pool().owners
    owners.require(name, deleter())
    delete()
    owners.drop(name)


def _read(file: Any) -> Table:
    """Parse a file once per upload, not again at every rerun."""

    def parsed() -> Table:
        if isinstance(file, SampleFile):
            return inspect(file.content)
        with st.spinner("Reading the file ..."):
            table: Table = ChildTask(READINGS, inspect, file.getvalue()).wait()
        return table

    return known_of_file(TABLE, "", file.file_id, parsed)


def _described(column: Column) -> dict[str, Any]:
    notes = [column.problem] if column.problem else []
    if column.identifies:
        notes.append("unique per row (identifier): ignored")
    if column.dates:
        notes.append("dates: read as categories, not as times")
    return {
        "Column": safe_cell(column.name),
        "Type": column.kind,
        "Example": column.example if column.kind == "number" else safe_cell(column.example),
        "Missing": column.missing,
        "Distinct values": column.distinct,
        "Note": "; ".join(notes),
    }


def _quoted(text: str) -> str:
    """Return text from the file as code, so that it is neither markup nor a link."""
    return "`" + text.replace("`", "'") + "`"


def _summary(table: Table, target: str, rewards: Sequence[str], leave_out: Sequence[str]) -> str:
    n = len(table.rows)
    if rewards:
        mean = {arm: float(np.array(table.column(arm).values).mean()) for arm in rewards}
        best = max(mean, key=mean.__getitem__)
        features = count_of(len(table.features((*rewards, *leave_out))), "features")
        return (
            f"{count_of(n, 'examples')}, {features}, {len(rewards)} arms. Baseline: always "
            f"choosing {_quoted(best)} earns {number(mean[best])} per row."
        )
    classes = table.classes(target)
    sizes = ", ".join(
        f"{_quoted(name)} {count(size)}" for name, size in list(classes.items())[:NAMED]
    )
    more = f" and {len(classes) - NAMED} more" if len(classes) > NAMED else ""
    features = count_of(len(table.columns) - 1 - len(leave_out), "features")
    baseline = percent(max(classes.values()) / n)
    return (
        f"{count_of(n, 'examples')}, {features}, {len(classes)} classes: {sizes}{more}. Baseline: "
        f"always choosing the most frequent class is right {baseline} of the time."
    )
