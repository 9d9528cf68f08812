"""A policy written in numpy makes the same decisions."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import Policy, UserError
from bandits.policy.numpy_export import LOGISTIC, write_numpy

AGENTS: list[dict[str, Any]] = [
    {"kind": "linucb"},
    {"kind": "linucb", "sharing": "shared"},
    {"kind": "lints"},
    {"kind": "lints", "sharing": "shared"},
    {"kind": "epsilon_greedy", "epsilon": 0.2},
    {"kind": "logistic_ucb"},
    {"kind": "logistic_ts"},
    {"kind": "ucb1"},
    {"kind": "popularity"},
]


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("exported", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Policy()


def check_same_decisions(agent: dict[str, Any], path: Path, steps: int) -> None:
    generator, K, D = np.random.default_rng(5), 6, 4
    weights, context_free = generator.normal(size=(K, D)), agent["kind"] in ("ucb1", "popularity")
    options: dict[str, Any] = {"scale": False, "constant": False, "redraws": 0}
    policy = Policy(agent, [f"item {k}" for k in range(K)], D, **options)

    def reward(x: Any, item: Any) -> float:
        k = policy.items.names.index(item)
        return float(generator.random() < 1 / (1 + np.exp(-weights[k] @ x[k])))

    for _ in range(200):
        x = generator.normal(size=(K, D))
        choice = policy.choose(x)
        policy.update(choice, reward(x, choice.item))
    write_numpy(policy, path)
    assert len(path.read_text().splitlines()) <= 75
    exported = load(path)
    for step in range(steps):
        x = generator.normal(size=(K, D))
        some = [f"item {k}" for k in (1, 3, 4)] if step % 10 == 0 else None
        choice = policy.choose(x if some is None else x[[1, 3, 4]], some)
        own = exported.choose(candidates=some) if context_free else exported.choose(x, some)
        assert own == choice.item, step
        if agent["kind"] not in LOGISTIC:
            earned = reward(x, choice.item)
            policy.update(choice, earned)
            exported.update(own, *([] if context_free else [x]), earned)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_exported_policy_makes_the_same_decisions(agent: dict[str, Any], tmp_path: Path) -> None:
    check_same_decisions(agent, tmp_path / "policy.py", 100)


@pytest.mark.slow
@pytest.mark.parametrize("agent", [AGENTS[i] for i in (0, 4, 5)])
def test_an_exported_policy_makes_the_same_5000_decisions(
    agent: dict[str, Any], tmp_path: Path
) -> None:
    check_same_decisions(agent, tmp_path / "policy.py", 5_000)


@pytest.mark.parametrize(
    ("agent", "options", "reason"),
    [
        ("beta_ts", {"scale": False}, "cannot be written with numpy alone; linucb"),
        ({"kind": "linucb", "gamma": 0.9}, {"scale": False}, "gamma is 0.9, not 1.0"),
        ({"kind": "linucb", "sharing": "hybrid"}, {"scale": False}, "sharing is hybrid"),
        ("linucb", {}, "its contexts are arrays as they are"),
    ],
)
def test_what_cannot_be_written_is_refused(
    agent: Any, options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=reason):
        write_numpy(Policy(agent, ["a", "b"], 3, **options), tmp_path / "policy.py")
    assert list(tmp_path.iterdir()) == []
