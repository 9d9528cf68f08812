"""The stored runs on the command line: ``runs``, ``show`` and ``store check|repair|evict``."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from bandits.base.files import home
from bandits.base.formatting import escaped
from bandits.experiments.experiment import UserError
from bandits.results.result import Result
from bandits.storage import eviction
from bandits.storage.run_store import CorruptFileError, Store, StoredRun
from bandits.sweeps.storage.block_files import evictable_sweeps, remove_damaged

SHORT = 12  # digits of an id that are shown


def add_commands(commands: Any) -> None:
    """Add the commands to those of the command line."""
    runs = commands.add_parser("runs", help="what is stored")
    runs.add_argument("--search", metavar="TEXT", default="", help="only runs that have this somewhere in their line")
    runs.add_argument("--json", action="store_true", help="as JSON")
    show = commands.add_parser("show", help="one stored run: its numbers and its experiment")
    show.add_argument("run", metavar="RUN", help="its id, or the first 6 digits of it or more")
    show.add_argument("--json", action="store_true", help="the summary as JSON")
    show.add_argument("--out", metavar="DIR", help="write experiment, curves, summary and timing there")
    store = commands.add_parser("store", help="look after the stored runs")
    store.add_argument(
        "action", choices=["check", "repair", "evict"],
        help="check, repair: read every file, set aside what is damaged, list again what was lost, clear away what was "
        "left behind. evict: give up the curves of the oldest runs and sweeps, which can be computed again, until the "
        "rest fits the budget.",
    )  # fmt: skip
    store.add_argument("--budget", metavar="SIZE", default="1GB", help="for evict: 500MB, 2GB, ...; 1GB by default")


def leaderboard(result: Result) -> str:
    """One line per agent, in the experiment's order."""
    lines = []
    for label, found in result.summary()["agents"].items():
        ctr, clicks, regret = found["ctr"], found["clicks"], found["pseudo_regret"]
        if ctr["mean"] is None:
            lines.append(f"{label:<24} stopped in every run")
            continue
        interval = "" if ctr["low"] is None else f" ({ctr['low']:.4f} to {ctr['high']:.4f})"
        lines.append(
            f"{label:<24} ctr {ctr['mean']:.4f}{interval}  "
            f"clicks {clicks['mean']:,.0f}  pseudo-regret {regret['mean']:,.0f}"
        )
    return "\n".join(lines)


def facts(run: StoredRun) -> dict[str, Any]:
    """A stored run as plain data."""
    e = run.experiment
    return {
        "id": run.id, "title": run.title, "world": e.simulator_class().title, "agents": list(e.labels),
        "steps": e.steps, "replications": e.replications, "tags": run.tags,
        "created": datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds"), "bytes": run.bytes,
    }  # fmt: skip


def _runs(parsed: argparse.Namespace) -> int:
    found, wanted = Store().runs(), parsed.search.casefold()
    kept = [run for run in found if wanted in _line(run).casefold() or (wanted and run.id.startswith(wanted))]
    if parsed.json:
        print(json.dumps([facts(run) for run in kept], indent=2))
    elif not found:
        print("No runs are stored yet.")
    elif not kept:
        print(f"None of the {len(found):,} stored runs has '{escaped(parsed.search)}' in its line.")
    else:
        print("\n".join(map(_line, kept)))
    return 0


def _line(run: StoredRun) -> str:
    fact = facts(run)
    agents = ", ".join(fact["agents"])
    parts = [
        fact["id"][:SHORT],
        datetime.fromtimestamp(run.created).strftime("%Y-%m-%d %H:%M"),  # as the clock on the wall said
        f"{fact['steps']:,} x {fact['replications']:,}",
        *dict.fromkeys([fact["title"], agents]),  # a run that was given no title is called after its agents
        fact["world"],
        *([f"[{fact['tags']}]"] if fact["tags"] else []),
    ]  # fmt: skip
    return "  ".join(map(escaped, parts))


def _show(parsed: argparse.Namespace) -> int:
    store = Store()
    try:
        result = store.get(_id(store, parsed.run))
    except CorruptFileError as sentence:
        raise UserError(str(sentence)) from None
    if result is None:
        raise UserError(f"run {parsed.run} was deleted just now")
    if parsed.out:
        result.save(parsed.out)
    if parsed.json:
        print(json.dumps(result.summary(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(leaderboard(result))
        print(result.experiment.model_dump_json(indent=2))
    return 0


def _id(store: Store, given: str) -> str:
    """The one stored run that a full or shortened id means."""
    if not re.fullmatch("[0-9a-f]{6,64}", given):
        raise UserError(f"RUN is '{escaped(given)[:80]}'; it must be 6 to 64 of the digits 0-9 and a-f of a run's id")
    found = [run.id for run in store.runs() if run.id.startswith(given)]
    if not found:
        raise UserError(f"no stored run begins with '{given}'; python -m bandits runs lists them")
    if len(found) > 1:
        some = ", ".join(run[:SHORT] for run in found[:5])
        raise UserError(f"'{given}' could be any of {len(found)} stored runs ({some}); give more digits")
    return found[0]


def _store(parsed: argparse.Namespace) -> int:
    store = Store()
    if parsed.action == "evict":
        items = [*eviction.evictable_runs(store), *evictable_sweeps(home() / "sweeps")]
        said = eviction.evict(items, eviction.budget(parsed.budget))
        print("\n".join(said))
        return 0
    said = store.check() + remove_damaged(home() / "sweeps")
    for sentence in said:
        print(sentence)
    if not said:
        print(f"All is well. Stored runs: {len(store.runs()):,}, unfinished: {len(store.checkpoints()):,}.")
    return 1 if said else 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {"runs": _runs, "show": _show, "store": _store}
