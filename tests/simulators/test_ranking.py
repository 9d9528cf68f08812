"""The ranking simulator, compared with brute force, closed forms and published results."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from bandits import UserError, read
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.experiments.lockstep import make_lane
from bandits.simulators import ranking_kernels
from bandits.simulators.ranking import Ranking
from bandits.simulators.ranking_layouts import log_sum_exp
from tests.contract.worlds import join, same
from tests.support import thinned

SMALL: dict[str, Any] = {
    "n_users": 9,
    "n_items": 14,
    "n_candidates": 7,
    "slate": 3,
    "embedding": 3,
    "temperature": 0.004,
}


def built(rows: int = 4, **params: Any) -> Ranking:
    return Ranking(Ranking.Params(**{**SMALL, **params}), Streams(3, range(rows)))


def cascade(p: FloatArray, bias: FloatArray, slate: tuple[int, ...]) -> float:
    """Return the click probability of every slot."""
    still, clicked = 1.0, 0.0
    for slot, item in enumerate(slate):
        clicked += still * bias[slot] * p[item]
        still *= 1 - bias[slot] * p[item]
    return clicked


@pytest.mark.parametrize("choice", ["catalogue", "candidates", "sigmoid"])
def test_probabilities_follow_the_formula(choice: str) -> None:
    simulator = built(choice=choice, intercept=1.5, layout="per_row")
    for step in range(5):
        round, p = simulator.round_at(step), simulator.probabilities(simulator.round_at(step))
        for r in range(4):
            u, catalogue = (
                simulator.users[r, round.users[r]],
                simulator.items[r] @ simulator.users[r, round.users[r]] / 0.004,
            )
            own = simulator.items[r, round.items[r]] @ u / 0.004
            everything = {"catalogue": catalogue, "candidates": own}.get(choice)
            expected = (
                expit(own - 1.5) if everything is None else np.exp(own) / np.exp(everything).sum()
            )
            np.testing.assert_allclose(p[r], expected, rtol=1e-10)


@pytest.mark.parametrize("bias", [0.0, 1.0, 2.5])
def test_values_of_slates_equal_an_enumeration_of_all_slates(bias: float) -> None:
    simulator = built(bias=bias)
    b = np.arange(1, 4) ** -bias
    for step in range(6):
        round = simulator.round_at(step)
        p = simulator.probabilities(round)
        slate = np.array([[2, 0, 6]] * 4)
        _, truth = simulator.respond(round, slate, simulator.uniforms.at(step))
        for r in range(4):
            every = [cascade(p[r], b, s) for s in permutations(range(7), 3)]
            assert truth.value[r] == pytest.approx(cascade(p[r], b, (2, 0, 6)), rel=1e-12)
            assert truth.best_value[r] == pytest.approx(max(every), rel=1e-12)
            assert truth.random_value[r] == pytest.approx(np.mean(every), rel=1e-10)


@given(
    p=st.lists(st.floats(0, 1), min_size=2, max_size=6),
    b=st.lists(st.floats(0, 1), min_size=1, max_size=6),
)
def test_the_value_of_a_random_slate_equals_the_mean_of_all(p: list[float], b: list[float]) -> None:
    bias = np.array(b[: len(p)])
    every = [cascade(np.array(p), bias, s) for s in permutations(range(len(p)), len(bias))]
    assert ranking_kernels.random_value(np.array([p]), bias)[0] == pytest.approx(
        np.mean(every), abs=1e-12
    )


def test_the_user_examines_the_slots_until_the_first_click() -> None:
    """10^6 visits to one slate: clicks and examinations by slot within three standard errors, and
    the feedback.
    """
    simulator = built(rows=1, temperature=0.01)
    round, n = simulator.round_at(0), 1_000_000
    slate, p = np.array([[4, 1, 5]]), simulator.probabilities(simulator.round_at(0))[0, [4, 1, 5]]
    b = np.array([1, 1 / 2, 1 / 3])
    draws = np.random.default_rng(8).random((n, 3))
    rewards, examined = ranking_kernels.cascade_clicks(np.broadcast_to(p * b, (n, 3)), draws)
    looks = np.cumprod(np.append(1, 1 - p * b))[:3]
    for actual, chance in ((examined.mean(0), looks), (rewards.mean(0), looks * p * b)):
        assert (np.abs(actual - chance) <= 3 * np.sqrt(chance * (1 - chance) / n)).all()
    assert (rewards.sum(1) <= 1).all()
    value = simulator.respond(round, slate, draws[:1])[1].value[0]
    assert abs(rewards.sum() / n - value) < 3 * np.sqrt(value * (1 - value) / n)
    # `respond` gives the same user
    for draw in draws[:200]:
        feedback, _ = simulator.respond(round, slate, draw[None])
        alone = ranking_kernels.cascade_clicks((p * b)[None], draw[None])
        assert np.array_equal(feedback.rewards, alone[0])
        assert np.array_equal(feedback.examined, alone[1])


def test_candidates_are_distinct_and_equally_likely() -> None:
    pool = np.arange(6)
    drawn = ranking_kernels.distinct(np.random.default_rng(4).random((40_000, 2)), pool)
    assert pool.tolist() == list(range(6))
    counts = np.bincount(6 * drawn[:, 0] + drawn[:, 1], minlength=36).reshape(6, 6)
    assert not counts.diagonal().any()
    expected = 40_000 / 30
    chi2 = ((counts[~np.eye(6, dtype=bool)] - expected) ** 2 / expected).sum()
    assert chi2 < 29 + 5 * np.sqrt(2 * 29)
    # 0 takes the position of 5
    assert ranking_kernels.distinct(
        np.array([[0.0, 0.999999999999], [1.0, 1.0]]), pool
    ).tolist() == [
        [0, 5],
        [5, 0],
    ]


@pytest.mark.parametrize(("features", "D"), [("concatenation", 6), ("product", 3), ("both", 9)])
@pytest.mark.parametrize("constant", [False, True])
def test_features_are_those_of_user_and_item(features: str, D: int, constant: bool) -> None:
    simulator = built(features=features, constant=constant, noise=0.05)
    round = simulator.round_at(3)
    assert simulator.spec.n_features == D + constant
    assert ("vectors" in simulator.spec.capabilities) == (features == "concatenation")
    for r in range(4):
        u = simulator.observed_users[0, round.users[r]]
        for k in range(7):
            v = simulator.observed_items[0, round.items[r, k]]
            parts = {"concatenation": [u, v], "product": [u * v], "both": [u, v, u * v]}[features]
            assert np.array_equal(round.features[r, k], np.concatenate([*parts, [1.0] * constant]))
    error = simulator.observed_items - simulator.items
    assert 0.03 < error.std() < 0.07


def test_published_results_are_reproduced() -> None:
    """The optimum earns .0507 on average and almost nothing in the median round, a random slate
    .0003; with the
    candidates in the softmax, .90 / .49 / .17 / .05 at temperatures .001 / .005 / .01 / .02."""

    def looks(steps: int, **params: Any) -> tuple[FloatArray, FloatArray]:
        simulator = Ranking(Ranking.Params(**params), Streams(42, range(8)))
        truths = [
            simulator.respond(
                simulator.round_at(s), np.tile(np.arange(10), (8, 1)), simulator.uniforms.at(s)
            )[1]
            for s in range(steps)
        ]
        return np.array([t.best_value for t in truths]), np.array([t.random_value for t in truths])

    best, random = looks(150, choice="catalogue", temperature=0.001)
    assert abs(best.mean() - 0.0507) < 3 * best.std() / np.sqrt(best.size)
    assert np.median(best) < 1e-5
    assert 0.85 < (best < 0.01).mean() < 0.91
    assert abs(random.mean() - 0.0003) < 3 * random.std() / np.sqrt(random.size)
    for temperature, optimum in ((0.001, 0.90), (0.005, 0.49), (0.01, 0.17), (0.02, 0.05)):
        best, random = looks(60, choice="candidates", temperature=temperature)
        assert abs(best.mean() - optimum) < 0.005 + 3 * best.std() / np.sqrt(best.size)
        assert 0.005 < random.mean() < 0.007


def test_the_value_of_a_random_slate_of_fifty_is_accurate_for_high_rates() -> None:
    for p, expected in ((0.99, 1.0), (0.3, 1 - 0.7**50), (1e-9, 1 - (1 - 1e-9) ** 50)):
        assert ranking_kernels.random_value(np.full((1, 100), p), np.ones(50))[0] == pytest.approx(
            expected, abs=1e-12
        )


def test_every_row_has_the_layout_of_its_replication() -> None:
    """Rows of a sweep have any order and may repeat."""
    sweep = Ranking(Ranking.Params(**SMALL, layout="per_row"), Streams(3, [3, 0, 0]))
    for step in range(3):
        mixed = sweep.round_at(step)
        for r, row in enumerate((3, 0, 0)):
            alone = Ranking(Ranking.Params(**SMALL, layout="per_row"), Streams(3, [row]))
            assert np.array_equal(mixed.features[r], alone.round_at(step).features[0])
            p = alone.probabilities(alone.round_at(step))[0]
            np.testing.assert_allclose(sweep.probabilities(mixed)[r], p, rtol=1e-12)


def test_the_closed_form_for_ten_of_five_hundred_equals_random_subsets() -> None:
    """Compare the closed form at full size with random subsets."""
    rng = np.random.default_rng(0)
    p, bias = rng.beta(0.3, 3, (1, 500)), 1 / np.arange(1, 11)
    shown = np.stack([rng.permutation(500)[:10] for _ in range(20_000)])
    drawn = 1 - (1 - p[0][shown] * bias).prod(axis=1)
    assert abs(ranking_kernels.random_value(p, bias)[0] - drawn.mean()) < 4 * drawn.std() / np.sqrt(
        len(drawn)
    )
    small = p[:, :9]
    pairs = [1 - (1 - small[0, i]) * (1 - small[0, j]) for i, j in combinations(range(9), 2)]
    assert ranking_kernels.random_value(small, np.ones(2))[0] == pytest.approx(
        np.mean(pairs), rel=1e-12
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"n_candidates": 600, "n_items": 500},
            "simulator.n_candidates is 600; it must be at most n_items, 500",
        ),
        (
            {"slate": 11, "n_candidates": 10},
            "simulator.slate is 11; it must be at most n_candidates, 10",
        ),
        (
            {"choice": "catalogue", "n_users": 100_000, "n_items": 100_000},
            "at most 200,000,000 pairs are allowed",
        ),
        (
            {"temperature": 0.0},
            "simulator.temperature is 0.0; it must be a number from 0.0001 to 1",
        ),
    ],
)
def test_invalid_parameters_are_refused_in_one_sentence(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read({"simulator": {"kind": "ranking", **changes}, "agents": [{"kind": "random"}]})


def test_tuned_vectors_require_vector_features() -> None:
    agents = [{"kind": "neural_click_ts", "vectors": "tuned"}]
    assert read({"simulator": {"kind": "ranking", "features": "concatenation"}, "agents": agents})
    with pytest.raises(
        UserError,
        match="requires user and item vectors as features, which Ranking does not provide",
    ):
        read({"simulator": {"kind": "ranking"}, "agents": agents})


def test_log_sum_exp_has_the_bits_of_scipy() -> None:
    rng = np.random.default_rng(3)
    for scale in (1e-3, 1.0, 300.0):
        values = scale * rng.standard_normal((50, 700))
        # ties for the largest
        values[:5] = np.round(values[:5])
        np.testing.assert_array_equal(log_sum_exp(values), logsumexp(values, axis=1))


SHARING = ("popularity", "neural_greedy", "neural_click_ts")


@pytest.mark.parametrize("kind", thinned(SHARING, lambda number: number != 1))
def test_agents_that_share_a_simulator_have_the_numbers_of_agents_with_their_own(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the simulator keeps too few steps for the second agent."""
    data = {
        "simulator": {"kind": "ranking", **SMALL, "features": "concatenation"},
        "agents": [{"kind": "random"}, {"kind": kind}],
        "steps": 60,
        "replications": 3,
    }
    e = read(data)
    alone = make_lane(e, 1).advance(60)
    for size in (2**25, 0):
        monkeypatch.setattr("bandits.simulators.ranking.MEMORY_OF_STEPS", size)
        first = make_lane(e, 0)
        second = make_lane(e, 1, simulator=first.simulator)
        parts = []
        for _ in range(3):
            first.advance(20)
            parts.append(second.advance(20))
        assert same(join(parts), alone)


# launches and withdrawals

LAUNCH = {"kind": "launch", "at": 40, "items": 5, "quality": 1.5}
WITHDRAWAL = {"kind": "withdraw", "at": 70, "items": 3}


@pytest.mark.parametrize("retrieval", ["random", "exact"])
@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_candidates_are_items_of_the_moment(retrieval: str, layout: str) -> None:
    """All of them, at random.

    Or those with the largest inner product among the items that are there.
    """
    made = built(retrieval=retrieval, layout=layout, changes=[LAUNCH, WITHDRAWAL])
    new = [set(items.tolist()) for items in made.launched()[0]]
    assert all(len(items) == 5 for items in new)
    rounds = [made.round_at(step) for step in range(400)]
    everything = set(range(14))
    for r in range(4):
        before, after, last = (
            {int(i) for round in part for i in round.items[r]}
            for part in (rounds[:40], rounds[40:70], rounds[70:])
        )
        assert not before & new[r]
        assert after & new[r]
        if retrieval == "random":
            assert before == everything - new[r]
            assert after == everything
            assert len(last) == 11
            continue
        gone = everything - last
        for step in (0, 50, 100):
            there = sorted(everything - (new[r] if step < 40 else gone if step >= 70 else set()))
            utility = (
                made.items[made._layout_index[r], there]
                @ made.users[made._layout_index[r], rounds[step].users[r]]
            )
            nearest = np.array(there)[np.argsort(-utility, kind="stable")[:7]]
            assert sorted(nearest) == rounds[step].items[r].tolist()
    again = built(retrieval=retrieval, layout=layout, changes=[LAUNCH, WITHDRAWAL])
    for step in np.random.default_rng(0).permutation(100):
        assert np.array_equal(again.round_at(int(step)).items, rounds[step].items)


@pytest.mark.parametrize("choice", ["candidates", "sigmoid"])
def test_quality_is_a_factor_of_the_click_probabilities_of_what_is_launched(choice: str) -> None:
    made, plain = (
        built(choice=choice, intercept=1.0, changes=[{**LAUNCH, "quality": q}]) for q in (1.5, 1.0)
    )
    for step in range(35, 60):
        round = made.round_at(step)
        assert np.array_equal(round.items, plain.round_at(step).items)
        new = np.isin(round.items, made.launched()[0][0])
        p = plain.probabilities(plain.round_at(step))
        expected = np.where(new, np.minimum(1.5 * p, 0.95), p)
        np.testing.assert_allclose(made.probabilities(round), expected, rtol=1e-12)
    assert made.spec == built(choice=choice, intercept=1.0).spec


def test_steps_before_the_first_change_are_those_without_it_where_only_withdrawals_follow() -> None:
    plain, made = built(), built(changes=[WITHDRAWAL])
    for step in (0, 30, 69):
        assert np.array_equal(plain.round_at(step).items, made.round_at(step).items)
        assert np.array_equal(
            plain.probabilities(plain.round_at(step)), made.probabilities(made.round_at(step))
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"retrieval": "nearest", "n_items": 40},
            "simulator.changes.0 needs simulator.retrieval random or exact",
        ),
        (
            {"choice": "catalogue"},
            "simulator.changes.0 needs simulator.choice candidates or sigmoid",
        ),
        (
            {"changes": [{**LAUNCH, "items": 8}]},
            "changes.0.items is 8; at most 7 items can be launched",
        ),
        (
            {"changes": [{**WITHDRAWAL, "items": 14}]},
            "changes.0.items is 14; at most 7 items can be withdrawn",
        ),
        ({"changes": [{**LAUNCH, "at": 0}]}, "simulator.changes.0.at is 0"),
        ({"changes": [{**LAUNCH, "at": 120}]}, "simulator.changes.0 begins at step 120"),
    ],
)
def test_launches_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    given = {"kind": "ranking", **SMALL, "changes": [LAUNCH], **options}
    with pytest.raises(UserError) as error:
        read({"simulator": given, "agents": [{"kind": "random"}], "steps": 120})
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    if options.keys() & {"retrieval", "choice"}:
        moved = Ranking.Params.closest({k: v for k, v in given.items() if k != "kind"})
        read(
            {
                "simulator": {"kind": "ranking", **moved},
                "agents": [{"kind": "random"}],
                "steps": 120,
            }
        )
