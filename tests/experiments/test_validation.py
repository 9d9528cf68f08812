"""Input from a file, link or upload is a valid experiment or is refused in one sentence."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bandits import agents, simulators
from bandits.base.params import Params
from bandits.experiments.experiment import MAX_TEXT, Experiment, UserError, read
from tests.contract import worlds
from tests.support import often


def sentence_of(refusal: UserError) -> str:
    sentence = str(refusal)
    assert len(sentence) <= 400
    # one line, no control characters, encodable
    assert sentence.isprintable()
    assert sentence.strip() == sentence != ""
    return sentence


def refused(source: Any) -> str:
    with pytest.raises(UserError) as caught:
        read(source)
    return sentence_of(caught.value)


def survives(source: str | dict[str, Any]) -> bool:
    """Check that input survives a round trip or is refused in one sentence."""
    try:
        experiment = read(source)
    except UserError as refusal:
        sentence_of(refusal)
        return False
    again = read(experiment.model_dump_json())
    assert again == experiment
    assert again.hash == experiment.hash
    assert read(json.loads(experiment.model_dump_json())) == experiment
    assert len(set(experiment.labels)) == len(experiment.agents)
    return True


# experiments of all kinds, most with an error

numbers = st.one_of(
    st.integers(-2, 20),
    st.integers(),
    st.floats(),
    st.sampled_from([0.5, 1e-7, 1e308, 10**30, 10**6, 2**63]),
)
junk: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        numbers,
        st.text(max_size=8),
        st.just("x" * 5000),
        st.just("\ud800\x00\n"),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@cache
def typical(model: type[Params], name: str) -> st.SearchStrategy[Any]:
    """Generate values of about the right type for one field."""
    field = model.model_fields[name]
    choices = list(
        model.choices(name) or model.model_json_schema()["properties"][name].get("enum", [])
    )
    default = field.default
    if choices:
        return st.sampled_from(choices)
    if isinstance(default, tuple) and default and isinstance(default[0], float):  # shares
        weights = st.lists(st.integers(1, 9), min_size=len(default), max_size=len(default))
        shares = weights.map(lambda w: [x / sum(w) for x in w])
        return st.one_of(st.just(list(default)), shares, st.lists(st.floats(0, 1), max_size=7))
    if isinstance(default, tuple):
        return st.one_of(
            st.just(json.loads(json.dumps(default))), st.lists(st.integers(0, 2000), max_size=7)
        )
    if isinstance(default, int):
        return st.one_of(
            st.just(default), st.integers(1, 3000), st.sampled_from([0, -1, 10**7, 10**12])
        )
    if isinstance(default, float):
        return st.one_of(st.just(default), st.floats(0, 1), numbers)
    return st.one_of(st.none(), st.integers(0, 3000), st.text("ab c.", max_size=4))


@cache
def filled(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    model = (agents.REGISTRY.get(kind) or simulators.REGISTRY[kind]).Params
    names = [n for n in model.model_fields if n != "kind"]
    good = st.fixed_dictionaries(
        {"kind": st.just(kind)}, optional={n: typical(model, n) for n in names}
    )
    broken = st.dictionaries(
        st.one_of(st.sampled_from([*names, "kind"]), st.text(max_size=8)), junk, max_size=2
    )
    return st.one_of(good, good, st.builds(lambda a, b: {**a, **b}, good, broken))


def any_of(registry: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(sorted(registry)).flatmap(filled)


rarely = st.sampled_from([False] * 7 + [True])


@st.composite
def experiments(draw: st.DrawFn) -> str:
    """Generate JSON text, sometimes with a duplicate key, a huge exponent, or truncated."""
    data = {
        "simulator": draw(junk if draw(rarely) else any_of(simulators.REGISTRY)),
        "agents": draw(
            junk if draw(rarely) else st.lists(any_of(agents.REGISTRY), min_size=1, max_size=4)
        ),
        "steps": draw(junk if draw(rarely) else st.integers(1, 100_000)),
        "replications": draw(numbers if draw(rarely) else st.integers(1, 64)),
        "seed": draw(numbers if draw(rarely) else st.integers(0, 2**53 - 1)),
    }
    if draw(rarely):
        data.pop(draw(st.sampled_from(sorted(data))))
    if draw(rarely):
        data[draw(st.text(max_size=300))] = draw(junk)
    text = json.dumps(draw(junk) if draw(rarely) and draw(rarely) else data)
    if draw(rarely):
        text = text.replace('"kind":', '"kind": "linucb", "kind":', 1)
    if draw(rarely):
        text = text.replace("0.5", "1e999").replace("1,", "1e999,", 1)
    return text[:-1] if draw(rarely) and draw(rarely) else text


@settings(
    max_examples=often(120, 20_000),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(experiments())
def test_generated_experiments_are_valid_or_refused_in_one_sentence(text: str) -> None:
    survives(text)


@settings(max_examples=often(120, 3000))
@given(junk)
def test_any_json_value_is_valid_or_refused_in_one_sentence(value: Any) -> None:
    survives(json.dumps(value))
    if isinstance(value, dict):
        survives(value)


@settings(max_examples=often(120, 3000))
@given(st.one_of(st.text(), st.binary()))
def test_any_text_is_refused_in_one_sentence(text: str | bytes) -> None:
    refused(text)


@pytest.mark.slow
def test_many_generated_experiments_are_valid() -> None:
    """Otherwise the tests above would check only refusals."""
    valid = []

    @settings(max_examples=often(120, 1000))
    @given(experiments())
    def count(text: str) -> None:
        valid.append(survives(text))

    count()
    assert 0.1 < np.mean(valid) < 0.9


# messages


def experiment(**changes: Any) -> dict[str, Any]:
    return {"agents": [{"kind": "linucb"}], "steps": 100, "replications": 2, **changes}


def with_agent(**params: Any) -> dict[str, Any]:
    return experiment(agents=[{"kind": "linucb"}, {"kind": "linucb", **params}])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (with_agent(alpha=11), ("agents.1.alpha", "11", "0", "10")),
        (with_agent(alpha=-0.5), ("agents.1.alpha", "-0.5", "0", "10")),
        (with_agent(ridge=0), ("agents.1.ridge", "0", "10,000")),
        (with_agent(sharing="some"), ("agents.1.sharing", "some", "per_arm", "shared", "hybrid")),
        (with_agent(alpha="1"), ("agents.1.alpha", "a number from 0 to 10")),
        (with_agent(alpha=True), ("agents.1.alpha", "true", "a number")),
        (with_agent(beta=1), ("agents.1.beta", "not a known field")),
        (with_agent(label="<b>"), ("agents.1.label", "<b>", "letters")),
        (experiment(steps=0), ("steps", "0", "1", "10,000,000")),
        (experiment(steps=2.5), ("steps", "2.5", "a whole number")),
        (experiment(steps=True), ("steps", "true", "a whole number")),
        (experiment(replications=5000), ("replications", "5000", "4,096")),
        (experiment(seed=-1), ("seed", "-1")),
        (experiment(agents=[]), ("agents", "1 to 12")),
        (experiment(agents=[{"kind": "random"}] * 13), ("agents", "1 to 12")),
        (
            experiment(agents=[{"kind": "psychic"}]),
            ("agents.0.kind", "psychic", "linucb", "oracle"),
        ),
        (experiment(agents=[{}]), ("agents.0.kind", "missing")),
        (experiment(simulator={"kind": "zoo"}), ("simulator.kind", "zoo", "petshop")),
        (
            experiment(simulator={"kind": "petshop", "n_products": 1}),
            ("simulator.n_products", "1", "2"),
        ),
        (
            experiment(simulator={"kind": "petshop", "shock_step": 0}),
            ("simulator.shock_step", "0", "null"),
        ),
        (
            experiment(simulator={"kind": "petshop", "shock_step": True}),
            ("simulator.shock_step", "true"),
        ),
        (experiment(colour="red"), ("colour", "not a known field", "agents")),
        ({"steps": 10}, ("agents", "missing")),
        ([], ("experiment",)),
        (3, ("experiment",)),
        (None, ("experiment",)),
        ("linucb", ("experiment",)),
    ],
)
def test_messages_state_field_value_and_range(source: Any, words: tuple[str, ...]) -> None:
    sentence = refused(json.dumps(source))
    assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"agents": [{"kind": "linucb", "alpha": NaN}]}', ("NaN", "finite")),
        ('{"agents": [{"kind": "linucb", "alpha": -Infinity}]}', ("-Infinity", "finite")),
        (
            '{"agents": [{"kind": "linucb", "alpha": 1e999}]}',
            ("agents.0.alpha", "a number from 0 to 10"),
        ),
        ('{"agents": [{"kind": "linucb"}], "steps": 1e999}', ("steps", "a whole number")),
        ('{"agents": [{"kind": "linucb"}], "steps": ' + "9" * 5000 + "}", ("digits",)),
        ('{"agents": [{"kind": "linucb"}], "steps": 5, "steps": 6}', ("steps", "twice")),
        ('{"agents": [{"kind": "linucb", "kind": "random"}]}', ("kind", "twice")),
        ("{", ("not JSON", "line 1")),
        ("", ("not JSON",)),
        (b"\xff\xfe\xfd", ("UTF-8",)),
        ("[" * 100_000 + "]" * 100_000, ("nested too deeply",)),
        (" " * (MAX_TEXT + 1), (f"{MAX_TEXT:,}",)),
    ],
)
def test_broken_text_is_refused(text: str | bytes, words: tuple[str, ...]) -> None:
    sentence = refused(text)
    assert all(word in sentence for word in words), sentence


def test_python_data_that_is_not_json_is_refused() -> None:
    round_and_round: dict[str, Any] = {}
    round_and_round["agents"] = round_and_round
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"agents": deep}
    for source in (
        {"steps": object()},
        {"steps": 10**5000},
        {"steps": np.arange(3)},
        {1: 2},
        round_and_round,
        deep,
    ):
        refused(source)


def test_impossible_sizes_are_refused_by_estimate() -> None:
    """Refuse a million per-arm models of 81 numbers, twice, and eight rows before any
    allocation.
    """
    shop = {"kind": "petshop", "n_products": 1_000_000}
    sentence = refused(experiment(simulator=shop, replications=8))
    assert all(word in sentence for word in ("GiB", "1,000,000", "arms", "replications"))
    assert refused(
        experiment(simulator={"kind": "petshop", "n_products": 10_000_000, "layout": "per_row"})
    )
    wide = {"kind": "static_mlp", "interactions": 2_000_000, "hidden": [1024] * 6}
    assert "GiB" in refused(
        experiment(agents=[wide], replications=4096, simulator={**shop, "n_users": 10_000_000})
    )


def test_memory_is_an_upper_bound_of_the_arrays() -> None:
    lane = worlds.make("linucb", simulators.REGISTRY["petshop"], rows=range(4))
    held = sum(np.asarray(v).nbytes for v in lane.state_dict().values())
    assert read(experiment(replications=4)).memory() > held


def test_an_agent_that_requires_missing_capabilities_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`Cascade` provides no log."""
    monkeypatch.setitem(simulators.REGISTRY, "test_cascade", worlds.Cascade)
    trained = (agents.REGISTRY["random"].Params(), agents.REGISTRY["static_mlp"].Params())
    pair = Experiment.model_construct(
        simulator=worlds.Cascade.Params(), agents=trained, steps=10, replications=1
    )
    sentence = rf"agents.1 \(Static MLP\) requires logged interactions, which {worlds.Cascade.title} does not provide"  # noqa: E501
    with pytest.raises(ValueError, match=sentence):
        pair._possible()


def test_labels() -> None:
    names = read(
        experiment(agents=[{"kind": "linucb"}, {"kind": "linucb"}, {"kind": "lints"}])
    ).labels
    assert names == ("LinUCB", "LinUCB 2", "LinTS")
    named = [
        {"kind": "linucb"},
        {"kind": "linucb", "label": "LinUCB"},
        {"kind": "random", "label": "LinUCB 2"},
    ]
    assert read(experiment(agents=named)).labels == ("LinUCB 3", "LinUCB", "LinUCB 2")
    sentence = refused(
        experiment(agents=[{"kind": "linucb", "label": "A"}, {"kind": "lints", "label": "A"}])
    )
    assert "'A'" in sentence
    assert "twice" in sentence


def test_the_hash_depends_on_content_only() -> None:
    agents = [{"kind": "linucb", "alpha": 1.0}]
    plain = read(experiment(simulator={"kind": "petshop", "n_products": 10}, seed=1, agents=agents))
    turned = (
        '{"seed": 1, "replications": 2, "steps": 100, "agents": [{"alpha": 1, "kind": "linucb"}], '
    )
    turned += '"simulator": {"n_products": 10, "n_users": 1000, "kind": "petshop"}}'
    assert read(turned).hash == plain.hash
    assert len(plain.hash) == 64
    changes: list[dict[str, Any]] = [
        {"seed": 2},
        {"steps": 101},
        {"simulator": {"kind": "classification"}},
    ]
    for change in [*changes, {"agents": [{"kind": "linucb", "alpha": 1.5}]}]:
        assert read({**json.loads(turned), **change}).hash != plain.hash


def test_an_experiment_is_frozen() -> None:
    one = read(experiment())
    with pytest.raises(ValueError, match="frozen"):
        one.steps = 5  # type: ignore[misc]
