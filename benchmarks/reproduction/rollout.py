"""How often a rollout errs: equal models, also where rewards come late, a model that is 20 % worse,
one that is 10 % better, and one that breaks in its last step, with and without the alarms of
monitors.

    python -m benchmarks.reproduction.rollout [--number 200]

Beside it, what a t test at level 5 % would do that is looked at every 200 decisions.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_ind

from bandits.serving.alarms import JUDGED, Stream, stops
from bandits.serving.rollout import Rollout, RolloutParams

RATE = 0.3
# the first gates matter most, and each looks at all decisions
EVERY, LATER = 1_000, 5_000
LIMIT, BREAKS = 200_000, 70_000
# decisions until a click is reported, on average, and until one without a click counts as 0
DELAY, WINDOW = 1_000, 10_000


class Outcome(NamedTuple):
    """How a rollout ended: its last action, at which share, after how many decisions, and the
    clicks that it lost."""

    action: str
    share: float
    decisions: int
    lost: float


def simulate(
    seed: int,
    factor: float,
    limit: int = LIMIT,
    *,
    breaks: int = LIMIT,
    watched: bool = True,
    delays: tuple[float, float] = (0, 0),
) -> Outcome:
    """Roll out a challenger whose rate is ``factor`` times the champion's, and 30 % less than that
    from decision ``breaks`` on, with and without the alarms of monitors.

    Where ``delays``, the mean ones of champion and challenger, are not 0, a click is known later,
    its absence after `WINDOW` decisions, and a click that comes later than that is lost. The
    monitors read the rewards in the order of the decisions.
    """
    rng = np.random.default_rng(seed)
    late = np.random.default_rng((seed, 1))
    # of decisions whose reward, or an earlier one, is not known: reward, challenger, share, when
    # it is known
    waiting, unread = np.empty((0, 4)), np.empty((0, 4))
    rollout, monitors = Rollout(RolloutParams()), Stream(JUDGED)
    lost, n = 0.0, 0
    while n < limit:
        share, more = rollout.share, EVERY if n < 20_000 else LATER
        challenger = rng.random(more) < share
        factor_now = factor if n < breaks else 0.7 * factor
        rewards = rng.random(more) < np.where(challenger, RATE * factor_now, RATE)
        known = n + np.arange(more, dtype=float)
        if any(delays):
            after = late.exponential(np.where(challenger, delays[1], delays[0]))
            rewards &= after <= WINDOW
            known += np.where(rewards, after, WINDOW)
        made = np.column_stack([rewards, challenger, np.full(more, share), known])
        waiting, unread = np.concatenate([waiting, made]), np.concatenate([unread, made])
        n += more
        order = np.argsort(waiting[:, 3], kind="stable")
        come = int((waiting[:, 3] < n).sum())
        for reward, mine, at, _ in waiting[order[:come]].tolist():
            rollout.observe(reward, challenger=bool(mine), share=at)
        waiting = waiting[np.sort(order[come:])]
        read = int((np.maximum.accumulate(unread[:, 3]) < n).sum())
        own = unread[:read][(unread[:read, 1] == 1) & (unread[:read, 2] == share), 0]
        unread = unread[read:]
        for alarm in monitors.feed(own, np.zeros(len(own), np.bool_)):
            if watched and stops(alarm):
                rollout.alarmed(alarm.sentence)
        lost += challenger.sum() * RATE * (1 - factor_now)
        verdict = rollout.verdict()
        if verdict.action in ("roll back", "promote"):
            return Outcome(verdict.action, share, n, lost)
        if verdict.action == "advance":
            rollout.advance()
            monitors = Stream(JUDGED)
    return Outcome("wait", rollout.share, n, lost)


def naive(seed: int, decisions: int = 20_000, every: int = 200) -> bool:
    """Return whether a t test finds a difference of two equal models at some look."""
    rng = np.random.default_rng(seed)
    rewards, arms = rng.random(decisions) < RATE, rng.random(decisions) < 0.5
    return any(
        ttest_ind(rewards[:n][arms[:n]], rewards[:n][~arms[:n]]).pvalue < 0.05
        for n in range(every, decisions + 1, every)
    )


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=200, help="rollouts of each kind")
    number = parser.parse_args().number
    print(
        "| challenger | promoted | rolled back | undecided | share reached | decisions | clicks lost |"
    )
    print("|---|---|---|---|---|---|---|")
    kinds: dict[str, dict[str, Any]] = {
        "as good": {"factor": 1.0},
        "as good, rewards come late": {"factor": 1.0, "delays": (DELAY, DELAY)},
        "as good, its rewards come twice as late": {"factor": 1.0, "delays": (DELAY, 2 * DELAY)},
        "20 % worse": {"factor": 0.8},
        "10 % better": {"factor": 1.1},
        "10 % better, from decision 70,000 on 23 % worse": {"factor": 1.1, "breaks": BREAKS},
        "the same without alarms": {"factor": 1.1, "breaks": BREAKS, "watched": False},
    }
    for title, about in kinds.items():
        outcomes = [simulate(seed, **about) for seed in range(number)]
        actions = [o.action for o in outcomes]
        low_share = sum(o.action == "roll back" and o.share < 0.2 for o in outcomes)
        print(
            f"| {title} | {actions.count('promote')} | "
            f"{actions.count('roll back')} ({low_share} below 20 %) | {actions.count('wait')} | "
            f"{np.mean([o.share for o in outcomes]):.0%} | "
            f"{np.median([o.decisions for o in outcomes]):,.0f} | "
            f"{np.mean([o.lost for o in outcomes]):,.0f} |",
            flush=True,
        )
    errors = sum(naive(seed) for seed in range(number))
    print(
        f"\nA t test looked at every 200 of 20,000 decisions: {errors} of {number} find a difference."
    )


if __name__ == "__main__":
    main()
