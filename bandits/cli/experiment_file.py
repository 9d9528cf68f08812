"""Read the experiment of a command: a file or standard input, with changes from the command
line.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NoReturn

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.experiments.experiment import MAX_TEXT, Experiment, read


def add_arguments(
    parser: argparse.ArgumentParser,
    *,
    metavar: str = "EXPERIMENT.json",
    help: str = "experiment file, or - for standard input",
) -> None:
    """Add the file and the options that change it."""
    parser.add_argument("experiment", metavar=metavar, help=help)
    parser.add_argument(
        "--replications", metavar="N", help="number of replications instead of the file's"
    )
    parser.add_argument("--steps", metavar="N", help="number of steps instead of the file's")
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help="change one field, for example agents.0.alpha=2",
    )


def read_text(name: str) -> bytes | str:
    """Read a file, or standard input if the name is "-", up to just over the allowed size."""
    if name == "-":
        text: bytes | str = getattr(sys.stdin, "buffer", sys.stdin).read(MAX_TEXT + 1)
        return text
    with Path(name).open("rb") as file:
        return file.read(MAX_TEXT + 1)


def read_experiment(parsed: argparse.Namespace) -> Experiment:
    """Read and validate the experiment of a command.

    Raises
    ------
    UserError
        The file or a change is invalid.
    OSError
        The file cannot be read.
    """
    text = read_text(parsed.experiment)
    changes = [
        f"{name}={getattr(parsed, name)}"
        for name in ("replications", "steps")
        if getattr(parsed, name)
    ]
    if not (changes := changes + parsed.set):
        return read(text)
    # errors in the file are reported before errors in the changes
    read(text)
    data = json.loads(text)
    for change in changes:
        path, sign, value = change.partition("=")
        if not sign:
            _refuse(f"--set {short(change)}: write PATH=VALUE, for example agents.0.alpha=2")
        _set(data, path.split("."), _value(value), path)
    return read(data)


def _value(text: str) -> Any:
    try:
        return json.loads(
            text, parse_constant=lambda name: _refuse(f"{name} is not a number that can be used")
        )
    except (ValueError, RecursionError) as error:
        # no JSON, too many digits, or nested too deeply
        if isinstance(error, UserError):
            raise
        # the validation of the experiment reports it
        return text


def _set(data: Any, parts: list[str], value: Any, path: str) -> None:
    for part in parts[:-1]:
        data = _child(data, part, path)
    last = parts[-1]
    if isinstance(data, list):
        data[_position(data, last, path)] = value
    elif isinstance(data, dict):
        data[last] = value
    else:
        _refuse(f"--set {short(path)}: there is nothing under '{short(parts[-2])}'")


def _child(data: Any, part: str, path: str) -> Any:
    if isinstance(data, list):
        return data[_position(data, part, path)]
    if isinstance(data, dict) and part in data:
        return data[part]
    _refuse(f"--set {short(path)}: '{short(part)}' is not a known field")


def _position(data: list[Any], part: str, path: str) -> int:
    if part not in (known := [str(i) for i in range(len(data))]):
        _refuse(f"--set {short(path)}: '{short(part)}' is not a position from 0 to {len(data) - 1}")
    return known.index(part)


def _refuse(message: str) -> NoReturn:
    raise UserError(message)
