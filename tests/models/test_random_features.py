"""Random Fourier features approximate a kernel.

Agents with them equal agents on precomputed features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.base.params import structural_key
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, SimulatorSpec
from bandits.experiments.experiment import UserError, read
from bandits.experiments.lane import COLUMNS
from bandits.experiments.lockstep import Lockstep, run_to_end
from bandits.models.linear import random_features
from bandits.models.linear.random_features import RandomFourierFeatures
from bandits.simulators.petshop import PetShop
from bandits.simulators.synthetic import Synthetic
from tests.contract.worlds import make, same, take
from tests.support import sparse_contexts, thinned

D = 6
SETTING = SimulatorSpec(n_items=4, n_candidates=4, n_features=D, n_stored=D)
LINEAR = ("linucb", "lints", "epsilon_greedy")


def rff(
    n: int, bandwidth: float = 1.0, seed: int = 3, rows: tuple[int, ...] = (0,)
) -> RandomFourierFeatures:
    return RandomFourierFeatures(SETTING, Streams(seed, rows), n, bandwidth)


def vectors(shape: tuple[int, ...] = (3, 4)) -> FloatArray:
    return np.random.default_rng(1).standard_normal((*shape, D))


def lift(features: FloatArray, made: RandomFourierFeatures) -> FloatArray:
    return made.contexts(sparse_contexts(features)).values


def test_features_equal_the_formula_for_dense_and_sparse_input() -> None:
    x, made = vectors(), rff(50, 0.7)
    expected = np.sqrt(2 / 50) * np.cos(x @ made.frequencies + made.shifts)
    np.testing.assert_allclose(lift(x, made), expected, rtol=1e-10, atol=1e-12)
    x[..., 1:4] = 0
    sparse = sparse_contexts(x)
    assert sparse.values.shape[2] == 3
    expected = np.sqrt(2 / 50) * np.cos(x @ made.frequencies + made.shifts)
    np.testing.assert_allclose(made.contexts(sparse).values, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [50, 500, 5000])
@pytest.mark.parametrize("bandwidth", [0.5, 2.0])
def test_inner_products_approximate_the_kernel(n: int, bandwidth: float) -> None:
    """z(x).z(y) is the mean of m independent 2 cos(A) cos(B) = cos(A - B) + cos(A + B), whose mean
    is the kernel k
    and whose variance is (1 - k^2)^2 / 2 + 1 / 2: at 5.4 standard errors no pair of 190 is off by
    chance."""
    x = 0.6 * np.random.default_rng(2).standard_normal((1, 20, D))
    z = lift(x, rff(n, bandwidth))[0]
    square = np.square(x[0][:, None] - x[0][None]).sum(axis=2)
    k = np.exp(-square / (2 * bandwidth**2))
    assert np.ptp(k) > 0.4
    error = np.sqrt(((1 - k**2) ** 2 + 1) / 2 / n)
    assert np.abs((z @ z.T - k) / error).max() < 5.4


def test_features_depend_on_the_seed_only() -> None:
    """Features do not depend on other rows; fewer features are the first ones."""
    made = rff(30)
    for other in (rff(30, rows=(5, 9)), rff(80)):
        assert np.array_equal(other.frequencies[:, :30], made.frequencies)
        assert np.array_equal(other.shifts[:30], made.shifts)
    assert not np.array_equal(rff(30, seed=4).frequencies, made.frequencies)
    np.testing.assert_allclose(rff(30, 2.0).frequencies, made.frequencies / 2, rtol=1e-15)


def test_features_of_a_vector_do_not_depend_on_other_vectors() -> None:
    x, made = vectors((40, 4)), rff(33)
    whole = lift(x, made)
    for c in (0, 17, 39):
        assert np.array_equal(lift(x[c : c + 1], made)[0], whole[c])


class PrecomputedFeatures(Synthetic):
    """The synthetic simulator with random features as its features."""

    N = 20

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        self._waves = RandomFourierFeatures(super().describe(params), streams, self.N, 1.0)
        self._plain: dict[int, Round] = {}

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        return RandomFourierFeatures.transformed_spec(super().describe(params), cls.N)

    def round_at(self, step: int) -> Round:
        self._plain = {step: super().round_at(step)}
        return self._waves.round(self._plain[step])

    def probabilities(self, round: Round) -> FloatArray:
        return super().probabilities(self._plain[round.step])


CASES = [
    *(
        (kind, {"sharing": sharing})
        for kind in LINEAR
        for sharing in ("per_arm", "shared", "hybrid")
    ),
    *(
        ("linucb", {"sharing": "shared", **forgetting})
        for forgetting in ({"gamma": 0.98}, {"window": 30})
    ),
]


@pytest.mark.parametrize(("kind", "params"), CASES, ids=str)
def test_an_agent_with_random_features_equals_one_on_precomputed_features(
    kind: str, params: dict[str, Any]
) -> None:
    options = {"n_features": 5}
    own = make(kind, Synthetic, options=options, fourier=PrecomputedFeatures.N, **params).advance(
        300
    )
    given = make(kind, PrecomputedFeatures, options=options, **params).advance(300)
    assert same(own, given)


@pytest.mark.parametrize("kind", LINEAR)
def test_results_do_not_depend_on_chunks_or_other_rows(kind: str) -> None:
    more: dict[str, Any] = {"sharing": "shared", "fourier": 40, "options": {"n_features": 5}}
    whole = make(kind, Synthetic, rows=range(5), **more).advance(90)
    for rows in ((0,), (3, 1)):
        lane = make(kind, Synthetic, rows=rows, **more)
        for part in (lane.advance(1), lane.advance(40), lane.advance(49)):
            expected = whole._replace(
                start=part.start,
                **{
                    name: getattr(whole, name)[part.start : part.start + len(part.rewards)]
                    for name in COLUMNS
                },
            )
            assert same(part, take(expected, rows))


@pytest.mark.parametrize("layout", ["shared", "per_row"])
def test_features_of_fixed_contexts_are_computed_once(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, ...]] = []
    compute = random_features.transform

    def counted(values: FloatArray, *rest: Any) -> Any:
        calls.append(values.shape)
        return compute(values, *rest)

    monkeypatch.setattr(random_features, "transform", counted)
    make("linucb", PetShop, options={"layout": layout}, fourier=10).advance(60)
    assert calls == [(4 if layout == "shared" else 12, 50, 2)]
    make("linucb", Synthetic, fourier=10).advance(60)
    assert calls[1:] == [(3, 4, 20)] * 60  # once per step


def test_contexts_declared_as_fixed_are_fixed() -> None:
    simulator = PetShop(PetShop.Params(), Streams(1, (0, 1)))
    first = simulator.round_at(0).contexts
    assert simulator.spec.fixed_contexts == len(first.values)
    assert all(simulator.round_at(step).contexts is first for step in (1, 5000))


@pytest.mark.parametrize(
    "function", thinned([("quadratic",), ("cosine",)], lambda number: number == 1)
)
def test_random_features_fit_nonlinear_rewards(function: str) -> None:
    """Paired by row; the final regret per step of the linear model was measured as .03 and .15."""
    options = {"function": function, "n_features": 5}
    plain, bent = (
        make(
            "linucb", Synthetic, rows=range(6), options=options, sharing="shared", fourier=m
        ).advance(2500)
        for m in (0, 80)
    )
    gap = (bent.value - plain.value).sum(axis=0)
    # Student t, 5 degrees of freedom, p = .001
    assert gap.mean() / (gap.std(ddof=1) / np.sqrt(6)) > 6.87
    late = slice(1500, None)
    lost = [(t.best_value - t.value)[late].mean() for t in (plain, bent)]
    assert lost[1] < 0.3 * lost[0]


def test_spectra_are_restricted_to_the_span_of_the_features() -> None:
    """20 pairs of persona and category span 20 of 40 directions; those of one product span 4."""
    shop = {"kind": "petshop", "n_products": 10}
    for sharing, m in (("shared", 20), ("per_arm", 4)):
        agent = {"kind": "linucb", "sharing": sharing, "fourier": 40, "alpha": 5.0}
        experiment_run = Lockstep(
            read({"simulator": shop, "agents": [agent], "steps": 400, "replications": 2})
        )
        run_to_end(experiment_run)
        (history,) = experiment_run.histories.values()
        eigenvalues = history.spectra[-1].eigenvalues
        assert eigenvalues.shape == (2, 1 if sharing == "shared" else 10, m)
        A = next(iter(experiment_run.runners.values())).lane.agent.model.A  # type: ignore[attr-defined]
        every = np.linalg.eigvalsh(A)[..., ::-1]
        np.testing.assert_allclose(eigenvalues, every[..., :m], rtol=1e-6)
        np.testing.assert_allclose(every[..., m:], 1.0, rtol=1e-9)  # only the ridge
    lane = make("linucb", Synthetic, sharing="shared", fourier=12)
    lane.advance(50)
    spectrum = lane.agent.spectrum(lane.simulator.bases(False))
    assert spectrum is not None
    assert spectrum.shape == (3, 1, 12)


def test_memory_includes_the_random_features() -> None:
    for options in ({"layout": "per_row"}, {}):
        lane = make("linucb", PetShop, rows=range(4), options=options, fourier=30)
        lane.advance(10)
        agent, spec = lane.agent, lane.simulator.spec
        made = agent.fourier._transformed  # type: ignore[attr-defined]
        layouts = 4 if options else 1
        assert (
            type(agent).shared_memory(agent.params[0], spec, layouts)
            >= made.values.nbytes + made.columns.nbytes
        )
    plain = make("linucb", Synthetic, fourier=0)
    assert type(plain.agent).shared_memory(plain.agent.params[0], plain.simulator.spec, 1) == 0
    wide = {"kind": "linucb", "fourier": 2000}
    with pytest.raises(UserError, match="GiB"):
        read({"agents": [wide], "steps": 10, "replications": 2})


def test_random_features_are_structural_parameters() -> None:
    kind = type(make("linucb").agent.params[0])
    assert (
        len({structural_key(kind(fourier=m, bandwidth=b)) for m in (0, 5) for b in (1.0, 2.0)}) == 4
    )


def test_without_random_features_an_experiment_keeps_its_hash() -> None:
    """Later options do not change the hashes of earlier stored runs and links."""

    def hashed(**more: Any) -> str:
        return read({"agents": [{"kind": "lints", **more}], "steps": 10}).hash

    assert hashed() == hashed(fourier=0, bandwidth=1.0)
    assert (
        len({hashed(), hashed(fourier=5), hashed(fourier=6), hashed(fourier=5, bandwidth=2.0)}) == 4
    )


def test_shifts_are_uniform_over_the_circle() -> None:
    spec = SimulatorSpec(n_items=2, n_candidates=2, n_features=3, n_stored=3)
    shifts = RandomFourierFeatures(spec, Streams(1, [0]), 400, 1.0).shifts
    assert 0 <= shifts.min() < 0.1
    assert 2 * np.pi - 0.1 < shifts.max() < 2 * np.pi
    assert abs(shifts.mean() - np.pi) < 5 * 2 * np.pi / np.sqrt(12 * 400)


def test_a_span_has_no_direction_that_is_a_sum_of_others() -> None:
    generator = np.random.default_rng(3)
    features = generator.random((6, 2)) @ generator.random((2, 4))
    basis = random_features._span(features)
    assert basis.shape == (4, 2)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(features @ basis @ basis.T, features, atol=1e-12)
