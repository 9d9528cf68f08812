"""Covariances of gradients, compared with the direct solve of the p x p matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.models.neural import gradient_covariance
from bandits.models.neural.dual_covariance import DualCovariance, IncrementalCholesky
from bandits.models.neural.frequent_directions import SketchCovariance
from bandits.models.neural.gradient_covariance import (
    DiagonalCovariance,
    ExactCovariance,
    PrimalCovariance,
)
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP, GradientFactors
from tests.support import often

WIDTHS = (9, 16, 8, 1)  # p = 305
K = 5
ALL = torch.ones(2)


class Walk:
    """Networks that change slightly with every step, and exact p x p matrices."""

    def __init__(
        self,
        ridge: float,
        widths: tuple[int, ...] = WIDTHS,
        near: float | None = None,
        rows: int = 2,
        *,
        double: bool = True,
    ) -> None:
        self.ridge = np.array([ridge, 2 * ridge])[:rows]
        self.net = BatchedMLP(
            initial_weights(Streams(1, range(rows)), widths, part=1), widths, double=double
        )
        p = self.net.flat.shape[1]
        self.A = self.ridge[:, None, None] * np.eye(p)
        self.rng, self.near = np.random.default_rng(0), near
        self.base = self.rng.standard_normal((20, 9))

    def candidates(self) -> GradientFactors:
        x = (
            self.base[self.rng.integers(0, 20, (len(self.ridge), K))]
            if self.near
            else self.rng.standard_normal((len(self.ridge), K, 9))
        )
        x = x + (self.near or 0) * self.rng.standard_normal(x.shape)
        return self.net.factors(self.net.forward(torch.tensor(x, dtype=self.net.flat.dtype)))

    def choose(self, factors: GradientFactors) -> GradientFactors:
        """Choose one candidate to learn from and change the networks."""
        chosen = factors.take(
            torch.arange(len(self.ridge))[:, None],
            torch.tensor(self.rng.integers(0, K, (len(self.ridge), 1))),
        )
        g = chosen.double().dense().numpy()
        self.A += g.transpose(0, 2, 1) @ g
        self.net.flat.add_(torch.tensor(1e-3 * self.rng.standard_normal(self.net.flat.shape)))
        return chosen

    def widths(self, factors: GradientFactors) -> FloatArray:
        """Return widths by a direct p x p solve."""
        g = factors.double().dense().numpy()
        return np.einsum("rkp,rpk->rk", g, np.linalg.solve(self.A, g.transpose(0, 2, 1)))


def exact(walk: Walk, **more: Any) -> ExactCovariance:
    return ExactCovariance(walk.ridge, walk.net.flat.shape[1], **more)


def test_dual_and_primal_equal_the_direct_solve() -> None:
    walk = Walk(1.0)
    covariances = [DualCovariance(walk.ridge), PrimalCovariance.empty(walk.ridge, 305), exact(walk)]
    for _ in range(80):
        factors = walk.candidates()
        expected = walk.widths(factors)
        for covariance in covariances:
            np.testing.assert_allclose(covariance.squared_widths(factors), expected, rtol=1e-8)
        chosen = walk.choose(factors)
        for covariance in covariances:
            covariance.add(chosen, ALL)


@pytest.mark.slow
def test_the_dual_stays_exact_for_nearly_repeated_contexts() -> None:
    walk = Walk(0.001, near=1e-6, rows=1)
    dual = DualCovariance(walk.ridge)
    for t in range(often(1500, 3000)):
        factors = walk.candidates()
        if t % 500 == 499:
            np.testing.assert_allclose(
                dual.squared_widths(factors), walk.widths(factors), rtol=1e-6
            )
        dual.add(walk.choose(factors), ALL[:1])


def test_the_diagonal_equals_that_of_the_matrix() -> None:
    walk = Walk(0.5)
    covariance = DiagonalCovariance(walk.ridge, 305)
    for _ in range(50):
        factors = walk.candidates()
        g, diagonal = factors.dense().numpy(), np.diagonal(walk.A, axis1=1, axis2=2)
        np.testing.assert_allclose(
            covariance.squared_widths(factors), (g**2 / diagonal[:, None]).sum(2), rtol=1e-4
        )
        covariance.add(walk.choose(factors), ALL)


def test_beyond_its_limit_the_dual_becomes_the_primal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_covariance, "REFRESH", 40)
    walk = Walk(1.0)
    covariance = exact(walk, limit=50)
    for t in range(120):
        factors = walk.candidates()
        np.testing.assert_allclose(
            covariance.squared_widths(factors), walk.widths(factors), rtol=1e-8
        )
        covariance.add(walk.choose(factors), ALL)
        assert covariance.method.name == ("dual" if t < 50 else "primal")
        assert covariance.error() is None


def test_float32_factors_give_equal_dual_and_primal_widths() -> None:
    """Factors are read and multiplied in float64 in both."""
    walk = Walk(1.0, double=False)
    covariances = [exact(walk, limit=25), PrimalCovariance.empty(walk.ridge, 305)]
    for _ in range(50):
        factors = walk.candidates()
        for covariance in covariances:
            np.testing.assert_allclose(
                covariance.squared_widths(factors), walk.widths(factors), rtol=1e-9
            )
        chosen = walk.choose(factors)
        for covariance in covariances:
            covariance.add(chosen, ALL)


def test_without_memory_for_a_matrix_the_dual_is_used_up_to_the_set_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The dual is used even with more observations than weights, because other methods are not
    exact.
    """
    monkeypatch.setattr(gradient_covariance, "PRIMAL_BYTES", 0)
    walk = Walk(1.0, (9, 2, 1))  # p = 23
    covariance = exact(walk, limit=60, sketch=4)
    for t in range(70):
        factors = walk.candidates()
        if t <= 60:
            np.testing.assert_allclose(
                covariance.squared_widths(factors), walk.widths(factors), rtol=1e-8
            )
        covariance.add(walk.choose(factors), ALL)
        assert covariance.method.name == ("dual" if t < 60 else "sketch")
    assert ExactCovariance.memory(23, 0, 1000, 4) > ExactCovariance.memory(23, 0, 100, 4)


def test_without_memory_for_a_matrix_a_sketch_is_used_and_reports_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gradient_covariance, "PRIMAL_BYTES", 1000)
    walk = Walk(1.0)
    covariance = exact(walk, limit=50, sketch=32)
    off = 1.0
    for t in range(150):
        factors = walk.candidates()
        ratio = (covariance.squared_widths(factors).numpy() / walk.widths(factors)) ** 0.5
        bound = covariance.error()
        if t <= 50:
            np.testing.assert_allclose(ratio, 1, rtol=1e-8)
        else:
            assert covariance.method.name == "sketch"
            assert bound is not None
            # rounding in float64, as the networks are
            assert (ratio >= 1 - 1e-9).all()
            assert (ratio <= bound[:, None] * (1 + 1e-9)).all()
            off = max(off, ratio.max())
        covariance.add(walk.choose(factors), ALL)
    # the sketch error is positive and small
    assert 1.001 < off < 3


def test_a_sketch_of_full_size_is_exact() -> None:
    walk = Walk(1.0)
    covariance = SketchCovariance(walk.ridge, 305, rows=60)
    for _ in range(100):
        factors = walk.candidates()
        np.testing.assert_allclose(
            covariance.squared_widths(factors), walk.widths(factors), rtol=1e-9
        )
        covariance.add(walk.choose(factors), ALL)
    assert not covariance.shrunk.any()


@pytest.mark.parametrize("primal", [True, False])
def test_widths_after_restoring_saved_state_are_equal(
    primal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_covariance, "PRIMAL_BYTES", 2**30 if primal else 1)
    walk = Walk(1.0)
    covariance = exact(walk, limit=70, sketch=20)
    for t in range(150):
        if t in (0, 1, 65, 70, 71, 130):
            other = exact(walk, limit=70, sketch=20)
            other.load_state_dict(covariance.state_dict())
            covariance = other
        factors = walk.candidates()
        if t == 0:
            reference = exact(walk, limit=70, sketch=20)
        np.testing.assert_allclose(
            covariance.squared_widths(factors), reference.squared_widths(factors), rtol=1e-12
        )
        chosen = walk.choose(factors)
        covariance.add(chosen, ALL)
        reference.add(chosen, ALL)


@pytest.mark.parametrize("covariance", ["Diagonal", "Primal", "Dual", "Sketch"])
def test_unobserved_slots_do_not_change_the_covariance(covariance: str) -> None:
    walk = Walk(1.0)
    made = {
        "Diagonal": lambda: DiagonalCovariance(walk.ridge, 305),
        "Primal": lambda: PrimalCovariance.empty(walk.ridge, 305),
        "Dual": lambda: DualCovariance(walk.ridge),
        "Sketch": lambda: SketchCovariance(walk.ridge, 305, 10),
    }[covariance]()
    factors = walk.candidates()
    before = made.squared_widths(factors).clone()
    made.add(walk.choose(factors), torch.tensor([1.0, 0.0]))
    after = made.squared_widths(factors)
    assert (after[0] < before[0]).any()
    np.testing.assert_allclose(after[1], before[1], rtol=1e-12)


def test_a_diverged_row_does_not_affect_the_others() -> None:
    walk = Walk(1.0)
    dual, reference = DualCovariance(walk.ridge), DualCovariance(walk.ridge)
    for t in range(40):
        factors = walk.candidates()
        chosen = walk.choose(factors)
        reference.add(chosen, ALL)
        diverged = GradientFactors([h.clone() for h in chosen.h], [d.clone() for d in chosen.delta])
        if t > 20:
            diverged.delta[0][1] = float("nan")
        dual.add(diverged, ALL)
    actual = dual.squared_widths(factors)
    np.testing.assert_allclose(actual[0], reference.squared_widths(factors)[0], rtol=1e-12)
    assert actual[1].isnan().all()


def test_no_pivot_falls_below_the_ridge_by_rounding() -> None:
    """Repeat one long gradient: its new component is far below the rounding error of its length."""
    ridge = torch.tensor([1e-6], dtype=torch.float64)
    factor, length = IncrementalCholesky(ridge), torch.tensor([1e12], dtype=torch.float64)
    for t in range(20):
        factor.append_row(length.expand(1, t, 1), length)
    pivots = factor.inverse.diagonal(dim1=1, dim2=2) ** -2
    assert (pivots >= (1 - 1e-12) * ridge).all()


def test_memory_equals_the_estimate() -> None:
    walk = Walk(1.0)
    covariance = exact(walk, limit=150)
    n_factors = 2 * sum(WIDTHS)
    for _ in range(200):
        covariance.add(walk.choose(walk.candidates()), ALL)
        held = sum(a.nbytes for a in covariance.state_dict().values() if isinstance(a, np.ndarray))
        assert held <= 2 * ExactCovariance.memory(305, n_factors, 150, 64)


def test_a_reduced_sketch_equals_frequent_directions_by_singular_values() -> None:
    """Two reductions of 2 l = 6 rows, computed plainly: s^2 - s_(l+1)^2, and zero below.

    Widths are those of B.
    """
    rows, p, ridge = 3, 9, np.array([0.5, 2.0])
    gradients = np.random.default_rng(12).normal(size=(2, 10, p))
    sketch = SketchCovariance(ridge, p, rows)
    sketch.extend(torch.tensor(gradients))
    for r in range(2):
        B, removed = np.zeros((0, p)), 0.0
        for g in gradients[r]:
            if len(B) == 2 * rows:
                _, s, V = np.linalg.svd(B, full_matrices=False)
                removed += s[rows] ** 2
                B = np.sqrt(np.maximum(s[:rows] ** 2 - s[rows] ** 2, 0))[:, None] * V[:rows]
            B = np.vstack([B, g])
        actual = sketch.sketch[r].numpy()
        np.testing.assert_allclose(actual.T @ actual, B.T @ B, atol=1e-9)
        assert float(sketch.shrunk[r]) == pytest.approx(removed)
        exact = np.linalg.inv(ridge[r] * np.eye(p) + B.T @ B)
        inner = sketch.factor.inverse[r].numpy()
        np.testing.assert_allclose(
            (np.eye(p) - (inner @ actual).T @ (inner @ actual)) / ridge[r], exact, atol=1e-9
        )


def test_an_observation_counts_by_the_square_of_its_root_weight() -> None:
    walk = Walk(1.0, (9, 4, 1))
    p = walk.net.flat.shape[1]
    dense = [
        DualCovariance(walk.ridge),
        PrimalCovariance.empty(walk.ridge, p),
        SketchCovariance(walk.ridge, p, 30),
    ]
    diagonal = DiagonalCovariance(walk.ridge, p)
    A = walk.ridge[:, None, None] * np.eye(p)
    for weights in ([1.0, 0.5], [0.25, 0.0], [0.1, 1.0]):
        chosen = walk.choose(walk.candidates())
        g = chosen.double().dense().numpy()
        A += np.array(weights)[:, None, None] * g.transpose(0, 2, 1) @ g
        for covariance in (*dense, diagonal):
            covariance.add(chosen, torch.tensor(weights).sqrt())
    factors = walk.candidates()
    walk.A = A
    for covariance in dense:
        np.testing.assert_allclose(
            covariance.squared_widths(factors), walk.widths(factors), rtol=1e-6
        )
    np.testing.assert_allclose(diagonal.diagonal, np.diagonal(A, axis1=1, axis2=2), rtol=1e-5)


def test_the_error_bound_is_the_root_of_one_plus_shrunk_over_ridge() -> None:
    covariance = ExactCovariance(np.array([0.5, 2.0]), 9)
    assert covariance.error() is None
    covariance.method = SketchCovariance(covariance.ridge, 9, 3)
    covariance.method.shrunk[...] = torch.tensor([1.5, 6.0])
    np.testing.assert_allclose(covariance.error(), [2.0, 2.0])
