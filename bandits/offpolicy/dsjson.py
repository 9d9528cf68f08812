"""Write a log as dsjson, the format of Vowpal Wabbit's decision service, and read it back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import atomic_write
from bandits.base.formatting import short
from bandits.base.row_names import LINE, RowNames
from bandits.base.types import FloatArray

from .log import MAX_CELLS, MAX_ROWS, DecisionLog
from .parquet import MAX_VECTOR

# key of what the format has no place for; other readers ignore it
OWN = "bandits"
TEXTS = {"segment": "segments", "propensity_kind": "kinds"}
INTEGERS = {"row": "rows", "step": "steps", "context": "contexts", "position": "positions"}


def write_dsjson(log: DecisionLog, path: Path) -> None:
    """Write a log to a file with one JSON object a line.

    `_label_cost` is the negated reward and stands first. Actions count from 1 in `_label_Action`
    and `a`, from 0 in `_labelIndex`; they are places in `c._multi`, which lists the candidates.

    Raises
    ------
    UserError
        The log has no propensities.
    OSError
        The file cannot be written; an earlier one stays.
    """
    atomic_write(path, "".join(lines(log)).encode())


def lines(log: DecisionLog) -> Iterator[str]:
    """Format the rows of a log, each as one line with its line break.

    Raises
    ------
    UserError
        The log has no propensities.
    """
    if log.propensities is None:
        raise UserError("propensity: dsjson requires one in every row; the log has none")
    everything = np.arange(log.n_actions)
    for i in range(len(log)):
        action, propensity = int(log.actions[i]), float(log.propensities[i])
        candidates = everything if log.available is None else np.flatnonzero(log.available[i])
        place = int(np.searchsorted(candidates, action))
        a, p = [place + 1], [propensity]
        if log.distributions is not None and log.n_actions <= MAX_VECTOR:
            others = [k for k in range(len(candidates)) if k != place]
            a += [k + 1 for k in others]
            p = [float(log.distributions[i, k]) for k in [action, *candidates[others].tolist()]]
        own: dict[str, Any] = {
            key: int(getattr(log, name)[i]) for key, name in INTEGERS.items() if _has(log, name)
        }
        own |= {key: str(getattr(log, name)[i]) for key, name in TEXTS.items() if _has(log, name)}
        own |= (
            {"columns": {name: float(values[i]) for name, values in log.columns.items()}}
            if log.columns
            else {}
        )
        if i == 0:
            own |= {
                "items": log.names,
                "features": log.feature_names,
                "all": log.available is None,
                "times": log.times is not None,
                "ids": log.event_ids is not None,
                "versions": log.versions is not None,
            }
        user = {} if log.features is None else {"features": log.features[i].tolist()}
        entry = {
            "_label_cost": -float(log.rewards[i]) or 0.0,
            "_label_probability": propensity,
            "_label_Action": place + 1,
            "_labelIndex": place,
            "Timestamp": "1970-01-01T00:00:00Z" if log.times is None else str(log.times[i]),
            "Version": "1",
            "EventId": str(i) if log.event_ids is None else str(log.event_ids[i]),
            "a": a,
            "c": {
                **({"User": user} if user else {}),
                "_multi": [{"item": log.names[k]} for k in candidates],
            },
            "p": p,
            "VWState": {"m": "" if log.versions is None else str(log.versions[i])},
            OWN: own,
        }
        yield json.dumps(entry) + "\n"


def read_dsjson(text: Iterable[str]) -> DecisionLog:
    """Read a log from the lines of a dsjson file.

    Items of other writers are named by `item` or `id` of their entry in `c._multi`, or by their
    place. Numbers in `c` outside `_multi` are features. Lines with `_skipLearn` are left out.

    Raises
    ------
    UserError
        A line is not JSON, has an unknown version, a reward without its decision, or values that
        are not allowed.
    """
    parsed = [_entry(line, number) for number, line in enumerate(text, start=1) if line.strip()]
    kept = [(number, entry) for number, entry in parsed if entry.get("_skipLearn") is not True]
    n = len(kept)
    if not 1 <= n <= MAX_ROWS:
        raise UserError(f"a log must have 1 to {MAX_ROWS:,} rows; got {n:,}")
    listed = [_candidates(entry, number) for number, entry in kept]
    head = kept[0][1].get(OWN, {})
    names = tuple(
        head.get("items") or dict.fromkeys(name for candidates in listed for name in candidates)
    )
    K = len(names)
    if n * K > MAX_CELLS:
        raise UserError(
            f"c._multi: rows times actions must be at most {MAX_CELLS:,}; got {n:,} rows and {K:,} "
            "actions"
        )
    decisions = _decisions(kept, listed, names)
    entries, available = [entry for _, entry in kept], decisions["available"]
    columns = _columns(kept, head)
    features, feature_names = _features(entries, head)
    return DecisionLog(
        **{**decisions, "available": None if head.get("all", bool(available.all())) else available},
        **_texts_and_numbers(entries, head),
        names=names,
        columns=columns,
        features=features,
        feature_names=feature_names,
        places=RowNames(LINE, [number for number, _ in kept]),
    )


Entries = list[tuple[int, dict[str, Any]]]


def _decisions(kept: Entries, listed: list[list[str]], names: tuple[str, ...]) -> dict[str, Any]:
    """Return actions, rewards, propensities, candidates and, where all lines state them, vectors of
    propensities.
    """
    n, K = len(kept), len(names)
    index = {name: k for k, name in enumerate(names)}
    actions, rewards, propensities = np.empty(n, np.int64), np.empty(n), np.empty(n)
    available, vectors = np.zeros((n, K), bool), np.zeros((n, K))
    whole = all(
        len(entry["p"]) == len(candidates)
        for (_, entry), candidates in zip(kept, listed, strict=True)
    )
    for i, ((number, entry), candidates) in enumerate(zip(kept, listed, strict=True)):
        try:
            places = [index[name] for name in candidates]
            available[i, places] = True
            actions[i] = places[_place(entry, len(candidates), number)]
            rewards[i], propensities[i] = (
                -float(entry["_label_cost"]) or 0.0,
                float(entry["_label_probability"]),
            )
            if whole:
                vectors[i, [places[a - 1] for a in entry["a"]]] = entry["p"]
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"line {number}: a value cannot be read ({error})") from error
    return {
        "actions": actions,
        "rewards": rewards,
        "propensities": propensities,
        "available": available,
        "distributions": vectors if whole and K > 1 else None,
    }


def _columns(kept: Entries, head: dict[str, Any]) -> dict[str, FloatArray]:
    """Return the other columns of our own logs."""
    names = head.get("columns", {}).keys()
    own = [(number, entry.get(OWN, {}).get("columns", {})) for number, entry in kept]
    if other := next((number for number, columns in own if columns.keys() != names), 0):
        raise UserError(f"line {other}, {OWN}: must have the columns of the first line")
    return {name: np.array([columns[name] for _, columns in own], float) for name in names}


def _texts_and_numbers(entries: list[dict[str, Any]], head: dict[str, Any]) -> dict[str, Any]:
    """Return what our own logs state in every line, and time, id and version where the first line
    has them.
    """
    own = [entry.get(OWN, {}) for entry in entries]
    found: dict[str, Any] = {
        name: np.array([each[key] for each in own], dtype)
        for keys, dtype in ((INTEGERS, np.int64), (TEXTS, np.object_))
        for key, name in keys.items()
        if all(key in each for each in own)
    }
    states = [entry.get("VWState") for entry in entries]
    texts = {
        "times": [str(entry.get("Timestamp", "")) for entry in entries],
        "event_ids": [str(entry["EventId"]) for entry in entries],
        "versions": [
            str(state.get("m", "")) if isinstance(state, dict) else "" for state in states
        ],
    }
    stated = {"times": "times", "event_ids": "ids", "versions": "versions"}
    return found | {
        name: np.array(texts[name], object) for name, key in stated.items() if head.get(key, True)
    }


def _has(log: DecisionLog, name: str) -> bool:
    return getattr(log, name) is not None


def _entry(line: str, number: int) -> tuple[int, dict[str, Any]]:
    """Parse one line and check that it is a decision with its reward."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(
            f"line {number}: must be one JSON object; {error.msg} at column {error.colno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"line {number}: must be one JSON object; {error}") from error
    if not isinstance(entry, dict):
        raise UserError(f"line {number}: must be one JSON object; got {short(entry)}")
    decided = (
        isinstance(entry.get("c"), dict)
        and isinstance(entry.get("a"), list)
        and isinstance(entry.get("p"), list)
    )
    if not decided:
        raise UserError(
            f"line {number}: a reward without its decision; a, c and p are required in every line"
        )
    if entry.get("Version") != "1":
        raise UserError(
            f'line {number}, Version: must be "1"; got {short(json.dumps(entry.get("Version")))}'
        )
    for key in ("_label_cost", "_label_probability", "EventId"):
        if key not in entry:
            raise UserError(f"line {number}, {key}: is required; it is missing")
    if entry.get("pdrop"):
        raise UserError(
            f"line {number}, pdrop: must be 0, sampled logs are not supported; got "
            f"{short(entry['pdrop'])}"
        )
    _check_own(entry.get(OWN, {}), number)
    return number, entry


def _check_own(own: Any, number: int) -> None:
    """Check what this package adds to the format; damaged values are refused."""
    texts = ("items", "features")
    fine = (
        isinstance(own, dict)
        and all(
            isinstance(own[key], int) and abs(own[key]) < 2**63 for key in INTEGERS if key in own
        )
        and all(isinstance(own[key], str) for key in TEXTS if key in own)
        and all(
            isinstance(own.get(key, []), list) and all(isinstance(t, str) for t in own.get(key, []))
            for key in texts
        )
        and len(set(own.get("items", []))) == len(own.get("items", []))
        and isinstance(own.get("columns", {}), dict)
        and all(
            isinstance(v, float | int) and abs(v) < sys.float_info.max
            for v in own.get("columns", {}).values()
        )
    )
    if not fine:
        raise UserError(f"line {number}, {OWN}: is damaged; got {short(own, 100)}")


def _candidates(entry: dict[str, Any], number: int) -> list[str]:
    """Return the names of the candidates of a line."""
    items = entry["c"].get("_multi")
    if (
        not isinstance(items, list)
        or not items
        or not all(isinstance(item, dict) for item in items)
    ):
        raise UserError(f"line {number}, c._multi: must be a list of candidates")
    names = [str(item.get("item", item.get("id", place))) for place, item in enumerate(items)]
    if len(set(names)) < len(names):
        raise UserError(f"line {number}, c._multi: candidates must have different names")
    return names


def _place(entry: dict[str, Any], n_candidates: int, number: int) -> int:
    """Return the place of the logged action among the candidates, from 0."""
    action = entry.get("_label_Action", entry["a"][0] if entry["a"] else None)
    if isinstance(action, bool) or not isinstance(action, int) or not 1 <= action <= n_candidates:
        raise UserError(
            f"line {number}, _label_Action: must be between 1 and {n_candidates}; got "
            f"{short(action)}"
        )
    if entry.get("_labelIndex", action - 1) != action - 1:
        raise UserError(
            f"line {number}, _labelIndex: must be {action - 1}; got {short(entry['_labelIndex'])}"
        )
    if any(
        isinstance(a, bool) or not isinstance(a, int) or not 1 <= a <= n_candidates
        for a in entry["a"]
    ):
        raise UserError(f"line {number}, a: actions must be between 1 and {n_candidates}")
    if len(entry["a"]) != len(entry["p"]) or len(set(entry["a"])) != len(entry["a"]):
        raise UserError(
            f"line {number}, p: must have one probability for each different action in a"
        )
    return action - 1


def _features(entries: list[dict[str, Any]], head: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return the features, float64 (n, D) or None, and their names."""
    rows = [
        dict(_numbers({k: v for k, v in entry["c"].items() if k != "_multi"}, ""))
        for entry in entries
    ]
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return None, tuple(head.get("features", ()))
    matrix = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    named = tuple(head.get("features") or names)
    if len(named) != len(names):
        raise UserError(
            f"c: must have {len(named)} features as the first line names; got {len(names)}"
        )
    return matrix, named


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Find the numbers in nested objects and lists, with their paths; texts as indicators."""
    if isinstance(value, bool | int | float):
        yield path, float(value) if abs(value) < sys.float_info.max else np.inf
    elif isinstance(value, str):
        yield f"{path}={value}", 1.0
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _numbers(part, f"{path}.{key}".strip("."))
