"""Time sides in turn, form ratios with their range, and write sections of RESULTS.md."""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import NamedTuple

RESULTS = Path(__file__).with_name("RESULTS.md")
ROOT = Path(__file__).parents[1]
Side = Callable[[], float]
"""Does its work once and returns the seconds it took."""


class Ratio(NamedTuple):
    """Median of the paired ratios, and the smallest and largest of them."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:,.3g} ({self.low:,.3g} to {self.high:,.3g})"


def stopwatch(work: Callable[[], object]) -> float:
    """Measure the seconds of processor time of one call; other processes hardly affect it."""
    began = time.process_time()
    work()
    return time.process_time() - began


def interleave(sides: Mapping[str, Side], repeats: int) -> dict[str, list[float]]:
    """Run the sides in turn, A B A B, so that other load slows all of them equally."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            times[name].append(side())
    return times


def ratio(over: list[float], under: list[float]) -> Ratio:
    """Divide the two lists pair by pair."""
    pairs = [a / b for a, b in zip(over, under, strict=True)]
    return Ratio(median(pairs), min(pairs), max(pairs))


@dataclass
class Section:
    """What a benchmark found: method, a table of results, whether the targets were met, and `stamp`
    of its code.
    """

    title: str
    notes: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    targets: list[tuple[str, str, bool]] = field(default_factory=list)
    code: str = ""

    def __str__(self) -> str:
        """Return all that was measured, which is printed."""
        results = [table(self.header, self.rows)] if self.rows else []
        return self._text(self.notes, *results, *self._verdicts())

    def brief(self) -> str:
        """Return the targets alone, or the results of a benchmark without targets: what RESULTS.md
        keeps.
        """
        return self._text(*(self._verdicts() or [table(self.header, self.rows)]))

    def _verdicts(self) -> list[str]:
        verdicts = [
            (what, measured, "yes" if met else "**no**") for what, measured, met in self.targets
        ]
        return [table(("target", "measured", "met"), verdicts)] if verdicts else []

    def _text(self, *parts: str) -> str:
        return "\n\n".join([f"## {self.title}", *parts, *filter(None, [self.code])]) + "\n"


def stamp(function: Callable[..., object]) -> str:
    """Return the lines below a table: date, commit and command.

    Invisible, the function that made it and its hash.

    `outdated` names the tables whose function has changed since they were made.
    """
    module = ".".join(
        Path(inspect.getfile(function)).resolve().relative_to(ROOT).with_suffix("").parts
    )
    main = sys.modules["__main__"].__spec__
    name = module if main is None else main.name.removesuffix(".__main__")
    command = " ".join(["python -m", name, *sys.argv[1:]])
    made = f"Made on {datetime.now(UTC):%Y-%m-%d} from commit {_commit()} by `{command}`."
    return (
        f"{made}\n\n<!-- code: {module}:{function.__name__} {code_hash(module, function.__name__)} "
        "-->"
    )


def _commit() -> str:
    """Return the short hash of the commit of this checkout.

    "with changes" where files differ from it.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    commit = git("rev-parse", "--short", "HEAD") or "unknown"
    return (
        f"{commit} with changes"
        if git("status", "--porcelain", "-uno", "--", "bandits", "benchmarks")
        else commit
    )


def outdated(files: Iterable[Path] | None = None) -> Iterator[str]:
    """Name each table whose function has changed since it was made; by default of all documents."""
    documents = sorted([RESULTS, *(ROOT / "docs").rglob("*.md")]) if files is None else files
    for file in documents:
        section, made = "", "it was made"
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                section = f", section {line.removeprefix('## ')}"
            elif found := re.match(r"Made on (\S+) from commit (.+?) by `", line):
                made = f"{found[1]} ({found[2]})"
            elif found := re.match(r"<!-- code: ([\w.]+):(\w+) (\w+) -->", line):
                name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
                if code_hash(found[1], found[2]) != found[3]:
                    yield (
                        f"{name}{section}: the code ({found[1]}.{found[2]}) has changed since "
                        f"{made}"
                    )


def code_hash(module: str, function: str) -> str:
    """Hash the source of a function and of all that it uses from its own module, without white
    space; "" without it.
    """
    file = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    source = file.read_text(encoding="utf-8") if file.exists() else ""
    nodes: dict[str, ast.AST] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            nodes[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            nodes |= {
                each.id: node
                for target in targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            }
    if function not in nodes:
        return ""
    used, open_names = set[str](), {function}
    while open_names:
        name = open_names.pop()
        used.add(name)
        names = {each.id for each in ast.walk(nodes[name]) if isinstance(each, ast.Name)}
        open_names |= names & set(nodes) - used
    text = "".join(
        "".join((ast.get_source_segment(source, nodes[name]) or "").split())
        for name in sorted(used)
    )
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def keep(section: Section) -> None:
    """Put the targets of a section into RESULTS.md."""
    put(RESULTS, section.brief())


def name(section: str) -> str:
    """Return the heading of a section, without its marks, up to a colon: what is written in place
    of it has it too.
    """
    return section.split("\n")[0].split(":")[0]


def put(file: Path, section: str) -> None:
    """Write a section into a Markdown file, in place of the one with the same heading up to a
    colon.
    """
    head, *parts = file.read_text(encoding="utf-8").split("\n## ")
    text = section.removeprefix("## ").rstrip() + "\n"
    places = [i for i, part in enumerate(parts) if name(part) == name(text)]
    assert len(places) <= 1, f"{file.name} has several sections called '{name(text)}'"
    if places:
        parts[places[0]] = text
    else:
        parts.append(text)
    file.write_text("\n## ".join([head, *parts]), encoding="utf-8")


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Format a Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    """Describe processor, versions, time and load, without the name of the machine or a path."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy", "torch"))
    return (
        f"{hardware()}; Python {platform.python_version()}, {packages}; "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; load {os.getloadavg()[0]:.1f} at the start"
    )


def hardware() -> str:
    """Describe processor and system.

    The versions of packages follow from the commit that `stamp` states.
    """
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def report(
    module: str,
    file: Path,
    sections: Mapping[str, tuple[str, Callable[..., str]]],
    arguments: Sequence[str] | None,
) -> None:
    """Parse the command line of a report, and write one of its sections, or all, into the file.

    Parameters
    ----------
    module : str
        Its name in the command ``python -m MODULE [SECTION ...]``.
    sections : mapping
        From the name of a section to its title and the function that makes its text.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"{', '.join(sections)}; all by default"
    )
    parser.add_argument("--steps", type=int)
    parser.add_argument("--replications", type=int)
    parsed = parser.parse_args(arguments)
    if unknown := set(parsed.sections) - set(sections):
        parser.error(
            f"unknown section {', '.join(sorted(unknown))}; allowed are {', '.join(sections)}"
        )
    sizes = {k: v for k, v in vars(parsed).items() if k != "sections" and v}
    for name in parsed.sections or list(sections):
        title, make = sections[name]
        text = f"{make(**sizes)}\n\n{hardware()}.\n\n{stamp(make)}"
        print(f"## {title}\n\n{text}\n", flush=True)
        put(file, f"## {title}\n\n{text}")


if __name__ == "__main__":
    for warning in outdated():
        print(f"warning: {warning}", file=sys.stderr)
