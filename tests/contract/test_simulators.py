"""The contract of every registered simulator, and of those of the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.base.randomness import Streams
from bandits.base.types import Round
from bandits.simulators import REGISTRY, Simulator
from bandits.simulators.classification import Classification
from bandits.simulators.wheel import Wheel
from tests.contract.worlds import ROWS, STEPS, WORLDS, capabilities, check, simulator

each_simulator = pytest.mark.parametrize("kind", WORLDS)


@each_simulator
def test_rounds_have_the_sizes_of_the_spec(kind: str) -> None:
    built = simulator(kind)
    s, R = built.spec, len(ROWS)
    assert s == type(built).describe(built.params)
    assert type(built).slate_size(built.params) == s.slate
    assert built.uniforms.at(0).shape == (R, s.slate)
    for step in range(STEPS):
        round = built.round_at(step)
        assert round.step == step
        check(round.users, "int64", (R,))
        check(round.items, "int64", (R, s.n_candidates))
        check(round.available, "bool", (R, s.n_candidates))
        check(round.context, "int64", (R,))
        check(round.segments, "int64", (R,))
        check(round.features, "float64", (R, s.n_candidates, s.n_features))
        assert np.isfinite(round.features).all()
        values, columns, D = round.contexts
        assert (values.shape[1:], D) == ((s.n_candidates, s.n_stored), s.n_features)
        assert values.flags.c_contiguous
        assert columns.flags.c_contiguous
        in_order = np.sort(columns, axis=-1)
        assert (in_order >= 0).all()
        assert (in_order < D).all()
        assert (np.diff(in_order, axis=-1) > 0).all()  # each column at most once
        assert (round.items >= 0).all()
        assert (round.items < s.n_items).all()
        assert (np.diff(np.sort(round.items, axis=1), axis=1) > 0).all()  # candidates without replacement
        assert (round.available.sum(axis=1) >= s.slate).all()
        if "ids" in s.capabilities:
            assert (round.users >= 0).all()
            assert (round.users < s.n_users).all()
        if "segments" in s.capabilities:
            assert (round.segments >= 0).all()
            assert (round.segments < len(built.segment_names())).all()


def equal_rounds(a: Round, b: Round) -> bool:
    arrays = (a.users, a.items, a.features, a.available, a.segments)
    others = (b.users, b.items, b.features, b.available, b.segments)
    return all(np.array_equal(x, y) for x, y in zip(arrays, others, strict=True))


@each_simulator
def test_a_simulator_is_a_pure_function_of_the_step(kind: str) -> None:
    a, b = simulator(kind), simulator(kind)
    steps = [0, 5, 1500, 3, 40_000, 1500, 0]
    forward = {step: a.round_at(step) for step in sorted(steps)}
    assert all(equal_rounds(forward[step], b.round_at(step)) for step in steps)


@each_simulator
def test_the_truth_of_one_item_is_its_probability(kind: str) -> None:
    built = simulator(kind)
    if built.spec.slate > 1:
        return
    rows = np.arange(len(ROWS))
    for step in range(STEPS):
        round = built.round_at(step)
        p = built.probabilities(round)
        offered = np.where(round.available, p, np.nan)
        slate = round.available.argmax(axis=1)[:, None]
        _, truth = built.respond(round, slate, built.uniforms.at(step))
        assert np.array_equal(truth.value, p[rows, slate[:, 0]])
        assert np.array_equal(truth.best_value, np.nanmax(offered, axis=1))
        np.testing.assert_allclose(truth.random_value, np.nanmean(offered, axis=1), rtol=1e-12)


@each_simulator
def test_features_on_offer_span_the_features_seen(kind: str) -> None:
    built = simulator(kind)
    for per_arm in (True, False):
        for i, basis in enumerate(built.bases(per_arm)):
            np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-10)
            for step in range(0, STEPS, 7):
                round = built.round_at(step)
                x = round.features[round.items == i] if per_arm else round.features
                np.testing.assert_allclose(x @ basis @ basis.T, x, atol=1e-10)


@pytest.mark.parametrize("kind", [w for w in WORLDS if "log" in capabilities(w)])
def test_logs_are_random_choices_and_their_rewards(kind: str) -> None:
    built, n = simulator(kind), 2000
    s, log, again = built.spec, built.log(0, n), simulator(kind).log(0, n)
    assert all(np.array_equal(x, y) for x, y in zip(log, again, strict=True))
    check(log.users, "int64", (n,))
    check(log.items, "int64", (n,))
    check(log.values, "float64", (n, s.n_stored))
    check(log.columns, "int64", (n, s.n_stored))
    check(log.rewards, "float64", (n,))
    assert np.isfinite(log.values).all()
    assert np.isfinite(log.rewards).all()
    assert (log.columns >= 0).all()
    assert (log.columns < s.n_features).all()
    counts = np.bincount(log.items, minlength=s.n_items)
    assert len(counts) == s.n_items
    K = s.n_items
    assert ((counts - n / K) ** 2).sum() / (n / K) < (K - 1) + 8 * np.sqrt(2 * (K - 1))  # chi-square


@each_simulator
def test_arm_features_tell_the_candidates_apart(kind: str) -> None:
    _check_arm_features(simulator(kind))


@pytest.mark.parametrize("params", [Wheel.Params(), Classification.Params(data="wine", encoding="context")])
def test_arm_features_are_not_declared_where_all_arms_share_one_vector(params: Any) -> None:
    cls = REGISTRY[params.kind]
    assert "arm_features" not in cls.describe(params).capabilities
    _check_arm_features(cls(params, Streams(7, ROWS)))


def _check_arm_features(built: Simulator) -> None:
    features = np.concatenate([built.round_at(step).features for step in range(STEPS)])
    assert bool((features != features[:, :1]).any()) == ("arm_features" in built.spec.capabilities)


@each_simulator
def test_memory_is_known_by_arithmetic(kind: str) -> None:
    built = simulator(kind)
    needed = type(built).memory(built.params, len(ROWS))
    assert type(needed) is int
    assert needed >= built.round_at(0).contexts.values.nbytes
