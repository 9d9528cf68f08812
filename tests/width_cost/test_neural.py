"""Profiling: the methods agree, need the stated memory, keep their budgets, and are extrapolated
correctly.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bandits.base.errors import UserError
from bandits.base.formatting import duration, rounded, size
from bandits.base.randomness import Streams
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP
from bandits.results.figures.curves import figure
from bandits.width_cost import (
    NEURAL_METHODS,
    Agreement,
    CostReport,
    NeuralRequest,
    Progress,
    Sizes,
    Timing,
    measure,
    read,
    text,
)
from bandits.width_cost.figures import cost_figures
from bandits.width_cost.measurement import LINE, Measurement
from bandits.width_cost.neural_grids import CASES, NeuralGrids, compare_methods, spearman
from bandits.width_cost.neural_methods import (
    KEEP,
    REGISTRY,
    RIDGE,
    DropoutWidths,
    EnsembleWidths,
    WidthMethod,
)
from bandits.width_cost.timing import GridStep
from tests.support import wait_for

ROOT = Path(__file__).parents[2]
SMALL = NeuralRequest(hidden=(6,), n_candidates=5, past=20)


def net(*widths: int, double: bool = True) -> BatchedMLP:
    return BatchedMLP(initial_weights(Streams(3, (0,)), widths, part=1), widths, double=double)


def decisions(network: BatchedMLP, n: int, K: int = 7) -> Iterator[tuple[torch.Tensor, int]]:
    """Yield candidates and a choice from a network that changes after each choice."""
    generator = np.random.default_rng(4)
    for _ in range(n):
        x = torch.from_numpy(generator.normal(size=(K, network.widths[0]))).to(network.flat.dtype)
        yield x, int(generator.integers(K))
        network.flat.add_(torch.from_numpy(generator.normal(0, 0.02, network.flat.shape)))


def gradients(network: BatchedMLP, x: torch.Tensor) -> torch.Tensor:
    return network.factors(network.forward(x[None])).dense()[0].double()


# methods


@pytest.mark.parametrize("widths", [(3, 1), (5, 6, 1), (4, 7, 5, 1)])
def test_the_exact_methods_give_equal_widths_while_the_network_learns(
    widths: tuple[int, ...],
) -> None:
    network = net(*widths)
    methods = [REGISTRY[kind](network) for kind, about in NEURAL_METHODS.items() if about.exact]
    A = RIDGE * torch.eye(network.flat.shape[1], dtype=torch.float64)
    for x, arm in decisions(network, 80):
        G = gradients(network, x)
        truth = (G @ torch.linalg.inv(A) * G).sum(1).sqrt()
        for method in methods:
            torch.testing.assert_close(method.widths(x).double(), truth, rtol=1e-9, atol=1e-12)
            method.update(arm)
        A.addr_(G[arm], G[arm])


def test_the_exact_methods_give_equal_widths_in_float32_too() -> None:
    network = net(9, 16, 8, 1, double=False)
    methods = [REGISTRY[kind](network) for kind, about in NEURAL_METHODS.items() if about.exact]
    for x, arm in decisions(network, 100):
        first, *others = (method.widths(x).double() for method in methods)
        for other in others:
            torch.testing.assert_close(other, first, rtol=2e-3, atol=1e-4)
        for method in methods:
            method.update(arm)


def test_the_approximations_equal_their_definitions() -> None:
    network = net(5, 6, 4, 1)
    diagonal, last = REGISTRY["diagonal"](network), REGISTRY["last"](network)
    A = RIDGE * torch.ones(network.flat.shape[1], dtype=torch.float64)
    B = RIDGE * torch.eye(5, dtype=torch.float64)
    for x, arm in decisions(network, 60):
        G = gradients(network, x)
        torch.testing.assert_close(
            diagonal.widths(x), (G**2 / A).sum(1).sqrt(), rtol=1e-5, atol=1e-6
        )
        # weights and bias of the last layer
        z = G[:, -5:]
        torch.testing.assert_close(
            last.widths(x), (z @ torch.linalg.inv(B) * z).sum(1).sqrt(), rtol=1e-9, atol=1e-12
        )
        for method in (diagonal, last):
            method.update(arm)
        A += G[arm] ** 2
        B.addr_(z[arm], z[arm])


@pytest.mark.parametrize("double", [True, False])
def test_an_ensemble_and_dropout_measure_the_spread_of_predictions(double: bool) -> None:
    network = net(5, 6, 4, 1, double=double)
    ensemble, dropout = EnsembleWidths(network, members=4), DropoutWidths(network, passes=400)
    for x, arm in decisions(network, 3):
        outputs = [network.forward(x[None]).out[0, :, 0]]
        outputs += [ensemble.networks.select([m]).forward(x[None]).out[0, :, 0] for m in range(3)]
        torch.testing.assert_close(
            ensemble.widths(x), torch.stack(outputs).std(0), rtol=1e-5, atol=1e-6
        )
        before = ensemble.networks.select([0, 1, 2]).forward(x[arm].expand(3, 1, 5)).out
        ensemble.update(arm)
        after = ensemble.networks.forward(x[arm].expand(3, 1, 5)).out
        # closer to the reward
        assert bool(((after - 1).abs() < (before - 1).abs()).all())
        dropout.widths(x)
        dropout.update(arm)
    assert dropout.predictions.shape == (400, 7)
    # each of the 2^3 masks can be listed: the spread has a closed form
    one_layer = net(5, 3, 1)
    wide = DropoutWidths(one_layer, passes=4000)
    h, v = one_layer.forward(x[None].double()).inputs[-1][0], one_layer.layers[-1][0][0, 0]
    exact = ((h * v).square().sum(1) * (1 - KEEP) / KEEP).sqrt()
    # 5 standard errors
    torch.testing.assert_close(wide.widths(x.double()), exact, rtol=0.06, atol=1e-9)


def test_a_dual_filled_at_once_equals_one_filled_one_by_one() -> None:
    network, generator = net(4, 7, 1), np.random.default_rng(5)
    past, x = (torch.from_numpy(generator.normal(size=(n, 4))) for n in (150, 6))
    at_once, slowly = (REGISTRY["dual"](network, t=150) for _ in range(2))
    at_once.replay(past)
    for row in past:
        slowly.widths(row[None])
        slowly.update(0)
    for _ in range(3):
        torch.testing.assert_close(at_once.widths(x), slowly.widths(x), rtol=1e-9, atol=1e-12)
        at_once.update(2)
        slowly.update(2)


@pytest.mark.parametrize("kind", list(NEURAL_METHODS))
@pytest.mark.parametrize(
    "sizes",
    [Sizes(3, 10, (2, 2, 1)), Sizes(5, 64, (9, 16, 8, 1)), Sizes(17, 300, (4, 30, 1), 3, 7)],
)
def test_allocated_bytes_equal_the_stated_memory(kind: str, sizes: Sizes) -> None:
    network = net(*(int(width) for width in sizes.widths), double=False)
    method = REGISTRY[kind].for_sizes(network, sizes)
    generator = np.random.default_rng(6)
    past, x = (
        torch.from_numpy(generator.normal(size=(int(n), int(sizes.widths[0])))).float()
        for n in (sizes.t, sizes.K)
    )
    method.replay(past)
    method.widths(x)
    assert method.allocated() == NEURAL_METHODS[kind].memory(sizes)


def test_the_matrix_of_the_default_network_is_368_megabytes() -> None:
    sizes = NeuralRequest().sizes
    assert sizes.p == 9601
    assert 4 * sizes.p**2 == pytest.approx(368.7e6, rel=1e-4)
    assert NEURAL_METHODS["jacobian"].memory(sizes) == 4 * 9601**2 + 4 * 50 * 9601
    assert NEURAL_METHODS["passes"].memory(sizes) == 8 * 9601**2 + 4 * 50 * 9601


@pytest.mark.parametrize("kind", ["passes", "jacobian"])
def test_a_matrix_beyond_a_gigabyte_is_refused_before_it_is_made(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = net(9, 200, 200, 1, double=False)
    monkeypatch.setattr(torch, "eye", lambda *_, **__: pytest.fail("allocated"))
    with pytest.raises(
        UserError,
        match=r"^(Backward passes|Vectorised Jacobian) needs \d+\.\d GB for 42,401 weights and 0 obs",  # noqa: E501
    ) as e:
        REGISTRY[kind](network)
    assert "\n" not in str(e.value)
    with pytest.raises(UserError, match=r"20,000 observations; at most 1.1 GB are allowed"):
        REGISTRY["dual"](network, t=20_000)


# request


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"hidden": [1024, 1024, 1024]},
            "the network 9-1024-1024-1024-1 has 2,110,465 weights; at most 2,000,000 are",
        ),
        ({"hidden": [5000]}, "hidden.0 is 5000; it must be a whole number from 1 to 1,024"),
        ({"hidden": ["x"]}, "hidden.0 is x; it must be"),
        ({"hidden": []}, r"hidden is \[\]; it must be a list of 1 to 6 entries"),
        ({"n_candidates": 1}, "n_candidates is 1; it must be a whole number from 2 to 1,000,000"),
        ({"past": 10**9}, "past is 1000000000; it must be a whole number from 10 to 10,000"),
        ({"n_features": True}, "n_features is true; it must be a whole number from 1 to 1,000"),
        (
            {"layers": 3},
            "layers is not a known field; known are n_features, hidden, n_candidates, past, "
            "members, passes, seed",
        ),
        ([], "the request must be an object of names and values"),
    ],
)
def test_an_invalid_request_is_refused_in_one_sentence(data: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}") as refused:
        read(data, NeuralRequest)
    assert "\n" not in str(refused.value)


# measuring


@pytest.fixture(scope="module")
def measured() -> list[Progress]:
    return list(measure(SMALL))


@pytest.mark.slow
def test_every_method_is_timed_at_the_requested_sizes(measured: list[Progress]) -> None:
    report = CostReport.from_progress(SMALL, measured)
    for kind, method in NEURAL_METHODS.items():
        cost = report.at_request(kind)
        assert report.is_measured(kind)
        assert cost is not None
        assert 0 < cost.update < cost.decide + cost.update < 5
        assert cost.held == method.memory(SMALL.sizes)
        assert len(report.along(kind, "p")) > 2
        assert len(report.along(kind, "K")) > 2
    assert len(report.along("dual", "t")) > 3
    assert all(p.held == NEURAL_METHODS[p.kind].memory(p.sizes) for p in report.timings)


@pytest.mark.slow
def test_the_default_request_is_measured_at_its_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks up to that of the request and its observations; a full matrix of its weights keeps
    no budget.
    """
    plan = NeuralGrids.plan
    monkeypatch.setattr(
        NeuralGrids, "plan", lambda self: [step for step in plan(self) if step[1] != "K"]
    )
    monkeypatch.setattr("bandits.width_cost.neural_grids.compare_methods", lambda *_: [])
    report = CostReport.from_progress(NeuralRequest(), measure(NeuralRequest()))
    for kind in NEURAL_METHODS:
        cost = report.at_request(kind)
        assert cost is not None
        assert 0 < cost.decide < 60
        assert report.is_measured(kind) == (kind not in ("passes", "jacobian"))


@pytest.mark.slow
def test_progress_grows_from_step_to_step(measured: list[Progress]) -> None:
    fractions = [step.fraction for step in measured]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] < 0.1
    assert fractions[-1] == pytest.approx(1)
    assert [step.timed for step in measured] == sorted(step.timed for step in measured)
    assert all(
        isinstance(step.result, Agreement) for step in measured if step.timed and step.result
    )


def test_the_number_of_torch_threads_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = torch.get_num_threads(), []
    timed = NeuralGrids.timed

    def spy(*args: Any) -> Any:
        seen.append(torch.get_num_threads())
        return timed(*args)

    monkeypatch.setattr(NeuralGrids, "timed", spy)
    torch.set_num_threads(2)
    try:
        steps = measure(SMALL)
        for _ in range(3):
            next(steps)
            assert torch.get_num_threads() == 2
        steps.close()
        monkeypatch.setattr(NeuralGrids, "timed", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            next(measure(SMALL))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


LAW = {
    "passes": 2e-11,
    "jacobian": 4e-11,
    "dual": 1e-11,
    "diagonal": 1e-10,
    "last": 1e-10,
    "ensemble": 2e-11,
    "dropout": 1e-11,
}


def theoretical_timing(kind: str, sizes: Sizes) -> tuple[Timing, Any]:
    """Return timings that equal theory exactly: an overhead and the highest-order term."""
    method = NEURAL_METHODS[kind]
    decide = 1e-4 * method.decide(sizes)[0] + LAW[kind] * method.decide(sizes)[-1]
    update = 1e-5 + LAW[kind] * method.update(sizes)[-1]
    setup = 1e-10 * sizes.t**3 if kind == "dual" else 0.0
    return Timing(kind, sizes, decide, update, int(method.memory(sizes))), GridStep(
        sizes, decide + update, setup
    )


def extrapolated(profile: NeuralRequest, monkeypatch: pytest.MonkeyPatch) -> CostReport:
    monkeypatch.setattr(
        NeuralGrids, "timed", lambda _, kind, sizes: theoretical_timing(kind, sizes)
    )
    monkeypatch.setattr("bandits.width_cost.neural_grids.compare_methods", lambda *_: [])
    return CostReport.from_progress(profile, measure(profile))


LARGE = NeuralRequest(n_features=1000, hidden=(1024, 900), n_candidates=5000, past=10_000)
CATALOGUE = NeuralRequest(
    hidden=(300, 320), n_candidates=1_000_000, members=20, passes=50
)  # p = 10^5


@pytest.mark.parametrize(
    "profile",
    [
        NeuralRequest(),
        NeuralRequest(n_candidates=500),
        NeuralRequest(past=10_000),
        LARGE,
        CATALOGUE,
    ],
)
def test_nothing_large_or_slow_is_measured(
    profile: NeuralRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = extrapolated(profile, monkeypatch)
    for point in report.timings:
        assert NEURAL_METHODS[point.kind].memory(point.sizes) <= 256 * 2**20
        assert point.kind not in ("passes", "jacobian") or 4 * point.sizes.p**2 <= 128 * 2**20
        rung = {p.sizes.p for p in report.timings if p.kind == point.kind}
        # unknown beforehand
        assert point.seconds <= 0.5 or point.sizes.p == min(rung)
    assert {p.kind for p in report.timings} == set(NEURAL_METHODS)


@pytest.mark.parametrize(
    "profile",
    [
        NeuralRequest(),
        NeuralRequest(n_candidates=500),
        NeuralRequest(past=10_000),
        LARGE,
        CATALOGUE,
    ],
)
def test_extrapolation_recovers_the_theoretical_cost(
    profile: NeuralRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = extrapolated(profile, monkeypatch)
    for kind in NEURAL_METHODS:
        cost = report.at_request(kind)
        assert cost is not None
        assert cost.seconds == pytest.approx(
            theoretical_timing(kind, profile.sizes)[0].seconds, rel=0.02
        ), kind
    assert report.is_measured("dual") == (profile.past == 500 and profile.n_candidates <= 5000)
    assert not report.is_measured("passes")


def test_a_million_candidates_and_1e5_weights_are_on_the_theory_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = CATALOGUE.sizes
    assert sizes.p == pytest.approx(1e5, rel=0.01)
    assert 4 * sizes.K * sizes.p == pytest.approx(400e9, rel=0.01)
    report = extrapolated(CATALOGUE, monkeypatch)
    assert max(p.sizes.K for p in report.timings) <= 5000
    for spec in cost_figures(report, max_seconds=1.0, max_bytes=24e9):
        if "candidates" in spec["layout"]["title"]["text"]:
            assert 6 < spec["layout"]["xaxis"]["range"][1] < 7
    (memory,) = [
        s
        for s in cost_figures(report, max_seconds=1.0, max_bytes=24e9)
        if s["layout"]["title"]["text"] == "Memory vs. candidates"
    ]
    line = next(
        t for t in memory["data"] if t["name"] == "Vectorised Jacobian" and t["mode"] == "lines"
    )
    assert line["x"][-1] > 1e6
    assert line["y"][-1] == pytest.approx(
        NEURAL_METHODS["jacobian"].memory(sizes._replace(K=line["x"][-1])), rel=1e-6
    )
    assert line["y"].max() < 10 ** memory["layout"]["yaxis"]["range"][1]
    matrix = text.summary(report, 1.0, 24e9)[1].replace("\u00a0", " ")
    assert "K × p numbers, need 399 GB" in matrix
    passes = report.at_request("passes")
    assert passes is not None
    # the product of K gradients with the inverse
    assert passes.decide > 2 * LAW["passes"] * sizes.K * sizes.p**2
    ending = text.conclusion(report, 1e9, 24e9).replace("\u00a0", " ")
    assert ending.startswith("The fastest exact method at these sizes is Factored dual (about ")
    assert text.conclusion(report, 1e-6, 24e9).startswith(
        "No exact method keeps the limits of 1\u00a0µs and 24\u00a0GB"
    )
    assert text.conclusion(report, 1e-6, 24e9).endswith("; no approximation does either.")


def test_where_a_method_becomes_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    report = extrapolated(NeuralRequest(), monkeypatch)
    dual = report.infeasible_from("dual", "t", 1.0, 1e12)
    assert dual is not None
    x, why = dual
    assert why == "seconds"
    assert theoretical_timing("dual", report.request.sizes._replace(t=x))[
        0
    ].seconds == pytest.approx(1, rel=0.02)
    # a long time limit, but little memory
    p, why = report.infeasible_from("jacobian", "p", 1e9, 4e9) or (0, "")
    assert why == "bytes"
    assert 4 * p**2 + 4 * 50 * p == pytest.approx(4e9, rel=0.02)
    assert report.infeasible_from("passes", "K", 1.0, 1e12) == (0, "seconds")  # whatever K
    assert report.infeasible_from("diagonal", "t", 1.0, 1e12) is None
    assert text.infeasible_cell(report, "diagonal", "t", 1.0, 1e12) == "never"
    assert text.infeasible_cell(report, "passes", "K", 1.0, 1e12) == "everywhere (time)"
    # even the measured sizes are too slow
    assert report.infeasible_from("dual", "t", 1e-6, 1e12) == (0, "seconds")


def test_partial_measurements_have_points_and_no_lines(measured: list[Progress]) -> None:
    half = CostReport.from_progress(SMALL, [step for step in measured if not step.timed])
    curve = half.curve("dual", "p", "seconds", 1.0)
    assert len(curve.x) > 2
    assert len(curve.extrapolated_x) == 0
    assert curve.limit is None
    assert text.summary(half, 1.0, 1e10) == []
    assert CostReport(SMALL).at_request("dual") is None


# agreement


def test_the_exact_methods_agree_with_those_of_the_agent(measured: list[Progress]) -> None:
    agreements = [step.result for step in measured if isinstance(step.result, Agreement)]
    assert [(a.simulator, a.kind) for a in agreements] == [
        ("Pet shop", "diagonal"),
        ("Pet shop", "last"),
        ("Quadratic rewards", "diagonal"),
        ("Quadratic rewards", "last"),
        ("Pet shop, small", "passes"),
        ("Pet shop, small", "jacobian"),
    ]
    for a in agreements:
        assert a.past == 20
        assert 0 <= a.same <= 1
        assert len(a.exact) == len(a.widths) <= 300
        if NEURAL_METHODS[a.kind].exact:
            assert (a.same, a.decisions) == (1, 100)
            assert a.rank > 0.99
            assert a.scale == pytest.approx(1, rel=1e-3)
            np.testing.assert_allclose(a.widths, a.exact, rtol=0.02, atol=1e-3)
        else:
            assert a.decisions == 200
        # the width of a part of the gradient never exceeds that of the whole
        if a.kind == "last":
            assert np.all(np.array(a.widths) <= np.array(a.exact) * (1 + 1e-3))


def test_agreement_is_reproducible() -> None:
    assert compare_methods(SMALL, CASES[0]) == compare_methods(SMALL, CASES[0])


def test_rank_correlation() -> None:
    a = np.array([[1.0, 2, 3, 4], [1, 1, 2, 3], [5, 5, 5, 5]])
    b = np.array([[9.0, 7, 5, 1], [2, 2, 8, 9], [1, 2, 3, 4]])
    np.testing.assert_allclose(spearman(a, b), [-1, 1, np.nan])


# text and figures


@pytest.mark.parametrize(
    ("formatted", "expected"),
    [
        (duration(2.44e-3), "2.4 ms"),
        (duration(1.0), "1 s"),
        (duration(11.4), "11 s"),
        (duration(99.96e-6), "100 µs"),
        (duration(9.996e-4), "1 ms"),
        (duration(250), "250 s"),
        (duration(3 * 3600), "3 hours"),
        (duration(1e6), "12 days"),
        (size(368_716_804), "369 MB"),
        (size(1e3), "1 kB"),
        (size(25.3e9), "25.3 GB"),
        (size(12), "12 B"),
        (rounded(13_412), "13,000"),
        (rounded(84), "84"),
        (rounded(3e9), "10^9"),
    ],
)
def test_numbers_are_formatted(formatted: str, expected: str) -> None:
    assert formatted.replace("\u00a0", " ") == expected


def test_the_summary_states_what_the_figures_show(monkeypatch: pytest.MonkeyPatch) -> None:
    report = extrapolated(NeuralRequest(), monkeypatch)
    agreed = Agreement("diagonal", "Pet shop", 9601, 300, 200, rank=0.5, same=0.79, scale=0.8)
    report = report.updated(Progress(1, "", agreed, timed=True))
    sentences = [sentence.replace("\u00a0", " ") for sentence in text.summary(report, 1.0, 24e9)]
    first, matrix, limits, dual, approximations = sentences
    assert first.startswith(
        "For p = 9,601 weights, K = 50 candidates and t = 500 observations, one decision with exact"
    )
    assert (
        "a p × p matrix, which alone needs 369 MB, take about 18 s with one backward pass per arm"
        in matrix
    )
    assert (
        "Backward passes at about p = 3,600 (1 s per decision); Vectorised Jacobian at about p"
        in limits
    )
    assert "infeasible at about t = 33,000 (24 GB, the memory of this machine)" in dual
    assert (
        "lead to the same choice as exact widths in 79 % (diagonal) of 200 decisions."
        in approximations
    )
    assert "the memory of this machine" in text.summary(report, 1e6, 1e9)[2]


def test_there_are_six_plots_of_cost_and_one_of_agreement(measured: list[Progress]) -> None:
    specs = cost_figures(CostReport.from_progress(SMALL, measured), max_seconds=1.0, max_bytes=24e9)
    assert [s["layout"]["title"]["text"] for s in specs] == [
        "Time vs. network size",
        "Memory vs. network size",
        "Time vs. observations",
        "Memory vs. observations",
        "Time vs. candidates",
        "Memory vs. candidates",
        "Agreement with exact widths",
    ]
    for spec in specs:
        assert figure(spec).data
        assert figure(spec, dark=True).data
        assert spec["layout"]["xaxis"]["type"] == spec["layout"]["yaxis"]["type"] == "log"
        assert spec["layout"]["meta"]["note"].endswith(".")
    for spec in specs[:6]:
        assert {t["name"] for t in spec["data"] if t.get("meta") != "reference"} == {
            w.title for w in NEURAL_METHODS.values()
        }
        assert spec["layout"]["yaxis"]["ticktext"][0] in ("10\u00a0µs", "1\u00a0kB")
        for trace in spec["data"]:
            assert len(trace["x"]) == len(trace["y"])
            assert np.all(np.asarray(trace["x"]) > 0)
        dashes = [
            t["line"]["dash"] for t in spec["data"] if t.get("mode") == "lines" and "meta" not in t
        ]
        assert set(dashes) == {"dash"}
    assert len({method.colour for method in NEURAL_METHODS.values()}) == len(NEURAL_METHODS)


def test_without_timings_the_figures_are_empty_with_a_note() -> None:
    for spec in cost_figures(CostReport(SMALL), max_seconds=1.0, max_bytes=24e9):
        assert spec["data"] == []
        assert spec["layout"]["annotations"][0]["text"]


# subprocess


def smallest(timings: Iterable[Timing]) -> dict[str, tuple[float, float, float]]:
    """Return the smallest p, K and t of every method."""
    sizes: dict[str, list[Sizes]] = {}
    for timing in timings:
        sizes.setdefault(timing.kind, []).append(timing.sizes)
    return {
        kind: (min(s.p for s in of), min(s.K for s in of), min(s.t for s in of))
        for kind, of in sizes.items()
    }


@pytest.mark.slow
def test_a_measurement_in_a_subprocess_gives_the_same_result(measured: list[Progress]) -> None:
    measurement = Measurement(SMALL)
    wait_for(lambda: not measurement.active, "the measurement")
    assert (measurement.status, measurement.error) == ("finished", "")
    assert measurement.fraction == pytest.approx(1)
    assert measurement.report.timed
    here = smallest([s.result for s in measured if isinstance(s.result, Timing)])
    # how far the sizes go depends on the load of the machine
    assert smallest(measurement.report.timings) == here
    assert set(here) == set(NEURAL_METHODS)
    same = [s.result for s in measured if isinstance(s.result, Agreement)]
    assert [(a.kind, a.simulator, a.decisions) for a in measurement.report.agreements] == [
        (a.kind, a.simulator, a.decisions) for a in same
    ]


def test_measurements_run_one_at_a_time() -> None:
    assert (LINE.at_once, LINE.waiting) == (1, 8)


@pytest.mark.slow
def test_the_command_line_measures_and_refuses() -> None:
    def call(text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bandits", "cost", text]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    refused = call('{"past": 1}')
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "error: past is 1; it must be a whole number from 10 to 10,000\n"
    assert call("{").returncode == 2


def test_importing_profiling_does_not_import_torch() -> None:
    code = (
        "import sys, bandits.width_cost.measurement, bandits.width_cost.figures; sys.exit('torch' "
        "in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_every_method_has_its_complexity() -> None:
    assert list(REGISTRY) == list(NEURAL_METHODS)
    assert all(
        issubclass(method, WidthMethod) and method.kind == kind for kind, method in REGISTRY.items()
    )
