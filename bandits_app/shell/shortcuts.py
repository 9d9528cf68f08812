"""The keyboard shortcuts of the app, as the panel *Help* lists them."""

from __future__ import annotations

from typing import NamedTuple


class Shortcut(NamedTuple):
    """Keys, and what they do."""

    keys: str
    action: str


# A test compares the first entries with the shortcuts that the pages give to their buttons.
BUTTONS = (
    Shortcut("Ctrl+Enter", "Run, or Measure in the lab Cost; the next step of a lesson"),
    Shortcut("Alt+P", "Pause, resume or continue a run"),
    Shortcut("Alt+S", "Stop a run"),
)
OTHERS = (
    Shortcut("Arrow keys", "Change the slider or number that has the focus"),
    Shortcut("Double-click", "Reset the zoom of a plot"),
    Shortcut("Esc", "Close a menu or this panel; leave the presentation"),
    Shortcut("?", "Open this panel"),
)
SHORTCUTS = BUTTONS + OTHERS
