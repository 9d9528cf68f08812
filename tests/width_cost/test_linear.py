"""LinUCB's cost: three implementations agree, keep budgets, are extrapolated.

Condition numbers and errors of A^-1.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import UserError
from bandits.base.formatting import rounded
from bandits.results.figures.curves import figure
from bandits.width_cost import (
    LINEAR_METHODS,
    Condition,
    CostReport,
    LinearRequest,
    LinearSizes,
    Progress,
    Timing,
    measure,
    text,
)
from bandits.width_cost import read as read_request
from bandits.width_cost.figures import cost_figures
from bandits.width_cost.linear import (
    LINEAR_REGISTRY,
    LinearGrids,
    LinearMethod,
    condition_grid,
    features,
    follow,
)
from bandits.width_cost.measurement import LINE, Measurement
from bandits.width_cost.timing import GridStep
from tests.support import hold, wait_for

ROOT = Path(__file__).parents[2]
SMALL = LinearRequest(n_features=4, n_arms=3, past=50)


def test_the_methods_compute_ridge_regression_per_arm() -> None:
    generator, ridge = np.random.default_rng(0), 0.7
    methods = [cls(3, 5, ridge) for cls in LINEAR_REGISTRY.values()]
    A, b = np.tile(ridge * np.eye(5), (3, 1, 1)), np.zeros((3, 5))
    for _ in range(60):
        x = generator.normal(size=(3, 5))
        inverse = np.linalg.inv(A)
        mean = np.einsum("kd,kde,ke->k", x, inverse, b)
        width = np.sqrt(np.einsum("kd,kde,ke->k", x, inverse, x))
        for method in methods:
            np.testing.assert_allclose(method.predict(x), (mean, width), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(method.inverses(), inverse, rtol=1e-9, atol=1e-12)
        arm, reward = int(generator.integers(3)), float(generator.random())
        for method in methods:
            method.update(arm, x[arm], reward)
        A[arm] += np.outer(x[arm], x[arm])
        b[arm] += reward * x[arm]


@pytest.mark.parametrize("kind", list(LINEAR_METHODS))
@pytest.mark.parametrize(("K", "d"), [(2, 3), (7, 20)])
def test_allocated_bytes_equal_the_stated_memory(kind: str, K: int, d: int) -> None:
    method: LinearMethod = LINEAR_REGISTRY[kind](K, d, 1.0)
    method.predict(np.ones((K, d)))
    method.update(1, np.ones(d), 1.0)
    assert method.allocated() == LINEAR_METHODS[kind].memory(LinearSizes.of(K, 0, d))


def test_sizes_scale_the_features() -> None:
    sizes = LinearSizes.of(3, 50, 4)
    assert (sizes.p, sizes.d, sizes.along("p"), sizes.along("K")) == (4, 4, 4, 3)
    assert sizes.scaled(2.5) == LinearSizes.of(3, 50, 10)
    assert isinstance(sizes._replace(K=9), LinearSizes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"n_features": 1}, "n_features is 1; it must be a whole number from 2 to 1,000"),
        ({"ridge": 0}, "ridge is 0; it must be a number above 0"),
        ({"correlation": 1.0}, "correlation is 1"),
        (
            {"arms": 3},
            "arms is not a known field; known are n_features, n_arms, past, ridge, correlation, "
            "seed",
        ),
        ([], "the request must be an object of names and values"),
    ],
)
def test_an_invalid_request_is_refused_in_one_sentence(data: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}") as refused:
        read_request(data, LinearRequest)
    assert "\n" not in str(refused.value)


# condition numbers


def test_the_condition_number_is_that_of_the_matrix_before_inversion() -> None:
    request = LinearRequest(n_features=6, n_arms=2, past=400, ridge=0.5, correlation=0.9)
    states = list(follow(request))
    assert [c.t for c in states] == condition_grid(400) == [10, 20, 50, 100, 200, 400]
    for c in states:
        assert 1 <= c.median <= c.largest
        assert (c.d, c.arms) == (6, 2)
        assert set(c.errors) == set(LINEAR_METHODS)
        assert max(c.errors.values()) < 100 * np.finfo(float).eps * c.largest
    # with n observations per arm, E A = ridge I + n C, whose condition is (ridge + n(1 + 5 rho)) /
    # (ridge + n(1 - rho))
    expected = (0.5 + 200 * (1 + 5 * 0.9)) / (0.5 + 200 * 0.1)
    # extreme eigenvalues vary by 2 sqrt(6 / 200) = 35 %
    assert states[-1].median == pytest.approx(expected, rel=0.5)
    assert list(follow(request)) == states


def test_correlation_raises_the_condition_and_regularisation_lowers_it() -> None:
    base = LinearRequest(n_features=6, n_arms=2, past=400, correlation=0.5)
    middle = list(follow(base))[-1].largest
    assert list(follow(base.model_copy(update={"correlation": 0.99})))[-1].largest > 5 * middle
    assert list(follow(base.model_copy(update={"ridge": 1e5})))[-1].largest < 1.1


def test_features_have_the_stated_correlation() -> None:
    x = features(np.random.default_rng(1), 20_000, 3, 0.6)
    correlation = np.corrcoef(x.T)[np.triu_indices(3, 1)]
    # 5 standard errors of (1 - 0.36) / sqrt(20,000)
    np.testing.assert_allclose(correlation, 0.6, atol=0.025)
    np.testing.assert_allclose(x.std(axis=0), 1, atol=0.025)


def test_large_requests_are_followed_on_fewer_arms_and_features() -> None:
    (*_, last) = follow(LinearRequest(n_features=200, n_arms=2000, past=5000))
    assert (last.t, last.d, last.arms) == (5000, 100, 20)


@pytest.mark.parametrize(("condition", "digits"), [(1.0, 15), (1e3, 12), (1e17, 0)])
def test_correct_digits(condition: float, digits: int) -> None:
    assert text.correct_digits(Condition(10, 2, 2, 1.0, condition, {})) == digits


# measuring


@pytest.fixture(scope="module")
def measured() -> list[Progress]:
    return list(measure(SMALL))


@pytest.mark.slow
def test_every_method_is_timed_at_the_requested_sizes(measured: list[Progress]) -> None:
    report = CostReport.from_progress(SMALL, measured)
    for kind, method in LINEAR_METHODS.items():
        timing = report.at_request(kind)
        assert timing is not None
        assert report.is_measured(kind)
        assert 0 < timing.update < timing.seconds < 5
        assert timing.held == method.memory(SMALL.sizes)
        assert len(report.along(kind, "p")) > 3
        assert len(report.along(kind, "K")) > 3
    assert [c.t for c in report.conditions] == condition_grid(50)
    fractions = [step.fraction for step in measured]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)


LAW = {"inverse": 4e-10, "rank_one": 2e-10, "compiled": 1e-10}


def theoretical_timing(kind: str, sizes: LinearSizes) -> Timing:
    """Return timings that equal theory exactly."""
    method = LINEAR_METHODS[kind]
    decide = 1e-6 + LAW[kind] * method.decide(sizes)[-1]
    return Timing(
        kind, sizes, decide, 1e-6 + LAW[kind] * method.update(sizes)[-1], int(method.memory(sizes))
    )


def extrapolated(request: LinearRequest, monkeypatch: pytest.MonkeyPatch) -> CostReport:
    def timed(_: LinearGrids, kind: str, sizes: LinearSizes) -> tuple[Timing, GridStep]:
        timing = theoretical_timing(kind, sizes)
        return timing, GridStep(sizes, timing.seconds, 4 * timing.seconds)

    monkeypatch.setattr(LinearGrids, "timed", timed)
    return CostReport.from_progress(request, measure(request))


WIDE = LinearRequest(n_features=1000, n_arms=100_000, past=10)


@pytest.mark.parametrize("request_", [LinearRequest(past=100), WIDE])
def test_extrapolation_recovers_the_theoretical_cost(
    request_: LinearRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = extrapolated(request_, monkeypatch)
    for kind in LINEAR_METHODS:
        timing = report.at_request(kind)
        assert timing is not None
        assert timing.seconds == pytest.approx(
            theoretical_timing(kind, request_.sizes).seconds, rel=0.02
        ), kind
        assert report.is_measured(kind) == (request_ is not WIDE)
    for timing in report.timings:
        # the first of a grid is unknown beforehand
        assert timing.seconds <= 0.5 or timing.sizes.K == 2
        assert timing.held <= 256 * 2**20
        assert timing.sizes.K <= 2000


def test_the_conclusion_states_speed_condition_and_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    report = extrapolated(LinearRequest(past=1000), monkeypatch)
    ending = text.conclusion(report, 1.0, 24e9).replace("\u00a0", " ")
    ratio = theoretical_timing("inverse", report.request.sizes).seconds
    ratio /= theoretical_timing("compiled", report.request.sizes).seconds
    assert ending.startswith("The fastest method at these sizes is Compiled (7.2 µs, ")
    assert f"{round(ratio, -1):.0f} times as fast as an inverse at each step)" in ending
    worst = max(report.conditions, key=lambda c: c.largest)
    condition = rounded(worst.largest)
    assert (
        f"condition number of A before inversion is at most {condition} (after t = {worst.t:,} "
        "observ" in ending
    )
    assert ending.endswith(f"about {text.correct_digits(worst)} of 16 digits are correct.")
    memory, errors = text.summary(report, 1.0, 24e9)
    assert "408\u00a0kB as inverses alone, and 808\u00a0kB together with A" in memory
    assert "(Inverse at each step), " in errors
    assert text.error_text(3e-15) == "10⁻¹⁵"
    assert text.error_text(0.0) == "0"
    assert text.conclusion(CostReport(SMALL), 1.0, 24e9) == ""
    assert text.summary(CostReport(SMALL), 1.0, 24e9) == []


def test_where_an_inverse_at_each_step_becomes_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    report = extrapolated(LinearRequest(past=100), monkeypatch)
    d, why = report.infeasible_from("inverse", "p", 1.0, 1e12) or (0.0, "")
    assert why == "seconds"
    assert theoretical_timing("inverse", LinearSizes.of(20, 0, d)).seconds == pytest.approx(
        1, rel=0.02
    )
    K, why = report.infeasible_from("compiled", "K", 1e9, 4e9) or (0.0, "")
    assert why == "bytes"
    assert LINEAR_METHODS["compiled"].memory(LinearSizes.of(K, 0, 50)) == pytest.approx(
        4e9, rel=0.02
    )


def test_six_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    report = extrapolated(LinearRequest(past=100), monkeypatch)
    specs = cost_figures(report, max_seconds=1.0, max_bytes=24e9)
    assert [s["layout"]["title"]["text"] for s in specs] == [
        "Time vs. features",
        "Memory vs. features",
        "Time vs. arms",
        "Memory vs. arms",
        "Condition number of A",
        "Error of the inverse",
    ]
    for spec in specs:
        assert figure(spec).data
        assert figure(spec, dark=True).data
        assert spec["layout"]["meta"]["note"].endswith(".")
        assert len(spec["layout"]["yaxis"]["ticktext"]) >= 2
        low, high = spec["layout"]["yaxis"]["range"]
        for trace in spec["data"]:
            assert len(trace["x"]) == len(trace["y"])
            if spec in specs[4:]:
                assert 10**low <= min(trace["y"]) <= max(trace["y"]) <= 10**high
    assert len({method.colour for method in LINEAR_METHODS.values()}) == 3
    for spec in cost_figures(CostReport(SMALL), max_seconds=1.0, max_bytes=24e9):
        assert spec["data"] == []
        assert spec["layout"]["annotations"][0]["text"]


# subprocess


@pytest.mark.slow
def test_a_measurement_in_a_subprocess_waits_for_its_turn() -> None:
    # shared, because two at once would slow each other down
    with hold(LINE):
        measurement = Measurement(SMALL)
        assert measurement.status == "waiting"
    wait_for(lambda: not measurement.active, "the measurement")
    assert (measurement.status, measurement.error) == ("finished", "")
    assert measurement.report.timed
    assert {t.kind for t in measurement.report.timings} == set(LINEAR_METHODS)
    assert [c.t for c in measurement.report.conditions] == condition_grid(50)


@pytest.mark.slow
def test_the_command_line_refuses() -> None:
    command = [sys.executable, "-m", "bandits", "cost", "--linucb", '{"past": 1}']
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "error: past is 1; it must be a whole number from 10 to 100,000\n"
