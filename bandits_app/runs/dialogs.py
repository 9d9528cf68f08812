"""Dialogs of the page Runs: title, tags and notes of a run or sweep, and the confirmation of a
deletion.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from html import escape

import streamlit as st

from bandits import UserError
from bandits_app.widgets import buttons
from bandits_app.widgets.text import escape_markdown, refuse

# characters of a title, or of the tags of a run
MAX_LENGTH = 80
MAX_NOTES = 500  # characters
_MESSAGE, _ERROR = "shelf-said", "shelf-refused"


def show_messages() -> None:
    """Show the errors of the last action."""
    if (error := st.session_state.pop(_ERROR, None)) is not None:
        refuse(error)
    if (message := st.session_state.pop(_MESSAGE, None)) is not None:
        st.error(escape_markdown(message), icon=":material/broken_image:")


def report_error(message: str) -> None:
    """Show a message at the next update of the page."""
    st.session_state[_MESSAGE] = message


def heading(title: str, detail: str) -> str:
    """Return the title and a description of a run as escaped HTML."""
    name = f'<div style="font-weight:600;overflow-wrap:anywhere"><bdi>{escape(title)}</bdi></div>'
    return f'{name}<div style="font-size:.85rem;opacity:.75">{escape(detail)}</div>'


def attempt(action: Callable[[], object]) -> None:
    """Carry out an action on stored runs or sweeps.

    An error is shown at the next update of the page.
    """
    try:
        action()
    except UserError as error:
        st.session_state[_ERROR] = error
    except OSError as error:
        st.session_state[_ERROR] = f"the disk reports an error: {error.strerror or error}"


def edit(
    kind: str, item: str, about: str, fields: dict[str, str], save: Callable[[dict[str, str]], None]
) -> None:
    """Open a dialog with the texts of a run or sweep.

    Parameters
    ----------
    kind : {"run", "sweep"}
    item : str
        Its id.
    about : str
        Its heading, as HTML.
    fields : dict of str to str
        Current texts by name: "Title", "Tags" and "Notes", or some of them.
    save : callable
        Called with the new texts.
    """
    keys = {name: f"{name}-{item}" for name in fields}

    def store() -> None:
        texts = {name: st.session_state[key] for name, key in keys.items()}
        found = {
            name: clean_notes(text) if name == "Notes" else one_line(text)
            for name, text in texts.items()
        }
        attempt(lambda: save(found))

    def ask() -> None:
        with st.form(f"form-{item}", border=False):
            st.html(about)
            for name, value in fields.items():
                if name == "Notes":
                    st.text_area(
                        name, value[:MAX_NOTES], max_chars=MAX_NOTES, key=keys[name], height=120
                    )
                else:
                    label = "Tags, separated by commas" if name == "Tags" else name
                    st.text_input(label, value[:MAX_LENGTH], max_chars=MAX_LENGTH, key=keys[name])
            if st.form_submit_button("Save", type="primary", on_click=store):
                st.rerun()

    st.dialog(f"Edit this {kind}")(ask)()


def confirm(
    action: str, kind: str, named: Sequence[tuple[str, str]], remove: Callable[[str], object]
) -> None:
    """Ask for confirmation before runs or sweeps are removed, with their titles."""

    def go() -> None:
        attempt(lambda: [remove(item) for item, _ in named])

    def ask() -> None:
        items = "".join(f"<li><bdi>{escape(name)}</bdi></li>" for _, name in named[:10])
        rest = f"<p>and {len(named) - 10} more</p>" if len(named) > 10 else ""
        st.html(f'<ul style="overflow-wrap:anywhere;padding-left:1.2rem">{items}</ul>{rest}')
        st.markdown(f"This cannot be undone (you can rerun {'it' if len(named) == 1 else 'them'}).")
        with st.container(horizontal=True):
            if buttons.delete(
                f"{action} permanently", type="primary", on_click=go, key=f"go-{action}-{kind}"
            ):
                st.rerun()
            if st.button("Cancel", key=f"keep-{action}-{kind}"):
                st.rerun()

    st.dialog(f"{action} {f'this {kind}' if len(named) == 1 else f'these {len(named)} {kind}s'}?")(
        ask
    )()


def one_line(text: str) -> str:
    """Return a text as one line of at most 80 characters, without control characters."""
    line = " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())
    return line[:MAX_LENGTH].strip()


def clean_notes(text: str) -> str:
    """Return notes without control characters other than line breaks, at most 500 characters."""
    return "".join(c for c in text if c == "\n" or unicodedata.category(c) != "Cc")[
        :MAX_NOTES
    ].strip()
