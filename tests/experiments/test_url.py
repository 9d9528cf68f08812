"""Links: complete, readable, and validated like uploads."""

from __future__ import annotations

import gc
import itertools
import re
import tracemalloc
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bandits import Experiment, UserError
from bandits.agents import REGISTRY as AGENTS
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators.petshop import CLICK_RATES
from tests.support import often


def round_trip(e: Experiment) -> url.Shared:
    """Send an experiment as an address and parse it."""
    return url.parse_query(dict(parse_qsl(url.query(e), keep_blank_values=True)))


PLACES: list[dict[str, Any]] = [
    {"kind": "petshop"},
    {"kind": "sessions", "observed": "mood"},
    {"kind": "ranking", "features": "concatenation"},
]


def place_of(agent: dict[str, Any]) -> dict[str, Any]:
    """Return the first simulator that has what an agent requires."""
    return next(place for place in PLACES if requirements(agent) <= capabilities(place))


def requirements(agent: dict[str, Any]) -> frozenset[str]:
    cls = AGENTS[agent["kind"]]
    return cls.requires(cls.Params(**agent))


def capabilities(place: dict[str, Any]) -> frozenset[str]:
    cls = SIMULATORS[place["kind"]]
    return cls.describe(cls.Params(**place)).capabilities


def variants(model: type[Any]) -> list[dict[str, Any]]:
    """Return parameters of a kind, each with one field different from its default."""
    variants: list[dict[str, Any]] = [{}]
    for name in model.model_fields:
        variants += [{name: value} for value in model.choices(name) or ()]
        schema = model.model_json_schema()["properties"][name]
        for option in (schema, *schema.get("anyOf", [])):
            if "enum" in option:
                variants += [{name: value} for value in option["enum"]]
            elif option.get("type") in ("integer", "number"):
                low = option.get("minimum", option.get("exclusiveMinimum", 0))
                variants.append(
                    {name: low + 1 if option["type"] == "integer" else (low + 0.1) / 3 + 0.01}
                )
    kept = []
    for values in variants:
        try:
            model.model_validate(values)
        except ValueError:
            continue
        kept.append(values)
    return kept


@pytest.mark.parametrize("name", presets())
def test_presets_survive_a_round_trip(name: str) -> None:
    e = presets()[name].experiment
    assert round_trip(e) == (e, True)
    assert round_trip(e).experiment.hash == e.hash
    # except in lists, no percent-encoding
    assert re.fullmatch(r"[\w.=&~+\[\],{}\":-]+", unquote(url.query(e)))
    assert len(url.query(e)) < 1500


@pytest.mark.parametrize(
    ("group", "kind"), [("a", k) for k in AGENTS] + [("s", k) for k in SIMULATORS]
)
def test_every_field_of_every_kind_survives_a_round_trip(group: str, kind: str) -> None:
    registry: dict[str, Any] = AGENTS if group == "a" else SIMULATORS
    for values in variants(registry[kind].Params):
        agent = {"kind": kind, **values} if group == "a" else {"kind": "random"}
        simulator = {"kind": kind, **values} if group == "s" else place_of(agent)
        data = {
            "agents": [agent, {"kind": "random"}],
            "simulator": simulator,
            # DQN begins to learn after 1,000
            "steps": 2000,
            "replications": 2,
        }
        e = Experiment.model_validate(data)
        assert round_trip(e) == (e, True)


def test_special_values_survive_a_round_trip() -> None:
    rates = [list(row) for row in CLICK_RATES]
    # seventeen digits
    rates[0][0] = 0.1 + 0.2
    e = Experiment.model_validate(
        {
            "simulator": {"kind": "petshop", "click_rates": rates, "shock_step": 10},
            "agents": [
                {"kind": "linucb", "label": "123"},
                {"kind": "linucb", "label": "Ünïcode name", "alpha": 1e-7},
                {"kind": "linucb", "label": "null"},
                {"kind": "static_mlp", "hidden": [8, 4]},
            ],
            "seed": 2**53 - 1,
        }
    )
    assert round_trip(e) == (e, True)
    assert url.to_query(e)["agents.0.label"] == "123"
    assert url.to_query(e)["agents.3.hidden"] == "[8,4]"


@given(
    alpha=st.floats(0, 10, allow_nan=False),
    ridge=st.floats(1e-3, 100),
    seed=st.integers(0, 2**53 - 1),
    steps=st.integers(1001, 10_000_000),
    agents=st.lists(st.sampled_from(sorted(AGENTS)), min_size=1, max_size=12),
    place=st.sampled_from(PLACES[:2]),
)
def test_any_experiment_survives_a_round_trip(
    alpha: float, ridge: float, seed: int, steps: int, agents: list[str], place: dict[str, Any]
) -> None:
    entries = [
        {"kind": "linucb", "alpha": alpha, "ridge": ridge},
        *({"kind": k} for k in agents[1:] if requirements({"kind": k}) <= capabilities(place)),
    ]
    e = Experiment.model_validate(
        {"agents": entries, "simulator": place, "seed": seed, "steps": steps, "replications": 1}
    )
    assert round_trip(e) == (e, True)


def test_edited_links_are_detected_and_other_names_ignored() -> None:
    e = presets()["race"].experiment
    query = url.to_query(e)
    assert url.parse_query({**query, "view": "big", "utm_source": "mail"}) == (e, True)
    assert not url.parse_query({**query, "agents.0.alpha": "2.0"}).same
    del query["check"]
    # written by hand: no checksum
    assert url.parse_query(query).same
    assert url.holds_experiment(query)
    assert not url.holds_experiment({"utm_source": "mail", "steps": "5"})


CORPUS = [
    {"agents.0": "linucb", "agents.0.alpha": "NaN"},
    {"agents.0": "linucb", "agents.0.alpha": "1e999"},
    {"agents.0": "linucb", "agents.0.alpha": "-1"},
    {"agents.0": "linucb", "agents.0.alpha": "true"},
    {"agents.0": "linucb", "agents.0.alpha": ""},
    {"agents.0": "linucb", "agents.0.alpha": "9" * 5000},
    {"agents.0": "linucb", "agents.0.alpha": "[" * 100_000},
    {"agents.0": "linucb", "agents.0.sharing": "nobody"},
    {"agents.0": "linucb", "agents.0.nonsense": "1"},
    {"agents.0": "linucb", "agents.0.label": "=cmd|' /C calc'!A0"},
    {"agents.0": "linucb", "agents.0.label": "<script>alert(1)</script>"},
    {"agents.0": "linucb", "agents.0.label": "quote \" and ' and \\"},
    {"agents.0": "linucb", "agents.0.label": "x" * 10_000},
    {"agents.0": "linucb", "agents.0.label": "two\nlines\u2028three"},
    {"agents.0": "linucb", "agents.0.label": "A", "agents.1": "random", "agents.1.label": "A"},
    {"agents.0": "linucb", "agents.0.window": "5", "agents.0.gamma": "0.5"},
    {"agents.0.alpha": "1"},
    {"agents.0": ""},
    {"agents.7": "linucb"},
    {"agents.0": "linucb", "agents.2": "random"},
    {f"agents.{i}": "random" for i in range(13)},
    {f"agents.0.{chr(97 + i % 26)}{i}": "1" for i in range(1000)},
    {"simulator": "petshop"},
    {"simulator": "../../etc/passwd", "agents.0": "random"},
    {"simulator": "petshop", "simulator.n_products": "10000000", "agents.0": "linucb"},
    {"simulator": "petshop", "simulator.click_rates": "[[1]]", "agents.0": "linucb"},
    {"simulator": "classification", "simulator.data": "../../../etc/passwd", "agents.0": "linucb"},
    {"agents.0": "random", "steps": "1e3"},
    {"agents.0": "random", "steps": "-5"},
    {"agents.0": "random", "steps": "٣"},
    {"agents.0": "random", "seed": "99999999999999999999"},
    {"agents.0": "random", "replications": "0"},
    {"agents.0": "x" * 300_000},
]


@pytest.mark.parametrize("number", range(len(CORPUS)))
def test_invalid_links_are_refused_in_one_sentence(number: int) -> None:
    with pytest.raises(UserError) as refused:
        url.parse_query(CORPUS[number])
    one_sentence(str(refused.value))


def one_sentence(text: str) -> None:
    assert 0 < len(text) <= 400
    assert text.isprintable()


PARTS = [
    "simulator",
    "agents.0",
    "agents.1",
    "steps",
    "replications",
    "seed",
    "check",
    *(
        f"{part}.{name}"
        for part, registry in (
            ("simulator", SIMULATORS),
            ("agents.0", AGENTS),
            ("agents.1", AGENTS),
        )
        for name in itertools.chain.from_iterable(
            cls.Params.model_fields for cls in registry.values()
        )  # type: ignore[attr-defined]
    ),
]
VALUES = st.one_of(
    st.sampled_from(
        [
            *AGENTS,
            *SIMULATORS,
            "",
            "null",
            "true",
            "NaN",
            "-Infinity",
            "1e999",
            "[]",
            "{}",
            '"',
            "[[0.5]]",
        ]
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=60),
)


@settings(max_examples=often(80, 500))
@given(st.dictionaries(st.sampled_from(PARTS) | st.text(max_size=20), VALUES, max_size=10))
@example({"agents.0": "linucb", "agents.0.alpha": "[" * 5000})
def test_any_link_gives_an_experiment_or_one_sentence(query: dict[str, str]) -> None:
    try:
        parsed = url.parse_query(query)
    except UserError as sentence:
        one_sentence(str(sentence))
    else:
        assert round_trip(parsed.experiment) == (parsed.experiment, True)


@pytest.mark.slow
def test_malformed_links_retain_no_memory() -> None:
    def all_of_them() -> None:
        for query in CORPUS:
            with pytest.raises(UserError):
                url.parse_query(query)
        gc.collect()

    # fill caches first
    all_of_them()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(3):
        all_of_them()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    # less than one copy of the input
    assert grown < sum(len(str(query)) for query in CORPUS)


def test_links_are_parsed_as_written() -> None:
    e = Experiment.model_validate(
        {"agents": [{"kind": "linucb", "alpha": 1.5}], "simulator": {"kind": "petshop"}}
    )
    assert url.query(e) == (
        f"simulator=petshop&agents.0=linucb&agents.0.alpha=1.5&steps=20000&replications=16&seed=42&check={e.hash[:12]}"
    )
    assert quote(url.query(e), safe="=&") == url.query(e)
