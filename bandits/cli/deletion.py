"""The command ``delete``: delete stored runs of all visitors."""

from __future__ import annotations

import argparse
from typing import Any

from bandits.runtime.pool import Pool
from bandits.storage.run_store import Store

from .stored_runs import ID_DIGITS, full_id


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("delete", help="delete stored runs of all visitors")
    parser.add_argument("runs", metavar="RUN", nargs="+", help="its id, or at least the first 6 digits of it")


def run(parsed: argparse.Namespace) -> int:
    """Delete the runs; nothing is deleted if one of them is not found."""
    store = Store()
    pool = Pool(workers=0, store=store)
    for each in [full_id(store, given) for given in parsed.runs]:
        pool.delete(each)
        print(f"deleted {each[:ID_DIGITS]}")
    return 0
