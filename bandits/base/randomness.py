"""Draw the random numbers of each row from named streams.

Every number is drawn in fixed blocks keyed by (stream, row, part, block number). Any step can be
accessed directly, and a row's numbers depend neither on the chunk size nor on the other rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bandits.base.types import KeyArray

Stream = Literal[
    "world",
    "clicks",
    "agent",
    "layout",
    "log",
    "question",
    "proposal",
    "guard",
    "propensity",
    "ties",
]
_KEYS: dict[str, int] = {
    "world": 0,
    "clicks": 1,
    "agent": 2,
    "layout": 3,
    "log": 4,
    "question": 5,
    "proposal": 6,
    "guard": 7,
    "propensity": 8,
    "ties": 9,
}

KEPT = 256 * 2**20  # bytes of draws


class Streams:
    """Random streams of the rows of one block.

    Parameters
    ----------
    seed : int
        The experiment's seed.
    rows : sequence of int
        Replication number of each row. Contexts and clicks depend on it alone, never on the agent.
    """

    def __init__(self, seed: int, rows: Sequence[int]) -> None:
        self.seed = seed
        self.rows = tuple(rows)

    def generator(
        self, stream: Stream, *, row: int = 0, part: int = 0, block: int = 0
    ) -> np.random.Generator:
        """Return a new generator at the start of one block of one stream."""
        key = (_KEYS[stream], row, part, block)
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key))
        )

    @cached_property
    def ties(self) -> KeyArray:
        """Key of each row for breaking ties, uint64 (R,); see `bandits.base.selection`."""
        keys = {
            row: self.generator("ties", row=row).integers(2**64, dtype=np.uint64)
            for row in set(self.rows)
        }
        return np.array([keys[row] for row in self.rows], np.uint64)

    def of_rows(self, stream: Stream, *, part: int = 0, block: int = 0) -> RowGenerator:
        """Return a generator that draws the numbers of each row from that row's stream."""
        return RowGenerator(
            [self.generator(stream, row=row, part=part, block=block) for row in self.rows]
        )

    def blocks(
        self,
        stream: Stream,
        draw: Callable[[np.random.Generator, int], NDArray[Any]],
        *,
        width: int = 1,
        part: int = 0,
    ) -> BlockedDraws:
        """Return the draws of every step: ``draw(generator, n)`` makes n steps of about ``width``
        numbers each.
        """
        return BlockedDraws(self, stream, draw, width=width, part=part)


class RowGenerator(np.random.Generator):
    """A generator whose `random`, `standard_normal` and `beta` draw each row of an array from a
    stream of its own.

    A row's numbers then depend on that row alone. Every other method draws from the first row's
    stream, as if there were no rows.

    Parameters
    ----------
    generators : sequence of Generator
        One per row.
    """

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        super().__init__(generators[0].bit_generator)
        self._generators = list(generators)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:  # noqa: ARG002
        """Draw uniforms in [0, 1), shape ``size``, whose first axis is that of the rows."""
        return np.stack([g.random(shape, dtype) for g, shape in self._shapes(size)])

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:  # noqa: ARG002
        """Draw standard normals, shape ``size``, whose first axis is that of the rows."""
        return np.stack([g.standard_normal(shape, dtype) for g, shape in self._shapes(size)])

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:  # noqa: ARG002
        """Draw from Beta distributions with parameters of shape (R, ...)."""
        return np.stack([g.beta(a[r], b[r]) for r, g in enumerate(self._generators)])

    def _shapes(self, size: Any) -> Iterator[tuple[np.random.Generator, tuple[int, ...]]]:
        rows, *rest = (size,) if np.ndim(size) == 0 else size
        if rows != len(self._generators):
            raise ValueError(
                f"the first axis must be that of the {len(self._generators)} rows; got the shape "
                f"{size}"
            )
        return ((g, tuple(rest)) for g in self._generators)


def block_length(width: int) -> int:
    """Return the steps per block for ``width`` numbers a step: 16 to 1,024, so about 32,768 numbers
    a row.
    """
    return max(16, min(1024, 1 << max(0, (32768 // max(width, 1)).bit_length() - 1)))


def steps_left_in_block(step: int, n: int, width: int) -> int:
    """Count the steps among the next ``n`` that lie in one block of draws of up to ``width``
    numbers a step.
    """
    length = block_length(width)
    return min(n, length - step % length)


class KeptStreams(Streams):
    """Streams that keep their draws, so that a second pass over the same steps draws nothing.

    A simulator keeps its own draws. Those of agents and guards, which are built again for every
    pass, are identified by their place and by the function that makes them, with the plain values
    that it encloses; a function that uses anything else draws anew every time.

    Parameters
    ----------
    seed, rows
        As in `Streams`.
    limit : int
        Bytes to keep; what comes later is drawn again every time.
    """

    def __init__(self, seed: int, rows: Sequence[int], limit: int = KEPT) -> None:
        super().__init__(seed, rows)
        self.left = limit
        self._kept: dict[Hashable, dict[int, NDArray[Any]]] = {}

    def blocks(
        self,
        stream: Stream,
        draw: Callable[[np.random.Generator, int], NDArray[Any]],
        *,
        width: int = 1,
        part: int = 0,
    ) -> BlockedDraws:
        draws = super().blocks(stream, draw, width=width, part=part)
        # of the simulator, which is built once
        if stream not in ("agent", "guard"):
            draws.keep({}, self)
        elif isinstance(draw, FunctionType) and not draw.__defaults__ and not draw.__kwdefaults__:
            cells = tuple(cell.cell_contents for cell in draw.__closure__ or ())
            if all(type(cell) in (int, float, str, bool) for cell in cells):
                # 1, 1.0 and True are equal keys
                kinds = tuple(map(type, cells))
                key = (stream, width, part, draw.__code__, cells, kinds)
                draws.keep(self._kept.setdefault(key, {}), self)
        return draws


class BlockedDraws:
    """Random access to the draws of every step, for all rows.

    Holds one block at a time, or all that it may keep.
    """

    def __init__(
        self,
        streams: Streams,
        stream: Stream,
        draw: Callable[[np.random.Generator, int], NDArray[Any]],
        *,
        width: int,
        part: int,
    ) -> None:
        self._streams, self._stream, self._draw, self._part = streams, stream, draw, part
        self._length = block_length(width)
        self._block = -1
        self._buffer: NDArray[Any] = np.empty(0)
        self._kept: dict[int, NDArray[Any]] = {}
        self._keeper: KeptStreams | None = None

    def keep(self, kept: dict[int, NDArray[Any]], keeper: KeptStreams) -> None:
        """Take blocks from ``kept``, and put new ones there while the limit of ``keeper`` allows
        it.
        """
        self._kept, self._keeper = kept, keeper

    def at(self, step: int) -> NDArray[Any]:
        """Return the draws of one step, shape (R, ...): a read-only view."""
        block, offset = divmod(step, self._length)
        if block != self._block:
            self._fill(block)
        row: NDArray[Any] = self._buffer[offset]
        return row

    def slice(self, step: int, n: int) -> NDArray[Any]:
        """Return the draws of ``n`` steps, shape (n, R, ...): a view if all lie in one block."""
        parts: list[NDArray[Any]] = []
        end = step + n
        while step < end or not parts:
            self.at(step)
            offset = step % self._length
            parts.append(self._buffer[offset : offset + end - step])
            step += len(parts[-1])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _fill(self, block: int) -> None:
        if (kept := self._kept.get(block)) is not None:
            self._block, self._buffer = block, kept
            return
        # the block before may be freed before this one is allocated
        self._block, self._buffer = -1, np.empty(0)
        # rows of the same replication number (points of a sweep) share their draws
        first: dict[int, int] = {}
        for r, row in enumerate(self._streams.rows):
            if (same := first.setdefault(row, r)) < r:
                self._buffer[:, r] = self._buffer[:, same]
                continue
            generator = self._streams.generator(self._stream, row=row, part=self._part, block=block)
            drawn = self._draw(generator, self._length)
            if r == 0:
                self._buffer = np.empty(
                    (self._length, len(self._streams.rows), *drawn.shape[1:]), drawn.dtype
                )
            self._buffer[:, r] = drawn
        self._block = block
        if self._keeper is not None and self._buffer.nbytes <= self._keeper.left:
            self._keeper.left -= self._buffer.nbytes
            self._kept[block] = self._buffer
