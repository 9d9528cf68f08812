"""The artwork simulator: titles by collaborative filtering, pictures by what visitors like,
launches, withdrawals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import UserError, read, run
from bandits.base.randomness import Streams
from bandits.experiments.lockstep import Lockstep
from bandits.results import metrics
from bandits.simulators.artwork import Artwork
from bandits.simulators.artwork_titles import ATTRIBUTES, GENRES

SMALL: dict[str, Any] = {"n_titles": 30, "n_pictures": [3, 6], "n_users": 80, "n_retrieved": 4}


def artwork(rows: int = 3, seed: int = 5, **options: Any) -> Artwork:
    return Artwork(Artwork.Params(**{**SMALL, **options}), Streams(seed, range(rows)))


def titles(made: Artwork, steps: range) -> set[int]:
    """The titles shown at some steps."""
    return {
        int(made.catalogue(r).title_of[made.round_at(s).items[r, 0]])
        for s in steps
        for r in range(3)
    }


def test_pictures_are_numbered_title_by_title_and_only_those_of_the_title_are_offered() -> None:
    made = artwork()
    catalogue = made.catalogue()
    assert sorted(set(catalogue.sizes)) == [3, 4, 5, 6]
    tones = catalogue.attributes[catalogue.first, : len(GENRES)]
    # the default has the main tone
    assert np.array_equal(tones.argmax(axis=1), catalogue.genres.argmax(axis=1))
    assert made.spec.n_items == catalogue.sizes.sum() == len(catalogue.title_of)
    for step in range(50):
        round = made.round_at(step)
        for r in range(3):
            title = catalogue.title_of[round.items[r, 0]]
            assert round.items[r, 0] == catalogue.first[title]
            own = catalogue.title_of[round.items[r]] == title
            assert np.array_equal(round.available[r], own & (np.arange(6) < catalogue.sizes[title]))


def test_clicks_follow_the_formula_and_features_multiply_what_is_observed() -> None:
    made = artwork(taste=1.3, intercept=2.0, attributes="most")
    c, round = made.catalogue(), made.round_at(7)
    r, k = 1, 2
    user, picture = round.users[r], round.items[r, k]
    title = c.title_of[picture]
    logit = 1.3 * (c.tastes[user] * c.attributes[picture]).sum() + c.interest[user, title] / 2 - 2.0
    np.testing.assert_allclose(
        made.probabilities(round)[r, k], 1 / (1 + np.exp(-logit)), rtol=1e-12
    )
    x, n = round.features[r, k], len(ATTRIBUTES) - 1
    assert np.array_equal(x[:n], (c.tastes[user] * c.attributes[picture])[:n])  # not the warmth
    assert np.array_equal(x[n:], [1, c.predicted[user, title]])
    assert round.segments[r] == c.clusters[user]
    assert c.tastes[:, : len(GENRES)].argmax(axis=1)[user] == c.clusters[user]


def test_titles_are_those_of_the_largest_inner_product_of_a_truncated_decomposition() -> None:
    """The factors are those of numpy's decomposition, up to a rotation that keeps inner
    products.
    """
    made = artwork(n_titles=40, n_users=300)
    c = made.catalogue()
    u, s, v = np.linalg.svd(c.logged.astype(float), full_matrices=False)
    np.testing.assert_allclose(c.predicted, (u[:, :8] * s[:8]) @ v[:8], atol=1e-5)
    for step in range(30):
        round = made.round_at(step)
        for r in range(3):
            best = np.argsort(-c.predicted[round.users[r]], kind="stable")[:4]
            assert c.title_of[round.items[r, 0]] in best
    assert np.corrcoef(c.predicted.ravel(), c.interest.ravel())[0, 1] > 0.3


def test_an_approximate_index_finds_nearly_the_same_titles() -> None:
    exact, near = (
        artwork(n_titles=200, n_users=200, n_retrieved=10, retrieval=how)
        for how in ("exact", "nearest")
    )
    retrieved = (made._retrieved_at(0)[0] for made in (exact, near))
    found = [len(set(a) & set(b)) / 10 for a, b in zip(*retrieved, strict=True)]
    assert 0.8 < np.mean(found) <= 1


def test_titles_arrive_one_by_one_and_are_launched_together() -> None:
    launch = {"kind": "launch", "at": 40, "items": 6, "quality": 2.0}
    made, plain = artwork(new_titles=8, arrival=5, changes=[launch]), artwork()
    (pictures,) = made.launched().values()
    late = set(made.catalogue().title_of[pictures[0]])
    assert len(late) == 6
    # those that arrive
    assert late.isdisjoint(range(22, 30))
    assert set(made.titles_at(0)) == set(range(22)) - late
    assert set(made.titles_at(5)) == set(range(23)) - late
    assert set(made.titles_at(39)) == set(range(29)) - late
    assert set(made.titles_at(40)) == set(range(30))
    assert titles(made, range(40)).isdisjoint(late | {29})
    assert titles(made, range(40, 200)) & late
    # of twice the rate, at most .95
    round = made.round_of(100, np.zeros(3, np.int64), np.full(3, min(late)))
    expected = np.minimum(2 * plain.probabilities(round), 0.95)
    np.testing.assert_allclose(
        made.probabilities(round)[round.available], expected[round.available]
    )


def test_withdrawn_pictures_never_return_and_the_default_stays() -> None:
    # of 133, with 30 defaults: all others
    made = artwork(changes=[{"kind": "withdraw", "at": 10, "items": 103}])
    c = made.catalogue()
    assert made.spec.n_items == 133
    for step in range(10, 60):
        round = made.round_at(step)
        assert round.available[:, 0].all()
        assert round.available.sum() == 3
        assert np.isin(round.items[:, 0], c.first).all()
    assert (made.round_at(9).available.sum(axis=1) >= 3).all()


def test_the_log_holds_what_is_there_at_the_start() -> None:
    made = artwork(new_titles=10, changes=[{"kind": "launch", "at": 5, "items": 4}])
    log = made.log(0, 20_000)
    shown = set(made.catalogue().title_of[log.items])
    assert shown == set(made.titles_at(0))
    there = np.isin(made.catalogue().title_of, list(shown))
    p = 1 / (
        1
        + np.exp(
            4
            - made.catalogue().interest[:, made.catalogue().title_of[there]] / 2
            - made.catalogue().tastes @ made.catalogue().attributes[there].T
        )
    )
    assert abs(log.rewards.mean() - p.mean()) < 5.4 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"n_pictures": [5, 21]},
            "simulator.n_pictures.1 is 21; it must be less than or equal to 20",
        ),
        (
            {"n_pictures": [9, 5]},
            "simulator.n_pictures is 9, 5; the first must be at most the second",
        ),
        (
            {"n_titles": 4000, "n_users": 2000},
            "at most 4,000,000 pairs of user and title are allowed",
        ),
        ({"new_titles": 30}, "simulator.new_titles is 30; it must be less than n_titles, 30"),
        (
            {"n_retrieved": 25, "new_titles": 10},
            "n_retrieved is 25; it must be at most the number of titles at",
        ),
        (
            {"retrieval": "nearest", "n_titles": 15},
            "retrieval nearest needs at least 16 titles at the start",
        ),
        ({"changes": [{"kind": "launch", "at": 0, "items": 1}]}, "simulator.changes.0.at is 0"),
        (
            {"changes": [{"kind": "launch", "at": 9, "items": 27}]},
            "at most 26 items can be launched",
        ),
        (
            {"changes": [{"kind": "withdraw", "at": 9, "items": 104}]},
            "at most 103 items can be withdrawn",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        read({"simulator": {"kind": "artwork", **SMALL, **options}, "agents": [{"kind": "random"}]})
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_agents_find_better_pictures_than_the_default() -> None:
    agents = [
        {"kind": "linucb", "sharing": "shared", "alpha": 0.3},
        {"kind": "default"},
        {"kind": "oracle"},
    ]
    e = read({"simulator": {"kind": "artwork"}, "agents": agents, "steps": 2000, "replications": 4})
    learned, default, oracle = (
        metrics.estimate(metrics.click_rate(h)) for h in run(e, workers=0).histories.values()
    )
    assert default.high < learned.low
    shown = Lockstep(e).runners["Default"].lane.advance(50).items[:, :, 0]
    assert np.isin(shown, Artwork(e.simulator, Streams(e.seed, range(4))).catalogue().first).all()
    assert learned.mean < oracle.mean
