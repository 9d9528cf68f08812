"""Compile the kernels of all agents before the tests, which would do so in several processes at the
same time.

``python -m tests.compile_kernels``
"""

from __future__ import annotations

import itertools
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor

from bandits.agents import REGISTRY
from bandits.contract import agents

STEPS = 12


def compile_for(kinds: list[str]) -> None:
    """Run agents for a few steps with each of their test parameters, and ask for their
    probabilities.
    """
    for case in itertools.chain.from_iterable(map(agents.cases, kinds)):
        lane = case.lane()
        lane.advance(STEPS)
        lane.agent.probabilities(lane.simulator.round_at(STEPS))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, ProcessPoolExecutor(2) as pool:
        # inherited: some agents keep what they have learned from logs
        os.environ["BANDITS_HOME"] = home
        # they share most kernels
        linear = [kind for kind, cls in REGISTRY.items() if ".linear." in cls.__module__]
        list(pool.map(compile_for, (linear, [kind for kind in REGISTRY if kind not in linear])))
