"""DQN on CartPole-v1 of Gymnasium, a problem that other libraries publish results of.

``python -m benchmarks.reproduction.sessions cartpole`` writes its section of docs/SESSIONS.md. The
settings are those of CleanRL's dqn.py, whose documentation reports 488.69 ± 16.11."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.agents import REGISTRY
from bandits.base.randomness import Streams
from bandits.base.selection import top_k
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)

STEPS, RUNS = 500_000, 4
EPISODES, GOAL = 100, 450
SETTINGS: dict[str, Any] = {
    "hidden": (120, 84),
    "learning_rate": 2.5e-4,
    "buffer": 10_000,
    "batch": 128,
    "train_every": 10,
    "target_every": 500,
    "learning_starts": 10_000,
    "epsilon": 0.05,
    "discount": 0.99,
    "loss": "squared",
    "double": False,
    "n_step": 1,
}
# state x action, and the action
FEATURES = 2 * (4 + 1)


def cartpole(steps: int = STEPS, runs: int = RUNS) -> list[str]:
    """Return the mean return of the last episodes of each run."""
    began = time.process_time()
    last = [np.mean(each[-EPISODES:]) for each in returns(steps, runs)]
    minutes = (time.process_time() - began) / 60
    return [
        f"{runs} runs of {steps:,} steps on CartPole-v1 of Gymnasium ({minutes:.0f} minutes of one "
        "core), with the settings of CleanRL's `dqn.py`: learning rate 0.00025, batch 128, buffer 10,000, training "
        "every 10 steps from 10,000 on, target every 500, discount 0.99, ε from 1 to 0.05 over half "
        "of the run, layers of 120 and 84, squared loss, no double, one-step targets. Different: "
        "our network reads state and action and has one output; CleanRL's has an output for each "
        "action. An episode that reaches 500 steps is truncated: its last reward contains the "
        "discounted value of the state reached, by the network of that moment, where CleanRL "
        "computes it anew at each training.",
        "",
        f"Mean return of the last {EPISODES} episodes, exploration included: "
        f"{', '.join(f'{x:.1f}' for x in last)}; above {GOAL} in {sum(x > GOAL for x in last)} of "
        f"{runs} runs. CleanRL's documentation reports 488.69 ± 16.11.",
    ]


def returns(steps: int, runs: int, **changes: Any) -> list[list[float]]:
    """Run DQN, one row per environment, and return the returns of each row's episodes."""
    import gymnasium
    import torch

    torch.set_num_threads(1)
    spec = SimulatorSpec(
        n_items=2,
        n_candidates=2,
        n_features=FEATURES,
        n_stored=FEATURES,
        capabilities=frozenset({"visits", "arm_features"}),
    )
    streams, rows = Streams(1, range(runs)), np.arange(runs)
    cls = REGISTRY["dqn"]
    params = cls.Params(decay=steps // 2, **{**SETTINGS, **changes})
    access = SimulatorAccess(_unknown, _unknown, np.zeros(runs, np.int64), "cartpole")
    agent = cls([params] * runs, spec, streams, access)
    environments = [gymnasium.make("CartPole-v1", disable_env_checker=True) for _ in rows]
    columns = np.broadcast_to(np.arange(FEATURES), (runs, 2, FEATURES))
    items, everywhere = np.tile(np.arange(2), (runs, 1)), np.ones((runs, 2), np.bool_)
    alive, nobody = np.ones(runs, np.bool_), np.zeros(runs, np.int64)

    def round_of(step: int, states: FloatArray) -> Round:
        features = np.zeros((runs, 2, FEATURES))
        for action in range(2):
            own = features[:, action, action * 5 :]
            own[:, :4], own[:, 4] = states, 1
        contexts = Contexts(features, columns, FEATURES)
        return Round(step, nobody, items, contexts, rows, everywhere, nobody)

    states = np.stack([env.reset(seed=row)[0] for row, env in enumerate(environments)])
    earned, so_far = [[] for _ in rows], np.zeros(runs)
    with threadpool_limits(1):
        for step in range(steps):
            round = round_of(step, states)
            slate = top_k(agent.scores(round), everywhere, alive, 1, streams.ties, step)
            found = [env.step(int(a))[:4] for env, a in zip(environments, slate[:, 0], strict=True)]
            states, rewards, ended, truncated = map(np.array, zip(*found, strict=True))
            so_far += rewards
            learned = rewards.astype(np.float64)
            cut = truncated & ~ended
            if cut.any():
                rest = agent.values(round_of(step + 1, states)).max(axis=1)
                learned[cut] += params.discount * rest[cut]
            over = ended | truncated
            agent.learn(round, slate, Feedback(learned[:, None], alive[:, None].copy(), over))
            for row in np.flatnonzero(over):
                earned[row].append(so_far[row])
                so_far[row] = 0
                states[row] = environments[row].reset()[0]
    return earned


def _unknown(*_: object) -> Any:
    raise NotImplementedError("CartPole states no expected rewards and has no log")
