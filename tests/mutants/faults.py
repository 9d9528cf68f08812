"""The deliberate faults of `list.txt`, grouped by source file with the tests that must notice them.

A header line is ``path | arguments of pytest``; the lines below it are ``old => new``, a part of one line of that file
and what replaces it. A fault that no test can notice ends in ``  # survives: reason``.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("list.txt")


class Fault(NamedTuple):
    """One replacement in one source file.

    Attributes
    ----------
    path : str
        Source file, relative to the repository.
    tests : tuple of str
        Arguments of pytest: the tests that must notice it.
    old, new : str
    reason : str
        Why no test notices it; empty if one must.
    """

    path: str
    tests: tuple[str, ...]
    old: str
    new: str
    reason: str

    @property
    def files(self) -> list[str]:
        """Test files among the arguments."""
        return [argument.split("::")[0] for argument in self.tests if argument.split("::")[0].endswith(".py")]

    def applied(self, source: str) -> str:
        """Return the source with the fault; ValueError unless it fits exactly one place and compiles."""
        if (n := source.count(self.old)) != 1:
            raise ValueError(f"{self.path}: '{self.old}' occurs {n} times, not once; update {LIST.name}")
        changed = source.replace(self.old, self.new)
        compile(changed, self.path, "exec")
        return changed


def read(text: str | None = None) -> list[Fault]:
    """Read the list."""
    faults: list[Fault] = []
    path, tests = "", tuple[str, ...]()
    for line in map(str.strip, (LIST.read_text(encoding="utf-8") if text is None else text).splitlines()):
        if not line or line.startswith("#"):
            continue
        if " => " in line:
            change, _, reason = line.partition("  # survives: ")
            old, _, new = change.partition(" => ")
            faults.append(Fault(path, tests, old.strip(), new.strip(), reason))
        else:
            path, _, arguments = line.partition(" | ")
            tests = tuple(shlex.split(arguments))
    return faults
