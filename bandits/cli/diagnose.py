"""The command ``diagnose``: the conclusions and verdicts of the view Diagnostics, for a stored run
or an experiment.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from bandits.base.formatting import escaped
from bandits.results.result import Result

from . import experiment_file, stored_runs


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("diagnose", help="state how each agent of a run explores")
    experiment_file.add_arguments(
        parser, metavar="RUN|EXPERIMENT.json", help="id of a stored run, or experiment file"
    )
    parser.add_argument(
        "--all", action="store_true", help="print the healthy and uninformative findings too"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(parsed: argparse.Namespace) -> int:
    """Print one conclusion per agent, the most severe first, then its findings."""
    from bandits import diagnostics
    from bandits.diagnostics.figures import MARKS
    from bandits.diagnostics.finding import SEVERITY

    result = _result(parsed)
    e = result.experiment
    references = (
        diagnostics.oracle_reference(e),
        diagnostics.linearity_check(e),
        diagnostics.position_bias_check(e),
    )
    found = {label: diagnostics.findings(result, label, *references) for label in result.histories}
    concluded = {label: diagnostics.conclude(each) for label, each in found.items()}
    labels = sorted(found, key=lambda label: SEVERITY[concluded[label].verdict])
    if parsed.json:
        data = {
            label: {
                **concluded[label]._asdict(),
                "findings": {n: f._asdict() for n, f in found[label].items()},
            }
            for label in labels
        }
        print(json.dumps(data, indent=2, ensure_ascii=False))
        return 0
    for label in labels:
        verdict, direction, text = concluded[label]
        exploration = f" – {direction} exploration" if direction.startswith("too") else ""
        print(f"{MARKS[verdict]} {escaped(label)}{exploration}. {text}")
        shown = {
            n: f for n, f in found[label].items() if parsed.all or f.verdict in ("alarm", "watch")
        }
        for finding in shown.values():
            verdict_text = (
                "not informative"
                if finding.verdict == "none"
                else finding.direction or finding.verdict
            )
            print(f"    {MARKS[finding.verdict]} {finding.title}: {verdict_text}. {finding.text}")
        for sentence in diagnostics.reservations(shown):
            print(f"    {sentence}")
    return 0


def _result(parsed: argparse.Namespace) -> Result:
    """Read a stored run, or run an experiment."""
    from bandits.experiments.lockstep import Lockstep, run_to_end
    from bandits.experiments.progress import reporting

    given = parsed.experiment
    if re.fullmatch("[0-9a-f]{6,64}", given) and not Path(given).exists():
        return stored_runs.load(given)
    experiment = experiment_file.read_experiment(parsed)
    lockstep = Lockstep(experiment)
    with reporting(None, experiment.steps) as report:
        run_to_end(lockstep, report)
    return Result(experiment, lockstep.histories)
