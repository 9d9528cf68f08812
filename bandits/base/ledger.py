"""One account of the memory that this process and its children hold for others."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable

from .errors import UserError
from .memory import machine_memory

VARIABLE = "BANDITS_MEMORY_SHARE"
# of the machine's memory, unless the variable states another one
SHARE = 0.75
# seconds between looks at whether a holder that waits has given up
LOOK = 0.5


class Ledger:
    """What is held, in bytes, by who holds it; all together stay below a limit.

    What works alone always fits, so that everything has its turn: what is only kept, such as an
    upload, may stay for as long as its visitor does.

    Parameters
    ----------
    limit : int
        Bytes.

    Attributes
    ----------
    entries : dict
        Bytes of each holder.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.entries: dict[Hashable, int] = {}
        self._kept: set[Hashable] = set()
        self._changed = threading.Condition(threading.RLock())

    @property
    def total(self) -> int:
        """Bytes of all entries."""
        with self._changed:
            return sum(self.entries.values())

    def enter(self, holder: Hashable, need: int) -> bool:
        """Enter what a holder needs, unless it does not fit; return whether it is entered."""
        with self._changed:
            others = {other: n for other, n in self.entries.items() if other != holder}
            if others.keys() - self._kept and sum(others.values()) + need > self.limit:
                return False
            self.entries[holder] = need
            return True

    def keep(self, holder: Hashable, need: int) -> None:
        """Enter what is held already, and kept without working."""
        with self._changed:
            self._kept.add(holder)
            self.entries[holder] = need
            self._changed.notify_all()

    def wait(self, holder: Hashable, need: int, given_up: Callable[[], bool]) -> None:
        """Enter what a holder needs as soon as it fits, or return when it has given up."""
        with self._changed:
            while not given_up() and not self.enter(holder, need):
                self._changed.wait(LOOK)

    def leave(self, holder: Hashable) -> None:
        """Remove an entry, if there is one."""
        with self._changed:
            if self.entries.pop(holder, None) is not None:
                self._changed.notify_all()


def limit() -> int:
    """Return the bytes that all visitors together may take: a share of the machine's memory.

    Raises
    ------
    UserError
        ``BANDITS_MEMORY_SHARE`` is no number above 0 and at most 1.
    """
    text = os.environ.get(VARIABLE, str(SHARE))
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UserError(f"{VARIABLE} is '{text}'; it must be a number above 0 and at most 1")
    return int(share * machine_memory())


LEDGER = Ledger(int(SHARE * machine_memory()))
"""Of this process; the app sets its limit at the start."""
