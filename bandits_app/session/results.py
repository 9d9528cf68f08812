"""What pages have read and computed: made once for all sessions, and kept within a limit of bytes.

Streamlit's own caches count entries, of any size. Here all results together have a limit, which is
in the ledger of memory; those used longest ago give way, and are made again when they are needed.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial, update_wrapper
from inspect import signature
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from bandits.base.ledger import LEDGER
from bandits.base.processes import ChildTask

P = ParamSpec("P")
T = TypeVar("T")
# bytes of all results; one that is larger is kept until the next one
MOST = 256 * 2**20
# bytes of a value in memory for each byte of its pickle, but for arrays: texts of tables take 7
EXPANSION = 8


class _Kept:
    """One result, or none yet, while it is made."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: float | None = None
        self.value: Any = None
        self.weight = 0

    @property
    def nbytes(self) -> int:
        """Bytes in memory: those of a task grow while it answers."""
        if not isinstance(self.value, ChildTask):
            return self.weight
        if self.value.active:
            return self.value.nbytes
        if not self.weight:
            self.weight = max(weight(self.value.result), self.value.nbytes)
        return self.weight

    @property
    def going(self) -> bool:
        """Whether it is made, or a task that goes on: another one would begin at its side."""
        return self.made is None or (isinstance(self.value, ChildTask) and self.value.active)


class Results:
    """Results by key, those used last at the end."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._kept: OrderedDict[tuple[Any, ...], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def use(
        self,
        key: tuple[Any, ...],
        make: Callable[[], T],
        *,
        seconds: float = float("inf"),
        number: int | None = None,
        weigh: Callable[[], int] | None = None,
    ) -> T:
        """Return a result; make it where it is not kept, once for all who ask meanwhile.

        Parameters
        ----------
        key : tuple
            The first entry names the kind of result.
        make : callable
        seconds : float
            Age up to which a result is used.
        number : int, optional
            Most results of the kind.
        weigh : callable, optional
            Bytes of a result in memory; by default `weight`.
        """
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
        with kept.lock:
            if kept.made is None or time.monotonic() - kept.made > seconds:
                try:
                    kept.value, kept.made = make(), time.monotonic()
                except BaseException:
                    self._drop(key, kept)
                    raise
                kept.weight = 0
                if not isinstance(kept.value, ChildTask):
                    kept.weight = weigh() if weigh else weight(kept.value)
            found: T = kept.value
        self._tidy(key, number)
        return found

    def forget(self, *key: Any) -> None:
        """Forget the results whose keys begin so."""
        with self._lock:
            for known in [known for known in self._kept if known[: len(key)] == key]:
                del self._kept[known]
        self._tidy()

    def _drop(self, key: tuple[Any, ...], kept: _Kept) -> None:
        with self._lock:
            if self._kept.get(key) is kept:
                del self._kept[key]

    @property
    def nbytes(self) -> int:
        """Bytes of all results."""
        with self._lock:
            return sum(kept.nbytes for kept in self._kept.values())

    def _tidy(self, key: tuple[Any, ...] = (), number: int | None = None) -> None:
        """Forget what was used longest ago, but for the key, beyond the limits."""
        with self._lock:
            if number is not None:
                alike = [known for known in self._kept if known[0] == key[0]]
                for known in alike[: max(0, len(alike) - number)]:
                    if not self._kept[known].going:
                        del self._kept[known]
            total = sum(kept.nbytes for kept in self._kept.values())
            for known, kept in list(self._kept.items()):
                if total > self.most and kept.nbytes and known != key and not kept.going:
                    total -= kept.nbytes
                    del self._kept[known]
            LEDGER.keep("results", total)


def weight(value: Any) -> int:
    """Estimate the bytes of a value in memory, from its pickle."""
    arrays: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return EXPANSION * len(text) + sum(array.raw().nbytes for array in arrays)


RESULTS = Results()
"""Of this server."""


class Shared(Generic[P, T]):
    """A function whose results are kept for all sessions; `shared` makes it."""

    def __init__(
        self,
        function: Callable[P, T],
        number: int,
        seconds: float,
        weigh: Callable[..., int] | None,
    ) -> None:
        update_wrapper(self, function)
        self._function, self._number, self._seconds = function, number, seconds
        self._weigh, self._signature = weigh, signature(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the kept result, or call the function."""
        return RESULTS.use(
            self._key(*args, **kwargs),
            lambda: self._function(*args, **kwargs),
            seconds=self._seconds,
            number=self._number,
            weigh=partial(self._weigh, *args, **kwargs) if self._weigh else None,
        )

    def forget(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Forget the result of a call."""
        RESULTS.forget(*self._key(*args, **kwargs))

    def forget_all(self) -> None:
        """Forget the results of all calls."""
        RESULTS.forget(self._name)

    @property
    def _name(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}"

    def _key(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Any, ...]:
        given = self._signature.bind(*args, **kwargs).arguments
        return self._name, *(value for name, value in given.items() if not name.startswith("_"))


class Decorator(Protocol):
    """What `shared` returns."""

    def __call__(self, function: Callable[P, T], /) -> Shared[P, T]: ...


def shared(
    *, number: int, seconds: float = float("inf"), weigh: Callable[..., int] | None = None
) -> Decorator:
    """Keep the results of a function for all sessions.

    Arguments whose names begin with "_" are no part of the key, as in Streamlit's caches; the
    others are hashable. Callers do not change what they are given.

    Parameters
    ----------
    number : int
        Most results that are kept.
    seconds : float
        Age up to which a result is used.
    weigh : callable, optional
        Estimates the bytes of a result from the arguments; by default `weight` does.
    """

    def decorate(function: Callable[P, T], /) -> Shared[P, T]:
        return Shared(function, number, seconds, weigh)

    return decorate
