"""The command ``export``: an agent of a stored run as a policy of its own."""

from __future__ import annotations

import argparse
from typing import Any

from bandits.base.errors import UserError


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "export", help="write what an agent of a stored run had learned, to use elsewhere"
    )
    parser.add_argument("run", metavar="RUN", help="its id, or at least the first 6 digits of it")
    parser.add_argument("--agent", metavar="LABEL", required=True, help="its label in the run")
    parser.add_argument(
        "--replication", metavar="N", type=int, default=0, help="which one, from 0; default: 0"
    )
    parser.add_argument("--numpy", metavar="FILE.py", help="a program that needs numpy alone")
    parser.add_argument("--policy", metavar="FILE", help="a file for bandits.Policy.load")


def run(parsed: argparse.Namespace) -> int:
    """Write the files and print their names."""
    from bandits.policy import Policy
    from bandits.policy.numpy_export import write_numpy

    if not parsed.numpy and not parsed.policy:
        raise UserError("export needs --numpy FILE.py or --policy FILE")
    policy = Policy.from_run(parsed.run, parsed.agent, replication=parsed.replication)
    if parsed.numpy:
        print(f"wrote {parsed.numpy} and {write_numpy(policy, parsed.numpy)}")
    if parsed.policy:
        policy.save(parsed.policy)
        print(f"wrote {parsed.policy}")
    return 0
