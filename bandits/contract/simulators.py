"""The contract of simulators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bandits.base.types import Round
from bandits.simulators import Simulator
from bandits.simulators.dense import DenseSimulator

from .environments import ROWS, STEPS, make_simulator
from .expectations import expect, expect_array, expect_equal


def rounds_have_the_sizes_of_the_spec(environment: str) -> None:
    """Every array of a round has the type, shape and range that `Simulator.describe` declares."""
    simulator = make_simulator(environment)
    s, R = simulator.spec, len(ROWS)
    K, D = s.n_candidates, s.n_features
    expect(s == type(simulator).describe(simulator.params), "spec must equal describe(params)")
    expect(
        type(simulator).slate_size(simulator.params) == s.slate,
        "slate_size(params) must equal spec.slate",
    )
    expect_array(simulator.uniforms.at(0), "the uniforms of a step", "float64", (R, s.slate))
    for step in range(STEPS):
        round = simulator.round_at(step)
        expect(round.step == step, f"round_at({step}).step must be {step}; got {round.step}")
        expect_array(round.users, "users", "int64", (R,))
        expect_array(round.items, "items", "int64", (R, K))
        expect_array(round.available, "available", "bool", (R, K))
        expect_array(round.context, "context", "int64", (R,))
        expect_array(round.segments, "segments", "int64", (R,))
        expect_array(round.features, "features", "float64", (R, K, D))
        expect(np.isfinite(round.features), "features must be finite")
        values, columns, n_columns = round.contexts
        expect(
            (values.shape[1:], n_columns) == ((K, s.n_stored), D),
            f"contexts must hold {s.n_stored} of {D} columns",
        )
        contiguous = values.flags.c_contiguous and columns.flags.c_contiguous
        expect(contiguous, "the arrays of contexts must be C-contiguous")
        in_order = np.sort(columns, axis=-1)
        expect((in_order >= 0) & (in_order < D), f"columns of contexts must be from 0 to {D - 1}")
        expect(
            np.diff(in_order, axis=-1) > 0,
            "each column of contexts must appear at most once per candidate",
        )
        expect(
            (round.items >= 0) & (round.items < s.n_items),
            f"items must be from 0 to {s.n_items - 1}",
        )
        expect(
            np.diff(np.sort(round.items, axis=1), axis=1) > 0,
            "the candidates of a round must be distinct items",
        )
        expect(
            round.available.sum(axis=1) >= s.slate,
            f"at least {s.slate} candidates must be available",
        )
        low, high = s.bounds
        expect(
            (round.features >= low) & (round.features <= high),
            f"features must be from {low:g} to {high:g}, as describe states",
        )
        if "ids" in s.capabilities:
            expect(
                (round.users >= 0) & (round.users < s.n_users),
                f"users must be from 0 to {s.n_users - 1}",
            )
        if "segments" in s.capabilities:
            n = len(simulator.segment_names())
            expect(
                (round.segments >= 0) & (round.segments < n), f"segments must be from 0 to {n - 1}"
            )


def rounds_depend_on_the_step_alone(environment: str) -> None:
    """A simulator is a pure function of the step: rounds can be visited in any order."""
    a, b = make_simulator(environment), make_simulator(environment)
    steps = [0, 5, 1500, 3, 40_000, 1500, 0]
    forward = {step: a.round_at(step) for step in sorted(steps)}
    for step in steps:
        expect(
            _equal(forward[step], b.round_at(step)),
            f"round_at({step}) differs when steps are visited out of order",
        )


def _equal(a: Round, b: Round) -> bool:
    arrays = (a.users, a.items, a.features, a.available, a.segments)
    others = (b.users, b.items, b.features, b.available, b.segments)
    return all(np.array_equal(x, y) for x, y in zip(arrays, others, strict=True))


def truth_of_one_item_is_its_probability(environment: str) -> None:
    """Where one item is shown, `respond` and `probabilities` agree on expected rewards.

    NaN without ``truth``.
    """
    simulator = make_simulator(environment)
    if simulator.spec.slate > 1:
        return
    if "truth" not in simulator.spec.capabilities:
        _expect_no_truth(simulator)
        return
    rows = np.arange(len(ROWS))
    for step in range(STEPS):
        round = simulator.round_at(step)
        p = simulator.probabilities(round)
        expect_array(p, "probabilities", "float64", (len(ROWS), simulator.spec.n_candidates))
        offered = np.where(round.available, p, np.nan)
        slate = round.available.argmax(axis=1)[:, None]
        _, truth = simulator.respond(round, slate, simulator.uniforms.at(step))
        expect_equal(
            truth.value,
            p[rows, slate[:, 0]],
            "truth.value must be the shown item's entry of probabilities",
        )
        best = np.nanmax(offered, axis=1)
        expect_equal(
            truth.best_value,
            best,
            "truth.best_value must be the largest probability of available candidates",
        )
        close = np.isclose(truth.random_value, np.nanmean(offered, axis=1), rtol=1e-12, atol=0)
        expect(close, "truth.random_value must be the mean probability of available candidates")


def _expect_no_truth(simulator: Simulator) -> None:
    slate = np.zeros((len(ROWS), simulator.spec.slate), np.int64)
    for step in range(STEPS):
        round = simulator.round_at(step)
        truth = simulator.respond(round, slate, simulator.uniforms.at(step))[1]
        stated = [expected for expected in truth if expected is not None]
        unknown = np.isnan([*stated, *simulator.probabilities(round).T])
        expect(unknown, "without the capability truth, expected rewards must be NaN")


def a_replay_counts_what_was_logged(environment: str) -> None:
    """With the capability ``replay`` each event counts for one candidate, whatever the random
    numbers; else for all.
    """
    simulator = make_simulator(environment)
    s, R = simulator.spec, len(ROWS)
    if "replay" not in s.capabilities:
        return
    expect("truth" not in s.capabilities, "a replayed log does not show the true expected rewards")
    for step in range(STEPS):
        round, first = simulator.round_at(step), simulator.uniforms.at(step)
        counted = np.zeros((R, s.n_candidates), np.bool_)
        for k in range(s.n_candidates):
            slate = np.full((R, 1), k, np.int64)
            feedback, again = (simulator.respond(round, slate, u)[0] for u in (first, 1 - first))
            counted[:, k] = feedback.examined[:, 0]
            for values, others in zip(feedback, again, strict=True):
                expect_equal(
                    values,
                    others,
                    "the response of a replayed log must not depend on random numbers",
                )
        expect(
            counted.sum(axis=1) == 1,
            "an event must count for exactly one candidate, the logged one",
        )


def rewards_have_the_expected_values(environment: str) -> None:
    """With the capability ``binary`` rewards are 0 or 1.

    Those of a `DenseSimulator` have the expected mean.
    """
    simulator = make_simulator(environment)
    s, R = simulator.spec, len(ROWS)
    # the mean over an even grid is the mean over uniform numbers
    numbers = (np.arange(500) + 0.5) / 500
    for step in range(STEPS):
        round = simulator.round_at(step)
        if {"binary", "truth"} <= s.capabilities:
            p = simulator.probabilities(round)[round.available]
            expect(
                (p >= 0) & (p <= 1), "expected rewards must be from 0 to 1 where rewards are 0 or 1"
            )
        if step not in (0, STEPS - 1):
            continue
        slate = np.argsort(~round.available, axis=1, kind="stable")[:, : s.slate]
        rewards = np.array(
            [simulator.respond(round, slate, np.full((R, s.slate), u))[0].rewards for u in numbers]
        )
        if "binary" in s.capabilities:
            message = "rewards must be 0 or 1, or describe must not declare the capability binary"
            expect((rewards == 0) | (rewards == 1), message)
        if isinstance(simulator, DenseSimulator):
            _, truth = simulator.respond(round, slate, simulator.uniforms.at(step))
            error = np.abs(rewards[:, :, 0].mean(axis=0) - truth.value)
            within = error <= 0.02 * np.maximum(np.ptp(rewards[:, :, 0], axis=0), 1e-9)
            expect(within, "the mean of an item's rewards must be its expected reward")


def bases_span_the_features(environment: str) -> None:
    """`features` spans all feature vectors that rounds contain."""
    simulator = make_simulator(environment)
    for per_arm in (True, False):
        for i, basis in enumerate(simulator.bases(per_arm)):
            expect(
                np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-10),
                "bases must be orthonormal",
            )
            for step in range(0, STEPS, 7):
                round = simulator.round_at(step)
                x = round.features[round.items == i] if per_arm else round.features
                within = np.allclose(x @ basis @ basis.T, x, rtol=1e-7, atol=1e-10)
                of = f"features({i})" if per_arm else "features(None)"
                expect(within, f"{of} must span the feature vectors of the rounds")


def logs_are_random_choices_and_their_rewards(environment: str) -> None:
    """With the capability ``log``, logged interactions are uniformly random choices, the same each
    time.
    """
    simulator, n = make_simulator(environment), 2000
    s = simulator.spec
    if "log" not in s.capabilities:
        return
    log, again = simulator.log(0, n), make_simulator(environment).log(0, n)
    pairs = [(x, y) for x, y in zip(log, again, strict=True) if x is not None and y is not None]
    expect(all(np.array_equal(x, y) for x, y in pairs), "log must return the same data again")
    expect_array(log.users, "users of the log", "int64", (n,))
    expect_array(log.items, "items of the log", "int64", (n,))
    expect_array(log.values, "values of the log", "float64", (n, s.n_stored))
    expect_array(log.columns, "columns of the log", "int64", (n, s.n_stored))
    expect_array(log.rewards, "rewards of the log", "float64", (n,))
    if log.means is not None:
        expect_array(log.means, "means of the log", "float64", (n,))
    expect(
        np.isfinite(log.values).all() and np.isfinite(log.rewards).all(),
        "values and rewards must be finite",
    )
    expect(
        (log.columns >= 0) & (log.columns < s.n_features),
        f"columns must be from 0 to {s.n_features - 1}",
    )
    counts = np.bincount(log.items, minlength=s.n_items)
    K = s.n_items
    expect(len(counts) == K, f"items of the log must be from 0 to {K - 1}")
    chi_square = ((counts - n / K) ** 2).sum() / (n / K)
    expect(
        chi_square < (K - 1) + 8 * np.sqrt(2 * (K - 1)),
        "items of the log must be chosen uniformly at random",
    )


def arm_features_tell_candidates_apart(environment: str) -> None:
    """The capability ``arm_features`` is declared where candidates have different features, and
    only there.
    """
    expect_arm_features(make_simulator(environment))


def expect_arm_features(simulator: Simulator) -> None:
    """Raise `ContractError` unless a simulator declares ``arm_features`` exactly where candidates'
    features differ.
    """
    features = np.concatenate([simulator.round_at(step).features for step in range(STEPS)])
    if (features != features[:, :1]).any():
        message = (
            "candidates have different features: describe must declare the capability arm_features"
        )
        expect("arm_features" in simulator.spec.capabilities, message)
    else:
        message = (
            "all candidates have the same features: describe must not declare the capability "
            "arm_features"
        )
        expect("arm_features" not in simulator.spec.capabilities, message)


def memory_is_known_by_arithmetic(environment: str) -> None:
    """`memory` returns a whole number of bytes that covers at least one round."""
    simulator = make_simulator(environment)
    needed, held = (
        type(simulator).memory(simulator.params, len(ROWS)),
        simulator.round_at(0).contexts.values.nbytes,
    )
    expect(type(needed) is int, f"memory must return an int; got {type(needed).__name__}")
    expect(
        needed >= held, f"memory returns {needed:,} bytes; the contexts of one round take {held:,}"
    )


CHECKS: tuple[Callable[[str], None], ...] = (
    rounds_have_the_sizes_of_the_spec,
    rounds_depend_on_the_step_alone,
    truth_of_one_item_is_its_probability,
    rewards_have_the_expected_values,
    bases_span_the_features,
    logs_are_random_choices_and_their_rewards,
    arm_features_tell_candidates_apart,
    a_replay_counts_what_was_logged,
    memory_is_known_by_arithmetic,
)
