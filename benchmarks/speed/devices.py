"""Time networks on the processor, on CUDA, and where *auto* computes them.

python -m benchmarks.speed.devices --write
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from bandits import read
from bandits.agents.neural.base import NeuralAgent
from bandits.experiments.lockstep import make_lane
from benchmarks.measure import Section, interleave, keep, machine, stamp

DEVICES = ("cpu", "cuda", "auto")
# six sizes: agent, hidden layers, rows
SIZES: tuple[tuple[str, tuple[int, ...], int], ...] = (
    ("neural_greedy", (32, 16), 16),
    ("neural_ucb", (32, 16), 16),
    ("neural_greedy", (32, 16), 64),
    ("neural_greedy", (32, 16), 256),
    ("neural_ucb", (32, 16), 256),
    ("neural_greedy", (512, 512), 64),
)
STEPS = 200
# of the better device
MOST = 1.1


def _seconds(device: str, kind: str, hidden: tuple[int, ...], rows: int) -> tuple[float, str]:
    """Return the wall time of a lane's steps, after some that are not timed, and its device."""
    import torch

    os.environ["BANDITS_DEVICE"] = device
    data: dict[str, Any] = {
        "agents": [{"kind": kind, "hidden": hidden}],
        "steps": 2 * STEPS,
        "replications": rows,
    }
    lane = make_lane(read(data), 0)
    lane.advance(STEPS // 2)
    torch.cuda.synchronize()
    began = time.perf_counter()
    lane.advance(STEPS)
    torch.cuda.synchronize()
    assert isinstance(lane.agent, NeuralAgent)
    return time.perf_counter() - began, lane.agent.device


def grid() -> Section:
    """Time six sizes on both devices in turn."""
    import torch

    section = Section(
        "Networks on CUDA: six sizes",
        f"{machine()}; {torch.cuda.get_device_name()}.\n\n{STEPS} steps in the pet shop, wall time, the "
        "devices in turn, 3 times.",
        ("agent", "hidden", "rows", "processor, s", "CUDA, s", "auto, s", "auto took"),
        code=stamp(grid),
    )
    for kind, hidden, rows in SIZES:
        taken = _seconds("auto", kind, hidden, rows)[1]
        times = interleave(
            {
                device: lambda device=device: _seconds(device, kind, hidden, rows)[0]  # noqa: B023
                for device in DEVICES
            },
            3,
        )
        cpu, cuda, auto = (median(times[device]) for device in DEVICES)
        title = f"{kind}, {'-'.join(map(str, hidden))}, {rows} rows"
        section.rows.append(
            (
                kind,
                "-".join(map(str, hidden)),
                str(rows),
                *(f"{t:.2f}" for t in (cpu, cuda, auto)),
                taken,
            )
        )
        lost = auto / min(cpu, cuda)
        section.targets.append(
            (
                f"{title}: auto takes at most {MOST} times the better device",
                f"{lost:.2f}",
                lost <= MOST,
            )
        )
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print where there is a graphics card, and write RESULTS.md if asked to."""
    import torch

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.devices", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    write = parser.parse_args(arguments).write
    if not torch.cuda.is_available():
        print("torch finds no CUDA on this machine: nothing to compare")
        return
    section = grid()
    print(section, flush=True)
    if write:
        keep(section)
    if not all(met for _, _, met in section.targets):
        sys.exit(1)


if __name__ == "__main__":
    main()
