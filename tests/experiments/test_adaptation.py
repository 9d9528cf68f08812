"""Experiments are adapted to every simulator, and combinations that cannot be run are repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandits import Experiment, UserError, read, run
from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.adaptation import adapt, suggestion, suited_agent
from bandits.experiments.experiment import MEMORY_LIMIT
from bandits.experiments.labels import labels_of
from bandits.experiments.presets import presets
from bandits.experiments.repair import repair
from bandits.experiments.suitability import Data
from bandits.simulators import REGISTRY as SIMULATORS
from tests.support import thinned

KINDS = [kind for kind in SIMULATORS if not kind.startswith("test")]
DEFAULT = presets()["race"].experiment


def data(experiment: Experiment) -> Data:
    plain: Data = json.loads(experiment.model_dump_json())
    return plain


def with_(**changes: Any) -> Data:
    return {**data(DEFAULT), **changes}


@pytest.mark.parametrize("kind", KINDS)
def test_every_simulator_declares_a_preset_of_its_own(kind: str) -> None:
    suggested = suggestion(kind)
    assert suggested is not None
    assert suggested.simulator.kind == kind
    assert SIMULATORS[kind].family != "Plug-ins"


@pytest.mark.parametrize(
    ("name", "kind"),
    thinned(
        product(presets(), KINDS), lambda number: number % 5 == 0, lambda number: number % 5 == 0
    ),
)
def test_every_preset_can_be_moved_to_every_simulator(name: str, kind: str) -> None:
    """No agent is lost without a reason, and the kinds of the simulator's preset are there."""
    before, given = presets()[name].experiment, suggestion(kind)
    assert given is not None
    moved = adapt(data(before), kind)
    after = moved.experiment
    assert after.memory() <= MEMORY_LIMIT
    assert (after.simulator, after.steps, after.replications) == (
        given.simulator,
        given.steps,
        given.replications,
    )
    assert after.seed == before.seed
    left_out = dict(moved.left_out)
    kinds = {agent.kind for agent in after.agents}
    for label, agent in zip(before.labels, before.agents, strict=True):
        # the same kind may stay under another label
        stays = left_out.get(label, "").startswith("guards.")
        stays = stays or left_out.get(label, "").endswith("it equals another agent")
        assert stays or (label in left_out) != (agent.kind in kinds)
    assert all(
        reason.startswith(("requires ", "would need ", "with the ", "guards."))
        for reason in left_out.values()
    )
    assert kinds >= {agent.kind for agent in given.agents} or len(after.agents) == 12
    for label in left_out:
        assert label in moved.describe()


@pytest.mark.parametrize(
    "route",
    thinned([(r,) for r in permutations(KINDS, 3)], lambda n: n % 8 == 0, lambda n: n % 8 == 0),
)
def test_simulators_can_be_chosen_one_after_the_other(route: tuple[str, ...]) -> None:
    experiment = DEFAULT
    for kind in route:
        experiment = adapt(data(experiment), kind).experiment
        assert experiment.simulator.kind == kind
        assert read(data(experiment)) == experiment


@pytest.mark.parametrize(
    "kind", thinned(KINDS, lambda number: number == 4, lambda number: number % 2 == 1)
)
def test_an_adapted_experiment_runs(kind: str) -> None:
    """A few steps of every agent, with a small log for the network that is trained on one, and a
    small catalogue.
    """
    small = {"kind": "static_mlp", "interactions": 1000, "epochs": 1}
    agents = [
        small if agent["kind"] == "static_mlp" else agent for agent in data(DEFAULT)["agents"]
    ]
    moved = adapt(with_(agents=agents), kind).experiment
    short = {"static_mlp": small, "dqn": {"kind": "dqn", **AGENTS["dqn"].test_params()[0]}}
    agents = [short.get(agent["kind"], agent) for agent in data(moved)["agents"]]
    smaller = {"n_items": 60, "n_candidates": 20} if kind == "ranking" else {}
    simulator = {**data(moved)["simulator"], **smaller}
    result = run(read({"simulator": simulator, "agents": agents, "steps": 12, "replications": 2}))
    assert {label: history.step for label, history in result.histories.items()} == dict.fromkeys(
        moved.labels, 12
    )


def test_settings_of_the_user_are_kept_and_usual_ones_follow_the_preset() -> None:
    agents = [
        {"kind": "linucb", "alpha": 3.5, "label": "Mine"},
        {"kind": "lints"},
        {"kind": "random"},
    ]
    moved = adapt(with_(agents=agents), "wheel").experiment
    given = suggestion("wheel")
    assert given is not None
    assert moved.labels[:3] == ("Mine", "LinTS", "Random")
    assert moved.agents[0].alpha == 3.5
    assert moved.agents[1] in given.agents
    # the user's own is there already
    assert "linucb" not in {agent.kind for agent in moved.agents[1:]}


def test_an_agent_that_would_equal_another_one_is_left_out_with_this_reason() -> None:
    moved = adapt(data(DEFAULT), "ranking")
    assert (
        "LinUCB alpha 1.5",
        "with the preset's settings it equals another agent",
    ) in moved.left_out
    lints = next(agent for agent in moved.experiment.agents if agent.kind == "lints")
    given = suggestion("ranking")
    assert given is not None
    # not the defaults, which suit the pet shop
    assert lints in given.agents


def test_an_agent_that_does_not_fit_takes_its_alternative() -> None:
    mine = {"kind": "neural_greedy", "loss": "log", "label": "Log loss"}
    moved = adapt(
        with_(agents=[mine, {"kind": "linucb", "alpha": 3.5, "sharing": "hybrid"}]), "synthetic"
    )
    assert moved.experiment.agents[0].loss == "squared"
    assert "Log loss: Loss squared instead of log" in moved.describe()
    assert moved.experiment.agents[1].sharing == "hybrid"
    moved = adapt(
        with_(agents=[mine, {"kind": "linucb", "alpha": 3.5, "sharing": "hybrid"}]), "ranking"
    )
    assert (moved.experiment.agents[1].sharing, moved.experiment.agents[1].alpha) == ("shared", 3.5)
    assert moved.experiment.agents[0].loss == "log"


def test_a_simulator_without_a_preset_keeps_length_and_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SIMULATORS["wheel"], "preset", "")
    moved = adapt(data(DEFAULT), "wheel")
    assert moved.experiment.simulator == SIMULATORS["wheel"].Params()
    assert (moved.experiment.steps, moved.experiment.replications) == (
        DEFAULT.steps,
        DEFAULT.replications,
    )
    assert moved.experiment.labels == (
        "LinUCB",
        "LinUCB alpha 1.5",
        "LinTS",
        "ε-greedy",
        "A/B test",
    )
    assert (moved.changed, moved.added) == ((), ())
    everything = adapt(with_(agents=[{"kind": "beta_ts"}]), "wheel")
    assert everything.experiment.labels == ("Random",)


def test_invalid_settings_of_one_agent_do_not_hinder_the_others() -> None:
    moved = adapt(
        with_(agents=[{"kind": "ucb1", "label": "<b>"}, {"kind": "linucb", "alpha": 3}]), "wheel"
    )
    assert moved.left_out == (("UCB1", "its settings are not valid"),)
    assert moved.experiment.agents[0].alpha == 3


def impossible() -> Iterator[tuple[Data, str]]:
    ranking = {"kind": "ranking"}
    yield (
        with_(simulator=ranking),
        "Static MLP (requires logged interactions, which Ranking does not provide)",
    )
    yield (
        with_(simulator={"kind": "wheel"}),
        "requires rewards of 0 or 1, which Wheel does not provide",
    )
    yield (
        with_(simulator={**ranking, "n_items": 1_000_000}, agents=[{"kind": "lints"}]),
        "Sharing shared",
    )
    yield (
        with_(simulator={**ranking, "n_items": 100}, agents=[{"kind": "random"}]),
        "Candidates 100 instead of 500",
    )
    nearest = {**ranking, "n_items": 5, "retrieval": "nearest", "slate": 4, "n_candidates": 6}
    yield (
        with_(simulator=nearest, agents=[{"kind": "random"}]),
        "Retrieval exact instead of nearest",
    )
    large = {**ranking, "choice": "catalogue", "n_users": 100_000}
    yield (
        with_(simulator=large, agents=[{"kind": "random"}]),
        "Choice model candidates instead of catalogue",
    )
    everything = {
        **ranking,
        "n_items": 1_000_000,
        "embedding": 256,
        "noise": 0.1,
        "layout": "per_row",
    }
    yield (
        with_(simulator=everything, agents=[{"kind": "random"}]),
        "Items 10,000 instead of 1,000,000",
    )
    yield with_(replications=4096, agents=[{"kind": "ensemble"}]), "replications instead of 4,096"
    wide = {"kind": "neural_greedy", "hidden": [1024] * 6}
    yield with_(agents=[wide, {"kind": "random"}], replications=4096), "replications instead of"
    yield (
        with_(agents=[{"kind": "linucb", "gamma": 0.9, "window": 9}]),
        "Sliding window none instead of 9",
    )
    yield (
        with_(agents=[{"kind": "linucb", "gamma": 0.9, "sharing": "hybrid"}]),
        "Sharing shared instead of hybrid",
    )
    yield (
        with_(agents=[{"kind": "neural_ucb", "scaling": "paper", "hidden": [3]}]),
        "Scaling code instead of paper",
    )
    yield (
        with_(agents=[{"kind": "linucb", "label": "A"}, {"kind": "lints", "label": "A"}]),
        "A: no name",
    )
    only = [{"kind": "beta_ts"}]
    yield with_(agents=only, simulator={"kind": "wheel"}), "Added: Random"


@pytest.mark.parametrize(("given", "words"), list(impossible()))
def test_an_impossible_combination_is_repaired(given: Data, words: str) -> None:
    with pytest.raises(UserError):
        read(given)
    repaired = repair(given)
    assert repaired is not None
    assert words in repaired.describe()
    assert repaired.experiment.memory() <= MEMORY_LIMIT
    assert repair(data(repaired.experiment)) is None
    assert (repaired.experiment.seed, repaired.experiment.steps) == (given["seed"], given["steps"])
    left_out = {label for label, _ in repaired.left_out}
    kept = [
        agent["kind"]
        for agent, label in zip(given["agents"], labels_of(given["agents"]), strict=True)
        if label not in left_out
    ]
    assert [agent.kind for agent in repaired.experiment.agents] == (kept or ["random"])


@pytest.mark.parametrize(
    "given",
    [
        data(DEFAULT),
        with_(agents=[{"kind": "linucb", "alpha": 11}]),
        with_(agents=[{"kind": "psychic"}]),
        with_(agents=[]),
        with_(agents=7),
        with_(simulator={"kind": "classification", "data": "gone"}),
        with_(simulator=[]),
        with_(steps=0),
        with_(steps="many"),
        with_(replications=9999),
        with_(seed=-1),
        {},
    ],
)
def test_what_can_be_run_or_has_an_invalid_field_is_not_repaired(given: Data) -> None:
    assert repair(given) is None


@settings(max_examples=100, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(sorted(AGENTS)), min_size=1, max_size=12),
    n_items=st.integers(2, 1_000_000),
    n_candidates=st.integers(2, 5000),
    slate=st.integers(1, 50),
    embedding=st.integers(1, 256),
    choice=st.sampled_from(["catalogue", "candidates", "sigmoid"]),
    retrieval=st.sampled_from(["random", "nearest", "exact"]),
    layout=st.sampled_from(["shared", "per_row"]),
    replications=st.integers(1, 4096),
)
def test_every_size_of_ranking_with_every_agent_is_possible_or_repaired(
    kinds: list[str], replications: int, **sizes: Any
) -> None:
    given = with_(
        simulator={"kind": "ranking", **sizes},
        agents=[{"kind": k} for k in kinds],
        replications=replications,
    )
    try:
        read(given)
    except UserError:
        repaired = repair(given)
        assert repaired is not None
        assert repaired.experiment.memory() <= MEMORY_LIMIT


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("simulator", KINDS)
def test_an_agent_is_added_with_settings_that_fit(kind: str, simulator: str) -> None:
    given = suggestion(simulator)
    assert given is not None
    spec = SIMULATORS[simulator].describe(given.simulator)
    if AGENTS[kind].needs | AGENTS[kind].offered_for <= spec.capabilities:
        added = suited_agent(kind, data(given))
        assert read({**data(given), "agents": [added] * 1}).agents[0].kind == kind


def test_an_added_agent_has_its_defaults_where_they_fit() -> None:
    assert suited_agent("linucb", data(DEFAULT)) == {"kind": "linucb"}
    assert suited_agent("linucb", with_(simulator={"kind": "ranking"})) == {
        "kind": "linucb",
        "sharing": "shared",
    }
    assert suited_agent("lints", with_(simulator={"kind": "classification", "data": "gone"})) == {
        "kind": "lints"
    }
