"""What off-policy evaluation promises, measured where the truth is known: docs/OFFPOLICY.md.

    python -m benchmarks.reproduction.offpolicy [SECTION ...]

`tests/offpolicy/test_promises.py` and `test_replayed_agent.py` assert what its tables show.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from scipy.special import softmax as normalised
from scipy.stats import t as student

from bandits import Experiment
from bandits.agents.propensity import first_choices
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.lockstep import make_lane
from bandits.offpolicy import (
    REGISTRY,
    DecisionLog,
    Interval,
    Matrix,
    ReplayedAgent,
    evaluate,
    record,
    replay_learner,
)
from bandits.offpolicy.anytime import confidence_sequence
from bandits.offpolicy.intervals import normal
from benchmarks.measure import report, table
from benchmarks.reproduction.open_bandit import logs_text, open_bandit_text

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "OFFPOLICY.md"
# of the synthetic logs: actions, features, decisions
K, D, N = 5, 3, 2000
SHOP = {"kind": "petshop", "n_products": 10}
AGENTS = {
    "LinUCB": {"kind": "linucb", "alpha": 0.4},
    "ε-greedy, decaying": {"kind": "epsilon_greedy", "epsilon": 0.1, "decay": 0.01},
}
LINTS = {"kind": "lints", "sharing": "shared", "sigma2": 1.0}
REDRAWS = (30, 100, 300, 1000, 3000)


class Share(NamedTuple):
    """Share of n logs whose interval holds the truth."""

    value: float
    n: int

    def __str__(self) -> str:
        half = 1.96 * float(np.sqrt(self.value * (1 - self.value) / self.n))
        return f"{self.value:.1%} ± {half:.1%}".replace("%", " %")


def _policies(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return click probabilities, logging policy and target policy of contexts (n, D), each float64
    (n, K).
    """
    theta, eta, zeta = np.random.default_rng(K).normal(size=(3, D, K))
    return expit(x @ theta - 1), normalised(x @ eta / 3, axis=1), normalised(x @ zeta / 3, axis=1)


@cache
def value() -> float:
    """Return the value of the target policy: the mean over two million contexts."""
    rewards, _, target = _policies(np.random.default_rng(99).normal(size=(2_000_000, D)))
    return float((rewards * target).sum(axis=1).mean())


def synthetic(
    g: np.random.Generator, *, uniform: bool = False
) -> tuple[DecisionLog, FloatArray, FloatArray]:
    """Draw a log of clicks.

    Also return the target policy and rough predicted rewards, float64 (N, K).
    """
    x = g.normal(size=(N, D))
    rewards, logging, target = _policies(x)
    logging = np.full_like(logging, 1 / K) if uniform else logging
    actions = np.minimum((logging.cumsum(axis=1) < g.random((N, 1))).sum(axis=1), K - 1)
    rows = np.arange(N)
    clicks = (g.random(N) < rewards[rows, actions]).astype(float)
    log = DecisionLog(
        actions=actions,
        rewards=clicks,
        names=tuple(map(str, range(K))),
        propensities=logging[rows, actions],
    )
    return log, target, 0.8 * rewards + 0.1


def coverage(logs: int = 2000) -> tuple[dict[str, Share], float]:
    """Return how often the interval of each estimator holds the value, and the least effective
    sample size.
    """
    g, hits, ess = np.random.default_rng(0), [], []
    for _ in range(logs):
        inside: dict[str, bool] = {}
        # the second is for replay, which is for uniformly random logs
        for uniform in (False, True):
            log, target, q = synthetic(g, uniform=uniform)
            kinds = [name for name in REGISTRY if (name == "replay") is uniform]
            found = evaluate(log, Matrix(target), q=q, estimators=kinds, generator=g)
            inside |= {
                name: each.low <= value() <= each.high for name, each in found.estimates.items()
            }
            ess.append(found.support.ess)
        hits.append([inside[name] for name in REGISTRY])
    columns = np.array(hits, float).T
    return {
        name: Share(float(column.mean()), logs)
        for name, column in zip(REGISTRY, columns, strict=True)
    }, min(ess)


def looks(logs: int = 1000, times: int = 100) -> dict[str, tuple[Share, Share]]:
    """Return how often intervals hold the value at the worst of many looks, and at all of them."""
    g, at = np.random.default_rng(1), np.arange(1, times + 1) * (N // times)
    inside: dict[str, list[FloatArray]] = {"anytime": [], "normal": []}
    for _ in range(logs):
        log, target, _ = synthetic(g)
        w = target[np.arange(N), log.actions] / np.asarray(log.propensities)
        sequence = confidence_sequence(w, log.rewards, looks=at.tolist())
        inside["anytime"].append(
            ((sequence[:, 0] <= value()) & (value() <= sequence[:, 1])).astype(float)
        )
        x = w * log.rewards
        mean, square = np.cumsum(x)[at - 1] / at, np.cumsum(x**2)[at - 1] / at
        half = 1.96 * np.sqrt((square - mean**2) / (at - 1))
        inside["normal"].append((np.abs(mean - value()) <= half).astype(float))
    found = {}
    for name, rows in inside.items():
        hits = np.array(rows)
        found[name] = (
            Share(float(hits.mean(axis=0).min()), logs),
            Share(float(hits.min(axis=1).mean()), logs),
        )
    return found


# an agent that learns, by replay


class Replays(NamedTuple):
    """Replays against live runs: differences inside their 95 % intervals and in standard errors,
    and mean rewards.
    """

    inside: int
    z: FloatArray
    replayed: float
    live: float
    accepted: float
    events: int


def replays(
    agent: dict[str, Any], repetitions: int = 100, *, R: int = 8, steps: int = 2000
) -> Replays:
    """Replay an agent on uniformly random logs, and run it live in the same shop among other users.

    The two are not paired: they share the catalogue, but no user, click or draw, so that the
    variances of the two means add up. Each variance is estimated from R independent replications;
    Student's t has Welch's degrees of freedom."""
    inside, z, pairs, accepted = 0, [], [], 0
    for seed in range(repetitions):
        log = record(_shop("random", seed, R, steps))
        found = replay_learner(log, agent, generator=np.random.default_rng(seed))
        mean, error = _live(agent, seed, found)
        variance = found.standard_error**2 + error**2
        freedom = variance**2 * (R - 1) / (found.standard_error**4 + error**4)
        z.append((found.value - mean) / variance**0.5)
        inside += int(abs(z[-1]) <= student.ppf(0.975, freedom))
        pairs.append((found.value, mean))
        accepted += found.accepted
    events = repetitions * R * steps
    replayed, live = np.mean(pairs, axis=0).tolist()
    return Replays(inside, np.array(z), replayed, live, accepted / events, events)


def _live(agent: dict[str, Any], seed: int, found: ReplayedAgent) -> tuple[float, float]:
    """Run an agent as many steps in each replication as its replay took.

    Return mean reward and standard error.
    """
    R, n = len(found.steps), np.array(found.steps)
    rewards = (
        make_lane(_shop(agent, seed, 2 * R, max(n)), 0, range(R, 2 * R)).advance(max(n)).rewards
    )
    sums = np.array([rewards[:length, r].sum() for r, length in enumerate(n)])
    mean = sums.sum() / n.sum()
    return float(mean), float(np.sqrt(np.square(sums - mean * n).sum() * R / (R - 1)) / n.sum())


def _shop(agent: str | dict[str, Any], seed: int, replications: int, steps: int) -> Experiment:
    agents = [{"kind": agent} if isinstance(agent, str) else agent]
    data = {
        "simulator": SHOP,
        "agents": agents,
        "replications": int(replications),
        "steps": int(steps),
        "seed": seed,
    }
    return Experiment.model_validate(data)


# choosing among policies


class Choice(NamedTuple):
    """Mean regrets, the paired interval of their difference, and the median effective
    sample size.
    """

    by_estimate: float
    by_lower_end: float
    difference: float
    low: float
    high: float
    ess: float


def choices(
    similar: bool, logs: int = 200, *, estimators: tuple[str, ...] = ("ips", "snips")
) -> dict[str, Choice]:
    """Choose one of five policies on logs of ε-greedy with little support.

    The regret is that of the choice.

    A policy shows one product to each segment. Where ``similar``, it is the log's most frequent
    product of the segment, except in a random share of the segments; otherwise all are random."""
    regrets: dict[str, list[tuple[float, float]]] = {name: [] for name in estimators}
    sizes = []
    for seed in range(logs):
        log = record(_shop({"kind": "epsilon_greedy", "epsilon": 0.1}, seed, 2, 400))
        ends: dict[str, list[tuple[float, float]]] = {name: [] for name in estimators}
        values = []
        for policy in _candidates(log, np.random.default_rng(10_000 + seed), similar):
            result = evaluate(log, policy, estimators=estimators)
            assert result.truth is not None
            values.append(result.truth.value)
            sizes.append(result.support.ess)
            for name, each in result.estimates.items():
                ends[name].append(
                    (each.low, each.value) if np.isfinite(each.low) else (-np.inf, -np.inf)
                )
        for name, pairs in ends.items():
            # equal lower ends: the larger estimate
            by_lower_end = pairs.index(max(pairs))
            by_estimate = max(range(5), key=[estimate for _, estimate in pairs].__getitem__)
            regrets[name].append(
                (max(values) - values[by_estimate], max(values) - values[by_lower_end])
            )
    found = {}
    for name, each_log in regrets.items():
        a = np.array(each_log)
        middle, low, high, _ = normal(a[:, 1] - a[:, 0])
        found[name] = Choice(
            float(a[:, 0].mean()), float(a[:, 1].mean()), middle, low, high, float(np.median(sizes))
        )
    return found


def _candidates(log: DecisionLog, g: np.random.Generator, similar: bool) -> Iterator[Matrix]:
    names, segment = np.unique(np.asarray(log.segments), return_inverse=True)
    counts = np.array(
        [np.bincount(log.actions[segment == s], minlength=log.n_actions) for s in range(len(names))]
    )
    for _ in range(5):
        shown: IntArray = g.integers(0, log.n_actions, len(names))
        if similar:
            shown = np.where(g.random(len(names)) < g.random(), shown, counts.argmax(axis=1))
        yield Matrix(np.eye(log.n_actions)[shown][segment])


# estimated propensities


class Redraws(NamedTuple):
    """IPS from redrawn propensities: mean error, also in standard errors, and relative width of the
    interval.
    """

    bias: float
    z: float
    width: Interval


def redraws(
    counts: tuple[int, ...] = REDRAWS, R: int = 200, before: int = 50, steps: int = 10
) -> dict[str, Redraws]:
    """Estimate the value of uniform choice from R logs, by numbers of redraws.

    The shop has five products, of different categories: products of the same category have equal
    scores, of which only the first is shown."""
    data = {
        "simulator": {"kind": "petshop", "n_products": 5},
        "agents": [LINTS],
        "replications": R,
        "seed": 3,
    }
    lane = make_lane(Experiment.model_validate({**data, "steps": before + steps}), 0)
    lane.use_compiled = False
    lane.advance(before)
    rows, weights = np.arange(R), {str(n): np.empty((steps, R)) for n in counts}
    rewards, truth = np.empty((steps, R)), np.empty((steps, R))
    for t in range(steps):
        round = lane.simulator.round_at(lane.step)
        shown = np.where(round.available, lane.agent.scores(round), -np.inf).argmax(axis=1)
        again = np.zeros(R)
        for n, drawn in enumerate(
            itertools.islice(first_choices(lane.agent, round), max(counts)), start=1
        ):
            again += drawn == shown
            if n in counts:
                weights[str(n)][t] = 0.2 * (n + 1) / (again + 1)
        truth[t] = lane.simulator.probabilities(round).mean(axis=1)
        trace = lane.advance(1)
        assert (trace.items[0, :, 0] == round.items[rows, shown]).all()
        rewards[t] = trace.rewards[0]
    contributions = {name: w * rewards for name, w in weights.items()}
    drawn_logs = np.random.default_rng(0).integers(0, R, (500, R))
    most, found = contributions[str(max(counts))], {}
    for name, x in contributions.items():
        bias, _, _, error = normal((x - truth).mean(axis=0))
        ratios = [float(x[:, some].std() / most[:, some].std()) for some in drawn_logs]
        low, high = np.quantile(ratios, [0.025, 0.975]).tolist()
        width = Interval(float(x.std() / most.std()), low, high, float(np.std(ratios)))
        found[name] = Redraws(bias, bias / error, width)
    return found


def coverage_text() -> str:
    found, ess = coverage()
    rows = [(f"`{name}`", str(each)) for name, each in found.items()]
    return (
        "Share of 2,000 logs whose normal 95 % interval holds the value of the target policy: "
        f"{N:,} decisions, {K} actions, effective sample size at least {ess:.0f}; predicted "
        "rewards are given and wrong; logs of `replay` are uniformly random. The biased "
        "estimators `dm`, `switch_dr`, `dros` and `clipped_ips` have the interval of the unbiased "
        "one (`dr`, `ips`), extended to the estimate, at a level that holds whatever the bias is, "
        "because predicted rewards are given: where they are fitted to the log, the level stays "
        "95 %. Where both estimates are correlated and the bias is large, one of two kinds of "
        "misses cannot occur: such an interval covers up to 97.5 % (`adjusted_level` in "
        "`bandits/offpolicy/intervals.py`).\n\n" + table(("estimator", "coverage"), rows)
    )


def looks_text() -> str:
    rows = [(name, str(worst), str(all_of_them)) for name, (worst, all_of_them) in looks().items()]
    return (
        "Share of 1,000 logs whose interval of IPS holds the value, at the worst of 100 looks "
        "(after 20, 40, ... 2,000 decisions) and at all looks at once. Who looks often and stops "
        "when the result is good needs `anytime`.\n\n"
        + table(("interval", "worst look", "all looks at once"), rows)
    )


def replay_text() -> str:
    rows = []
    for name, agent in AGENTS.items():
        found = replays(agent)
        bias, low, high, _ = normal(found.z)
        rows.append(
            (
                name,
                f"{found.replayed:.4f}",
                f"{found.live:.4f}",
                f"{found.inside} of 100",
                f"{bias:.2f} ({low:.2f} to {high:.2f})",
                f"{found.accepted:.4f}",
            )
        )
    return (
        "`replay_learner` on 100 uniformly random logs of the pet shop (10 products, 8 "
        "replications of 2,000 steps) against live runs of the same agent, as long in each "
        "replication as the accepted events. The two share the catalogue but no user, click or "
        "draw, so they are not paired and their variances add up; each is estimated from 8 "
        "independent replications (Student's t, Welch's degrees of freedom). z is the difference "
        "in standard errors.\n\n"
        + table(
            (
                "agent",
                "replayed",
                "live",
                "in the interval",
                "mean z",
                "accepted share (1 / K = 0.1)",
            ),
            rows,
        )
    )


def choosing_text() -> str:
    rows, ess = [], []
    for similar, title in ((True, "close to the log's agent"), (False, "random")):
        for name, c in choices(similar).items():
            ess.append(c.ess)
            difference = f"{c.difference:+.4f} ({c.low:+.4f} to {c.high:+.4f})"
            rows.append(
                (title, f"`{name}`", f"{c.by_estimate:.4f}", f"{c.by_lower_end:.4f}", difference)
            )
    return (
        "Regret of choosing one of five policies by the estimate and by the lower end of its "
        "normal 95 % interval, on 200 logs of ε-greedy (ε = 0.1, 800 decisions, 10 products). "
        "Policies close to the log's agent show the log's most frequent product of each segment, "
        "except in a random share of the segments; there the lower end is the better rule with "
        "`snips`. Among random policies it is not: the log holds almost nothing of any of them, "
        "and normal intervals of a handful of events say little. The alarms say so: the median "
        f"effective sample size is {ess[0]:.0f} and {ess[-1]:.0f}, and they ask for 100.\n\n"
        + table(
            (
                "policies",
                "estimator",
                "regret by estimate",
                "by lower end",
                "paired difference, 95 %",
            ),
            rows,
        )
    )


def redraws_text() -> str:
    rows = []
    for name, (bias, z, width) in redraws().items():
        rows.append(
            (
                name,
                f"{bias:+.4f}",
                f"{z:+.2f}",
                f"{width.value:.3f} ({width.low:.3f} to {width.high:.3f})",
            )
        )
    return (
        "IPS of uniform choice on 200 logs of LinTS with shared weights (pet shop with 5 "
        "products, 10 decisions each after 50 that are not logged). Its propensities have no "
        "formula and are estimated by redrawing the scores. A log counts the decision itself as "
        "one more redraw, (X + 1) / (n + 1), so that the mean inverse propensity is 1 / p but for "
        f"(1 - p)^(n + 1). Width is that of the interval relative to {max(REDRAWS):,} redraws (95 "
        "%, bootstrap over logs): what estimated propensities add to it.\n\n"
        + table(("redraws", "mean error", "in standard errors", "width"), rows)
    )


SECTIONS = {
    "coverage": ("Coverage of intervals", coverage_text),
    "looks": ("Looking many times", looks_text),
    "replay": ("An agent that learns, by replay", replay_text),
    "choosing": ("Choosing among policies", choosing_text),
    "redraws": ("Propensities from redraws", redraws_text),
    "logs": ("The six logs of the Open Bandit sample", logs_text),
    "open_bandit": ("The example of obp", open_bandit_text),
}

if __name__ == "__main__":
    report("benchmarks.reproduction.offpolicy", DOCUMENT, SECTIONS, sys.argv[1:])
