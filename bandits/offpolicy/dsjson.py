"""Write a log as dsjson, the format of Vowpal Wabbit's decision service, and read it back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import atomic_write
from bandits.base.formatting import count_of, short
from bandits.base.memory import require_memory
from bandits.base.row_names import LINE, RowNames
from bandits.base.types import FloatArray
from bandits.tables.problems import Wrong

from .assembly import assembled
from .dsjson_context import indicators, names_of, numbers_in
from .log import MAX_CELLS, MAX_ROWS, DecisionLog
from .parquet import MAX_VECTOR
from .user_table import in_order

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
        if log.row_weights is not None:
            own["weight"] = float(log.row_weights[i])
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


def read_dsjson(
    text: Iterable[str],
    *,
    strict: bool = False,
    skip: bool = False,
    pending: float | None = None,
) -> DecisionLog:
    """Read a log from the lines of a dsjson file.

    Actions of other writers are named by the first of `item`, `id`, `_tag` and an `id` within their
    entry in `c._multi` that names all candidates, each line's differently if one does; otherwise by
    their place. Candidates of one name in a line are one action. Numbers and texts in `c` outside
    `_multi` are features; keys that begin with `_` are not. A kept line counts 1 / (1 - `pdrop`)
    times.

    Parameters
    ----------
    text : iterable of str
    strict : bool
        Refuse lines that are no decisions: those that are not JSON (checkpoints, a last line that
        is cut off), and rewards without their decision. Otherwise they are left out and counted in
        the notes of the log, as lines with `_skipLearn` always are.
    skip, pending
        As in `from_table`; a reward is missing where a line has no `_label_cost`.

    Raises
    ------
    UserError
        No line is a decision, or a line has values that are not allowed.
    """
    left_out: dict[str, list[int]] = {}
    kept: Entries = []
    first_problem = ""
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        entry, reason = _decision(line)
        if reason:
            first_problem = first_problem or f"line {number}: {reason}"
            left_out.setdefault(reason.partition(";")[0], []).append(number)
        elif entry.get("_skipLearn") is True:
            left_out.setdefault("_skipLearn is true", []).append(number)
        else:
            _check_own(entry.get(OWN, {}), number)
            kept.append((number, entry))
    if first_problem and (strict or not kept):
        raise UserError(first_problem)
    n = len(kept)
    if not 1 <= n <= MAX_ROWS:
        raise UserError(f"a log must have 1 to {MAX_ROWS:,} rows; got {n:,}")
    listed, by_place = names_of([(number, _multi(entry, number)) for number, entry in kept])
    head = kept[0][1].get(OWN, {})
    names = tuple(
        head.get("items") or in_order({name for candidates in listed for name in candidates})
    )
    K = len(names)
    if n * K > MAX_CELLS:
        raise UserError(
            f"c._multi: rows times actions must be at most {MAX_CELLS:,}; got {n:,} rows and {K:,} "
            "actions"
        )
    # candidates and vectors of propensities
    require_memory(9 * n * K, f"a log of {n:,} rows and {K:,} actions", "log fewer rows")
    found: list[Wrong] = []
    decisions = _decisions(kept, listed, names, found)
    entries, available = [entry for _, entry in kept], decisions["available"]
    columns = _columns(kept, head)
    features, feature_names, pooled = _features(entries, head)
    everything = head.get("all", bool(available.all()))
    fields = {
        **decisions,
        "available": None if everything else available,
        **_texts_and_numbers(kept, head),
        "features": features,
        "row_weights": _row_weights(kept),
        "columns": columns,
    }
    rest = {
        "names": names,
        "feature_names": feature_names,
        "by_place": by_place,
        "notes": (*_notes(left_out), *pooled),
        "places": RowNames(LINE, [number for number, _ in kept]),
    }
    return assembled(fields, found, rest, skip=skip, pending=pending)


Entries = list[tuple[int, dict[str, Any]]]


def _decision(line: str) -> tuple[dict[str, Any], str]:
    """Parse one line; also return why it is no decision with its reward, or an empty text."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        return {}, f"must be one JSON object; {error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:
        return {}, f"must be one JSON object; {error}"
    if not isinstance(entry, dict):
        return {}, f"must be one JSON object; got {short(entry)}"
    if isinstance(entry.get("_outcomes"), list):
        return {}, "several decisions in one line (_outcomes); logs of single decisions are read"
    decided = (
        isinstance(entry.get("c"), dict)
        and isinstance(entry.get("a"), list)
        and isinstance(entry.get("p"), list)
    )
    return (
        (entry, "") if decided else ({}, "a reward without its decision; a, c and p are required")
    )


WHY = {
    "must be one JSON object": "no JSON object, such as a checkpoint or a cut last line",
    "a reward without its decision": "a reward without its decision",
    "several decisions in one line (_outcomes)": "several decisions in one line (_outcomes)",
    "_skipLearn is true": "marked with _skipLearn",
}


def _notes(left_out: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """State how many lines were left out, and why."""
    for reason, numbers in left_out.items():
        which = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
        yield f"{count_of(len(numbers), 'lines')} left out (line {which}): {WHY[reason]}."


def _row_weights(kept: Entries) -> FloatArray | None:
    """Return how many decisions each line stands for: 1 / (1 - pdrop); None where each is one."""
    weights = np.ones(len(kept))
    for i, (number, entry) in enumerate(kept):
        pdrop, own = entry.get("pdrop") or 0.0, entry.get(OWN, {}).get("weight")
        if not isinstance(pdrop, int | float) or not 0 <= pdrop < 1:
            raise UserError(
                f"line {number}, pdrop: must be at least 0 and below 1; got {short(pdrop)}"
            )
        weights[i] = 1 / (1 - pdrop) if own is None else own
    return None if (weights == 1).all() else weights


def _decisions(
    kept: Entries, listed: Sequence[Sequence[str]], names: tuple[str, ...], found: list[Wrong]
) -> dict[str, Any]:
    """Return actions, rewards, propensities, candidates and, where all lines state them, vectors of
    propensities; add to ``found`` the lines in which they are wrong.

    Candidates of one name share its action: their probabilities are added up.
    """
    n, K = len(kept), len(names)
    index = {name: k for k, name in enumerate(names)}
    actions, rewards, propensities = np.zeros(n, np.int64), np.zeros(n), np.ones(n)
    faults: dict[int, str] = {}
    available, vectors = np.zeros((n, K), bool), np.zeros((n, K))
    whole = all(
        len(entry["p"]) == len(candidates)
        for (_, entry), candidates in zip(kept, listed, strict=True)
    )
    for i, ((_, entry), candidates) in enumerate(zip(kept, listed, strict=True)):
        try:
            places = [index[name] for name in candidates]
            available[i, places] = True
            place = _place(entry, len(candidates))
            actions[i] = places[place]
            cost = entry.get("_label_cost")
            rewards[i] = np.nan if cost is None else -float(cost) or 0.0
            stated = {a - 1: p for a, p in zip(entry["a"], entry["p"], strict=True)}
            propensity = entry.get("_label_probability", stated.get(place))
            if propensity is None:
                raise UserError("_label_probability: is required; it is missing")
            same = [k for k in stated if k != place and places[k] == places[place]]
            propensities[i] = float(propensity) + sum(float(stated[k]) for k in same)
            if whole:
                np.add.at(vectors[i], [places[k] for k in stated], list(stated.values()))
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            fault = isinstance(error, UserError)
            faults[i] = str(error) if fault else f"a value cannot be read ({error})"
    wrong = np.zeros(n, bool)
    wrong[list(faults)] = True
    found.append(Wrong(wrong, lambda i: faults[i]))
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


def _texts_and_numbers(kept: Entries, head: dict[str, Any]) -> dict[str, Any]:
    """Return what our own logs state in every line, and time, id and version where a line has them
    and the first line of our own logs does not deny it.
    """
    own = [entry.get(OWN, {}) for _, entry in kept]
    found: dict[str, Any] = {
        name: np.array([each[key] for each in own], dtype)
        for keys, dtype in ((INTEGERS, np.int64), (TEXTS, np.object_))
        for key, name in keys.items()
        if all(key in each for each in own)
    }
    states = [entry.get("VWState") for _, entry in kept]
    texts = {
        "times": [str(entry.get("Timestamp", "")) for _, entry in kept],
        "event_ids": [str(entry.get("EventId", "")) for _, entry in kept],
        "versions": [
            str(state.get("m", "")) if isinstance(state, dict) else "" for state in states
        ],
    }
    stated = {"times": "times", "event_ids": "ids", "versions": "versions"}
    for name, key in stated.items():
        if head.get(key, any(texts[name])):
            found[name] = np.array(texts[name], object)
    if "event_ids" in found and not head:
        # a line without an id is an event of its own
        numbers = [f"line {number}" for number, _ in kept]
        found["event_ids"] = np.where(found["event_ids"] == "", numbers, found["event_ids"])
    return found


def _has(log: DecisionLog, name: str) -> bool:
    return getattr(log, name) is not None


def _check_own(own: Any, number: int) -> None:
    """Check what this package adds to the format; damaged values are refused."""
    texts = ("items", "features")
    fine = (
        isinstance(own, dict)
        and all(
            isinstance(own[key], int) and abs(own[key]) < 2**63 for key in INTEGERS if key in own
        )
        and all(isinstance(own[key], str) for key in TEXTS if key in own)
        and isinstance(own.get("weight", 1.0), float | int)
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


def _multi(entry: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the candidates of a line."""
    items = entry["c"].get("_multi")
    if (
        not isinstance(items, list)
        or not items
        or not all(isinstance(item, dict) for item in items)
    ):
        raise UserError(f"line {number}, c._multi: must be a list of candidates")
    return items


def _place(entry: dict[str, Any], n_candidates: int) -> int:
    """Return the place of the logged action among the candidates, from 0."""
    action = entry.get("_label_Action", entry["a"][0] if entry["a"] else None)
    if isinstance(action, bool) or not isinstance(action, int) or not 1 <= action <= n_candidates:
        raise UserError(f"_label_Action: must be between 1 and {n_candidates}; got {short(action)}")
    if entry.get("_labelIndex", action - 1) != action - 1:
        raise UserError(f"_labelIndex: must be {action - 1}; got {short(entry['_labelIndex'])}")
    if any(
        isinstance(a, bool) or not isinstance(a, int) or not 1 <= a <= n_candidates
        for a in entry["a"]
    ):
        raise UserError(f"a: actions must be between 1 and {n_candidates}")
    if len(entry["a"]) != len(entry["p"]) or len(set(entry["a"])) != len(entry["a"]):
        raise UserError("p: must have one probability for each different action in a")
    return action - 1


def _features(
    entries: list[dict[str, Any]], head: dict[str, Any]
) -> tuple[FloatArray | None, tuple[str, ...], tuple[str, ...]]:
    """Return the features, float64 (n, D) or None, their names, and what was pooled."""
    rows = [
        list(numbers_in({k: v for k, v in entry["c"].items() if k != "_multi"}))
        for entry in entries
    ]
    matrix, names, pooled = indicators(rows)
    if matrix is None:
        return None, tuple(head.get("features", ())), pooled
    named = tuple(head.get("features") or names)
    if len(named) != len(names):
        raise UserError(
            f"c: must have {len(named)} features as the first line names; got {len(names)}"
        )
    return matrix, named, pooled
