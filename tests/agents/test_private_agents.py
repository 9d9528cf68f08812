"""Private agents and their guards: one observation changes no decision before the first noisy
release, or the guards are refused.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from bandits import UserError, read
from bandits.agents import REGISTRY
from bandits.agents.guards.stack import build
from bandits.agents.linear.linucb import LinUCB
from bandits.base.types import FloatArray
from bandits.experiments.lockstep import make_lane
from bandits.models.linear.private_ridge import EVERY

# steps, far below a release, and the one whose observation is exchanged
STEPS, EXCHANGED = 16, 4
SLOW = {"median_ms": 20, "p99_ms": 50}
SAFE: list[dict[str, Any]] = [
    {"kind": "floor", "epsilon": 0.3},
    {"kind": "floor", "epsilon": 0.1, "per": "arm"},
    {"kind": "delay", "steps": 3},
    {"kind": "delay", "steps": 3, "law": "geometric"},
    {"kind": "batch", "steps": 4},
    {"kind": "fallback", **SLOW},
    {"kind": "fallback", "to": "default", **SLOW},
]
LEAKS: list[dict[str, Any]] = [
    {"kind": "floor", "epsilon": 0.1, "shows": 3, "new": 0.5},
    {"kind": "cap", "share": 0.3, "window": 10},
    {"kind": "fallback", "to": "popularity", **SLOW},
    {"kind": "fallback", "to": "epsilon_greedy", **SLOW},
    {"kind": "reset", "every": EVERY},
    {"kind": "reset", "monitor": "adwin"},
]


def private(*guards: dict[str, Any]) -> dict[str, Any]:
    return {
        "simulator": {"kind": "petshop", "n_products": 5, "features": "interaction"},
        "agents": [{"kind": "linucb", "sharing": "shared", "private": 0.5, "guards": guards}],
        "steps": STEPS,
        "replications": 20,
    }


def decisions(guards: Any, *, exchanged: bool) -> list[FloatArray]:
    """Return the scores of all steps after an observation, which may be another one."""
    lane = make_lane(read(private()), 0)
    params = [p.model_copy(update={"guards": guards}) for p in lane.agent.params]
    simulator = lane.simulator
    agent = build(LinUCB, params, simulator.spec, simulator.streams, simulator.access())
    found = []
    for step in range(STEPS):
        round = simulator.round_at(step)
        found.append(agent.scores(round))
        slate = found[-1].argmax(axis=1)[:, None]
        feedback, _ = simulator.respond(round, slate, simulator.uniforms.at(step))
        if exchanged and step == EXCHANGED:
            round = round._replace(context=(round.context + 1) % 2)
            slate = (slate + 1) % 5
            feedback = feedback._replace(rewards=1 - feedback.rewards)
        agent.learn(round, slate, feedback)
    return found[EXCHANGED + 1 :]


def leaks(guards: Any) -> bool:
    pairs = zip(decisions(guards, exchanged=False), decisions(guards, exchanged=True), strict=True)
    return any(not np.array_equal(one, other) for one, other in pairs)


def accepted(*guards: dict[str, Any]) -> bool:
    try:
        read(private(*guards))
    except UserError:
        return False
    return True


def test_one_observation_changes_no_decision_before_a_release_under_any_accepted_guards() -> None:
    stacks = [(), *itertools.product(SAFE + LEAKS), *itertools.product(SAFE + LEAKS, repeat=2)]
    allowed = [stack for stack in stacks if accepted(*stack)]
    assert len(allowed) == 1 + len(SAFE) + len(SAFE) ** 2
    for stack in allowed:
        assert not leaks(LinUCB.Params(guards=list(stack)).guards), stack


@pytest.mark.parametrize("guard", LEAKS[:4], ids=lambda guard: guard.get("to", guard["kind"]))
def test_the_exchange_shows_what_the_refused_guards_would_reveal(guard: dict[str, Any]) -> None:
    assert leaks(LinUCB.Params(guards=[guard]).guards)


@pytest.mark.parametrize("kind", ["linucb", "lints"])
@pytest.mark.parametrize(
    ("guard", "sentence"),
    [
        (LEAKS[0], "no guard floor with new arms (shows): it counts what is shown, without noise"),
        (LEAKS[1], "no guard cap: it counts what is shown, without noise"),
        (LEAKS[2], "no guard fallback to popularity: it learns from the rewards, without noise"),
        (LEAKS[3], "no guard fallback to epsilon_greedy: it learns from the rewards, without"),
        (LEAKS[4], "no guard reset: a reset would use the noise again"),
    ],
    ids=["floor", "cap", "popularity", "epsilon_greedy", "reset"],
)
def test_guards_that_leak_are_refused_in_one_sentence(
    kind: str, guard: dict[str, Any], sentence: str
) -> None:
    data = private(SAFE[0], guard)
    data["agents"][0]["kind"] = kind
    with pytest.raises(UserError, match=r"^agents\.0.*private needs ") as refused:
        read(data)
    assert sentence in str(refused.value)


def test_settings_with_a_guard_that_leaks_are_repaired_without_the_budget() -> None:
    closest = REGISTRY["linucb"].Params.closest
    for guard in SAFE:
        assert closest({"private": 1.0, "guards": [guard]})["private"] == 1.0
    for guard in LEAKS:
        assert closest({"private": 1.0, "guards": [guard]})["private"] is None
