"""Launches, withdrawals and products that differ do what their parameters state, and
nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import UserError, read, run
from bandits.base.randomness import Streams
from bandits.experiments.lockstep import Lockstep, make_lane
from bandits.experiments.url import parse_query, to_query
from bandits.results.change.marks import description
from bandits.simulators.petshop import CATEGORIES, CLICK_RATES, PetShop

LAUNCH = {"kind": "launch", "at": 40, "items": 3, "category": "Fish", "quality": 1.5}
WITHDRAWAL = {"kind": "withdraw", "at": 70, "items": 2}
AGENTS = ["linucb", "beta_ts", "ucb1", "epsilon_greedy", "popularity", "random", "oracle"]


def shop(
    *changes: dict[str, Any], rows: int = 3, n: int = 30, seed: int = 3, **options: Any
) -> PetShop:
    given: dict[str, Any] = {"n_products": n, "n_users": 200, **options, "changes": changes}
    return PetShop(PetShop.Params(**given), Streams(seed, range(rows)))


def experiment(
    agents: list[Any], *changes: dict[str, Any], steps: int = 120, **options: Any
) -> Any:
    simulator = {
        "kind": "petshop",
        "n_products": 30,
        "n_users": 200,
        **options,
        "changes": list(changes),
    }
    given = [{"kind": agent} if isinstance(agent, str) else agent for agent in agents]
    return read({"simulator": simulator, "agents": given, "steps": steps, "replications": 3})


# products that differ


def test_the_variation_of_products_of_another_quality_is_not_that_of_the_categories() -> None:
    """A product of three times the rate changes more at a shock than any category does."""
    for quality, known in ((1.0, True), (3.0, False)):
        e = experiment(["random"], {"kind": "shock", "at": 50}, {**LAUNCH, "quality": quality})
        assert (e.simulator_class().variation(e.simulator, e.steps) is not None) == known


def test_a_shop_without_variety_keeps_its_hash_and_its_numbers() -> None:
    new = {"variety": 0.0, "hints": 0.0, "persona_shares": [0.25] * 4}
    bare, stated = (
        read({"simulator": {"kind": "petshop", **o}, "agents": [{"kind": "linucb"}]})
        for o in ({}, new)
    )
    assert (
        bare.hash
        == stated.hash
        == "436246ae71399e5cbafc73459cd11dd74b4a09482b556d279a8465261aba90e4"
    )
    made = shop()
    table = np.array(CLICK_RATES)[made._personas[:, made.round_at(0).users[0]]][0]
    assert np.array_equal(made.probabilities(made.round_at(0))[0], table[made._categories[0]])


@pytest.mark.parametrize("variety", [0.15, 0.5])
def test_variety_multiplies_each_products_rates_by_one_factor_of_mean_one(variety: float) -> None:
    plain, made = shop(n=5000), shop(n=5000, variety=variety)
    assert np.array_equal(plain._categories, made._categories)
    assert np.array_equal(plain._personas, made._personas)
    rates, varied = (s._rates_at(0).probabilities for s in (plain, made))
    free = (varied < 0.95).all(axis=0)
    factor = varied[:, free] / rates[:, free]
    # of all personas
    np.testing.assert_allclose(factor, np.broadcast_to(factor[0], factor.shape))
    assert varied.max() <= 0.95
    assert made._factor is not None
    z = (np.log(made._factor[0]) + variety**2 / 2) / variety
    assert abs(z.mean()) < 5.4 / np.sqrt(5000)
    assert abs(z.var() - 1) < 5.4 * np.sqrt(2 / 5000)


@pytest.mark.parametrize("hints", [0.3, 1.0])
def test_a_hint_has_the_correlation_with_what_differs(hints: float) -> None:
    made = shop(n=20_000, variety=0.3, hints=hints, rows=1)
    assert made._factor is not None
    assert made._hints is not None
    z = np.log(made._factor[0])
    found = np.corrcoef(z, made._hints[0])[0, 1]
    assert (
        abs(np.arctanh(min(found, 1 - 1e-12)) - np.arctanh(hints)) < 5.4 / np.sqrt(20_000)
        if hints < 1
        else found > 1 - 1e-9
    )


@pytest.mark.parametrize(("features", "more"), [("additive", 1), ("interaction", 21), ("both", 21)])
def test_hints_are_a_column_and_its_products_with_persona_and_category(
    features: str, more: int
) -> None:
    plain, made = shop(features=features), shop(features=features, hints=0.8)
    old, new = plain.round_at(5).features, made.round_at(5).features
    D = old.shape[2]
    assert new.shape[2] == D + more == made.spec.n_features
    assert np.array_equal(new[..., :D], old)
    assert made._hints is not None
    hint = np.broadcast_to(made._hints[0], new.shape[:2])
    assert np.array_equal(new[..., D], hint)
    if more == 21:
        persona = made.round_at(5).segments
        cell = persona[:, None] * 5 + made._categories[0]
        assert np.array_equal(new[..., D + 1 :], np.eye(20)[cell] * hint[..., None])
    every = made.round_at(9).features.reshape(-1, D + more)
    spanned = made.features(None)
    assert np.linalg.matrix_rank(np.vstack([spanned, every])) == np.linalg.matrix_rank(spanned)


def test_personas_have_their_shares() -> None:
    made = shop(n_users=1000, persona_shares=[0.45, 0.3, 0.23, 0.02])
    assert np.bincount(made._personas[0], minlength=4).tolist() == [450, 300, 230, 20]
    few = shop(n_users=7, persona_shares=[0.5, 0.5, 0, 0])
    assert sorted(np.bincount(few._personas[0], minlength=4).tolist()) == [0, 0, 3, 4]
    seen = np.concatenate([made.round_at(t).segments for t in range(4000)])
    assert abs((seen == 3).mean() - 0.02) < 5.4 * np.sqrt(0.02 * 0.98 / len(seen))


# launches and withdrawals


@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_items_come_and_go_at_their_steps(layout: str) -> None:
    made = shop(LAUNCH, WITHDRAWAL, layout=layout)
    fish = made._categories[made._layout_index] == CATEGORIES.index("Fish")
    before, after, last = (made.round_at(t).available for t in (39, 40, 70))
    assert (~before).sum(axis=1).tolist() == [3] * 3
    assert fish[~before].all()
    assert after.all()
    assert (~last).sum(axis=1).tolist() == [2] * 3
    assert all(np.array_equal(made.round_at(t).available, before) for t in (0, 20, 39))
    forward = [made.round_at(t).available.copy() for t in range(90)]
    other = shop(LAUNCH, WITHDRAWAL, layout=layout)
    for t in np.random.default_rng(0).permutation(90):
        assert np.array_equal(other.round_at(int(t)).available, forward[t])


def test_a_change_does_not_exchange_the_items_of_another() -> None:
    one, two = shop(LAUNCH), shop(LAUNCH, {"kind": "launch", "at": 50, "items": 5})
    assert np.array_equal(one._stock.cohorts[0], two._stock.cohorts[0])
    assert not set(two._stock.cohorts[0][0]) & set(two._stock.cohorts[1][0])


def test_quality_is_a_factor_of_the_launched_items_alone() -> None:
    plain, made = shop(), shop(LAUNCH, variety=0)
    rates, now = (s._rates_at(50).probabilities for s in (plain, made))
    new = ~made.round_at(0).available[0]
    assert np.array_equal(now[:, ~new], rates[:, ~new])
    np.testing.assert_allclose(now[:, new], np.minimum(rates[:, new] * 1.5, 0.95))


def test_the_optimum_is_that_of_the_items_of_the_moment() -> None:
    made = shop(LAUNCH, WITHDRAWAL)
    for step in range(0, 100, 7):
        round = made.round_at(step)
        p = np.where(round.available, made.probabilities(round), np.nan)
        _, truth = made.respond(round, round.available.argmax(axis=1)[:, None], np.zeros((3, 1)))
        np.testing.assert_allclose(truth.best_value, np.nanmax(p, axis=1))
        np.testing.assert_allclose(truth.random_value, np.nanmean(p, axis=1))


@pytest.mark.parametrize("kind", AGENTS)
def test_compiled_steps_equal_single_steps_around_a_launch(kind: str) -> None:
    e = experiment(
        [kind],
        LAUNCH,
        {**WITHDRAWAL, "at": 100},
        {"kind": "shock", "at": 60},
        variety=0.3,
        hints=0.5,
    )
    fast, slow = make_lane(e, 0), make_lane(e, 0)
    slow.use_compiled = False
    a, b = fast.advance(120), slow.advance(120)
    assert all(
        np.array_equal(getattr(a, n), getattr(b, n))
        for n in ("items", "rewards", "value", "best_value")
    )
    missing = ~slow.simulator.round_at(0).available
    assert not any(missing[r, a.items[:40, r, 0]].any() for r in range(3))
    gone = ~slow.simulator.round_at(110).available
    assert not any(gone[r, a.items[100:, r, 0]].any() for r in range(3))


def test_compiled_steps_are_used_while_every_item_is_available() -> None:
    made = shop(LAUNCH, WITHDRAWAL)
    assert made.predraw(0, 10) is None
    steps = made.predraw(40, 100)
    assert steps is not None
    assert len(steps.row) == 30
    assert made.predraw(70, 10) is None


def test_regret_counts_and_marks_follow() -> None:
    e = experiment(["oracle", "random"], LAUNCH, WITHDRAWAL)
    found = run(e, workers=0).histories["Oracle"]
    np.testing.assert_allclose(found.sums["best_value"][-1], found.sums["value"][-1])
    new = ~Lockstep(e).simulator.round_at(0).available
    at = int(np.searchsorted(found.count_grid, 40))
    assert found.counts[at][new].sum() == 0
    assert found.counts[-1][new].sum() > 0
    assert (
        "launch of 3 items, quality 1.5 at step 40; withdrawal of 2 items at step 70"
        in description(e)
    )
    assert parse_query(to_query(e)).experiment.hash == e.hash


def test_a_log_holds_only_items_that_were_available() -> None:
    made, plain = shop(LAUNCH), shop()
    assert made.round_at(0).available[0][made.log(0, 4000).items].all()
    assert np.array_equal(plain.log(0, 50).items, shop(WITHDRAWAL).log(0, 50).items)
    assert plain.log_key() == shop({"kind": "shock", "at": 5}).log_key() != made.log_key()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variety": 0.6}, ("simulator.variety is 0.6", "from 0 to 0.5")),
        ({"hints": -0.1}, ("simulator.hints is -0.1", "from 0 to 1")),
        (
            {"persona_shares": [0.5, 0.5]},
            ("simulator.persona_shares is", "a list of 4 to 4 entries"),
        ),
        ({"persona_shares": [0.5] * 4}, ("simulator.persona_shares are 0.5, 0.5", "add up to 1")),
        ({"changes": [{**LAUNCH, "at": 0}]}, ("simulator.changes.0.at is 0", "from 1 to")),
        (
            {"changes": [{**LAUNCH, "at": 120}]},
            ("simulator.changes.0 begins at step 120", "before the run's end, 120"),
        ),
        (
            {"changes": [{**LAUNCH, "category": "Bird"}]},
            ("simulator.changes.0.category is Bird", "Dog Food"),
        ),
        (
            {"changes": [{**LAUNCH, "items": 7}]},
            ("simulator.changes.0.items is 7", "at most 6 items can be launched"),
        ),
        (
            {"changes": [{**LAUNCH, "quality": -1}]},
            ("simulator.changes.0.quality is -1", "from 0 to 10"),
        ),
        (
            {"changes": [{**WITHDRAWAL, "items": 30}]},
            ("simulator.changes.0.items is 30", "at most 29 items"),
        ),
        (
            {"changes": [LAUNCH, {**WITHDRAWAL, "at": 9, "items": 27}]},
            ("changes.1.items is 27", "at most 26 items"),
        ),
        (
            {"changes": [WITHDRAWAL, {**WITHDRAWAL, "category": "Fish", "at": 80}]},
            (),
        ),
        (
            {"changes": [{**WITHDRAWAL, "items": 6}, {**WITHDRAWAL, "category": "Fish", "at": 80}]},
            ("changes.1.items is 2", "no item can be withdrawn at this step"),
        ),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_sentence(
    options: dict[str, Any], words: tuple[str, ...]
) -> None:
    given = {"kind": "petshop", "n_products": 30, **options}
    if not words:
        read({"simulator": given, "agents": [{"kind": "random"}], "steps": 120})
        return
    with pytest.raises(UserError) as error:
        read({"simulator": given, "agents": [{"kind": "random"}], "steps": 120})
    assert all(word in str(error.value) for word in words), error.value
    assert "\n" not in str(error.value)


def test_names_tell_products_that_differ_apart() -> None:
    assert shop().name(3) in CATEGORIES
    varied = shop(variety=0.3)
    assert varied.name(3) == f"{shop().name(3)} 3"
