"""The pet shop equals the published one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.simulators.petshop import CATEGORIES, CLICK_RATES, PERSONAS, PetShop
from tests.contract.worlds import make

RATES = np.array(CLICK_RATES)


def shop(rows: tuple[int, ...] = (0, 1, 2), seed: int = 42, **options: Any) -> PetShop:
    return PetShop(PetShop.Params(**options), Streams(seed, rows))


def categories(simulator: PetShop) -> FloatArray:
    """Return the category of every product, from its features: int (L, K), one row per layout."""
    return simulator.round_at(0).features[:, :, 4:9].argmax(axis=2)


def test_the_table_of_click_probabilities() -> None:
    assert dict(zip(PERSONAS, CLICK_RATES, strict=True)) == {
        "new_puppy_parent": (0.40, 0.50, 0.10, 0.05, 0.02),
        "cat_connoisseur": (0.05, 0.02, 0.55, 0.45, 0.05),
        "budget_shopper": (0.25, 0.15, 0.40, 0.20, 0.20),
        "fish_hobbyist": (0.02, 0.02, 0.10, 0.08, 0.60),
    }
    assert CATEGORIES == ("Dog Food", "Dog Toy", "Cat Food", "Cat Toy", "Fish")
    assert PetShop.Params().click_rates == CLICK_RATES
    assert shop().segment_names() == [
        "new puppy parent",
        "cat connoisseur",
        "budget shopper",
        "fish hobbyist",
    ]


@pytest.mark.parametrize("n_products", [5, 12, 50])
def test_categories_are_balanced_and_shuffled(n_products: int) -> None:
    simulator = shop(n_products=n_products, layout="per_row", rows=tuple(range(20)))
    counts = [np.bincount(c, minlength=5) for c in categories(simulator)]
    assert np.ptp(counts, axis=1).max() <= 1
    assert len({tuple(c) for c in categories(simulator)}) > 10


def test_click_probabilities_are_those_of_persona_and_category() -> None:
    simulator = shop()
    kinds = categories(simulator)
    for step in range(200):
        round = simulator.round_at(step)
        assert np.array_equal(simulator.probabilities(round), RATES[round.segments[:, None], kinds])


def test_a_user_keeps_one_persona() -> None:
    simulator, seen = shop(n_users=50), {}
    for step in range(500):
        round = simulator.round_at(step)
        for user, persona in zip(round.users, round.segments, strict=True):
            assert seen.setdefault(int(user), int(persona)) == persona
    assert len(seen) == 50
    assert set(seen.values()) == {0, 1, 2, 3}


def test_layout_shared_or_each_row_its_own() -> None:
    """Check that the shop of a row does not depend on other rows."""
    shared = categories(shop())
    assert (shared == shared[0]).all()
    assert shop().layouts().tolist() == [0, 0, 0]
    own = shop(layout="per_row")
    assert own.layouts().tolist() == [0, 1, 2]
    assert not np.array_equal(categories(own)[0], categories(own)[1])
    assert np.array_equal(categories(shop(rows=(2,), layout="per_row"))[0], categories(own)[2])
    assert not np.array_equal(categories(shop(seed=43))[0], shared[0])


@pytest.mark.parametrize("layout", ["shared", "per_row"])
@pytest.mark.parametrize(("features", "D"), [("additive", 9), ("interaction", 20), ("both", 29)])
def test_feature_maps(features: Any, D: int, layout: Any) -> None:
    simulator = shop(features=features, layout=layout)
    kinds = categories(shop(layout=layout))
    for step in range(50):
        round = simulator.round_at(step)
        who = np.eye(4)[np.broadcast_to(round.segments[:, None], kinds.shape)]
        what = np.eye(5)[kinds]
        both = (who[..., :, None] * what[..., None, :]).reshape(3, 50, 20)
        expected = {"additive": [who, what], "interaction": [both], "both": [who, what, both]}[
            features
        ]
        assert round.features.shape == (3, 50, D)
        assert np.array_equal(round.features, np.concatenate(expected, axis=2))


def test_the_log_precedes_the_shock() -> None:
    n, simulator = 100_000, shop(shock_step=1)
    log, kinds = simulator.log(0, n), categories(simulator)[0]
    persona, category = log.columns[:, 0], log.columns[:, 1] - 4
    assert np.array_equal(category, kinds[log.items])
    for p in range(4):
        for c in range(5):
            clicks = log.rewards[(persona == p) & (category == c)]
            spread = np.sqrt(RATES[p, c] * (1 - RATES[p, c]) / len(clicks))
            assert abs(clicks.mean() - RATES[p, c]) < 4.5 * spread


def test_random_and_oracle_have_the_published_rates() -> None:
    """Random .210 to .212, oracle about .5125; the mix of personas varies from shop to shop."""
    rows, T = range(64), 2000
    n = len(rows) * T
    earned = {
        k: make(k, PetShop, rows=rows, options={"layout": "per_row"}).advance(T)
        for k in ("random", "oracle")
    }
    clicks = earned["random"].rewards.mean()
    error = 3 * np.sqrt(0.211 * 0.789 / n)
    assert 0.210 - error < clicks < 0.212 + error
    clicks = earned["oracle"].rewards.mean()
    shops = RATES.max(axis=1).std() / np.sqrt(1000 * len(rows))
    assert abs(clicks - 0.5125) < 3 * np.hypot(np.sqrt(0.25 / n), shops)
    for trace in earned.values():
        draws = trace.rewards.mean() - trace.value.mean()
        assert abs(draws) < 4 * np.sqrt((trace.value * (1 - trace.value)).mean() / n)
    assert np.array_equal(earned["oracle"].value, earned["oracle"].best_value)
    assert np.array_equal(earned["oracle"].rewards, earned["oracle"].best_rewards)


def test_a_shock_permutes_preferences_and_the_oracle_adapts() -> None:
    calm, shaken = shop(), shop(shock_step=100)
    kinds = categories(calm)
    for step in (0, 99, 100, 500):
        round = shaken.round_at(step)
        assert np.array_equal(round.users, calm.round_at(step).users)
        assert np.array_equal(round.segments, calm.round_at(step).segments)
        taste = (round.segments + (step >= 100)) % 4
        assert np.array_equal(shaken.probabilities(round), RATES[taste[:, None], kinds])
    trace = make("oracle", PetShop, options={"shock_step": 100}).advance(300)
    assert np.array_equal(trace.value, trace.best_value)
    loyal = make(
        "linucb", PetShop, options={"shock_step": 3000, "n_products": 5}, sharing="per_arm"
    ).advance(3300)
    regret = loyal.best_value - loyal.value
    assert regret[3000:].mean() > regret[2500:3000].mean() + 0.1


def click_rate(**params: Any) -> float:
    features = params.pop("features", "additive")
    trace = make(
        "linucb", PetShop, rows=range(8), options={"features": features}, **params
    ).advance(20_000)
    return float(trace.value.mean())


def test_one_shared_model_needs_interaction_features() -> None:
    """Measured plateaus at 20,000 steps: .287, .507 and, for models per arm, .476."""
    assert click_rate(sharing="shared", alpha=1.5) < 0.33
    assert click_rate(sharing="shared", alpha=1.5, features="interaction") > 0.49
    assert 0.46 < click_rate(sharing="per_arm", alpha=1.5) < 0.49


def test_linucb_without_pre_training_after_60000_steps() -> None:
    """32 separate runs of the published setting: .491 to .504, mean .498."""
    trace = make(
        "linucb", PetShop, rows=range(8), options={"layout": "per_row"}, alpha=1.5
    ).advance(60_000)
    assert abs(trace.rewards.mean() - 0.498) < 0.013 / np.sqrt(8) * 3


def plain_notebook_shop(n_products: int = 50, n_users: int = 1000) -> tuple[list[str], list[str]]:
    """Draw the notebook's shop name by name, as its program does."""
    generator = np.random.default_rng(42)
    names = ["Fish", "Cat Food", "Dog Food", "Dog Toy", "Cat Toy"]
    listed = [name for name in names for _ in range(n_products // 5)]
    listed += list(generator.choice(names, n_products - len(listed)))
    products = generator.permutation(listed)
    return [str(p) for p in products], [
        str(generator.choice(list(PERSONAS))) for _ in range(n_users)
    ]


@pytest.mark.parametrize(("n_products", "n_users"), [(50, 1000), (23, 70)])
def test_layout_notebook_is_the_shop_that_the_notebook_draws(n_products: int, n_users: int) -> None:
    params = PetShop.Params(layout="notebook", n_products=n_products, n_users=n_users)
    for seed in (0, 5):
        shop = PetShop(params, Streams(seed, [0, 1]))
        products, users = plain_notebook_shop(n_products, n_users)
        assert [CATEGORIES[c] for c in shop._categories[0]] == products
        assert [PERSONAS[p] for p in shop._personas[0]] == users


def test_the_shop_of_the_notebook_has_its_published_figures() -> None:
    shop = PetShop(PetShop.Params(layout="notebook"), Streams(3, [0]))
    shares = np.bincount(shop._personas[0]) / 1000
    assert shares.tolist() == [0.255, 0.237, 0.258, 0.25]
    table = shop._rates_at(0).probabilities
    assert round(float(shares @ table.max(axis=1)), 5) == 0.51105
    assert round(float(shares @ table.mean(axis=1)), 4) == 0.2106
    # the first visits that it prints
    assert [shop.name(item) for item in (22, 24, 7, 20, 5)] == [
        "Dog Food",
        "Dog Food",
        "Cat Toy",
        "Dog Toy",
        "Dog Food",
    ]
    with pytest.raises(ValueError, match="persona_shares must be equal with layout notebook"):
        PetShop.Params(layout="notebook", persona_shares=(0.4, 0.2, 0.2, 0.2))
