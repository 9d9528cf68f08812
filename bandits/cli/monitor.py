"""Print the alarms that monitors would have raised: the command ``monitor``, and the last part of
``run``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandits.base.errors import UserError
from bandits.base.formatting import count, escaped
from bandits.results.result import Result

from . import stored_runs

if TYPE_CHECKING:
    from bandits.monitoring import Alarm

FILE = "alarms.parquet"


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "monitor", help="replay a stored run and print the alarms of monitors"
    )
    parser.add_argument("run", metavar="RUN", help="its id, or at least the first 6 digits of it")
    parser.add_argument(
        "--agent", metavar="NAME", action="append", help="only this agent; can be repeated"
    )
    parser.add_argument(
        "--monitor", metavar="KIND", action="append", help="only this monitor; can be repeated"
    )
    parser.add_argument("--out", metavar="DIR", help=f"write {FILE} to this folder")


def run(parsed: argparse.Namespace) -> int:
    """Print one table per agent; write all alarms to a file where asked to."""
    from bandits import monitoring

    result = stored_runs.load(parsed.run)
    labels = list(dict.fromkeys(parsed.agent or result.histories))
    if missing := next((label for label in labels if label not in result.histories), None):
        raise UserError(
            f"the run has no agent '{escaped(missing)}'; its agents are "
            f"{', '.join(result.histories)}"
        )
    if parsed.monitor:
        # fails before the replay, not after it
        monitoring.read(parsed.monitor)
    if parsed.out:
        Path(parsed.out).mkdir(parents=True, exist_ok=True)
    found: list[Alarm] = []
    for label in labels:
        alarms = monitoring.alarms(result, label, parsed.monitor)
        print("\n".join(lines(result, label, alarms)))
        found += alarms
    if parsed.out:
        _write(found, parsed.out)
    return 0


def after_run(result: Result, out: str | None) -> None:
    """Print the alarms of all agents of a finished run, agent by agent, and then which monitors
    were right.
    """
    from bandits.experiments.progress import reporting
    from bandits.monitoring.conclusion import conclusion
    from bandits.monitoring.replay import watched

    e = result.experiment
    found: dict[str, list[Alarm]] = {}
    monitors: dict[str, list[str]] = {}
    print("Alarms:")
    for label in e.labels:
        with reporting(None, e.steps) as report:
            monitors[label], found[label] = watched(e, label, e.steps, progress=report)
        print("\n".join(lines(result, label, found[label])), flush=True)
    steps = dict.fromkeys(e.labels, e.steps)
    print(conclusion(found, e.simulator, rows=e.replications, steps=steps, monitors=monitors))
    if out:
        _write([alarm for mine in found.values() for alarm in mine], out)


def _write(found: Sequence[Alarm], folder: str) -> None:
    from bandits import monitoring

    monitoring.table(found).to_parquet(Path(folder) / FILE, index=False)


def lines(result: Result, label: str, alarms: Sequence[Alarm]) -> Iterator[str]:
    """Format the alarms of an agent, one line per monitor that raised any.

    The columns: monitor, step of the first alarm, rows with an alarm, false alarms per 10,000
    steps, median delay after a change, and the sentence of the first alarm."""
    from bandits.monitoring import REGISTRY, score

    e, steps = result.experiment, result.histories[label].step
    yield escaped(label) if alarms else f"{escaped(label)}: no alarm in {count(steps)} steps"
    by_kind = {kind: [alarm for alarm in alarms if alarm.monitor == kind] for kind in REGISTRY}
    table = (
        [("monitor", "first", "rows", "false per 10,000", "delay", "what it observed first")]
        if alarms
        else []
    )
    for kind, mine in by_kind.items():
        if mine:
            scored = score(mine, e.simulator, rows=e.replications, steps=steps)
            rang = f"{len({alarm.row for alarm in mine})} of {e.replications}"
            false = f"{scored.per_10_000:.2f}" if scored.quiet_steps else "–"
            table.append(
                (
                    kind,
                    count(mine[0].step),
                    rang,
                    false,
                    count(scored.median_delay),
                    mine[0].sentence,
                )
            )
    widths = [max((len(row[i]) for row in table), default=0) for i in range(5)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "    " + "  ".join([*cells, row[5]])
