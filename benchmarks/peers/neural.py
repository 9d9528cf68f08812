"""Time NeuralUCB, NeuralTS and neural-linear TS against calvera, which runs in an environment of
its own.

python -m benchmarks.peers.neural --write
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bandits.agents.neural.base import NeuralAgent
from bandits.agents.neural.neural_linear_ts import NeuralLinearTS
from bandits.agents.neural.neural_ts import NeuralTS
from bandits.agents.neural.neural_ucb import NeuralUCB
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
from benchmarks.measure import Section, interleave, keep, machine, ratio, stamp, stopwatch

from .linear import ENVIRONMENT, PYTHON
from .neural_child import (
    BANDITS,
    BATCH,
    EPSILON,
    EVERY,
    EXPLORATION,
    NETWORKS,
    PENALTY,
    RATE,
    RIDGE,
    UPDATES,
)

K, ROWS, REPEATS = 10, 16, 7
# the first decision is not timed, three trainings are
STEPS = 3 * EVERY + 1
HERE = Path(__file__).parent
REQUIRED = (HERE.parent / "requirements-neural.txt").read_text().splitlines()
WANTED = dict(line.strip().split("==") for line in REQUIRED if "==" in line)
# installed without its dependencies; requirements-neural.txt explains why
ALONE = frozenset({"calvera"})
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

TRAINED: dict[str, Any] = {
    "learning_rate": RATE,
    "optimiser": "adam",
    "loss": "squared",
    "training": "replay",
    "every": EVERY,
    "updates": UPDATES,
    "batch": BATCH,
}
UNCERTAINTY: dict[str, Any] = {
    "ridge": PENALTY,
    "covariance": "diagonal",
    "scaling": "code",
    "regularised": True,
}
OURS: dict[str, tuple[type[NeuralAgent], dict[str, Any]]] = {
    "NeuralUCBBandit": (NeuralUCB, {"alpha": (PENALTY * EXPLORATION) ** 0.5, **UNCERTAINTY}),
    "NeuralTSBandit": (NeuralTS, {"sigma2": PENALTY * EXPLORATION, **UNCERTAINTY}),
    "NeuralLinearBandit": (NeuralLinearTS, {"sigma2": 1.0, "ridge": RIDGE, "heads": "shared"}),
}
NOTES = f"""\
Dense contexts, K = {K} candidates with features of their own. A decision is choice and learning; processor time on \
one thread, both sides with the same release of torch (CPU).

Equal on both sides: the networks (widths in the table, ReLU, float32); {UPDATES} steps of Adam on up to {BATCH} \
stored observations each, after every {EVERY} observations; learning rate {RATE:g}, squared loss, training continues \
from the current weights. UCB and TS: the diagonal covariance (calvera has no other), prior {PENALTY:g}, a penalty \
on the weights, the scale of the bonus or draw (nu = {EXPLORATION:g}). Neural-linear: one head on the last hidden \
layer, prior {RIDGE:g}, noise 1, refitted to the whole buffer after each training. {EVERY}, {BATCH}, {RATE:g}, \
{PENALTY:g}, {EXPLORATION:g} and the hidden layer of 100 are those of calvera's NeuralUCB example. The number of \
steps is not: the example trains one epoch, which is 313 steps once its buffer of 10,000 is full. The initial stage \
of calvera, in which it trains after every decision, is off.

Not equal: calvera begins each training with a new Adam and iterates through its buffer in shuffled epochs, whose \
last batch can be smaller; ours keeps Adam's moments and draws with replacement. calvera does not divide the penalty \
by the number of observations. Its head is float32 and adds {EPSILON:g} to the diagonal at each update (the value \
must be positive); ours is float64. calvera receives its contexts as float32 tensors; ours builds a round of float64 \
arrays, which is timed.

What calvera does per decision: UCB and TS run one backward pass per candidate in a Python loop and store all \
gradients. Neural-linear factorises the whole covariance to draw from it; its head learns with two inverses of it. \
*trainer*: a Lightning trainer with `barebones=True` trains the network, only when `should_train_network` is true \
(calvera's examples call it after every decision, which takes longer); the neural-linear head learns from every \
observation, as ours does, by `training_step` without a trainer. *loop*: a handwritten loop around `training_step`, \
which calvera's documentation does not show, replaces the trainer. *idle*: the trainer, but the head does not learn \
between two trainings; ours still learns from every observation.

Ours: the same agent with 1 row, and with {ROWS} rows, then per row. {STEPS - 1} decisions with three trainings, \
after one that is not timed; imports and construction are not timed. The sides take turns, {REPEATS} times, after a \
short run of each that is not timed."""


def install() -> str | None:
    """Install calvera; return its version, or None if it cannot be installed."""
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    installed = _installed()
    for name, release in WANTED.items():
        # the version of torch's CPU build is 2.13.0+cpu
        if installed.get(name, "").split("+")[0] != release:
            print(f"installing {name} {release} into {ENVIRONMENT.name}", file=sys.stderr)
            alone = ["--no-deps"] if name in ALONE else []
            subprocess.run(
                [str(PYTHON), "-m", "pip", "install", "-q", *alone, f"{name}=={release}"],
                check=False,
            )
    return _installed().get("calvera")


def _installed() -> dict[str, str]:
    command = [str(PYTHON), "-m", "pip", "list", "--format=freeze"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(line.split("==") for line in listed.split() if "==" in line)


def data(n_features: int) -> tuple[FloatArray, FloatArray]:
    """Contexts (T, R, K, D) and the clicks every candidate would earn (T, R, K): a logistic
    model.
    """
    generator = np.random.default_rng(7)
    contexts = generator.standard_normal((STEPS, ROWS, K, n_features))
    weights = 2 * generator.standard_normal(n_features) / np.sqrt(n_features)
    clicks = generator.random((STEPS, ROWS, K)) < 1 / (1 + np.exp(-contexts @ weights))
    return contexts, clicks.astype(np.float64)


def agent(bandit: str, widths: tuple[int, ...], rows: int) -> NeuralAgent:
    """Create our counterpart of a bandit of calvera, without a simulator."""
    cls, own = OURS[bandit]
    params = cls.Params(hidden=widths[1:-1], **TRAINED, **own)  # type: ignore[call-arg]
    spec = SimulatorSpec(n_items=K, n_candidates=K, n_features=widths[0], n_stored=widths[0])
    access = SimulatorAccess(lambda _: np.empty(0), _no_log, np.zeros(rows, np.int64), "")
    return cls([params] * rows, spec, Streams(7, range(rows)), access)


def _no_log(layout: int, n: int) -> LoggedData:
    raise NotImplementedError


def ours(bandit: str, widths: tuple[int, ...], contexts: FloatArray, clicks: FloatArray) -> float:
    """Measure microseconds per decision and row, without the first decision."""
    R, D = contexts.shape[1], widths[0]
    model = agent(bandit, widths, R)
    items = np.ascontiguousarray(np.broadcast_to(np.arange(K), (R, K)))
    columns = np.ascontiguousarray(np.broadcast_to(np.arange(D), (R, K, D)))
    rows, every, alive = np.arange(R), np.ones((R, K), np.bool_), np.ones(R, np.bool_)
    examined, slots = np.ones((R, 1), np.bool_), np.arange(R)[:, None]

    def decide(step: int) -> None:
        round = Round(step, rows, items, Contexts(contexts[step], columns, D), rows, every, rows)
        slate = top_k(model.scores(round), every, alive, 1, model.streams.ties, step)
        model.learn(round, slate, Feedback(clicks[step][slots, slate], examined))

    def work() -> None:
        for step in range(1, len(contexts)):
            decide(step)

    decide(0)
    return 1e6 * stopwatch(work) / float((len(contexts) - 1) * R)


def ask(
    child: subprocess.Popen[str], network: str, bandit: str, mode: str, steps: int = STEPS
) -> float:
    """Measure microseconds per decision of calvera's bandit.

    Raises
    ------
    RuntimeError
        It failed, or its process ended.
    """
    assert child.stdin is not None
    assert child.stdout is not None
    print(network, bandit, mode, steps, file=child.stdin, flush=True)
    answer = child.stdout.readline().strip()
    if not answer or answer.startswith("failed"):
        raise RuntimeError(answer or "failed: its process ended")
    return float(answer)


def run() -> Section:
    """Measure."""
    import torch

    torch.set_num_threads(1)
    os.environ["BANDITS_DEVICE"] = "cpu"
    version = install()
    section = Section(
        "Neural peers: calvera",
        f"{machine()}.\n\n{NOTES}",
        (
            "network",
            f"calvera {version or WANTED['calvera']}",
            "mode",
            "its µs per decision, median",
            "ours with 1 row, µs",
            "its time over ours, median (range)",
            f"ours with {ROWS} rows, µs per row",
            "its time over that",
        ),
        code=stamp(run),
    )
    if version is None:
        section.rows.append(("", "calvera", "could not be installed", "", "", "", "", ""))
        return section
    problems = {network: data(widths[0]) for network, widths in NETWORKS.items()}
    gains: dict[str, list[tuple[str, Any, Any]]] = {bandit: [] for bandit in BANDITS}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        shown = {
            f"{network}.{name}": array[:, 0].astype(np.float32)
            for network, problem in problems.items()
            for name, array in zip(("contexts", "rewards"), problem, strict=True)
        }
        np.savez(file, **shown)  # type: ignore[arg-type]
        # at its end, if it had died
        with (
            suppress(BrokenPipeError),
            subprocess.Popen(
                [str(PYTHON), str(HERE / "neural_child.py"), str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=folder,
                env={**os.environ, **THREADS},
            ) as child,
        ):
            for network, widths in NETWORKS.items():
                contexts, clicks = problems[network]
                for bandit, modes in BANDITS.items():
                    sides: dict[str, Callable[..., float]] = {
                        "one": partial(ours, bandit, widths, contexts[:, :1], clicks[:, :1]),
                        "many": partial(ours, bandit, widths, contexts, clicks),
                    }
                    for rows in (1, ROWS):
                        ours(
                            bandit, widths, contexts[: EVERY + 1, :rows], clicks[: EVERY + 1, :rows]
                        )  # compiles
                    try:
                        for mode in modes:
                            ask(child, network, bandit, mode, EVERY + 1)
                            sides[mode] = partial(ask, child, network, bandit, mode)
                        times = interleave(sides, REPEATS)
                    except (RuntimeError, ValueError, OSError) as error:
                        section.rows.append((network, bandit, str(error), "", "", "", "", ""))
                        continue
                    one, many = times["one"], times["many"]
                    for mode in modes:
                        section.rows.append(
                            (
                                network,
                                bandit,
                                mode,
                                f"{median(times[mode]):,.0f}",
                                f"{median(one):,.0f}",
                                str(ratio(times[mode], one)),
                                f"{median(many):,.0f}",
                                str(ratio(times[mode], many)),
                            )
                        )
                    gains[bandit].append(
                        (network, ratio(times["trainer"], one), ratio(times["loop"], one))
                    )
    for bandit, found in gains.items():
        if found:
            title = OURS[bandit][0].title
            what = (
                f"{title}: at least 5 times faster per decision than {bandit} with its Lightning "
                "trainer"
            )
            measured = "; ".join(
                f"{network}: {gain}, than the loop by hand: {loop}" for network, gain, loop in found
            )
            section.targets.append((what, measured, all(gain.middle >= 5 for _, gain, _ in found)))
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.neural", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    write = parser.parse_args(arguments).write
    began = time.monotonic()
    with threadpool_limits(1):
        section = run()
    print(section, flush=True)
    if write:
        keep(section)
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
