"""A stranger's loop on public data: `bandits.Policy` beside the LinUCB of river and of MABWiser.

Needs the libraries of requirements-reference.txt."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import t as student

from bandits import Policy
from bandits.base.types import FloatArray, IntArray
from bandits.policy.schema import Schema
from benchmarks.measure import Section, interleave, ratio, stamp, stopwatch

STEPS, REPEATS, ALPHA = 500, 5, 0.4
Stream = tuple[list[Any], list[Any], dict[str, Any] | int]


def digits() -> Stream:
    """Return scikit-learn's digits: contexts, labels, and the columns of a context."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return list(images), labels.tolist(), 64


def census() -> Stream:
    """Return census income: contexts as dictionaries."""
    import pandas as pd

    from bandits.simulators import datasets

    frame = pd.read_parquet(f"{next(iter(datasets.__path__))}/adult.parquet").head(20_000)
    labels = frame.pop("label").tolist()
    columns: dict[str, Any] = {
        name: "number" if frame[name].dtype.kind == "i" else sorted(set(frame[name]))
        for name in frame
    }
    return frame.to_dict("records"), labels, columns


def ours(contexts: list[Any], labels: list[Any], columns: Any, seed: int) -> float:
    """Return the sum of rewards of Policy, from contexts as they are to updated models."""
    items = sorted(set(labels))
    policy = Policy({"kind": "linucb", "alpha": ALPHA}, items, columns, seed=seed)
    total = 0.0
    for context, label in zip(contexts, labels, strict=True):
        choice = policy.choose(context)
        reward = float(choice.item == label)
        policy.update(choice, reward)
        total += reward
    return total


def river(contexts: list[Any], labels: list[Any], columns: Any, seed: int) -> float:
    """Return the sum of rewards of river's LinUCBDisjoint, on features that are given."""
    from river import bandit

    arms, total = sorted(set(labels)), 0.0
    model = bandit.LinUCBDisjoint(alpha=ALPHA, beta=1.0, seed=seed)
    for x, label in zip(features(contexts, columns), labels, strict=True):
        named = dict(enumerate(x.tolist()))
        arm = model.pull(arms, context=named)
        reward = float(arm == label)
        model.update(arm, named, reward)
        total += reward
    return total


def mabwiser(contexts: list[Any], labels: list[Any], columns: Any, seed: int) -> float:
    """Return the sum of rewards of MABWiser's LinUCB, on features that are given."""
    from mabwiser.mab import MAB, LearningPolicy

    arms, total, model = sorted(set(labels)), 0.0, None
    for x, label in zip(features(contexts, columns), labels, strict=True):
        if model is None:
            policy = LearningPolicy.LinUCB(alpha=ALPHA, l2_lambda=1.0)
            model = MAB(arms, policy, seed=seed)
            # it must be fitted before it predicts
            model.fit(arms, [0] * len(arms), np.zeros((len(arms), len(x))))
        arm = model.predict(x[None])
        reward = float(arm == label)
        model.partial_fit([arm], [reward], x[None])
        total += reward
    return total


def features(contexts: list[Any], columns: Any) -> Iterator[FloatArray]:
    """Yield the features that Policy computes for the same contexts."""
    schema = Schema(columns)
    return (schema.features(context) for context in contexts)


PEERS: dict[str, Callable[..., float]] = {"river": river, "mabwiser": mabwiser}


def run() -> Section:
    """Measure time per decision and rewards on the same streams."""
    warnings.simplefilter("ignore")
    section = Section(
        "Policy in a loop of one's own, against other libraries",
        f"LinUCB per arm, alpha {ALPHA}, on the first {STEPS} of {REPEATS} random orders of each "
        "data set; reward 1 for the right label. All three read the same contexts, and the others "
        "the features that Policy makes of them. The sides take turns; processor time of choice, "
        "propensity and update. Difference of rewards: ours minus theirs per decision, with the "
        "95 % interval over the orders.",
        ("data", "side", "µs per decision, median", "times slower than ours", "reward difference"),
        code=stamp(run),
    )
    for name, source in (("digits", digits), ("census income", census)):
        stream = source()
        order = np.random.default_rng(0).permutation(len(stream[1]))[:20]
        _total(ours, stream, order, 0)
        for peer in PEERS:
            _compare(section, name, stream, peer)
    return section


def _compare(section: Section, name: str, stream: Stream, peer: str) -> None:
    """Add a row and two targets: one library on one data set."""
    n = len(stream[1])
    orders = [np.random.default_rng(seed).permutation(n)[:STEPS] for seed in range(REPEATS)]
    rewards: dict[str, list[float]] = {"ours": [], "peer": []}

    def side(key: str, work: Callable[..., float]) -> float:
        seed = len(rewards[key])
        found: list[float] = []
        seconds = stopwatch(lambda: found.append(_total(work, stream, orders[seed], seed)))
        rewards[key].append(found[0] / STEPS)
        return 1e6 * seconds / STEPS

    both = {"peer": lambda: side("peer", PEERS[peer]), "ours": lambda: side("ours", ours)}
    times = interleave(both, REPEATS)
    slower = ratio(times["peer"], times["ours"])
    gain = np.array(rewards["ours"]) - np.array(rewards["peer"])
    half = float(student.ppf(0.975, REPEATS - 1) * gain.std(ddof=1) / np.sqrt(REPEATS))
    difference, title = f"{gain.mean():+.3f} ± {half:.3f}", f"{peer} {version(peer)}"
    own, theirs = f"{median(times['ours']):,.0f}", f"{median(times['peer']):,.0f}"
    section.rows.append((name, f"{title} (ours: {own})", theirs, str(slower), difference))
    section.targets.append((f"{name}: faster than {title}", str(slower), slower.middle > 1))
    section.targets.append(
        (f"{name}: no less reward than {title}", difference, bool(gain.mean() + half >= 0))
    )


def _total(work: Callable[..., float], stream: Stream, order: IntArray, seed: int) -> float:
    contexts, labels, columns = stream
    return work([contexts[i] for i in order], [labels[i] for i in order], columns, seed)


if __name__ == "__main__":
    print(run())
