"""Time LinUCB at K = 10, D = 32 against other libraries, which run in an environment of
their own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import IO

import numpy as np

from bandits.agents.linear.linucb import LinUCB
from bandits.base.randomness import Streams
from bandits.base.selection import top_k
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    LoggedData,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from benchmarks.measure import Section, interleave, ratio, stamp, stopwatch

from .linear_child import PEERS

K, D, ROWS = 10, 32, 16
STEPS, PEER_STEPS, REPEATS = 2_000, 400, 5
HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / ".venv-bench"
PYTHON = ENVIRONMENT / "bin" / "python"
WANTED = dict(
    line.strip().split("==")
    for line in (HERE.parent / "requirements.txt").read_text().splitlines()
    if "==" in line
)


def install(names: Iterable[str] = tuple(WANTED)) -> dict[str, str]:
    """Install other libraries, by default all, and return those that are installed, by name and
    version.

    Each is installed separately, so that one that cannot be built does not prevent the others.
    """
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    # the programs that run there need it; not all libraries bring it along
    numpy = f"numpy=={version('numpy')}"
    subprocess.run([str(PYTHON), "-m", "pip", "install", "-q", numpy], check=True)
    installed = _installed()
    for name in names:
        if installed.get(name) != (release := WANTED[name]):
            print(f"installing {name} {release} into {ENVIRONMENT.name}", file=sys.stderr)
            subprocess.run(
                [str(PYTHON), "-m", "pip", "install", "-q", f"{name}=={release}"], check=False
            )
    return _installed()


def _installed() -> dict[str, str]:
    command = [str(PYTHON), "-m", "pip", "list", "--format=freeze"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(line.split("==") for line in listed.split() if "==" in line)
    return {name: version for name, version in found.items() if name in WANTED}


def data() -> tuple[FloatArray, FloatArray]:
    """Draw contexts (T, R, D) and the click of every arm (T, R, K) from a logistic model."""
    generator = np.random.default_rng(7)
    contexts = generator.standard_normal((STEPS, ROWS, D)) / np.sqrt(D)
    weights = 2 * generator.standard_normal((D, K))
    clicks = generator.random((STEPS, ROWS, K)) < 1 / (1 + np.exp(-contexts @ weights))
    return contexts, clicks.astype(np.float64)


def agent(n_candidates: int = K, n_features: int = D, rows: int = ROWS) -> LinUCB:
    """Make our LinUCB per arm on dense features, without a simulator."""
    spec = SimulatorSpec(
        n_items=n_candidates, n_candidates=n_candidates, n_features=n_features, n_stored=n_features
    )
    access = SimulatorAccess(lambda _: np.empty(0), _no_log, np.zeros(rows, np.int64), "")
    return LinUCB([LinUCB.Params(alpha=1.0)] * rows, spec, Streams(7, range(rows)), access)


def _no_log(layout: int, n: int) -> LoggedData:
    raise NotImplementedError


def ours(contexts: FloatArray, clicks: FloatArray) -> float:
    """Measure microseconds per predict + update, from context vectors to updated models."""
    R, K, D = contexts.shape[1], clicks.shape[2], contexts.shape[2]
    model = agent(K, D, R)
    items = np.ascontiguousarray(np.broadcast_to(np.arange(K), (R, K)))
    columns = np.ascontiguousarray(np.broadcast_to(np.arange(D), (R, K, D)))
    rows, every, alive = np.arange(R), np.ones((R, K), np.bool_), np.ones(R, np.bool_)
    examined, slots = np.ones((R, 1), np.bool_), np.arange(R)[:, None]

    def work() -> None:
        for step, x in enumerate(contexts):
            values = np.ascontiguousarray(np.broadcast_to(x[:, None], (R, K, D)))
            round = Round(step, rows, items, Contexts(values, columns, D), rows, every, rows)
            slate = top_k(model.scores(round), every, alive, 1, model.streams.ties, step)
            model.learn(round, slate, Feedback(clicks[step][slots, slate], examined))

    return 1e6 * stopwatch(work) / float(len(contexts) * R)


def _ask(child: subprocess.Popen[str], peer: str) -> float:
    assert child.stdin is not None
    assert child.stdout is not None
    answer = _exchange(child.stdin, child.stdout, f"{peer} {PEER_STEPS}")
    if answer.startswith("failed"):
        raise RuntimeError(answer)
    return float(answer)


def _exchange(to: IO[str], back: IO[str], line: str) -> str:
    to.write(line + "\n")
    to.flush()
    return back.readline().strip()


def run() -> Section:
    """Measure."""
    installed = install()
    contexts, clicks = data()
    ours(contexts[:50], clicks[:50])  # compiles
    section = Section(
        "LinUCB per arm on dense features against other libraries",
        f"K = {K}, D = {D}. Ours: R = {ROWS} rows of LinUCB per arm, {STEPS:,} steps, from "
        "context vectors to updated models (choice included). The others: one stream (row 0 of "
        f"the same contexts and clicks), {PEER_STEPS} steps one at a time as their documentation "
        "shows, in a subprocess with its own environment; imports, construction and the first "
        f"step are not counted. The sides take turns (each library, then ours), {REPEATS} times; "
        "compiled before timing.",
        (
            "side",
            "as used",
            "µs per predict + update, median",
            "times slower than ours, median (range)",
        ),
        code=stamp(run),
    )
    section.rows.append(("ours", "`LinUCB` per arm", "", "1"))
    fastest: tuple[str, list[float], list[float]] | None = None
    own: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "data.npz", contexts=contexts[:, 0], rewards=clicks[:, 0])
        command = [str(PYTHON), str(HERE / "linear_child.py"), str(Path(folder) / "data.npz")]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as child:
            for peer, stepping in PEERS.items():
                called = " ".join((stepping.__doc__ or "").split()).split(": ", 1)[1].rstrip(".")
                if peer not in installed:
                    section.rows.append((peer, "could not be installed", "", ""))
                    continue
                sides = {
                    "peer": lambda p=peer: _ask(child, p),
                    "ours": lambda: ours(contexts, clicks),
                }  # type: ignore[misc]
                try:
                    times = interleave(sides, REPEATS)
                except (RuntimeError, ValueError) as error:
                    section.rows.append((f"{peer} {installed[peer]}", str(error), "", ""))
                    continue
                own += times["ours"]
                slower = str(ratio(times["peer"], times["ours"]))
                name = f"{peer} {installed[peer]}"
                section.rows.append((name, called, f"{median(times['peer']):,.0f}", slower))
                if fastest is None or median(times["peer"]) < median(fastest[1]):
                    fastest = (name, times["peer"], times["ours"])
    if fastest is not None:
        section.rows[0] = ("ours", "`LinUCB` per arm", f"{median(own):,.2f}", "1")
        gain = ratio(fastest[1], fastest[2])
        what = f"at least 20 times faster than the fastest other library ({fastest[0]})"
        section.targets.append((what, str(gain), gain.middle >= 20))
    return section


if __name__ == "__main__":
    print(run())
