"""Draw menus whose entries stand in groups, with one line of description each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from .folded import is_open
from .text import escape_markdown

_CHOSEN = "menu-chosen"


@st.fragment
def popover(label: str, draw: Callable[[], None], *, key: str, **options: Any) -> None:
    """Draw a popover whose contents are made when it is opened.

    A page has hundreds of entries in its menus; most are never looked at. What is chosen runs
    the whole page.

    Parameters
    ----------
    label : str
    draw : callable
        Draws the contents.
    key : str
        Another key is another menu, which is closed.
    **options
        Of `st.popover`.
    """
    if st.session_state.pop(_CHOSEN, False):
        st.rerun()
    opened = st.popover(label, key=key, on_change="rerun", **options)
    if is_open(opened):
        with opened:
            draw()


def _choose(choose: Callable[[str], None], name: str) -> None:
    choose(name)
    st.session_state[_CHOSEN] = True


def entries(
    groups: Mapping[str, Sequence[str]],
    texts: Mapping[str, tuple[str, str]],
    prefix: str,
    choose: Callable[[str], None],
    current: str | None = None,
) -> None:
    """Draw a button and a description for each entry, under the names of the groups.

    Parameters
    ----------
    groups : mapping of str to sequence of str
        Names of entries by group.
    texts : mapping of str to (title, description)
        By entry.
    prefix : str
        Of the buttons' keys.
    choose : callable
        Called with the name of the entry that is pressed.
    current : str, optional
        The entry that holds now.
    """
    for group, names in groups.items():
        with st.container(gap="xsmall"):
            st.markdown(f"**{escape_markdown(group[:1].upper() + group[1:])}**")
            for name in names:
                title, text = texts[name]
                with st.container(
                    horizontal=True, wrap=False, vertical_alignment="center", gap="small"
                ):
                    st.button(
                        escape_markdown(title),
                        key=f"{prefix}-{name}",
                        on_click=_choose,
                        args=(choose, name),
                        type="primary" if name == current else "secondary",
                        width=150,
                        wrap=True,
                    )
                    st.caption(escape_markdown(text))


class _Preset(Protocol):
    @property
    def title(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def line(self) -> str: ...


def presets(
    row: DeltaGenerator,
    prefix: str,
    version: int,
    found: Mapping[str, _Preset],
    held: str | None,
    load: Callable[[str], None],
) -> None:
    """Draw the menu of presets, with the name of the one that the controls hold.

    Parameters
    ----------
    prefix : str
        Of the buttons' keys.
    version : int
        Of the draft: a menu in which something was chosen is closed.
    found : mapping of str to preset
        With title, group and one line of description.
    load : callable
        Puts the preset with the chosen name into the controls.
    """
    groups: dict[str, list[str]] = {}
    for name, preset in found.items():
        groups.setdefault(preset.group, []).append(name)
    title = escape_markdown(found[held].title) if held else "Choose a preset"
    texts = {name: (preset.title, preset.line) for name, preset in found.items()}
    with row:
        popover(
            title,
            lambda: entries(groups, texts, prefix, load, held),
            width=290,
            key=f"{version}-{prefix}s",
        )
