"""Parse the command line and run the command, ``python -m bandits COMMAND``.

Invalid input ends with one sentence on standard error and exit status 2.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

from bandits import __version__
from bandits.base.errors import UserError
from bandits.base.extras import require

from . import (
    catalogue,
    cost,
    diagnose,
    evaluate,
    experiment_file,
    export,
    lesson,
    monitor,
    serve,
    stored_runs,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status."""
    parsed = _parser().parse_args(arguments)
    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "list": catalogue.run,
        "run": _run,
        "sweep": _sweep,
        "audit": _audit,
        "diagnose": diagnose.run,
        "monitor": monitor.run,
        "evaluate": evaluate.run,
        "cost": cost.run,
        "export": export.run,
        "check": _check,
        "app": _app,
        "lesson": lesson.run,
        "serve": serve.serve,
        "learn": serve.learn,
        "registry": serve.registry,
        "train": serve.train,
        "loop": serve.loop,
        "traffic": serve.traffic,
        "events": serve.events,
        **stored_runs.COMMANDS,
    }
    try:
        return commands[parsed.command](parsed)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except MemoryError:
        print("error: this takes more memory than there is", file=sys.stderr)
        return 2
    except OSError as error:
        print(
            f"error: {error.filename or 'the output'}: {error.strerror or error}", file=sys.stderr
        )
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(
        prog="bandits" if name == "bandits" else "python -m bandits",
        description="Simulate and compare contextual bandits.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser(
        "list", help="list simulators and agents with their parameters and references"
    )
    listing.add_argument("--json", action="store_true", help="as JSON")
    running = commands.add_parser("run", help="run an experiment and print the leaderboard")
    running.add_argument(
        "--out", metavar="DIR", help="write experiment, curves, summary and timing to this folder"
    )
    running.add_argument(
        "--workers",
        metavar="N",
        help="processes of a long run; 0: this one; default: one per processor",
    )
    running.add_argument(
        "--unchanged",
        action=argparse.BooleanOptionalAction,
        help="also run it without its changes, and state the clicks lost to them; "
        "default where something changes before the end",
    )
    running.add_argument(
        "--alarms",
        action=argparse.BooleanOptionalAction,
        help="also replay it and print the alarms of monitors and which were right; "
        "default where something changes before the end",
    )
    running.add_argument(
        "--log",
        action="store_true",
        help="write the decisions of each agent to log/NAME.parquet in the folder",
    )
    running.add_argument(
        "--keep",
        action="store_true",
        help="store the run, as the app does: it is listed by runs and on the page Runs",
    )
    running.add_argument(
        "--at-best",
        action="store_true",
        help="tune each agent by a small sweep first, and compare them on new visitors (seed + 1)",
    )
    auditing = commands.add_parser(
        "audit", help="report recall, cost and regret of a retrieval index"
    )
    for command in (running, auditing):
        experiment_file.add_arguments(command)
    diagnose.add_command(commands)
    monitor.add_command(commands)
    evaluate.add_command(commands)
    serve.add_commands(commands)
    sweeping = commands.add_parser("sweep", help="run one agent for all values along axes")
    sweeping.add_argument("sweep", metavar="SWEEP.json", help="sweep file, or - for standard input")
    sweeping.add_argument(
        "--out", metavar="DIR", help="write points.parquet, summary.json and timing.json there"
    )
    sweeping.add_argument(
        "--workers", metavar="N", help="worker processes; 0: none; default: one per processor"
    )
    sweeping.add_argument(
        "--cluster",
        metavar="URL",
        help="Dask scheduler, for example tls://host:port; default: BANDITS_CLUSTER",
    )
    sweeping.add_argument(
        "--refine",
        action="store_true",
        help="add values around the best point until it is enclosed by near ones",
    )
    stored_runs.add_commands(commands)
    cost.add_command(commands)
    export.add_command(commands)
    checking = commands.add_parser(
        "check", help="run the contract on agents and simulators of your own"
    )
    checking.add_argument("file", metavar="FILE.py", help="Python file that defines them")
    lesson.add_command(commands)
    app = commands.add_parser("app", help="start the app from a checkout")
    app.add_argument(
        "--port", metavar="N", type=int, default=8501, help="port of the app; default: 8501"
    )
    return parser


def _run(parsed: argparse.Namespace) -> int:
    from bandits.experiments.experiment import require_truth
    from bandits.experiments.progress import reporting
    from bandits.results.change.lost_clicks import without_changes
    from bandits.results.result import Result
    from bandits.runtime.cores import read_workers, run_to_end, run_unchanged

    workers = read_workers(parsed.workers)
    experiment = experiment_file.read_experiment(parsed)
    if parsed.at_best:
        from . import sweep

        experiment = sweep.tune(experiment, workers)
    changed = any(c.begins < experiment.steps for c in experiment.simulator.all_changes.values())
    unchanged = changed if parsed.unchanged is None else parsed.unchanged
    alarms = changed if parsed.alarms is None else parsed.alarms
    if unchanged:
        # fails before the run, not after it
        without_changes(experiment)
    if alarms:
        require_truth(experiment, "--alarms")  # as above
    if parsed.log:
        evaluate.check_recording(experiment, parsed.out)  # as above
    if parsed.out:
        # fails before the run, not after it
        Path(parsed.out).mkdir(parents=True, exist_ok=True)
    keeper = stored_runs.Keeper(required=not parsed.out) if parsed.keep else None
    with reporting(None, experiment.steps) as report:
        result = Result(experiment, run_to_end(experiment, workers, report, keeper))
    status = 0
    try:
        if parsed.out:
            # before the run without changes, which may be stopped
            result.save(parsed.out)
        if unchanged:
            with reporting(None, experiment.steps) as report:
                result = run_unchanged(result, workers, report, keeper)
            if parsed.out:
                result.save(parsed.out)
        if parsed.log:
            evaluate.record_decisions(experiment, Path(parsed.out) / "log")
        print(stored_runs.leaderboard(result), flush=True)
        if alarms:
            monitor.after_run(result, parsed.out)
        elif parsed.out:
            # of an earlier run
            (Path(parsed.out) / monitor.FILE).unlink(missing_ok=True)
    finally:
        # stored runs are named where the output cannot be written
        if keeper is not None:
            status = keeper.report()
    return status


def _sweep(parsed: argparse.Namespace) -> int:
    from . import sweep

    text = experiment_file.read_text(parsed.sweep)
    return sweep.run(text, parsed.out, parsed.workers, parsed.cluster, to_refine=parsed.refine)


def _audit(parsed: argparse.Namespace) -> int:
    from bandits.diagnostics import retrieval

    report = retrieval.evaluate_retrieval(experiment_file.read_experiment(parsed))
    if report is None:
        raise UserError(
            "only the simulator ranking with simulator.retrieval nearest has an index to audit"
        )
    for name, value in retrieval.summary_rows(report):
        print(f"{name}: {value}")
    return 0


def _check(parsed: argparse.Namespace) -> int:
    from . import check

    return check.run(parsed)


def _app(parsed: argparse.Namespace) -> int:
    """Replace this process by Streamlit's server.

    The app lies beside the package in a checkout, and among the shared files of an installation.
    """
    require("streamlit")
    shared = Path(sysconfig.get_path("data")) / "share" / "bandit-playground"
    places = (Path(__file__).resolve().parents[2], shared)
    root = next((place for place in places if (place / "app.py").is_file()), None)
    if root is None:
        raise UserError(f"the app is not installed here: {shared} has no app.py")
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        "--server.port",
        str(parsed.port),
    ]
    # where Streamlit looks for its settings
    os.chdir(root)
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606
