"""Changes of a simulator during a run do what their parameters state, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandits import Experiment, UserError, read, run
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.experiments.url import parse_query, to_query
from bandits.simulators import REGISTRY
from bandits.simulators.base import Simulator
from bandits.simulators.petshop import CLICK_RATES, PERSONAS, PetShop
from bandits.simulators.petshop_rates import MATURE_RATES, RateSchedule

DRIFT = {
    "kind": "drift",
    "start": 40,
    "end": 90,
    "from": "new_puppy_parent",
    "to": "mature_dog_owner",
}
# the simulators that offer shocks and broken features
SMALL: dict[str, dict[str, Any]] = {
    "petshop": {"n_products": 10, "n_users": 40},
    "classification": {"data": "wine"},
    "synthetic": {"n_arms": 3, "n_features": 4},
    "wheel": {"delta": 0.5},
    "ranking": {
        "n_users": 20,
        "n_items": 30,
        "n_candidates": 8,
        "slate": 3,
        "embedding": 4,
        "temperature": 0.01,
    },
}


def make(kind: str, *changes: dict[str, Any], rows: int = 4, **options: Any) -> Simulator:
    cls = REGISTRY[kind]
    return cls(cls.Params(**{**SMALL[kind], **options}, changes=changes), Streams(3, range(rows)))


def shop(*changes: dict[str, Any], rows: int = 4, **options: Any) -> PetShop:
    made = make("petshop", *changes, rows=rows, **options)
    assert isinstance(made, PetShop)
    return made


def experiment(
    *changes: dict[str, Any], kind: str = "petshop", steps: int = 200, **options: Any
) -> Experiment:
    simulator = {"kind": kind, **SMALL[kind], **options, "changes": list(changes)}
    return read(
        {"simulator": simulator, "agents": [{"kind": "random"}, {"kind": "oracle"}], "steps": steps}
    )


def plainly(step: int, changes: list[Any]) -> FloatArray:
    """Compute the click probabilities of a step without the code under test."""
    rates = [list(row) for row in CLICK_RATES]
    for c in sorted((c for c in changes if c.kind == "shock" and c.at <= step), key=lambda c: c.at):
        if c.how == "table":
            rates = [list(row) for row in c.table]
        else:
            rates = rates[1:] + rates[:1] if c.how == "next" else rates[::-1]
    for c in sorted((c for c in changes if c.kind == "drift"), key=lambda c: c.start):
        way = (
            0.0
            if step <= c.start
            else 1.0
            if step >= c.end
            else (step - c.start) / (c.end - c.start)
        )
        source, rows = PERSONAS.index(c.source), [*rates, list(MATURE_RATES)]
        target = rows[[*PERSONAS, "mature_dog_owner"].index(c.target)]
        rates[source] = [
            old + way * (new - old) for old, new in zip(rates[source], target, strict=True)
        ]
    for c in changes:
        if c.kind == "season":
            swing = [
                1 + c.amplitude * np.sin(2 * np.pi * (step / c.period + k / 5)) for k in range(5)
            ]
            rates = [
                [rate * factor for rate, factor in zip(row, swing, strict=True)] for row in rates
            ]
    return np.clip(rates, 0, 1)


@st.composite
def schedules(draw: st.DrawFn) -> list[Any]:
    steps = st.integers(1, 60)
    shocks = draw(st.lists(steps, max_size=3, unique=True))
    found = [
        {"kind": "shock", "at": at, "how": draw(st.sampled_from(["next", "reverse"]))}
        for at in shocks
    ]
    for source in draw(st.lists(st.sampled_from(PERSONAS), max_size=2, unique=True)):
        start = draw(steps)
        target = draw(st.sampled_from([p for p in (*PERSONAS, "mature_dog_owner") if p != source]))
        drift = {
            "kind": "drift",
            "start": start,
            "end": start + draw(st.integers(1, 30)),
            "from": source,
            "to": target,
        }
        found.append(drift)
    for period in draw(st.lists(st.integers(2, 50), max_size=2, unique=True)):
        found.append({"kind": "season", "period": period, "amplitude": draw(st.floats(0, 1))})
    return list(PetShop.Params(changes=found).changes)


@settings(max_examples=100, deadline=None)
@given(schedules(), st.integers(0, 99), st.integers(1, 20))
def test_click_probabilities_are_those_of_the_schedule(
    changes: list[Any], step: int, n: int
) -> None:
    found = RateSchedule(CLICK_RATES, changes)
    np.testing.assert_allclose(
        found.rates(step, n), [plainly(t, changes) for t in range(step, step + n)], atol=1e-12
    )
    first, end = found.interval(step)
    assert first <= step < end
    for t in range(first, min(end, 120)):
        assert np.array_equal(found.rates(t), found.rates(step))
    changed = [np.abs(plainly(t, changes) - plainly(t - 1, changes)).max() for t in range(1, 100)]
    assert found.variation(100) == pytest.approx(sum(changed), abs=1e-9)


def test_a_step_does_not_depend_on_the_steps_before_it() -> None:
    changes = [
        DRIFT,
        {"kind": "shock", "at": 60, "how": "reverse"},
        {"kind": "traffic", "at": 70, "shares": [1, 0, 0, 0]},
    ]
    one, other = shop(*changes), shop(*changes)
    forward = [one.probabilities(one.round_at(step)) for step in range(120)]
    for step in np.random.default_rng(0).permutation(120):
        assert np.array_equal(other.probabilities(other.round_at(int(step))), forward[step])


def test_a_drift_ends_at_the_new_preferences_and_moves_one_persona() -> None:
    found = RateSchedule(CLICK_RATES, shop(DRIFT).params.changes)
    assert found.rates(40)[0].tolist() == [list(row) for row in CLICK_RATES]
    np.testing.assert_allclose(found.rates(65)[0][0], (np.array(CLICK_RATES[0]) + MATURE_RATES) / 2)
    np.testing.assert_allclose(found.rates(90)[0], [MATURE_RATES, *CLICK_RATES[1:]])
    assert found.interval(500) == (90, 2**62)


def test_a_shock_equals_the_shock_step() -> None:
    def result(**simulator: Any) -> Any:
        agents = [
            {"kind": "linucb"},
            {"kind": "static_mlp", "interactions": 1000, "epochs": 1},
            {"kind": "beta_ts"},
        ]
        parts = {"kind": "petshop", "n_products": 10, **simulator}
        return run(
            read({"simulator": parts, "agents": agents, "steps": 300, "replications": 3}), workers=0
        )

    one, other = result(shock_step=120), result(changes=[{"kind": "shock", "at": 120}])
    for label, history in one.histories.items():
        for name, sums in history.sums.items():
            assert np.array_equal(sums, other.histories[label].sums[name]), (label, name)
    assert one.experiment.hash != other.experiment.hash


def test_no_changes_leave_the_hash_as_it_was() -> None:
    bare = read({"simulator": {"kind": "petshop"}, "agents": [{"kind": "linucb"}]})
    assert (
        bare.hash
        == read(
            {"simulator": {"kind": "petshop", "changes": []}, "agents": [{"kind": "linucb"}]}
        ).hash
    )
    assert bare.hash == "436246ae71399e5cbafc73459cd11dd74b4a09482b556d279a8465261aba90e4"


def test_traffic_has_the_shares_and_keeps_what_was_drawn() -> None:
    shares = [0.1, 0.0, 0.6, 0.3]
    before, after = (
        shop(n_users=500),
        shop({"kind": "traffic", "at": 100, "shares": shares}, n_users=500),
    )
    personas = {}
    for step in range(600):
        old, new = before.round_at(step), after.round_at(step)
        personas |= dict(zip(old.users.tolist(), old.segments.tolist(), strict=True))
        if step < 100:
            assert np.array_equal(old.users, new.users)
        assert all(
            personas.get(user, p) == p
            for user, p in zip(new.users.tolist(), new.segments.tolist(), strict=True)
        )
    drawn = np.concatenate([after.round_at(step).segments for step in range(100, 6100)])
    counts = np.bincount(drawn, minlength=4) / len(drawn)
    error = np.sqrt(np.array(shares) * (1 - np.array(shares)) / len(drawn))
    # 500 users: shares in steps of 1/500
    assert (np.abs(counts - shares) <= 4.5 * error + 1 / 500).all()
    assert (
        len(np.unique(np.concatenate([after.round_at(step).users for step in range(100, 2000)])))
        > 250
    )


@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_traffic_changes_at_its_step_in_every_layout(layout: str) -> None:
    made = shop(
        {"kind": "traffic", "at": 7, "shares": [0, 0.5, 0, 0.5]}, rows=6, n_users=400, layout=layout
    )
    segments = np.stack([made.round_at(step).segments for step in range(7, 2007)])
    assert np.isin(segments[0], [1, 3]).all()
    share = (segments == 3).mean(axis=0)  # of each row
    assert (np.abs(share - 0.5) <= 4.5 * 0.5 / np.sqrt(2000)).all()
    assert len(np.unique(np.stack([made.round_at(step).segments for step in range(7)]))) > 2


@pytest.mark.parametrize("features", ["additive", "interaction", "both"])
def test_a_broken_feature_is_broken_and_taste_stays(features: str) -> None:
    faults: list[dict[str, Any]] = [
        {"kind": "features", "at": 10, "column": 2, "how": "missing"},
        {"kind": "features", "at": 20, "column": 7, "how": "shifted", "by": 0.5},
        {"kind": "features", "at": 30, "column": 1, "how": "scaled", "by": -3.0},
        {"kind": "features", "at": 40, "column": 0, "how": "swapped", "other": 7},
    ]
    sound, broken = shop(features=features), shop(*faults, features=features)
    for step in (0, 9, 10, 20, 35, 40, 80):
        expected, now = sound.round_at(step).features.copy(), broken.round_at(step)
        if step >= 10:
            expected[..., 2] = 0
        if step >= 20:
            expected[..., 7] += 0.5
        if step >= 30:
            expected[..., 1] *= -3
        if step >= 40:
            expected[..., [0, 7]] = expected[..., [7, 0]]
        np.testing.assert_allclose(now.features, expected)
        assert (np.diff(now.contexts.columns, axis=-1) > 0).all()
        assert now.contexts.columns.shape[-1] == broken.spec.n_stored
        assert np.array_equal(sound.probabilities(sound.round_at(step)), broken.probabilities(now))
    spanned = broken.features(None)
    assert np.linalg.matrix_rank(
        np.vstack([spanned, now.features.reshape(-1, spanned.shape[1])])
    ) == np.linalg.matrix_rank(spanned)


@pytest.mark.parametrize("kind", ["classification", "synthetic", "wheel", "ranking"])
def test_dense_features_break_the_same_way(kind: str) -> None:
    swap = {"kind": "features", "at": 5, "column": 0, "how": "swapped", "other": 1}
    shift = {"kind": "features", "at": 10, "column": 1, "how": "shifted", "by": 2.0}
    sound, broken = make(kind), make(kind, swap, shift)
    # a feature of each class's block: the 13 of wine and a constant
    block = sound.spec.n_features if kind != "classification" else 14
    for step in (4, 5, 10):
        expected, now = sound.round_at(step).features.copy(), broken.round_at(step)
        if kind == "classification":
            arm = np.arange(expected.shape[1])
            expected = expected[:, arm, :].reshape(*expected.shape[:2], -1, block)[:, arm, arm]
        if step >= 5:
            expected[..., [0, 1]] = expected[..., [1, 0]]
        if step >= 10:
            expected[..., 1] += 2
        got = now.features
        if kind == "classification":
            got = got.reshape(*got.shape[:2], -1, block)[:, arm, arm]
        np.testing.assert_allclose(got, expected)
        assert np.array_equal(
            now.contexts.dense_single(now.context), now.features.astype(np.float32)
        )
        assert np.array_equal(sound.probabilities(sound.round_at(step)), broken.probabilities(now))


@pytest.mark.parametrize("how", ["next", "reverse"])
def test_a_shock_permutes_the_right_answers(how: str) -> None:
    sound, shaken = (
        make("classification"),
        make("classification", {"kind": "shock", "at": 3, "how": how}),
    )
    moved = {"next": [1, 2, 0], "reverse": [2, 1, 0]}[how]
    for step in range(6):
        label = sound.probabilities(sound.round_at(step)).argmax(axis=1)
        now = shaken.probabilities(shaken.round_at(step)).argmax(axis=1)
        assert now.tolist() == (label if step < 3 else np.array(moved)[label]).tolist()


@pytest.mark.parametrize("kind", ["synthetic", "wheel", "ranking"])
def test_a_shock_changes_expected_rewards_from_its_step_on(kind: str) -> None:
    sound, shaken = make(kind), make(kind, {"kind": "shock", "at": 30})
    different = [
        not np.array_equal(
            sound.probabilities(sound.round_at(t)), shaken.probabilities(shaken.round_at(t))
        )
        for t in range(60)
    ]
    assert not any(different[:30])
    assert any(different[30:])
    assert all(
        np.array_equal(sound.round_at(t).features, shaken.round_at(t).features)
        for t in range(0, 60, 7)
    )


@pytest.mark.parametrize("kind", SMALL)
def test_the_oracle_loses_nothing_through_changes(kind: str) -> None:
    changes = [{"kind": "shock", "at": 50}, {"kind": "features", "at": 80, "how": "missing"}]
    found = run(experiment(*changes, kind=kind), workers=0)
    regret = found.histories["Oracle"].sums
    np.testing.assert_allclose(regret["best_value"][-1], regret["value"][-1])


def test_links_and_files_hold_changes() -> None:
    changes = [
        DRIFT,
        {"kind": "shock", "at": 10, "how": CLICK_RATES},
        {"kind": "season", "period": 50, "amplitude": 0.2},
    ]
    e = experiment(*changes)
    assert parse_query(to_query(e)).experiment.hash == e.hash
    assert parse_query(to_query(e)).same
    again = read(e.model_dump_json())
    assert again == e
    assert again.simulator.model_dump(mode="json")["changes"][0]["from"] == "new_puppy_parent"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            [{"kind": "shock", "at": 200}],
            ("simulator.changes.0", "step 200", "before the run's end, 200"),
        ),
        ([{"kind": "shock", "at": 0}], ("simulator.changes.0.at is 0", "from 1 to 100,000,000")),
        (
            [{"kind": "shok", "at": 5}],
            ("changes.0.kind is 'shok'", "shock, drift, season, traffic, features"),
        ),
        ([{"kind": "shock"}], ("simulator.changes.0.at is missing",)),
        (
            [{"kind": "shock", "at": 5, "how": "left"}],
            ("changes.0.how is left", "next, reverse, table"),
        ),
        (
            [{"kind": "shock", "at": 5, "how": [[0.1, 0.1, 0.1, 0.1, 1.2]] * 4}],
            ("changes.0.table", "1.2", "1"),
        ),
        ([{"kind": "shock", "at": 5, "how": "table"}], ("changes.0: table", "how table")),
        (
            [{"kind": "shock", "at": 5}] * 2,
            ("changes.0 and simulator.changes.1 contradict", "step 5"),
        ),
        ([{**DRIFT, "end": 40}], ("changes.0: end is 40", "after start, 40")),
        ([{**DRIFT, "to": "new_puppy_parent"}], ("from and to are both",)),
        ([{**DRIFT, "to": "old"}], ("changes.0.to is old", "mature_dog_owner")),
        (
            [DRIFT, {**DRIFT, "start": 80, "end": 99}],
            ("contradict each other", "new_puppy_parent", "same time"),
        ),
        ([{"kind": "season", "amplitude": 2}], ("changes.0.amplitude is 2", "from 0 to 1")),
        ([{"kind": "season"}] * 2, ("contradict each other", "period")),
        (
            [{"kind": "traffic", "at": 9, "shares": [0.5, 0.5]}],
            ("shares has 2 numbers", "4, one per persona"),
        ),
        ([{"kind": "traffic", "at": 9, "shares": [0.5] * 4}], ("changes.0: shares", "add up to 1")),
        ([{"kind": "features", "at": 9, "column": 9}], ("changes.0 names feature 9", "0 to 8")),
        ([{"kind": "features", "at": 9, "how": "swapped"}], ("changes.0: other",)),
        (
            [
                {"kind": "features", "at": 9, "column": 2},
                {"kind": "features", "at": 9, "column": 1, "how": "swapped", "other": 2},
            ],
            ("contradict each other", "both break feature 2 at step 9"),
        ),
        ("x", ("simulator.changes is x", "a list of at most 20")),
        ([{"kind": "shock", "at": 5, "z": 1}], ("changes.0.z is not a known field",)),
    ],
    ids=str,
)
def test_a_change_that_cannot_be_is_refused_in_one_sentence(
    changes: Any, words: tuple[str, ...]
) -> None:
    simulator = {"kind": "petshop", **SMALL["petshop"], "changes": changes}
    with pytest.raises(UserError) as error:
        read({"simulator": simulator, "agents": [{"kind": "random"}], "steps": 200})
    assert all(word in str(error.value) for word in words), error.value
    assert "\n" not in str(error.value)


def test_a_shock_step_and_a_shock_of_the_same_step_contradict() -> None:
    with pytest.raises(
        UserError, match=r"simulator\.changes\.0 and simulator\.shock_step contradict"
    ):
        experiment({"kind": "shock", "at": 50}, shock_step=50)


def test_a_simulator_refuses_kinds_that_it_does_not_offer() -> None:
    with pytest.raises(
        UserError,
        match=r"simulator\.changes\.0\.kind is 'season'; it must be one of shock, features",
    ):
        experiment({"kind": "season"}, kind="wheel")
