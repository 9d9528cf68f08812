"""Commands for stored runs: ``runs``, ``show``, ``delete`` and ``store check|repair|evict``.

And ``run --keep``.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from bandits.base.errors import UserError
from bandits.base.files import home
from bandits.base.formatting import escaped
from bandits.results import guard_cost, words
from bandits.results.caveats import replay_notes, table_notes
from bandits.results.change import conclusion as change_conclusion
from bandits.results.change import lost_clicks, recovery
from bandits.results.change.marks import variation_budget
from bandits.results.metric_registry import METRICS, first_three
from bandits.results.result import Result
from bandits.runtime.job import Job, keep_result
from bandits.storage import eviction, reserve
from bandits.storage.eviction import remove_damaged_caches
from bandits.storage.run_store import CorruptFileError, Store, StoredRun
from bandits.sweeps.storage.block_files import evictable_sweeps, remove_damaged

# digits of a run's id that are shown
ID_DIGITS = 12


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of the command line."""
    runs = commands.add_parser("runs", help="list stored runs")
    runs.add_argument(
        "--search", metavar="TEXT", default="", help="only runs whose line contains this text"
    )
    runs.add_argument("--json", action="store_true", help="as JSON")
    show = commands.add_parser("show", help="print or write a stored run")
    show.add_argument("run", metavar="RUN", help="its id, or at least the first 6 digits of it")
    show.add_argument("--json", action="store_true", help="the summary as JSON")
    show.add_argument(
        "--out", metavar="DIR", help="write experiment, curves, summary and timing to this folder"
    )
    delete = commands.add_parser("delete", help="delete stored runs of all visitors")
    delete.add_argument(
        "runs", metavar="RUN", nargs="+", help="its id, or at least the first 6 digits of it"
    )
    store = commands.add_parser("store", help="check, repair or evict stored runs")
    store.add_argument(
        "action",
        choices=["check", "repair", "evict"],
        help=(
            "check, repair: verify every file, quarantine damaged ones, list unlisted ones, "
            "delete unfinished ones. evict: delete the curves of the oldest runs and sweeps "
            "until the rest fits the budget; they stay listed and can be recomputed."
        ),
    )
    store.add_argument(
        "--budget", metavar="SIZE", default="1GB", help="for evict: 500MB, 2GB, ...; default: 1GB"
    )


def leaderboard(result: Result) -> str:
    """Format a result as one line per agent, in the experiment's order."""
    lines = []
    first, second, _ = first_three(result.experiment)
    names = list(dict.fromkeys([first, "ctr", "clicks", second]))
    for label, history in result.histories.items():
        found = {name: METRICS[name].estimate(history) for name in names}
        if not math.isfinite(found["ctr"].mean):
            why = "no counted events" if history.alive.any() else "stopped in every replication"
            lines.append(f"{label:<24} {why}")
            continue
        numbers = [f"{name} {words.cell(each, METRICS[name].form)}" for name, each in found.items()]
        lines.append(f"{label:<24} {'  '.join(numbers)}")
    changed = [*change_conclusion.sentences(result), *recovery.sentences(result)]
    more = [*changed, *lost_clicks.sentences(result), *guard_cost.fallback_sentences(result)]
    about = [*replay_notes(result), *table_notes(result)]
    return "\n".join([*lines, *about, *more, *variation_budget(result.experiment)])


def facts(run: StoredRun) -> dict[str, Any]:
    """Return a stored run as plain data."""
    e = run.experiment
    return {
        "id": run.id,
        "title": run.title,
        "simulator": e.simulator_class().title,
        "agents": list(e.labels),
        "steps": e.steps,
        "replications": e.replications,
        "tags": run.tags,
        "starred": run.starred,
        "notes": run.notes,
        "created": datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds"),
        "bytes": run.bytes,
    }


def _runs(parsed: argparse.Namespace) -> int:
    store = _open()
    runs, text = store.runs(), parsed.search.casefold()
    matches = [
        run for run in runs if text in _line(run).casefold() or (text and run.id.startswith(text))
    ]
    if parsed.json:
        print(json.dumps([facts(run) for run in matches], indent=2))
    elif not runs:
        print("No runs are stored yet.")
    elif not matches:
        print(f"None of the {len(runs):,} stored runs contains '{escaped(parsed.search)}'.")
    else:
        print("\n".join(map(_line, matches)))
    return 0


def _line(run: StoredRun) -> str:
    fact = facts(run)
    agents = ", ".join(fact["agents"])
    parts = [
        fact["id"][:ID_DIGITS],
        datetime.fromtimestamp(run.created).strftime("%Y-%m-%d %H:%M"),  # local time
        f"{fact['steps']:,} x {fact['replications']:,}",
        # the default title is the list of agents
        *dict.fromkeys([fact["title"], agents]),
        fact["simulator"],
        *([f"[{fact['tags']}]"] if fact["tags"] else []),
    ]
    return "  ".join(map(escaped, parts))


def _show(parsed: argparse.Namespace) -> int:
    result = _with_unchanged(load(parsed.run))
    if parsed.out:
        result.save(parsed.out)
    if parsed.json:
        print(json.dumps(result.summary(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(leaderboard(result))
        print(result.experiment.model_dump_json(indent=2))
    return 0


def _with_unchanged(result: Result) -> Result:
    """Return a stored run together with the run without its changes, where that is stored too."""
    if not result.experiment.simulator.all_changes:
        return result
    try:
        unchanged = _open().get(lost_clicks.without_changes(result.experiment).hash)
    except (CorruptFileError, UserError):
        # it is listed, but its curves are gone: the run itself is whole
        unchanged = None
    finished = unchanged is not None and all(
        h.step == unchanged.experiment.steps for h in unchanged.histories.values()
    )
    return Result(result.experiment, result.histories, unchanged=unchanged) if finished else result


def load(given: str) -> Result:
    """Read the stored run that a full or shortened id names.

    Raises
    ------
    UserError
        There is no such run, or it cannot be read.
    """
    store = _open()
    try:
        result = store.get(full_id(store, given))
    except CorruptFileError as error:
        raise UserError(str(error)) from None
    if result is None:
        raise UserError(f"run {given} has just been deleted")
    return result


def full_id(store: Store, given: str) -> str:
    """Return the id of the one stored run that a full or shortened id names."""
    if not re.fullmatch("[0-9a-f]{6,64}", given):
        raise UserError(
            f"RUN is '{escaped(given)[:80]}'; it must be 6 to 64 of the digits 0-9 and a-f of a "
            "run's id"
        )
    ids = [run.id for run in store.runs() if run.id.startswith(given)]
    if not ids:
        raise UserError(f"no stored run begins with '{given}'; python -m bandits runs lists them")
    if len(ids) > 1:
        some = ", ".join(run[:ID_DIGITS] for run in ids[:5])
        raise UserError(f"'{given}' matches {len(ids)} stored runs ({some}); give more digits")
    return ids[0]


def _delete(parsed: argparse.Namespace) -> int:
    """Delete the runs; nothing is deleted if one of them is not found."""
    from bandits.runtime.pool import Pool

    store = Store()
    pool = Pool(workers=0, store=store)
    for each in [full_id(store, given) for given in parsed.runs]:
        pool.delete(each)
        print(f"deleted {each[:ID_DIGITS]}")
    return 0


def _store(parsed: argparse.Namespace) -> int:
    if parsed.action == "evict":
        return _evict(eviction.budget(parsed.budget))
    store = _open()
    messages = store.check() + remove_damaged(home() / "sweeps") + remove_damaged_caches()
    for message in messages:
        print(message)
    if not messages:
        print(
            f"No damage was found. Stored runs: {len(store.runs()):,}, unfinished: "
            f"{len(store.checkpoints()):,}."
        )
    return 1 if messages else 0


def _evict(limit: int) -> int:
    """Evict runs and sweeps; on a full disk, the reserve gives the space that this needs."""
    reserve.release(home())
    try:
        items = [*eviction.evictable_runs(_open()), *evictable_sweeps(home() / "sweeps")]
        print("\n".join(eviction.evict(items, limit)))
    finally:
        reserve.fill(home())
    return 0


def _open() -> Store:
    """Open the store; where it can be read but not changed, print why."""
    store = Store()
    if store.notice:
        print(store.notice, file=sys.stderr)
    return store


class Keeper:
    """Store finished runs as the app stores them.

    Without an owner, so that only this machine can delete them.

    A run that is stored already is left unchanged. A failure does not interrupt the command, which
    still has results to write: `report` states it at the end.

    Parameters
    ----------
    required : bool
        Whether the store is the only place for the results, so that one which cannot be written is
        refused at once.

    Raises
    ------
    UserError
        Results are required here and the store cannot be changed, or the disk is too full.
    OSError
        Results are required here and the folder cannot be created or read.
    """

    def __init__(self, *, required: bool) -> None:
        self._stored: list[str] = []
        self._failures: list[str] = []
        if required:
            _open_for_run()

    def __call__(self, job: Job) -> None:
        """Store a finished run."""
        try:
            store = _open_for_run()
            keep_result(store, job)
            evicted = any(run.evicted for run in store.runs() if run.id == job.id)
        except (OSError, UserError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            self._failures.append(f"run {job.id[:ID_DIGITS]} could not be stored: {reason}")
            return
        if evicted:
            self._failures.append(
                f"run {job.id[:ID_DIGITS]} is listed, but its curves do not fit into "
                f"{eviction.VARIABLE}, the budget of the disk, and were deleted"
            )
        else:
            self._stored.append(job.id[:ID_DIGITS])

    def report(self) -> int:
        """Print which runs were stored and which were not; return the exit status."""
        for run in self._stored:
            print(f"stored as run {run}")
        for failure in self._failures:
            print(f"error: {failure}", file=sys.stderr)
        return 1 if self._failures else 0


def _open_for_run() -> Store:
    """Open the store for another run.

    Raises
    ------
    UserError
        It cannot be changed, or the disk is too full.
    OSError
        The folder cannot be created or read.
    """
    store = Store()
    if store.notice:
        raise UserError(store.notice[0].lower() + store.notice[1:].removesuffix("."))
    store.require_space()
    return store


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "runs": _runs,
    "show": _show,
    "delete": _delete,
    "store": _store,
}
