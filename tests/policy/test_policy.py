"""A policy makes the engine's decisions, one by one, and refuses what it cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bandits
from bandits import Experiment, Policy, UserError
from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.lockstep import make_lane

SYNTHETIC = {"kind": "synthetic"}
DIGITS = {"kind": "classification", "data": "digits", "encoding": "context"}
# agents that cannot act outside of a simulator
REFUSED = {"oracle", "static_mlp", "q_learning", "dqn"}
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "linucb"}, SYNTHETIC),
    ({"kind": "lints"}, SYNTHETIC),
    ({"kind": "epsilon_greedy"}, SYNTHETIC),
    ({"kind": "logistic_ts"}, DIGITS),
    ({"kind": "logistic_ucb"}, DIGITS),
    ({"kind": "neural_linear_ts", "heads": "per_arm", "every": 100_000, "hidden": [8]}, DIGITS),
    ({"kind": "beta_ts"}, DIGITS),
    ({"kind": "linucb", "window": 50}, SYNTHETIC),
    ({"kind": "linucb", "guards": [{"kind": "cap", "share": 0.3, "window": 50}]}, SYNTHETIC),
]


def check_same_decisions(agent: dict[str, Any], simulator: dict[str, Any], steps: int) -> None:
    """Compare a policy, saved and loaded on the way, with the time loop of the engine."""
    experiment = Experiment(simulator=simulator, agents=[agent], steps=steps, replications=1)
    lane = make_lane(experiment, 0)
    expected = lane.advance(steps).items[:, 0, 0]
    world = make_lane(experiment, 0).simulator
    items, D = range(world.spec.n_items), world.spec.n_features
    options: dict[str, Any] = {"scale": False, "constant": False, "seed": experiment.seed}
    # propensities by redraws are slow
    options["redraws"] = 0
    policy = Policy(agent, list(items), D, **options)
    chosen = []
    for step in range(steps):
        round = world.round_at(step)
        choice = policy.choose(round.features[0])
        chosen.append(choice.item)
        if step == steps // 2:
            # a decision waits
            policy = Policy.from_bytes(policy.to_bytes())
        slate = np.array([[choice.item]])
        reward = world.respond(round, slate, world.uniforms.at(step))[0].rewards[0, 0]
        assert policy.update(choice, reward)
    assert chosen == expected.tolist()
    found, wanted = policy.agent.state_dict(), lane.agent.state_dict()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize(("agent", "simulator"), CASES)
def test_decisions_are_those_of_the_engine_to_the_bit(
    agent: dict[str, Any], simulator: dict[str, Any]
) -> None:
    check_same_decisions(agent, simulator, 120)


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "simulator"), [CASES[i] for i in (0, 1, 5)])
def test_many_decisions_are_those_of_the_engine_to_the_bit(
    agent: dict[str, Any], simulator: dict[str, Any]
) -> None:
    check_same_decisions(
        agent, simulator, {"linucb": 10_000, "lints": 3_000}.get(agent["kind"], 1_000)
    )


def make(**options: Any) -> Policy:
    return Policy({"kind": "linucb"}, ["a", "b", "c"], **options)


def test_the_first_context_states_the_schema() -> None:
    policy = make()
    choice = policy.choose({"age": 41, "pet": "cat", "member": True})
    assert choice.item in ("a", "b", "c")
    assert choice.propensity == 1 / 3
    assert not choice.explored
    assert policy.schema is not None
    assert policy.schema.numbers == ["age", "member"]
    assert policy.schema.values == {"pet": ["cat"]}


def test_contexts_are_dictionaries_rows_of_data_frames_and_arrays() -> None:
    frame = pd.DataFrame({"age": [20.0, 30.0, 40.0], "pet": ["cat", "dog", None]})
    ways = [
        [row.to_dict() for _, row in frame.iterrows()],
        [row for _, row in frame.iterrows()],
        list(frame.itertuples()),
    ]
    found = []
    for way in ways:
        policy = make()
        assert policy.choose(way[0]).id == 0
        assert policy.schema is not None
        found.append(np.stack([policy.schema.features(context) for context in way[1:]]))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert make().choose(np.array([1.0, 2.0])).item == make().choose([1.0, 2.0]).item


def test_numbers_are_scaled_by_what_was_seen() -> None:
    policy = make(features={"x": "number"})
    assert policy.schema is not None
    x = np.random.default_rng(1).normal(100, 7, 4000)
    features = np.array([policy.schema.features({"x": value})[0] for value in x])
    assert abs(features[2000:].mean()) < 4 / np.sqrt(2000)
    assert features[2000:].std() == pytest.approx(1, abs=4 / np.sqrt(2 * 2000))
    assert policy.schema.features({"x": 1e9})[0] == 5
    assert policy.schema.features({"x": None})[0] == 0
    assert policy.schema.features({"x": float("nan")})[-1] == 1


def test_unknown_values_of_a_category_share_an_indicator() -> None:
    schema = make(features={"pet": ["cat", "dog"], "city": "category"}).schema
    assert schema is not None

    def indicators(pet: Any, city: Any) -> list[float]:
        return list(schema.features({"pet": pet, "city": city}))

    assert indicators("dog", None)[:3] == [0, 1, 0]
    assert indicators("owl", None)[:3] == indicators("eel", None)[:3] == [0, 0, 1]
    assert indicators(None, None)[:3] == [0, 0, 0]
    cities = [indicators("cat", f"city {i}")[3:-1].index(1) for i in range(20)]
    assert cities == [*range(16), 16, 16, 16, 16]


def test_features_of_items_let_one_model_serve_all() -> None:
    items = {"a": {"price": 1, "kind": "food"}, "b": {"price": 5, "kind": "toy"}}
    policy = Policy({"kind": "linucb", "sharing": "shared"}, items, {"age": "number"})
    for i in range(50):
        choice = policy.choose({"age": i % 7})
        policy.update(choice, float(choice.item == "b"))
    policy.add("c", {"price": 5, "kind": "toy"})
    assert policy.choose({"age": 3}).item in ("b", "c")
    again = Policy.from_bytes(policy.to_bytes())
    for i in range(20):
        assert again.choose({"age": i}) == policy.choose({"age": i})


def test_rewards_may_be_late_missing_or_twice() -> None:
    policy = make()
    choices = [policy.choose({"x": float(i)}) for i in range(10)]
    assert policy.waiting == 10
    assert policy.update(choices[7], 1)
    assert policy.update(choices[2].id, 0)
    assert not policy.update(choices[7], 1)
    assert (policy.waiting, policy.learned, policy.decisions) == (8, 2, 10)


@pytest.mark.parametrize(
    "agent",
    [
        {"kind": "linucb"},
        {"kind": "lints", "window": 20},
        {"kind": "epsilon_greedy", "guards": [{"kind": "cap", "share": 0.5, "window": 10}]},
        {"kind": "neural_linear_ts", "heads": "per_arm", "every": 20, "hidden": [4]},
    ],
)
def test_a_log_teaches_what_deciding_teaches(agent: dict[str, Any]) -> None:
    chosen, columns = Policy(agent, ["a", "b", "c"], seed=3, redraws=0), {"x": "number"}
    chosen.withdraw("c")
    taught = Policy(agent, ["a", "b", "c"], columns, seed=3, redraws=0).untrained()
    taught.withdraw("c")
    for x in np.random.default_rng(0).normal(size=50):
        choice = chosen.choose({"x": x})
        reward = float(choice.item == "a")
        chosen.update(choice, reward)
        taught.learn({"x": x}, choice.item, reward)
    assert (taught.decisions, taught.learned, taught.waiting) == (50, 50, 0)
    found = taught.agent.state_dict()
    for name, value in chosen.agent.state_dict().items():
        np.testing.assert_array_equal(found[name], value)
    fresh = chosen.untrained()
    assert (fresh.decisions, fresh.items.withdrawn) == (0, {"c"})
    assert fresh.to_bytes() == taught.untrained().to_bytes()


def test_probabilities_are_those_of_the_next_choice_and_change_nothing() -> None:
    policy = Policy({"kind": "epsilon_greedy", "epsilon": 0.3}, ["a", "b", "c"])
    policy.update(policy.choose({"x": 1.0}, ["b"]), 1.0)
    before = policy.to_bytes()
    found = policy.probabilities({"x": 2.0}, ["b", "c"])
    assert found == pytest.approx({"b": 0.85, "c": 0.15})
    assert policy.to_bytes() == before
    choice = policy.choose({"x": 2.0}, ["b", "c"])
    assert found[choice.item] == choice.propensity


def test_what_a_log_states_is_checked() -> None:
    policy = Policy("linucb", ["a", "b"], {"x": "number"}, rewards=(0, 1))
    for arguments, reason in [
        (({"x": 1.0}, "c", 1.0), "the candidate c is not an item of this policy"),
        (({"x": 1.0}, "a", 1.0, ["b"]), "the item a is not among the candidates"),
        (({"x": 1.0}, "a", 2.0), "the reward is 2.0; it must be a number from 0 to 1"),
        (({"y": 1.0}, "a", 1.0), "the context has the column 'y'"),
    ]:
        with pytest.raises(UserError, match=reason):
            policy.learn(*arguments)
    assert policy.learned == policy.decisions == 0
    policy.withdraw("a")
    policy.learn({"x": 1.0}, "a", 1.0)
    policy.learn({"x": 1.0}, "a", 1.0, ["a", "b"])
    assert policy.learned == 2


def test_items_are_added_with_what_the_others_know_and_withdrawn() -> None:
    policy = make(seed=3)
    for i in range(60):
        choice = policy.choose({"x": float(i % 5)})
        policy.update(choice, float(choice.item == "b"))
    late = policy.choose({"x": 1.0})
    before = policy.agent.model.theta.copy()
    policy.add("d")
    np.testing.assert_array_equal(policy.agent.model.theta[:, :3], before)
    assert policy.update(late, 1.0)
    policy.withdraw("b")
    shown = set()
    for _ in range(30):
        choice = policy.choose({"x": 1.0})
        policy.update(choice, 0.0)
        shown.add(choice.item)
    assert shown == {"a", "c", "d"}
    with pytest.raises(UserError, match="the candidate b is not an item"):
        policy.choose({"x": 1.0}, ["b"])
    policy.add("b")
    assert policy.choose({"x": 1.0}, ["b"]).propensity == 1


def test_scores_are_given_on_request() -> None:
    choice = make().choose({"x": 1.0}, ["a", "c"], scores=True)
    assert choice.scores is not None
    assert set(choice.scores) == {"a", "c"}


def test_a_file_is_checksummed(tmp_path: Path) -> None:
    policy, path = make(), tmp_path / "shop.policy"
    waiting = policy.choose({"x": 1.0, "pet": "cat"})
    policy.save(path)
    loaded = Policy.load(path)
    assert loaded.update(waiting, 1.0)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match="checksum"):
        Policy.load(path)
    with pytest.raises(UserError, match="No such file"):
        Policy.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ({"kind": "oracle"}, "Oracle cannot be a policy of its own: it needs the true expected"),
        ({"kind": "static_mlp"}, "it needs logged interactions"),
        ({"kind": "linucb", "alpha": -1}, "alpha is -1; it must be a number from 0 to"),
        ({"kind": "nothing"}, "kind is 'nothing'; it must be one of"),
        ({"kind": "linucb", "prior": "given"}, "the prior given needs"),
        ({"kind": "linucb", "guards": [{"kind": "batch"}]}, "holds rewards back"),
        (7, "it must be parameters with a kind"),
    ],
)
def test_agents_that_cannot_act_outside_are_refused(agent: Any, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        Policy(agent, ["a", "b"], {"x": "number"})


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        ({"x": 1.0, "z": 2.0}, "the column 'z', which is not one"),
        ({}, "lacks the column 'x'"),
        ({"x": "much"}, "must be a finite number"),
        ({"x": float("inf")}, "must be a finite number"),
        ({"x": 10**400}, "must be a finite number"),
        ({"x": -1e101}, "of at most 1e\\+100 in size"),
        ({"x": [1, 2]}, "must be a finite number"),
        ([1.0], "expects the columns x"),
    ],
)
def test_other_contexts_are_refused(context: Any, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        make(features={"x": "number"}).choose(context)


@pytest.mark.parametrize("context", [[10**400], [1e101], [float("-inf")]])
def test_arrays_that_overflow_are_refused(context: list[float]) -> None:
    with pytest.raises(UserError, match=r"array of numbers|above 1e\+100 in size"):
        make(features=1).choose(context)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), "much", None, 2])
def test_other_rewards_are_refused(reward: Any) -> None:
    policy = make(rewards=(0, 1))
    choice = policy.choose({"x": 1.0})
    with pytest.raises(UserError, match="it must be a number from 0 to 1"):
        policy.update(choice, reward)
    assert policy.update(choice, 1)


def test_other_decisions_and_candidates_are_refused() -> None:
    policy = make()
    with pytest.raises(UserError, match="there was no decision 0"):
        policy.update(0, 1.0)
    with pytest.raises(UserError, match="no candidate"):
        policy.choose({"x": 1.0}, [])
    with pytest.raises(UserError, match="twice"):
        policy.choose({"x": 1.0}, ["a", "a"])
    with pytest.raises(UserError, match=r"10,001 candidates"):
        policy.choose({"x": 1.0}, list(range(10_001)))
    with pytest.raises(UserError, match="cannot tell them apart"):
        Policy({"kind": "linucb", "sharing": "shared"}, ["a", "b"]).choose({"x": 1.0})
    policy = Policy("logistic_ts", ["a"])
    choice = policy.choose({"x": 1.0})
    with pytest.raises(UserError, match="0 or 1 for Logistic TS"):
        policy.update(choice, 0.5)


@pytest.mark.parametrize("kind", ["linucb", "lints", "epsilon_greedy"])
def test_a_policy_of_a_run_goes_on_as_the_run_does(kind: str) -> None:
    experiment = Experiment(agents=[{"kind": kind}], steps=400, replications=2)
    label = experiment.labels[0]
    policy = Policy.from_run(experiment, label, replication=1)
    longer = experiment.model_copy(update={"steps": 600})
    lane = make_lane(longer, 0, [1])
    expected, world = lane.advance(600).items[400:, 0, 0], lane.simulator
    for step, item in enumerate(expected, start=400):
        round = world.round_at(step)
        choice = policy.choose(round.features[0])
        assert policy.items.names.index(choice.item) == item
        slate = np.array([[item]])
        reward = world.respond(round, slate, world.uniforms.at(step))[0].rewards[0, 0]
        policy.update(choice, reward)


def test_a_run_or_agent_that_is_not_there_is_refused() -> None:
    experiment = Experiment(agents=[{"kind": "oracle"}], steps=10, replications=1)
    with pytest.raises(UserError, match="has no agent 'LinUCB'; it has Oracle"):
        Policy.from_run(experiment, "LinUCB")
    with pytest.raises(UserError, match="Oracle cannot be a policy"):
        Policy.from_run(experiment, "Oracle")
    with pytest.raises(UserError, match="no stored run begins with"):
        Policy.from_run("abcdef", "LinUCB")


@pytest.mark.slow
def test_propensities_recover_the_value_of_another_policy() -> None:
    """Inverse propensities of 300 logs estimate what showing item 0 always earns."""
    rates, errors = np.array([0.3, 0.5, 0.4]), []
    for seed in range(300):
        generator = np.random.default_rng(seed)
        policy = Policy({"kind": "epsilon_greedy", "epsilon": 0.5}, [0, 1, 2], seed=seed)
        total = 0.0
        for _ in range(12):
            choice = policy.choose({})
            reward = float(generator.random() < rates[choice.item])
            total += reward * (choice.item == 0) / choice.propensity
            policy.update(choice, reward)
        errors.append(total / 12 - rates[0])
    z = np.mean(errors) / (np.std(errors, ddof=1) / np.sqrt(len(errors)))
    assert abs(z) < 4


def test_policy_is_a_public_name() -> None:
    assert "Policy" in bandits.__all__


@pytest.mark.parametrize("kind", list(AGENTS))
def test_every_kind_of_agent_acts_or_is_refused_in_a_sentence(kind: str) -> None:
    small = AGENTS[kind].test_params()[0]
    items = {name: [float(i), 1.0 - i] for i, name in enumerate("abc")}
    if kind in REFUSED:
        with pytest.raises(UserError, match="cannot be a policy of its own: it needs"):
            Policy({"kind": kind, **small}, items, {"x": "number"})
        return
    policy = Policy({"kind": kind, **small}, items, {"x": "number"}, redraws=3)
    late = [policy.choose({"x": float(i)}) for i in range(3)]
    again = Policy.from_bytes(policy.to_bytes())
    for each in (policy, again):
        for choice in reversed(late):
            assert each.update(choice, float(choice.item == "a"))
        for i in range(4):
            each.update(each.choose({"x": float(i)}), i % 2)
    assert policy.choose({"x": 0.5}) == again.choose({"x": 0.5})


@pytest.mark.parametrize("forgetting", [{"gamma": 0.98}, {"window": 30}])
@pytest.mark.parametrize("kind", ["linucb", "lints", "logistic_ts", "ucb1", "beta_ts"])
def test_agents_that_forget_learn_rewards_that_come_late(
    kind: str, forgetting: dict[str, Any]
) -> None:
    """One decision in three gets its reward, 20 decisions later; item b alone earns."""
    policy = Policy({"kind": kind, **forgetting}, ["a", "b", "c"], {"x": "number"}, redraws=0)
    choices = []
    for i in range(240):
        choices.append(policy.choose({"x": 1.0}))
        if i >= 20 and i % 3 == 0:
            policy.update(choices[i - 20], float(choices[i - 20].item == "b"))
    last = [choice.item for choice in choices[-60:]]
    assert last.count("b") > 20


@pytest.mark.parametrize(
    "guard",
    [
        {"kind": "floor"},
        {"kind": "cap", "share": 0.6},
        {"kind": "fallback"},
        {"kind": "reset", "every": 7},
    ],
)
def test_guards_act_in_a_policy(guard: dict[str, Any]) -> None:
    policy = Policy({"kind": "linucb", "guards": [guard]}, ["a", "b", "c"], {"x": "number"})
    for i in range(20):
        policy.update(policy.choose({"x": float(i % 3)}), 1.0)
    policy.add("d")
    again = Policy.from_bytes(policy.to_bytes())
    for i in range(10):
        assert policy.choose({"x": float(i)}) == again.choose({"x": float(i)})


def test_a_network_with_an_output_per_item_takes_no_new_item() -> None:
    policy = Policy({"kind": "neural_linear_ts", "heads": "per_arm", "hidden": [4]}, ["a", "b"], 2)
    policy.choose([1.0, 2.0])
    with pytest.raises(UserError, match="its network has an output for each"):
        policy.add("c")
    assert policy.choose([1.0, 2.0]).item in ("a", "b")
