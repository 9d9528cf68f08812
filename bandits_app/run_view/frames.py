"""Share what is shown of a run between sessions, so that two tabs agree and a picture is
made once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from bandits.base.recent import Recent

T = TypeVar("T")
MAX_FRAMES = 64


class _Frame(NamedTuple, Generic[T]):
    moment: tuple[Hashable, ...]
    made: float
    content: T


class Frames(Generic[T]):
    """The latest content by key: replaced when there is something new, but at most once per tick.

    Two tabs that update at different times within a tick show the same content.

    Parameters
    ----------
    tick : float
        Seconds between updates of a tab.
    """

    def __init__(self, tick: float) -> None:
        self._tick = tick
        self._frames: Recent[Hashable, _Frame[T]] = Recent(MAX_FRAMES)
        self._locks: Recent[Hashable, threading.Lock] = Recent(MAX_FRAMES)
        self._lock = threading.Lock()

    def get(
        self, key: Hashable, moment: Callable[[], tuple[Hashable, ...]], make: Callable[[], T]
    ) -> T:
        """Return the content for a key.

        Parameters
        ----------
        key : hashable
            What is shown: a run and the options of its view.
        moment : callable
            Returns what the content depends on; its first entry is a state whose change is shown at
            once.
        make : callable
            Makes the content. It is called again if the moment has changed meanwhile: all parts of
            a content belong to one moment.
        """
        with self._lock:
            mine = self._locks.use(key, threading.Lock)
        # what is made for one run keeps no other waiting
        with mine:
            now = moment()
            with self._lock:
                current = self._frames.get(key)
            if current is not None:
                recent = time.monotonic() - current.made < 0.9 * self._tick
                if current.moment == now or (recent and current.moment[0] == now[0]):
                    with self._lock:
                        if self._frames.get(key) is current:
                            self._frames.move_to_end(key)
                    return current.content
            for _ in range(3):
                content, before = make(), now
                if (now := moment()) == before:
                    break
            with self._lock:
                self._frames.keep(key, _Frame(before, time.monotonic(), content))
            return content
