"""Run the contract on the agents and simulators of a plug-in, ``python -m bandits check
FILE.py``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bandits.agents import REGISTRY as AGENTS
from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.processes import worker_environment
from bandits.contract import agents, expectations, simulators
from bandits.contract.expectations import ContractError
from bandits.experiments import plugins
from bandits.simulators import REGISTRY as SIMULATORS

Check = tuple[str, Callable[[], None]]
# agents that visit a simulator under test
VISITORS = ("random", "linucb", "lints", "ucb1", "oracle")


def run(parsed: argparse.Namespace) -> int:
    """Check a file in a new process, in which it is loaded as the app loads it.

    Return the exit status.

    Raises
    ------
    UserError
        There is no such file.
    """
    path = Path(parsed.file).resolve()
    if not path.is_file():
        raise UserError(f"{parsed.file} does not exist")
    others = [name for name in os.environ.get(plugins.VARIABLE, "").split(os.pathsep) if name]
    files = os.pathsep.join([str(path), *(name for name in others if Path(name).resolve() != path)])
    environment = {**worker_environment(), plugins.VARIABLE: files}
    sys.stdout.flush()
    command = [sys.executable, "-m", "bandits.cli.check", str(path)]
    status = subprocess.run(command, env=environment, check=False).returncode
    # a compiled kernel read beyond an array
    if status < 0:
        print(
            f"error: the checks of {parsed.file} crashed (signal {-status}): is an array smaller "
            "than stated?",
            file=sys.stderr,
        )
        return 1
    return status


def check(path: Path) -> int:
    """Run the contract on the kinds of a loaded plug-in and print one line for each failure.

    Returns
    -------
    int
        0: all checks passed. 1: some failed. 2: the file defines no agent and no simulator, or
        could not be loaded.
    """
    # reported when it was loaded
    if any(str(path) in error for error in plugins.errors):
        return 2
    checks: list[Check] = []
    for group, kind in plugins.kinds_of(str(path)):
        try:
            checks.extend(_checks(group, kind))
        except Exception as error:  # noqa: BLE001
            checks.append((kind, partial(_raise, error)))
    if not checks:
        print(
            f"error: {path} defines no agent and no simulator (abstract and _private classes do "
            "not count)",
            file=sys.stderr,
        )
        return 2
    failures: dict[str, list[str]] = {}
    for name, function in checks:
        try:
            function()
        except Exception as error:  # noqa: BLE001
            failures.setdefault(_describe(error, path), []).append(name)
    for message, names in failures.items():
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        print(f"{names[0]}: {message}{more}")
    failed = sum(map(len, failures.values()))
    print(
        f"{failed} of {len(checks)} checks failed" if failed else f"all {len(checks)} checks passed"
    )
    return 1 if failed else 0


def _checks(group: str, kind: str) -> Iterator[Check]:
    """Yield the checks of a kind.

    Those of an agent on every environment that fits, and vice versa.
    """
    registry: dict[str, Any] = AGENTS if group == "agent" else SIMULATORS
    cls = registry[kind]
    yield kind, lambda: expectations.class_is_described(cls)
    yield kind, lambda: expectations.parameters_are_frozen_and_explained(cls.Params)
    if group == "simulator":
        for of_simulator in simulators.CHECKS:
            yield kind, lambda of_simulator=of_simulator: of_simulator(kind)  # type: ignore[misc]
        visits = [case for visitor in VISITORS for case in agents.cases(visitor, (kind,))]
    else:
        visits = list(agents.cases(kind))
    for case in visits:
        for of_agent in agents.CHECKS:
            yield str(case), lambda of_agent=of_agent, case=case: of_agent(case)  # type: ignore[misc]


def _raise(error: Exception) -> None:
    raise error


def _describe(error: Exception, path: Path) -> str:
    """Describe a failed check: a sentence of the contract, or an exception and its line in the
    file.
    """
    if isinstance(error, ContractError):
        return str(error)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    at = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {short(str(error), 300)}{at}"


if __name__ == "__main__":
    sys.exit(check(Path(sys.argv[1])))
