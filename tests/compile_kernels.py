"""Compile the kernels of all agents and simulators once, which tests would do in several processes at the same time.

``python -m tests.compile_kernels``
"""

from __future__ import annotations

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
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(compile_for, sorted(REGISTRY, reverse=True)))
