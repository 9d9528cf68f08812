"""The command ``lesson``: list lessons, check that their statements are true, and print one as a
handout.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("lesson", help="list, check or print lessons")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list lessons: name, title and minutes")
    listing.add_argument("--json", action="store_true", help="as JSON")
    checking = actions.add_parser(
        "check", help="run lessons and check that every statement is true of its runs"
    )
    checking.add_argument(
        "name", nargs="?", metavar="NAME|FILE.json", help="one lesson; default: all"
    )
    checking.add_argument(
        "--seeds",
        type=int,
        default=0,
        metavar="N",
        help="also check every claim that is not about the lesson's own run at the seeds 1 to N",
    )
    handout = actions.add_parser("handout", help="write a lesson as one HTML page to print")
    handout.add_argument("name", metavar="NAME|FILE.json", help="the lesson")
    handout.add_argument("--out", metavar="FILE.html", required=True, help="file to write")
    handout.add_argument(
        "--answers",
        action="store_true",
        help="add the answer sheet: texts, answers and numbers of the runs",
    )


def run(parsed: argparse.Namespace) -> int:
    """List, check or print lessons; return the exit status."""
    return {"list": _list, "check": _check, "handout": _handout}[parsed.action](parsed)


def _list(parsed: argparse.Namespace) -> int:
    from bandits.lessons import lessons

    rows = [
        {"name": n, "title": x.data.title, "minutes": x.data.minutes} for n, x in lessons().items()
    ]
    if parsed.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        print(f"{row['name']:<{width}}  {row['minutes']:>3} min  {row['title']}")
    return 0


def _check(parsed: argparse.Namespace) -> int:
    """Check one lesson or all; print one line per statement that is not true."""
    from bandits.lessons import check, check_seeds, find, lessons, stored_or_run
    from bandits.storage.run_store import Store

    chosen = [find(parsed.name)] if parsed.name else list(lessons().values())
    runner = stored_or_run(Store())
    seeds, failures = range(1, parsed.seeds + 1), 0
    for lesson in chosen:
        for failure in (*check(lesson, runner), *check_seeds(lesson, runner, seeds)):
            print(failure, flush=True)
            failures += 1
    if not failures:
        print(
            f"every statement holds: {', '.join(lesson.name for lesson in chosen)}", file=sys.stderr
        )
    return 1 if failures else 0


def _handout(parsed: argparse.Namespace) -> int:
    from bandits.lessons import find
    from bandits.lessons.checking import results_of, stored_or_run
    from bandits.lessons.handout import handout
    from bandits.storage.run_store import Store

    lesson = find(parsed.name)
    results = {}
    if parsed.answers:
        results = results_of(lesson, stored_or_run(Store()))
    Path(parsed.out).write_text(handout(lesson, results, answers=parsed.answers), encoding="utf-8")
    return 0
