"""A user's own log: the file, and which of its columns have which roles."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import streamlit as st

from bandits.offpolicy.background import summarise_file
from bandits.offpolicy.choices import LogSummary
from bandits.offpolicy.reading import column_names, ending
from bandits.offpolicy.tables import ROLES, suggested_map
from bandits_app.session.kept_files import SUMMARY

T = TypeVar("T")
MAX_MEGABYTES = 50
_OPTIONAL = {
    "propensity": "Probability with which the item was chosen. Without it only DM and replay are possible.",
    "propensities": "Probabilities of all items, separated by |, where they are known.",
    "segment": "User segment: alarms are checked per segment too.",
    "event_id": "Identifier of the event, where several items were shown at once.",
    "position": "Position of the item, where several were shown at once.",
    "candidates": "Items that could be chosen, separated by |; by default all items of the file.",
}


class LogFile(NamedTuple):
    """An uploaded file."""

    identity: str
    name: str
    ending: str
    content: bytes


def upload() -> LogFile | None:
    """Draw the upload of a log."""
    uploaded = st.file_uploader(
        "Log file", ["csv", "gz", "parquet", "dsjson", "json", "jsonl"], max_upload_size=MAX_MEGABYTES,
        key="whatif-file",
        help="CSV or Parquet with one decision per row, a log that *Export* in the Arena wrote, or dsjson. Larger "
        "files: `python -m bandits evaluate`.",
    )  # fmt: skip
    st.caption("The file is read for this page only and not stored, unless you replay it in the Arena.")
    if uploaded is None:
        return None
    return LogFile(uploaded.file_id, uploaded.name, ending(uploaded.name), uploaded.getvalue())


def columns(file: LogFile) -> Mapping[str, str] | None:
    """Draw the choice of the columns of a table; None for a file that states their roles itself.

    Raises
    ------
    UserError
        The file is not a table.
    """
    names = _once("columns", file.identity, lambda: _columns(file))
    if names is None:
        return None
    guessed = suggested_map(names)
    found = dict.fromkeys(ROLES, "")  # a column without a role has none, whatever its name
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        for role in ("action", "reward"):
            found[role] = st.selectbox(
                role.capitalize(), names, names.index(guessed[role]) if role in guessed else 0, width=180,
                key=f"whatif-{role}-{file.identity}",
                help="The item that was shown" if role == "action" else "What it earned: a click is 1, no click 0",
            )  # fmt: skip
        optional = iter(_OPTIONAL)
        role = next(optional)
        found[role] = _optional(role, names, guessed, file)
        with st.container(width="content"), st.popover("More columns", icon=":material/view_column:"):
            for role in optional:
                found[role] = _optional(role, names, guessed, file)
    able = [name for name in names if name not in found.values() and "|" not in name]
    features = st.multiselect(
        "Features", able, [name for name in guessed.get("features", "").split("|") if name in able],
        key=f"whatif-features-{file.identity}", placeholder="None: rewards are predicted from the item alone",
        help="What was known of the user; models of rewards use it.",
    )  # fmt: skip
    return found | {"features": "|".join(features)}


def _optional(role: str, names: list[str], guessed: Mapping[str, str], file: LogFile) -> str:
    chosen = st.selectbox(
        role.replace("_id", " identifier").capitalize(), [None, *names],
        names.index(guessed[role]) + 1 if role in guessed else 0, width=180, help=_OPTIONAL[role],
        key=f"whatif-{role}-{file.identity}", format_func=lambda name: "None" if name is None else name,
    )  # fmt: skip
    return chosen or ""


def summary(file: LogFile, mapping: Mapping[str, str] | None) -> LogSummary:
    """Summarise a file, once per choice of columns.

    Raises
    ------
    UserError
        The file holds values that are not allowed; the sentence names row and column.
    """
    identity = f"{file.identity}-{sorted((mapping or {}).items())}"
    return _once("summary", identity, lambda: summarise_file(file.content, file.ending, mapping))


def _columns(file: LogFile) -> list[str] | None:
    with tempfile.TemporaryDirectory(prefix="bandits-") as folder:
        path = Path(folder) / f"log{file.ending}"
        path.write_bytes(file.content)
        return column_names(path)


def _once(what: str, identity: str, make: Callable[[], T]) -> T:
    """Return what is known of the file that is shown; make it where it is not kept in the session."""
    kept = st.session_state.setdefault(SUMMARY, {})
    if kept.get(what, (None,))[0] != identity:
        kept[what] = identity, make()
    found: T = kept[what][1]
    return found
