"""The first run on a user's table learns as well as a plain LinUCB with an intercept does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from bandits import read, run
from bandits.base.types import FloatArray, IntArray
from bandits.experiments import presets
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import inspect
from tests.support import often

STEPS, RUNS = 1500, 4
# largest difference of the shares of right answers
NEAR = 0.02
OWN = ("iris", "wine", "breast_cancer", "digits")


def synthetic(seed: int) -> tuple[FloatArray, IntArray]:
    """Make a table as users have it: columns in units of their own, indicators and constants, and
    classes that a noisy linear function decides.
    """
    g = np.random.default_rng(seed)
    n, d, K = int(g.integers(200, 1500)), int(g.integers(1, 9)), int(g.integers(2, 6))
    z = g.normal(size=(n, d))
    z = np.where(g.random(d) < 0.3, z > g.normal(size=d), z)
    utilities = z @ g.normal(size=(d, K)) * 3 + g.normal(size=K) + g.normal(size=(n, K))
    x = z * 10 ** g.uniform(-3, 6, d) + g.normal(size=d) * 10 ** g.uniform(-3, 6, d)
    x[:, (np.arange(d) > 0) & (g.random(d) < 0.1)] = 5.0
    return x, utilities.argmax(axis=1)


def plain_linucb(x: FloatArray, labels: IntArray, seed: int) -> float:
    """Return the share of right answers of Li et al. (2010), Algorithm 1, alpha 0.5, ridge 1."""
    g = np.random.default_rng(seed)
    x = np.column_stack([StandardScaler().fit_transform(x), np.ones(len(x))])
    K, D, right = labels.max() + 1, x.shape[1], 0
    inverse, b = np.tile(np.eye(D), (K, 1, 1)), np.zeros((K, D))
    order = np.concatenate([g.permutation(len(x)) for _ in range(STEPS // len(x) + 1)])
    for i in order[:STEPS]:
        u = inverse @ x[i]
        score = (b * u).sum(axis=1) + 0.5 * np.sqrt(u @ x[i])
        arm = g.choice(np.flatnonzero(score == score.max()))
        reward = float(labels[i] == arm)
        inverse[arm] -= np.outer(u[arm], u[arm]) / (1 + u[arm] @ x[i])
        b[arm] += reward * x[i]
        right += int(reward)
    return right / STEPS


@pytest.mark.parametrize("table", [*OWN, *range(often(6, 20))])
def test_the_first_run_is_near_a_plain_linucb(
    table: str | int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    if isinstance(table, int):
        x, labels = synthetic(table)
    else:
        x, labels = getattr(datasets, f"load_{table}")(return_X_y=True)
    names = [f"x{i}" for i in range(x.shape[1])]
    lines = [
        ",".join([*map(repr, row), f"class {label}"])
        for row, label in zip(x.tolist(), labels, strict=True)
    ]
    raw = "\n".join([",".join([*names, "answer"]), *lines]).encode()
    data = uploads.save_dataset(inspect(raw), target="answer", title="Mine")
    first = presets.on_data(data).model_dump(mode="json")
    linucb = [agent for agent in first["agents"] if agent["kind"] == "linucb"]
    short = {**first, "agents": linucb, "steps": STEPS, "replications": RUNS}
    history = run(read(short), workers=0, progress=False).histories["LinUCB"]
    ours = history.sums["clicks"][-1] / STEPS
    # classes that the table holds, numbered as the plain agent numbers its arms
    _, labels = np.unique(labels, return_inverse=True)
    theirs = np.array([plain_linucb(x, labels, seed) for seed in range(RUNS)])
    error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / RUNS)
    assert abs(ours.mean() - theirs.mean()) < NEAR + 3 * error
