"""The command ``evaluate``: what a target policy would have earned on a log."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandits.base.errors import UserError
from bandits.base.formatting import count, count_of, escaped, number, percent
from bandits.tables.problems import RowsError

if TYPE_CHECKING:
    from bandits.experiments.experiment import Experiment
    from bandits.offpolicy import Evaluation
    from bandits.offpolicy.intervals import Interval

FILE = "estimates.json"
# steps of a visit whose effective sample size is printed
SHOWN_LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "evaluate", help="estimate what a target policy would have earned on a log"
    )
    parser.add_argument(
        "log", metavar="LOG", help="Parquet, CSV or dsjson file, or open_bandit/POLICY/CAMPAIGN"
    )
    parser.add_argument(
        "--target",
        required=True,
        metavar="TARGET",
        help=(
            "random, always:ITEM, column:NAME (probabilities of the logged actions), "
            "greedy:MODEL, greedy_ips:MODEL, bts:CAMPAIGN (of Open Bandit); on a log of a "
            "simulated run also run:ID:LABEL (an agent of a stored run) or an agent as JSON, "
            "which learns from the first half of the log"
        ),
    )
    parser.add_argument(
        "--map", metavar="ROLE=COLUMN,...", help="columns of a table, for example action=item_id"
    )
    parser.add_argument(
        "--estimators",
        metavar="NAME,...",
        help="for example ips,snips,dm,dr, or pdis,wpdis per visit; default: all possible",
    )
    parser.add_argument(
        "--model", metavar="MODEL", help="of q: logistic, ridge or gradient_boosting"
    )
    parser.add_argument(
        "--interval",
        metavar="KIND",
        default="normal",
        help="normal, bootstrap, bernstein or anytime; default: normal",
    )
    parser.add_argument(
        "--skip-rows",
        action="store_true",
        help="leave out rows that hold what is not allowed, and say how many",
    )
    parser.add_argument(
        "--pending-reward",
        type=float,
        metavar="VALUE",
        help="what a missing reward counts as; default: its row is left out",
    )
    parser.add_argument(
        "--reward-range",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="least and largest possible reward, for bernstein and anytime; default: 0 1 for "
        "clicks of simulated runs and of Open Bandit, otherwise unknown",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse a dsjson file with lines that are no decisions, which are otherwise left out",
    )
    parser.add_argument(
        "--estimate-propensities",
        action="store_true",
        help="estimate propensities where the log has none",
    )
    parser.add_argument(
        "--seed", metavar="N", default="0", help="of folds and resamples; default: 0"
    )
    parser.add_argument("--out", metavar="DIR", help=f"write {FILE} to this folder")


def run(parsed: argparse.Namespace) -> int:
    """Print the verdict, the estimates and the alarms; write them to a file where asked to."""
    import numpy as np

    from bandits import offpolicy
    from bandits.offpolicy.user_table import read_map

    if not parsed.seed.isdecimal() or len(parsed.seed) > 18:
        raise UserError(f"seed: must be a whole number of at most 18 digits; got {parsed.seed}")
    generator = np.random.default_rng(int(parsed.seed))
    try:
        log = offpolicy.read_log(
            parsed.log,
            read_map(parsed.map) if parsed.map else None,
            strict=parsed.strict,
            skip=parsed.skip_rows,
            pending=parsed.pending_reward,
        )
    except RowsError as error:
        if error.count > 1:
            further = error.sentences[1:]
            print("\n".join(f"error: {sentence}" for sentence in further), file=sys.stderr)
            print(f"--skip-rows leaves out these {count(error.count)} rows", file=sys.stderr)
        raise
    found = offpolicy.evaluate(
        log,
        parsed.target,
        estimators=parsed.estimators.split(",") if parsed.estimators else None,
        model=parsed.model,
        interval=parsed.interval,
        reward_range=tuple(parsed.reward_range) if parsed.reward_range else None,
        estimate_propensities=parsed.estimate_propensities,
        generator=generator,
    )
    if parsed.out:
        folder = Path(parsed.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(found.as_dict(), indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines(found, parsed.log)))
    return 0


def check_recording(experiment: Experiment, folder: str | None) -> None:
    """Raise if the decisions of a run cannot be logged."""
    from bandits.offpolicy import recording

    if not folder:
        raise UserError("--log writes to the folder of --out, which is missing")
    recording.check(experiment)


def record_decisions(experiment: Experiment, folder: Path) -> None:
    """Write a log of the decisions of each agent, NAME.parquet."""
    from bandits import offpolicy

    folder.mkdir(parents=True, exist_ok=True)
    for label in experiment.labels:
        offpolicy.write_parquet(offpolicy.record(experiment, label), folder / f"{label}.parquet")


def lines(found: Evaluation, name: str) -> Iterator[str]:
    """Format an evaluation: conclusion, alarms, estimates, support."""
    from bandits.offpolicy import conclusion
    from bandits.offpolicy.open_bandit import ATTRIBUTION, PREFIX

    yield from map(escaped, conclusion.sentences(found))
    yield from (f"alarm: {escaped(alarm.sentence)}" for alarm in found.alarms)
    yield from (f"note: {escaped(note)}" for note in found.notes)
    yield (
        f"Value of {escaped(found.target)} on {count_of(found.n, f'{found.unit}s')}"
        + (", with 95 % confidence intervals" if found.has_intervals else "")
    )

    def ends(e: Interval) -> str:
        return f"  {number(e.low)} to {number(e.high)}" if found.has_intervals else ""

    for kind, e in found.estimates.items():
        chosen = f"  {number(found.tuned[kind])} chosen by SLOPE++" if kind in found.tuned else ""
        yield f"    {kind:12} {number(e.value):>8}{ends(e)}{chosen}"
    for position, e in found.positions.items():
        name_of = f"at {escaped(position)}"
        yield (f"    {name_of:12} {number(e.value):>8}{ends(e)} ({found.main})")
    if note := conclusion.how_to_read(found):
        yield f"    {note}"
    if found.truth is not None:
        low, high = number(found.truth.low), number(found.truth.high)
        yield f"    {'truth':12} {number(found.truth.value):>8}  {low} to {high} (of the simulator)"
    s = found.support
    yield (
        f"    effective sample size {count(s.ess)}, largest weight {number(s.max_weight)} "
        f"({percent(s.largest_share, 1)} of the sum), mean weight {number(s.mean_weight)}, "
        f"unsupported mass {percent(s.unsupported_mass, 1)}"
    )
    if found.ess_by_length:
        shown = [h for h in SHOWN_LENGTHS if h < len(found.ess_by_length)]
        ess = [
            f"{h}: {count(found.ess_by_length[h - 1])}" for h in (*shown, len(found.ess_by_length))
        ]
        yield f"    effective sample size by step of the visit: {', '.join(ess)}"
    if name.startswith(PREFIX):
        yield ATTRIBUTION
