"""What a trained version gains over the stale champion, and how often validation foretold it.

    python -m benchmarks.reproduction.trained_versions [--worlds 100] [--decisions 6000]

In each world a champion has learned tastes that then drift, a little or wholly. It serves on without
learning, a version is trained on its log as the trainer does, and both serve new visitors, whose
expected rewards are known.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

from bandits.base.types import FloatArray
from bandits.offpolicy.intervals import Interval, normal
from bandits.policy import Policy
from bandits.serving.decisions import Decision
from bandits.serving.trainer import validate

AGENT = {"kind": "epsilon_greedy", "epsilon": 0.5}
ITEMS, D = ["a", "b", "c"], 4
# decisions from which the champion learned, and visitors whose expected rewards are compared
LEARNED, LIVE = 6_000, 1_000
LEAST_ESS = 500


class Outcome(NamedTuple):
    """Of one world: the gain on new visitors, what SNIPS stated before, and its sample size."""

    live: Interval
    snips: Interval
    ess: float


def one(seed: int, decisions: int = 6_000) -> Outcome:
    """Let tastes drift in one world, train on so many decisions, and compare."""
    g = np.random.default_rng(seed)
    before, other = g.normal(size=(2, D, len(ITEMS)))
    drift = g.random()
    after = (1 - drift) * before + drift * other
    champion = Policy(AGENT, ITEMS, D, scale=False)
    for decision in log(champion, before, g, LEARNED, served=False):
        learn(champion, decision)
    found = log(champion, after, g, decisions, served=True)
    new, held_out = champion.untrained(), decisions - decisions // 5
    for decision in found[:held_out]:
        learn(new, decision)
    validation = validate(new, champion, found[held_out:])
    for decision in found[held_out:]:
        learn(new, decision)
    contexts = g.normal(size=(LIVE, D))
    rewards = clicks(contexts, after)
    gain = ((shares(new, contexts) - shares(champion, contexts)) * rewards).sum(axis=1)
    return Outcome(normal(gain), validation.difference["snips"], validation.new.support.ess)


def log(
    policy: Policy, tastes: FloatArray, g: np.random.Generator, n: int, *, served: bool
) -> list[Any]:
    """Return n decisions with rewards, of the policy where it serves, else uniformly random."""
    contexts = g.normal(size=(n, D))
    p = shares(policy, contexts) if served else np.full((n, len(ITEMS)), 1 / len(ITEMS))
    shown = (p.cumsum(axis=1) < g.random((n, 1))).sum(axis=1).clip(max=len(ITEMS) - 1)
    rows = np.arange(n)
    rewards = (g.random(n) < clicks(contexts, tastes)[rows, shown]).astype(float)
    bodies = [
        {
            **{"item": ITEMS[k], "propensity": float(p[i, k]), "context": contexts[i].tolist()},
            **{"candidates": None, "version": 1, "arm": "champion"},
        }
        for i, k in enumerate(shown)
    ]
    return [Decision(str(i), float(i), bodies[i], float(rewards[i])) for i in rows]


def learn(policy: Policy, decision: Decision) -> None:
    """Learn a decision as the trainer does."""
    policy.learn(decision.body["context"], decision.body["item"], decision.reward)


def clicks(contexts: FloatArray, tastes: FloatArray) -> FloatArray:
    """Return the probabilities of a click, float64 (n, K)."""
    return np.asarray(1 / (1 + np.exp(1 - contexts @ tastes)))


def shares(policy: Policy, contexts: FloatArray) -> FloatArray:
    """Return the propensities of all items, float64 (n, K)."""
    return np.array([list(policy.probabilities(x).values()) for x in contexts])


def main() -> None:
    """Print the gain, and how often its sign was foretold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--decisions", type=int, default=6_000, help="of which a version learns")
    parsed = parser.parse_args()
    found = []
    for seed in range(parsed.worlds):
        found.append(one(seed, parsed.decisions))
        if (seed + 1) % 10 == 0 or seed + 1 == parsed.worlds:
            report(found)


def report(found: list[Outcome]) -> None:
    """Print one line for the worlds so far."""
    gain = normal(np.array([each.live.value for each in found]))
    known = [each for each in found if each.ess > LEAST_ESS]
    right = sum((each.snips.value > 0) == (each.live.value > 0) for each in known)
    sure = [each for each in known if each.snips.low > 0 or each.snips.high < 0]
    right_of_sure = sum((each.snips.value > 0) == (each.live.value > 0) for each in sure)
    print(
        f"{len(found)} worlds: gain {gain.value:+.4f} ({gain.low:+.4f} to {gain.high:+.4f}) clicks "
        f"per decision, above 0 in {sum(each.live.value > 0 for each in found)}, for sure in "
        f"{sum(each.live.low > 0 for each in found)}; SNIPS had the sign in {right} of "
        f"{len(known)} with an effective sample size above {LEAST_ESS}, and in {right_of_sure} of "
        f"{len(sure)} where its interval left out 0",
        flush=True,
    )


if __name__ == "__main__":
    main()
