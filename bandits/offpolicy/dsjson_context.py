"""What the context of dsjson lines holds: names of candidates, and features."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bandits.base.formatting import count_of
from bandits.base.memory import require_memory
from bandits.base.types import FloatArray

from .log import MAX_CELLS
from .user_table import MAX_CATEGORIES

Candidate = dict[str, Any]
# of a log; the rarest are left out
MAX_FEATURES = 1000


def names_of(lines: Sequence[tuple[int, list[Candidate]]]) -> tuple[list[list[str]], bool]:
    """Name the candidates of all lines.

    Parameters
    ----------
    lines : sequence of (int, list of dict)
        Number and candidates of each line.

    Returns
    -------
    names : list of list of str
        For each line those of its candidates.
    by_place : bool
        Candidates are known by their place only, and what stands there varies: the number of
        candidates differs between lines, or the features at a place do.
    """
    candidates = [items for _, items in lines]
    repeated: list[list[str]] = []
    keys: tuple[Callable[[Candidate], Any], ...] = (
        lambda c: c.get("item"),
        lambda c: c.get("id"),
        lambda c: c.get("_tag"),
        _nested,
        _any,
    )
    for key in keys:
        names = _named_by(key, candidates)
        if names is not None and all(len(set(line)) == len(line) for line in names):
            return names, False
        repeated = repeated or names or []
    if repeated:
        return repeated, False
    places = [
        [str(k) if (name := _name(_any(c))) is None else name for k, c in enumerate(items)]
        for items in candidates
    ]
    return places, _vary(candidates)


def _named_by(
    key: Callable[[Candidate], Any], lines: Sequence[list[Candidate]]
) -> list[list[str]] | None:
    """Return the names that a key gives to all candidates; None where one has none."""
    found = []
    for items in lines:
        names = [_name(key(candidate)) for candidate in items]
        if None in names:
            return None
        found.append([str(name) for name in names])
    return found


def _name(value: Any) -> str | None:
    """Return a text or a number as a name; None for anything else."""
    named = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if named else None


def _nested(value: Any) -> Any:
    """Return the first ``id`` within a candidate."""
    if isinstance(value, dict):
        if _name(value.get("id")) is not None:
            return value["id"]
        value = [part for key, part in value.items() if not key.startswith("_")]
    if isinstance(value, list):
        return next((found for part in value if (found := _nested(part)) is not None), None)
    return None


def _any(candidate: Candidate) -> Any:
    """Return the first of all keys that a candidate has."""
    keys = ("item", "id", "_tag")
    named = (candidate[key] for key in keys if _name(candidate.get(key)) is not None)
    return next(named, _nested(candidate))


def _vary(lines: Sequence[list[Candidate]]) -> bool:
    """Return whether the number of candidates differs between lines, or what stands at a place."""
    first = [json.dumps(candidate, sort_keys=True) for candidate in lines[0]]
    return any(
        len(items) != len(first)
        or [json.dumps(candidate, sort_keys=True) for candidate in items] != first
        for items in lines
    )


def numbers_in(value: Any, path: str = "") -> Iterator[tuple[str, float | str]]:
    """Yield numbers and texts in nested objects and lists, with their paths.

    Keys that begin with ``_`` are left out, as Vowpal Wabbit does.
    """
    if isinstance(value, bool | int | float):
        yield path, float(value) if abs(value) < sys.float_info.max else np.inf
    elif isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            if not str(key).startswith("_"):
                yield from numbers_in(part, f"{path}.{key}".strip("."))


def indicators(
    rows: Sequence[Sequence[tuple[str, float | str]]],
) -> tuple[FloatArray | None, tuple[str, ...], tuple[str, ...]]:
    """Return features as a matrix: numbers as they are, texts as indicators.

    Of a text the most frequent values have indicators, as in tables; the others have none. Of all
    features the most frequent ones are kept.

    Parameters
    ----------
    rows : sequence of sequence of (str, float or str)
        Of n rows the paths with their values.

    Returns
    -------
    features : float64 (n, D) or None
    names : tuple of str (D,)
    pooled : tuple of str
        In sentences, what has no feature of its own.
    """
    texts: dict[str, Counter[str]] = {}
    seen: Counter[str] = Counter()
    for row in rows:
        for path, value in row:
            if isinstance(value, str):
                texts.setdefault(path, Counter())[value] += 1
            else:
                seen[path] += 1
    usual = {path: dict(values.most_common(MAX_CATEGORIES)) for path, values in texts.items()}
    for path, values in usual.items():
        seen.update({f"{path}={value}": times for value, times in values.items()})
    kept = {name for name, _ in seen.most_common(min(MAX_FEATURES, MAX_CELLS // len(rows)))}
    place: dict[str, int] = {}
    cells: list[tuple[int, int, float]] = []
    for i, row in enumerate(rows):
        for path, value in row:
            text = isinstance(value, str)
            name = f"{path}={value}" if text else path
            if name in kept and not (text and value not in usual[path]):
                cells.append((i, place.setdefault(name, len(place)), 1.0 if text else value))  # type: ignore[arg-type]
    pooled = []
    rare = [path for path, values in texts.items() if len(values) > MAX_CATEGORIES]
    if rare:
        pooled.append(
            f"{count_of(len(rare), 'texts')} in the context with more than {MAX_CATEGORIES} "
            f"different values: the others are pooled ({', '.join(rare[:3])}"
            f"{', ...' if len(rare) > 3 else ''})."
        )
    if len(seen) > len(kept):
        pooled.append(
            f"{count_of(len(seen) - len(kept), 'rare features')} left out: at most "
            f"{len(kept):,} are read."
        )
    if not place:
        return None, (), tuple(pooled)
    require_memory(
        8 * len(rows) * len(place),
        f"a log of {len(rows):,} rows with {len(place):,} features",
        "log fewer rows",
    )
    matrix = np.zeros((len(rows), len(place)))
    at, column, numbers = zip(*cells, strict=True)
    matrix[list(at), list(column)] = numbers
    return matrix, tuple(place), tuple(pooled)
