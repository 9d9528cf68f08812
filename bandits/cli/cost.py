"""The command ``cost``: measure what confidence widths cost on this machine, as lines of JSON."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bandits.base.errors import UserError

if TYPE_CHECKING:
    from bandits.width_cost import Progress


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "cost", help="measure the cost of confidence widths, and print lines of JSON"
    )
    parser.add_argument(
        "request", metavar="REQUEST", nargs="?", default="{}", help="JSON; default: {}"
    )
    parser.add_argument(
        "--linucb", action="store_true", help="of LinUCB instead of neural networks"
    )


def run(parsed: argparse.Namespace) -> int:
    """Print one line of JSON per result."""
    from bandits.width_cost import LinearRequest, NeuralRequest, measure, read

    try:
        data = json.loads(parsed.request)
    except json.JSONDecodeError as error:
        raise UserError(f"the request is not JSON: {error}") from None
    for progress in measure(read(data, LinearRequest if parsed.linucb else NeuralRequest)):
        print(json.dumps(_plain(progress)), flush=True)
    return 0


def _plain(progress: Progress) -> dict[str, Any]:
    from bandits.width_cost import Timing

    data: dict[str, Any] = progress._asdict()
    if isinstance(progress.result, Timing):
        data["result"] = {**progress.result._asdict(), "sizes": progress.result.sizes._asdict()}
    elif progress.result is not None:
        data["result"] = progress.result._asdict()
    return data
