"""Tell whether what can be folded is open.

What is closed is not drawn: a page has hundreds of settings and entries of menus, and each of them
costs time at every change of the page."""

from __future__ import annotations

from typing import Protocol


class Folded(Protocol):
    """An expander or a popover that was given ``on_change``."""

    @property
    def open(self) -> bool | None: ...


def is_open(container: Folded) -> bool:
    """Return whether the user has opened it."""
    return bool(container.open)
