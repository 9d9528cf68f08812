"""Buttons that delete something, red so that they are not pressed for another.

And those that download a file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

# contrast of at least 4.5 to 1 with their backgrounds
_FILL, _INK, _INK_ON_DARK = "#B3261E", "#B3261E", "#FF9A8F"
_STYLE = """<style>
[class*="st-key-destructive-"] button:not(:disabled){{color:{ink};border-color:{ink}}}
[class*="st-key-destructive-"] button:not(:disabled):is(:hover,:focus-visible){{color:#fff;background:{fill};
border-color:{fill}}}
[class*="st-key-destructive-"] button[kind^="primary"]:not(:disabled){{color:#fff;background:{fill};
border-color:{fill}}}
</style>"""  # noqa: E501


def style() -> None:
    """Colour the destructive buttons of this page; call it once per page."""
    ink = _INK_ON_DARK if st.context.theme.type == "dark" else _INK
    st.html(_STYLE.format(ink=ink, fill=_FILL))


def delete(label: str, *, key: str, place: DeltaGenerator | None = None, **options: Any) -> bool:
    """Draw a button that deletes something; with ``type="primary"`` it is filled."""
    draw = st.button if place is None else place.button
    return bool(draw(label, key=f"destructive-{key}", icon=":material/delete:", **options))


def download(
    label: str,
    content: str | bytes | Callable[[], str | bytes],
    name: str,
    mime: str = "application/octet-stream",
    *,
    lock: AbstractContextManager[Any] | None = None,
    **options: Any,
) -> None:
    """Draw a button that downloads a file.

    Parameters
    ----------
    content : str, bytes or callable
        What is called makes the file when the button is pressed.
    lock : context manager, optional
        Held while the file is made: an active run adds no points meanwhile.
    """

    def locked() -> str | bytes:
        with lock or nullcontext():
            return content() if callable(content) else content

    made = locked if callable(content) else content
    st.download_button(
        label, made, name, mime, on_click="ignore", icon=":material/download:", **options
    )
