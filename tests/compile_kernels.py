"""Compile the kernels of all agents before the tests, which would do so in several processes at the same time.

``python -m tests.compile_kernels``
"""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ProcessPoolExecutor

from bandits.agents import REGISTRY
from bandits.experiments.contract import agents

STEPS = 12


def compile_for(kind: str) -> None:
    """Run an agent for a few steps with each of its test parameters, and ask for its probabilities."""
    for case in agents.cases(kind):
        lane = case.lane()
        lane.advance(STEPS)
        lane.agent.probabilities(lane.simulator.round_at(STEPS))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, ProcessPoolExecutor(2) as pool:
        os.environ["BANDITS_HOME"] = home  # inherited: some agents keep what they have learned from logs
        list(pool.map(compile_for, sorted(REGISTRY, reverse=True)))
