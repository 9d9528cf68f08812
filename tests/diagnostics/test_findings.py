"""Diagnostics: every verdict on a constructed history, and a finding for every agent."""

from __future__ import annotations

import math
import re
import sys
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
import plotly.graph_objects as go
import pytest
from scipy.stats import chi2

from bandits import Experiment, diagnostics, run
from bandits.agents import REGISTRY
from bandits.agents.linear.lints import LinTS
from bandits.agents.linear.linucb import LinUCB
from bandits.agents.neural.neural_click_ts import NeuralClickTS
from bandits.base.types import FloatArray
from bandits.diagnostics import Finding, LinearityCheck, OracleReference, PositionBias, figures
from bandits.diagnostics.curves import recent_entropy, recent_segment_entropy
from bandits.diagnostics.finding import FORGETTING, PENDING, STOPPED, TOO_EARLY
from bandits.diagnostics.findings import ReferenceTask
from bandits.diagnostics.references import curvature_test, estimate_position_bias, network_gain
from bandits.diagnostics.spectrum_figures import spectrum_animation
from bandits.experiments.history import History
from bandits.experiments.presets import presets
from bandits.experiments.snapshots import BINS, BeliefCheck, Calibration, Spectrum
from bandits.results import metrics
from bandits.results.figures.style import styles
from bandits.results.result import Result
from bandits.simulators import REGISTRY as SIMULATORS
from bandits_app.widgets.live_panel import panel
from tests.support import experiment, history, often, wait_for

STEPS = np.arange(100, 2001, 100)
NAMES = {
    "exploration",
    "regret",
    "smallest_eigenvalue",
    "condition_number",
    "effective_dimension",
    "exploration_bonus",
    "premature_convergence",
    "calibration",
    "pit_histogram",
    "predictive_r2",
    "linearity",
    "segment_coverage",
    "segment_entropy",
}


def diagnose(
    kind: Any = LinTS,
    *,
    oracle: OracleReference | None = None,
    line: LinearityCheck | None = None,
    items: Any = None,
    **snapshots: Any,
) -> dict[str, Finding]:
    """Diagnose a history of 2,000 steps with these snapshots: ``spectrum(t)``, ``inside``,
    ``checkup(t)``.
    """
    rng = np.random.default_rng(0)
    clicks, groups = (rng.random((2000, 4)) < 0.5).astype(float), snapshots.get("segments")
    result = history(
        clicks, items=items, n_items=5, segments=groups, n_segments=0 if groups is None else 4
    )
    if spectrum := snapshots.get("spectrum"):
        result.spectra = [Spectrum(int(t), np.tile(spectrum(t), (4, 1, 1))) for t in STEPS]
    if (inside := snapshots.get("inside")) is not None:
        result.calibrations = [Calibration(2000, np.tile(inside, (4, 1)))]
    if checkup := snapshots.get("checkup"):
        result.belief_checks = [BeliefCheck(int(t), np.tile(checkup(t), (4, 1))) for t in STEPS]
    params = kind if not isinstance(kind, type) else kind.Params()  # type: ignore[attr-defined]
    e = Experiment.model_validate({"agents": [{"kind": "lints"}], "steps": 2000, "replications": 4})
    e = e.model_copy(update={"agents": (params,)})
    return diagnostics.findings(Result(e, {e.labels[0]: result}), e.labels[0], oracle, line)


@pytest.mark.parametrize(
    ("power", "verdict"), [(1.0, "healthy"), (0.5, "healthy"), (0.2, "watch"), (0.0, "alarm")]
)
def test_smallest_eigenvalue_is_graded_by_its_growth(power: float, verdict: str) -> None:
    finding = diagnose(spectrum=lambda t: np.array([50.0 * t, 3.0 * t**power]))[
        "smallest_eigenvalue"
    ]
    assert finding.verdict == verdict
    assert f"recent growth exponent {power:g} (√t: 0.5" in finding.text
    logarithm = diagnose(spectrum=lambda t: np.array([50.0 * t, 3.0 * math.log(t)]))[
        "smallest_eigenvalue"
    ]
    assert (logarithm.verdict, "log t: 0.14)" in logarithm.text) == ("watch", True)
    forgets = diagnose(LinUCB.Params(gamma=0.99), spectrum=lambda t: np.array([2.0, 1.0]))[
        "smallest_eigenvalue"
    ]
    assert (forgets.verdict, forgets.text) == ("none", FORGETTING)


class Trial(LinTS):
    """An agent whose parameters only have the names of a discount factor, a window and a bonus."""

    class Params(LinTS.Params):
        kind: Literal["trial"] = "trial"  # type: ignore[assignment]
        # exponent of a step size
        gamma: float = 0.5
        # width of a smoother
        window: int = 7
        # shape of a prior
        alpha: float = 2.0

        # gamma and window are no forgetting here
        def _one_way_to_forget(self) -> Self:
            return self

    title = "Trial"

    @classmethod
    def forgets(cls, params: Any) -> bool:
        return False


def test_diagnostics_use_declared_capabilities_not_parameter_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(REGISTRY, "trial", Trial)
    shown: dict[str, Any] = {
        "spectrum": lambda t: np.array([50.0 * t, 3.0 * t]),
        "inside": np.array([0.95, 1.0, 1.0]),
        "checkup": lambda t: np.concatenate([[1 / t, 0.1, 1.0], places()]),
    }
    actual, plain = diagnose(Trial, **shown), diagnose(LinTS, **shown)
    assert actual == plain
    accumulating = ("smallest_eigenvalue", "effective_dimension", "exploration_bonus")
    assert all(actual[name].verdict == "healthy" for name in accumulating)
    # too wide intervals: acceptable for an upper confidence bound only
    assert actual["calibration"].verdict == "alarm"
    assert diagnose(LinUCB.Params(gamma=0.99), **shown)["exploration_bonus"].verdict == "none"


@pytest.mark.parametrize(("ratio", "verdict"), [(100.0, "healthy"), (1e4, "watch"), (1e6, "alarm")])
def test_condition_number_is_stated_in_standard_deviations(ratio: float, verdict: str) -> None:
    finding = diagnose(spectrum=lambda t: np.array([ratio * t, t]))["condition_number"]
    assert finding.verdict == verdict
    assert finding.text.startswith(f"{ratio**0.5:,.0f} times as well")


@pytest.mark.parametrize(("known", "verdict"), [(10, "healthy"), (7, "watch"), (3, "alarm")])
def test_effective_dimension_counts_directions_determined_by_data(known: int, verdict: str) -> None:
    values = np.array([1e9] * known + [1.0] * (10 - known))  # the ridge is 1
    finding = diagnose(spectrum=lambda t: values)["effective_dimension"]
    assert finding.verdict == verdict
    assert finding.text.startswith(f"{known} of 10")
    prior = NeuralClickTS.Params(epsilon=1e-6)
    own = diagnose(prior, spectrum=lambda t: 1e-6 * np.array([4.0, 1.0]))["effective_dimension"]
    # its prior is epsilon
    assert own.text.startswith("0.75 of 2")


def places(*, low: float = 0.1, high: float = 0.1) -> FloatArray:
    """Return a PIT histogram with these shares in the outer bins, uniform in between."""
    return np.array([low, *[(1 - low - high) / (BINS - 2)] * (BINS - 2), high])


@pytest.mark.parametrize(
    ("fall", "error", "shares", "verdicts", "message"),
    [
        (1.0, 0.1, places(), ("healthy", "healthy", "healthy"), "evenly"),
        (0.05, 0.7, places(low=0.3, high=0.3), ("watch", "watch", "watch"), "overconfident"),
        (
            0.0,
            1.2,
            places(high=0.9, low=0.0),
            ("alarm", "alarm", "watch"),
            "underestimates rewards",
        ),
        (
            0.0,
            0.95,
            places(low=0.9, high=0.0),
            ("alarm", "alarm", "watch"),
            "overestimates rewards",
        ),
        (
            1.0,
            0.1,
            np.eye(BINS)[4:6].mean(axis=0),
            ("healthy", "alarm", "healthy"),
            "underconfident",
        ),
    ],
)
def test_bonus_pit_histogram_and_r2(
    fall: float, error: float, shares: Any, verdicts: Any, message: str
) -> None:
    actual = diagnose(checkup=lambda t: np.concatenate([[t**-fall, error, 1.0], shares]))
    assert (
        actual["exploration_bonus"].verdict,
        actual["pit_histogram"].verdict,
        actual["predictive_r2"].verdict,
    ) == verdicts
    assert message in actual["pit_histogram"].text
    bonus = actual["exploration_bonus"]
    # the first value that is known is that of the first snapshot
    assert "initial" not in bonus.healthy
    assert re.fullmatch(
        r"At step 2,000 \(last snapshot\) it is \d+ % of that at step 100 \(first snapshot\)\.",
        bonus.text,
    )


@pytest.mark.parametrize(
    ("inside", "thompson", "bound"),
    [
        ((0.5, 0.8, 0.95), "healthy", "healthy"),
        ((0.4, 0.7, 0.8), "watch", "watch"),
        ((0.1, 0.2, 0.3), "alarm", "alarm"),
        # conservative: acceptable for UCB
        ((0.95, 1.0, 1.0), "alarm", "healthy"),
    ],
)
def test_conservative_intervals_are_accepted_for_bonus_agents(
    inside: Any, thompson: str, bound: str
) -> None:
    assert diagnose(LinTS, inside=np.array(inside))["calibration"].verdict == thompson
    assert diagnose(LinUCB, inside=np.array(inside))["calibration"].verdict == bound
    committee = REGISTRY["ensemble"].Params
    assert (
        diagnose(committee(strategy="bonus"), inside=np.array(inside))["calibration"].verdict
        == bound
    )
    assert (
        diagnose(committee(strategy="thompson"), inside=np.array(inside))["calibration"].verdict
        == thompson
    )


def test_premature_convergence_is_relative_to_the_oracle() -> None:
    one = np.zeros((2000, 4, 1), np.int64)
    alone = diagnose(items=one)["premature_convergence"]
    assert (alone.verdict, "no oracle is available" in alone.text) == ("watch", True)
    right = diagnose(items=one, oracle=OracleReference(0.0, 0.8))["premature_convergence"]
    assert right.verdict == "healthy"
    assert "Entropy is below 0.5, but so is the oracle's: entropy 0.00" in right.text
    wrong = diagnose(items=one, oracle=OracleReference(0.9, 0.0))["premature_convergence"]
    assert wrong.verdict == "alarm"
    assert (
        "entropy 0.00; 80 % of the arms receive under 1 % of the traffic each (oracle: 0.90; 0 %)"
        in wrong.text
    )
    even = np.tile(np.arange(5), 1600).reshape(2000, 4, 1)
    assert (
        diagnose(items=even, oracle=OracleReference(0.9, 0.0))["premature_convergence"].verdict
        == "healthy"
    )


def well_specified(seed: int, replications: int, **changes: Any) -> dict[str, Finding]:
    """Diagnose LinTS with the simulator's noise variance and prior variance of the weights (1 / 5
    each).
    """
    settings = {
        "kind": "synthetic",
        "function": "linear",
        "n_features": 5,
        "n_arms": 10,
        "noise": 0.5,
        "layout": "per_row",
    }
    agent = {"kind": "lints", "sharing": "shared", "sigma2": 0.25, "ridge": 1.25, **changes}
    data = {
        "simulator": settings,
        "agents": [agent],
        "steps": 400,
        "replications": replications,
        "seed": seed,
    }
    return diagnostics.findings(run(Experiment.model_validate(data)), "LinTS")


@pytest.mark.slow
def test_a_well_specified_posterior_is_calibrated_within_sampling_error() -> None:
    """Of runs with four replications, at most one in ten fails per rule, as 95 % intervals allow,
    and none by far.

    A rule that fails in 20 % is seen with probability .79 in 20 runs, with .62 in 10.
    """
    runs = [well_specified(seed, 4) for seed in range(often(10, 20))]
    for name in ("calibration", "pit_histogram"):
        assert sum(actual[name].verdict != "healthy" for actual in runs) <= len(runs) / 10
        assert all(actual[name].verdict != "alarm" for actual in runs)
    sure = [well_specified(seed, 4, sigma2=0.01, ridge=0.05) for seed in range(3)]
    assert all(actual["calibration"].verdict in ("watch", "alarm") for actual in sure)
    assert "overconfident" in sure[0]["calibration"].text


@pytest.mark.parametrize("runs", [1, 3])
def test_calibration_requires_four_replications(runs: int) -> None:
    actual = well_specified(1, runs)
    for name in ("calibration", "pit_histogram"):
        assert actual[name].verdict == "none"
        assert actual[name].text.endswith(
            "not separate miscalibration from chance: at least 4 are required."
        )


@pytest.mark.slow
def test_a_good_agent_raises_no_alarm_for_slow_eigenvalue_growth() -> None:
    """LinTS on the pet shop closes most of the gap to the oracle while its smallest eigenvalue
    grows slowly.
    """
    agent = {"kind": "lints", "sharing": "shared", "sigma2": 0.25}
    settings = {"kind": "petshop", "features": "both"}
    e = Experiment.model_validate(
        {"simulator": settings, "agents": [agent], "steps": 5000, "replications": 4}
    )
    result = run(e)
    assert metrics.estimate(metrics.oracle_share(result.histories["LinTS"])).mean > 0.9
    found = diagnostics.findings(result, "LinTS")
    assert found["exploration"].direction == "about right"
    assert found["smallest_eigenvalue"].verdict in ("healthy", "none")


def test_recent_entropy_is_the_same_on_any_count_grid() -> None:
    """Entropy of 300 random items rises with the number of impressions, so a wider grid must not
    count more of them.

    The same 6,000 steps counted every 100 and every 2,000: three times the standard error apart at
    most."""
    items = np.random.default_rng(3).integers(300, size=(6000, 40, 1))
    clicks = np.zeros((6000, 40))
    fine, coarse = (
        history(clicks, items=items, n_items=300, steps=steps) for steps in (6000, 400_000)
    )
    assert [int(h.count_grid[1]) for h in (fine, coarse)] == [100, 2000]
    entropies = [recent_entropy(h) for h in (fine, coarse)]
    ends = metrics.normalised_entropy(
        np.stack([np.bincount(items[-1000:, r, 0], minlength=300) for r in range(40)])
    )
    assert entropies[0][0] == pytest.approx(ends.mean())
    error = ends.std() / 40**0.5
    assert abs(entropies[0][0] - entropies[1][0]) < 3 * 2**0.5 * error
    assert metrics.entropy(coarse).mid[-1] - entropies[0][0] > 20 * error
    assert entropies[0][1] == pytest.approx(entropies[1][1], abs=0.01)


def test_premature_convergence_requires_the_oracles_window() -> None:
    e = experiment("lints", steps=2000)
    early = history(np.zeros((400, 3)), n_items=10, steps=2000)
    actual = diagnostics.findings(
        Result(e, {"LinTS": early}), "LinTS", OracleReference(0.9, 0.0, steps=1000)
    )
    assert (actual["premature_convergence"].verdict, actual["premature_convergence"].text) == (
        "none",
        "Too early: 1,000 steps are required.",
    )
    soon = diagnostics.findings(
        Result(e, {"LinTS": early}), "LinTS", OracleReference(0.9, 0.0, steps=300)
    )
    assert soon["premature_convergence"].verdict == "alarm"


def groups(shown: list[int]) -> dict[str, Any]:
    """Show each of four alternating segments this many of the five items, evenly."""
    segments = np.tile(np.arange(4), 500)
    visit = np.repeat(np.arange(500), 4)
    items = visit % np.array(shown)[segments]
    both = {"segments": segments, "items": items}
    return {name: np.repeat(values[:, None], 4, axis=1) for name, values in both.items()}


@pytest.mark.parametrize(
    ("shown", "verdict", "least"),
    [(5, "healthy", "new puppy parent"), (4, "watch", "fish"), (2, "alarm", "fish")],
)
def test_coverage_by_segment(shown: int, verdict: str, least: str) -> None:
    shown_items = groups([5, 5, 5, shown])
    actual = diagnose(
        **(shown_items | {"items": shown_items["items"][:, :, None]}),
        oracle=OracleReference(0.5, 0.0, (1.0, 0.0, 0.0, 0.0)),
    )
    assert actual["segment_coverage"].verdict == verdict
    assert actual["segment_coverage"].text.startswith(f"Lowest for {least}")
    assert (
        f"{20 * shown} % of the items shown at least once, {20 * shown} % at least ten"
        in actual["segment_coverage"].text
    )
    assert actual["segment_entropy"].verdict == "healthy"
    assert actual["segment_entropy"].text == "Lowest for new puppy parent: 1.00 (oracle: 1.00)."


def test_segment_entropy_is_relative_to_the_oracle() -> None:
    shown_items = groups([5, 1, 5, 5])
    shown_items["items"] = shown_items["items"][:, :, None]
    right = diagnose(**shown_items, oracle=OracleReference(0.5, 0.0, (0.9, 0.0, 0.9, 0.9)))[
        "segment_entropy"
    ]
    assert right.verdict == "healthy"
    wrong = diagnose(**shown_items, oracle=OracleReference(0.5, 0.0, (0.9, 0.9, 0.9, 0.9)))[
        "segment_entropy"
    ]
    assert (wrong.verdict, wrong.text) == (
        "alarm",
        "Lowest for cat connoisseur: 0.00 (oracle: 0.90).",
    )
    same = diagnose(**shown_items, oracle=OracleReference(0.5, 0.0, (0.0, 0.05, 0.0, 0.0)))[
        "segment_entropy"
    ]
    assert (same.verdict, "No agent can be 0.1 below the oracle" in same.text) == ("none", True)
    alone = diagnose(**shown_items)["segment_entropy"]
    assert (alone.verdict, "no oracle is available" in alone.text) == ("none", True)


def test_segment_entropy_uses_the_oracles_window() -> None:
    """Stored counts span 100 steps, 25 per segment: two impressions drawn from them rarely show the
    same item.
    """
    shown_items = groups([5, 5, 5, 5])
    shown_items["items"] = shown_items["items"][:, :, None]
    all_counts = history(np.zeros((2000, 4)), n_items=5, n_segments=4, **shown_items)
    assert all_counts.segments is not None
    assert np.diff(all_counts.segments.grid)[-1] == 100
    few, all_ = recent_segment_entropy(all_counts, 8), recent_segment_entropy(all_counts, 100)
    assert few is not None
    assert all_ is not None
    # 1 where the two differ, 0 where not
    assert np.all((few > 0.5) & (few < 1))
    assert np.all(all_ > 0.98)


def test_a_simulator_without_segments_has_no_segment_diagnostics() -> None:
    e = experiment("linucb", simulator={"kind": "classification", "data": "wine"}, steps=120)
    result = run(e)
    actual = diagnostics.findings(result, "LinUCB", diagnostics.oracle_reference(e))
    assert not {"segment_coverage", "segment_entropy"} & set(actual)
    assert not {"segment_coverage", "segment_entropy"} & set(
        figures.panels(result, "LinUCB", actual)
    )


@pytest.mark.parametrize(
    ("gain", "p", "params", "verdict", "message"),
    [
        (
            0.05,
            0.6,
            LinUCB.Params(sharing="shared"),
            "healthy",
            "explains 5 % more variance; residuals are not curved",
        ),
        (-0.05, 0.001, LinUCB.Params(), "watch", "explains no more variance; residuals are curved"),
        (
            0.5,
            0.6,
            LinUCB.Params(sharing="shared"),
            "alarm",
            "explains 50 % more variance, so a linear model underfits.",
        ),
        (
            4.0,
            0.001,
            LinUCB.Params(),
            "watch",
            "5 times as much variance and residuals are curved, so one shared linear model "
            "underfits; per-arm",
        ),
        (
            math.inf,
            0.6,
            LinUCB.Params(sharing="shared"),
            "alarm",
            "some variance and a linear model none",
        ),
        (math.nan, 0.6, LinUCB.Params(), "none", "neither a linear model nor a network"),
        (0.5, 0.6, LinUCB.Params(fourier=50), "none", "random Fourier features"),
        (0.5, 0.6, NeuralClickTS.Params(), "none", "linear in the features"),
    ],
)
def test_linearity_check_compares_a_linear_model_with_a_network(
    gain: float, p: float, params: Any, verdict: str, message: str
) -> None:
    points = np.zeros(10)
    finding = diagnose(params, line=LinearityCheck(points, points, points + 1, p, gain))[
        "linearity"
    ]
    assert finding.verdict == verdict
    assert message in finding.text


def test_a_gain_is_judged_beyond_the_share_that_is_tolerated() -> None:
    """15 % more variance for sure is a gain, and below the 20 % that count."""
    linear = np.random.default_rng(0).normal(1.0, 0.1, 1000)
    for factor in (1.15, 1.3):
        gain, beyond = network_gain(linear, factor * linear)
        assert gain == pytest.approx(factor - 1)
        rest = (factor - 1.2) * linear
        assert beyond == pytest.approx(rest.mean() / (rest.std() / math.sqrt(1000)))
    noise = linear - linear.mean() - 0.001
    assert math.isnan(network_gain(noise, noise)[0])
    assert network_gain(noise, linear)[0] == math.inf


def test_an_insignificant_gain_gives_no_verdict() -> None:
    points = np.zeros(10)
    for p, verdict in ((0.6, "none"), (0.001, "watch")):
        line = LinearityCheck(points, points, points + 1, p, 0.5, beyond=1.5)
        finding = diagnose(LinUCB.Params(sharing="shared"), line=line)["linearity"]
        assert (finding.verdict, "too few observations" in finding.text) == (verdict, True)


@pytest.mark.slow
@pytest.mark.parametrize("clicks", [False, True])
@pytest.mark.parametrize("D", [5, 50])
def test_the_curvature_test_holds_its_level_on_few_observations(D: int, clicks: bool) -> None:
    """In 200 linear simulations, p < .1 as often as the level allows, within 4 standard errors.

    Curved ones fail.
    """

    def p_value(seed: int, curve: float) -> float:
        rng, n = np.random.default_rng(seed), 2000
        x, along = rng.standard_normal((n, D)), rng.standard_normal(D) / D**0.5
        truth = x @ along + curve * (x @ along) ** 2
        noise = rng.standard_normal(n)
        rewards = (
            (rng.random(n) < np.clip(0.5 + 0.12 * truth, 0, 1)).astype(float)
            if clicks
            else truth + noise
        )
        design, half = np.column_stack([np.ones(n), x]), 5 * n // 8
        theta = np.linalg.lstsq(design[:half], rewards[:half], rcond=None)[0]
        return curvature_test(design[half:] @ theta, rewards[half:])[3]

    level = np.mean([p_value(seed, 0.0) < 0.1 for seed in range(200)])
    assert abs(level - 0.1) < 4 * (0.1 * 0.9 / 200) ** 0.5
    assert (
        np.mean([p_value(seed, 0.0) < 0.01 for seed in range(200)])
        <= 0.01 + 4 * (0.01 * 0.99 / 200) ** 0.5
    )
    assert np.mean([p_value(seed, 1.0) < 0.1 for seed in range(20)]) > 0.4


@pytest.mark.parametrize("seed", [1, 2])
def test_a_linear_simulator_with_fifty_features_passes_the_linearity_check(seed: int) -> None:
    settings = {"kind": "synthetic", "function": "linear", "n_features": 50, "noise": 0.1}
    agents = [{"kind": "linucb", "sharing": "shared"}]
    line = diagnostics.linearity_check(
        Experiment.model_validate(
            {"simulator": settings, "agents": agents, "steps": 2000, "seed": seed}
        )
    )
    assert line is not None
    assert diagnose(LinUCB.Params(sharing="shared"), line=line)["linearity"].verdict == "healthy"


def test_linearity_check_distinguishes_linear_from_quadratic_rewards() -> None:
    straight = {"kind": "synthetic", "function": "linear", "reward": "gaussian", "noise": 0.1}
    bent = {**straight, "function": "quadratic", "n_features": 3}
    for simulator, enough in ((straight, True), (bent, False)):
        line = diagnostics.linearity_check(
            Experiment.model_validate(
                {"simulator": simulator, "agents": [{"kind": "linucb"}], "steps": 4000}
            )
        )
        assert (line.gain <= diagnostics.MAX_NETWORK_GAIN) == enough
        assert len(line.fitted) == len(line.residual) == len(line.error) == 10
        assert (np.diff(line.fitted) > 0).all()


def test_the_oracle_of_the_pet_shop_is_narrow() -> None:
    """Four personas share three best categories with one best product each: the oracle shows
    nothing else.
    """
    oracle = diagnostics.oracle_reference(experiment(simulator={"kind": "petshop"}, steps=2000))
    assert oracle is not None
    assert oracle.rare == pytest.approx(47 / 50)
    # budget shoppers like cat food best, as cat people do
    shares = np.array([0.25, 0.5, 0.25])
    assert oracle.entropy == pytest.approx(-(shares * np.log(shares)).sum() / np.log(50), abs=0.02)


def simulate_clicks(
    rng: np.random.Generator, b: FloatArray, p: FloatArray, times: int
) -> tuple[FloatArray, FloatArray]:
    """Simulate examinations and clicks of slates with click probabilities ``p (M, S)``, shown in
    random order.
    """
    M, S = p.shape
    order = np.argsort(rng.random((times, M, S)), axis=2)
    clicked = rng.random((times, M, S)) < b * np.take_along_axis(
        np.broadcast_to(p, order.shape), order, axis=2
    )
    examined = np.cumsum(clicked, axis=2) - clicked == 0
    at = (
        np.broadcast_to(np.arange(M)[:, None], order.shape),
        order,
        np.broadcast_to(np.arange(S), order.shape),
    )
    examinations, clicks = np.zeros((2, M, S, S))
    np.add.at(examinations, at, examined)
    np.add.at(clicks, at, clicked & examined)
    return examinations.reshape(-1, S), clicks.reshape(-1, S)


def test_position_bias_estimate_is_unbiased_with_correct_standard_errors() -> None:
    """With one strong item among weak ones, clicks per examination are biased and the estimate is
    not.

    Of 40 estimates in units of their errors, the mean lies within 4 / sqrt(40) of zero, and the
    mean square within 4 sqrt(2 / 40) of one, plus .2 because the errors are asymptotic."""
    b = np.array([1.0, 0.7, 0.45, 0.3])
    p = np.tile([0.8, 0.1, 0.1, 0.1], (20, 1))
    z_scores, naive = [], []
    for seed in range(40):
        looks, clicks = simulate_clicks(np.random.default_rng(seed), b, p, 100)
        estimate, error = estimate_position_bias(looks, clicks)
        z_scores.append((estimate - b)[1:] / error[1:])
        rate = clicks.sum(axis=0) / looks.sum(axis=0)
        naive.append((rate / rate[0] - b)[1:] / error[1:])
    scores = np.array(z_scores)
    assert (np.abs(scores.mean(axis=0)) < 4 / 40**0.5 + 0.2).all()
    assert (np.abs((scores**2).mean(axis=0) - 1) < 4 * (2 / 40) ** 0.5 + 0.2).all()
    assert (np.mean(naive, axis=0) > 2).all()


def test_position_bias_of_slots_without_examinations_or_clicks() -> None:
    looks = np.array([[50.0, 40.0, 30.0, 0.0], [50.0, 45.0, 35.0, 0.0]])
    estimate, error = estimate_position_bias(
        looks, np.array([[10.0, 4.0, 0.0, 0.0], [5.0, 2.0, 0.0, 0.0]])
    )
    assert estimate[0] == 1
    assert (estimate[2], np.isnan(estimate[3]), np.isnan(error[3])) == (0, True, True)
    assert 0 < error[2] < 1
    estimate, error = estimate_position_bias(
        looks, np.array([[0.0, 4.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    )
    assert np.isnan(estimate).all()
    assert np.isnan(error).all()


@pytest.mark.slow
def test_position_bias_check_recovers_the_simulators_bias() -> None:
    settings = {"kind": "ranking", "n_users": 200, "n_items": 1000, "n_candidates": 100, "slate": 5}
    e = Experiment.model_validate(
        {"simulator": settings, "agents": [{"kind": "linucb", "sharing": "shared"}], "steps": 4000}
    )
    check = diagnostics.position_bias_check(e)
    assert check is not None
    np.testing.assert_allclose(check.true, 1 / np.arange(1, 6))
    assert check.counted[0] == check.estimated[0] == 1
    assert (np.abs(check.estimated - check.true)[1:] < 4 * check.error[1:]).all()
    assert (check.error[1:] < 0.1).all()
    assert diagnostics.position_bias_check(experiment("linucb")) is None
    short = {"steps": 150, "replications": 2}
    for position, verdict in (("aware", "healthy"), ("examined", "watch"), ("ignored", "alarm")):
        agent = {"kind": "linucb", "sharing": "shared", "position": position}
        result = run(
            e.model_validate(
                {"simulator": settings, "agents": [agent, {"kind": "random"}], **short}
            )
        )
        judged = diagnostics.findings(result, "LinUCB", position_bias=check)
        assert judged["position_bias"].verdict == verdict
        assert (
            "In slot 5 an item is clicked 0.2 times as often as in slot 1 (estimated from clicks"
            in judged["position_bias"].text
        )
        assert (
            diagnostics.findings(result, "Random", position_bias=check)["position_bias"].verdict
            == "none"
        )
        spec = figures.panels(result, "LinUCB", judged, position_bias=check)["position_bias"]
        assert [len(trace["y"]) for trace in spec["data"]] == [5, 5, 5]


@pytest.mark.parametrize(
    ("position", "verdict"), [("aware", "healthy"), ("examined", "healthy"), ("ignored", "alarm")]
)
def test_equivalent_slots_require_no_correction(position: str, verdict: str) -> None:
    """Treating every slot as examined is still wrong, because users stop at their first click."""
    settings = {
        "kind": "ranking",
        "n_users": 50,
        "n_items": 100,
        "n_candidates": 20,
        "slate": 4,
        "bias": 0,
    }
    agent = {"kind": "linucb", "sharing": "shared", "position": position}
    result = run(
        Experiment.model_validate({"simulator": settings, "agents": [agent], "steps": 150})
    )
    one = np.ones(4)
    finding = diagnostics.findings(
        result, "LinUCB", position_bias=PositionBias(one, one, one, one / 20)
    )["position_bias"]
    assert finding.verdict == verdict
    assert (
        "In slot 4 an item is clicked as often as in slot 1 (estimated from clicks: 1 ± 0.098)"
        in finding.text
    )


SLATES = {
    "kind": "ranking",
    "n_users": 50,
    "n_items": 100,
    "n_candidates": 20,
    "slate": 3,
    "embedding": 4,
}


@pytest.mark.slow
def test_references_from_the_subprocess_are_the_same() -> None:
    slates = Experiment.model_validate(
        {"simulator": SLATES, "agents": [{"kind": "random"}], "steps": 100, "replications": 4}
    )
    for e in (experiment("linucb", steps=300), slates):
        task = ReferenceTask(e)
        wait_for(lambda task=task: not task.active, "the comparisons")
        assert (task.status, task.error, task.pending) == ("finished", "", set())
        for there, here in zip(
            (task.oracle, task.linearity, task.position_bias),
            (
                diagnostics.oracle_reference(e),
                diagnostics.linearity_check(e),
                diagnostics.position_bias_check(e),
            ),
            strict=True,
        ):
            assert_same_reference(there, here)


def assert_same_reference(there: Any, here: Any) -> None:
    assert type(there) is type(here)
    for a, b in zip(there or (), here or (), strict=True):
        np.testing.assert_array_equal(a, b)
        assert type(a) is type(b)


def test_a_failed_reference_task_has_nothing_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    task = ReferenceTask(experiment("linucb"))
    wait_for(lambda: not task.active, "its end")
    assert (task.status, task.pending) == ("failed", set())


def test_pending_references_give_no_verdict() -> None:
    result = run(experiment("linucb", "random", steps=400))
    actual = diagnostics.findings(
        result, "LinUCB", pending={"oracle", "linearity", "position_bias"}
    )
    waiting = {"premature_convergence", "segment_entropy", "condition_number", "linearity"}
    assert {name for name, f in actual.items() if f.text == PENDING} == waiting
    assert {actual[name].verdict for name in waiting} == {"none"}
    specs = figures.panels(result, "LinUCB", actual)
    assert specs["linearity"]["layout"]["annotations"][0]["text"] == PENDING
    settings = {
        "kind": "ranking",
        "n_users": 50,
        "n_items": 100,
        "n_candidates": 20,
        "slate": 3,
        "embedding": 4,
    }
    agents = [{"kind": "linucb", "sharing": "shared"}]
    slates = run(Experiment.model_validate({"simulator": settings, "agents": agents, "steps": 200}))
    actual = diagnostics.findings(slates, "LinUCB", pending={"position_bias"})
    assert actual["position_bias"].text == PENDING
    specs = figures.panels(slates, "LinUCB", actual)
    assert specs["position_bias"]["layout"]["annotations"][0]["text"] == PENDING
    assert "position_bias" not in diagnostics.findings(slates, "LinUCB")


def test_the_spectrum_animation_has_one_frame_per_snapshot() -> None:
    """Each frame is named in the slider, and the fixed axes contain all frames."""
    result = run(experiment("linucb", "random", steps=2000))
    history, look = result.histories["LinUCB"], styles(result.experiment)["LinUCB"]
    spec = spectrum_animation(history, "LinUCB", look)
    assert spec is not None
    names = [f"{s.step:,}" for s in history.spectra]
    assert [frame["name"] for frame in spec["frames"]] == names
    (slider,) = spec["layout"]["sliders"]
    assert [step["args"][0] for step in slider["steps"]] == [[name] for name in names]
    assert slider["active"] == len(names) - 1
    low, high = spec["layout"]["yaxis"]["range"]
    for frame, snapshot in zip(spec["frames"], history.spectra, strict=True):
        assert frame["traces"] == list(range(len(frame["data"])))
        curve = frame["data"][-1]["y"]
        assert (np.diff(curve) <= 0).all()
        np.testing.assert_allclose(
            curve, np.median(snapshot.eigenvalues.reshape(-1, len(curve)), axis=0)
        )
        values = np.log10(np.concatenate([trace["y"] for trace in frame["data"]]))
        assert ((low < values) & (values < high)).all()
    assert [len(trace["x"]) for trace in spec["data"][:-1]] == [
        len(t["x"]) for t in spec["frames"][-1]["data"]
    ]
    # plotly accepts it
    go.Figure(spec)
    assert spectrum_animation(result.histories["Random"], "Random", look) is None


def test_an_interval_that_reaches_zero_leaves_no_hole_on_a_logarithmic_axis() -> None:
    result = run(experiment("linucb", steps=400, replications=2))
    h = result.histories["LinUCB"]
    # one run has far more data than the other
    wide = np.array([1.0, 500.0])[:, None, None]
    h.spectra = [Spectrum(s.step, s.eigenvalues * wide) for s in h.spectra]
    band = metrics.smallest_eigenvalue(h)
    assert band is not None
    assert (band.low < 0).all()
    specs = figures.panels(result, "LinUCB", diagnostics.findings(result, "LinUCB"))
    for name in ("smallest_eigenvalue", "condition_number"):
        assert all((np.asarray(trace["y"]) > 0).all() for trace in specs[name]["data"])


def offered(place: dict[str, Any]) -> frozenset[str]:
    """Return the capabilities of a simulator."""
    cls = SIMULATORS[place["kind"]]
    return cls.describe(cls.Params.model_validate(place)).capabilities


@lru_cache(maxsize=1)
def all_results() -> list[tuple[Result, OracleReference | None, LinearityCheck | None]]:
    """Run every kind of agent briefly where it can run, and the references of these runs."""
    places: list[dict[str, Any]] = [
        {"kind": "petshop", "n_products": 10},
        {"kind": "sessions", "n_products": 10, "observed": "mood"},
    ]
    fitting: list[list[dict[str, Any]]] = [[] for _ in places]
    for kind, cls in REGISTRY.items():
        agent = {"kind": kind, **cls.test_params()[0]}
        required = cls.requires(cls.Params.model_validate(agent))
        fitting[next(i for i, place in enumerate(places) if required <= offered(place))].append(
            agent
        )
    results = [
        run(experiment(*agents[i : i + 12], simulator=place, steps=200))
        for place, agents in zip(places, fitting, strict=True)
        for i in range(0, len(agents), 12)
    ]
    return [
        (r, diagnostics.oracle_reference(r.experiment), diagnostics.linearity_check(r.experiment))
        for r in results
    ]


@pytest.mark.parametrize("kind", REGISTRY)
def test_every_agent_has_a_finding_in_every_diagnostic(kind: str) -> None:
    ((result, oracle, line, label),) = (
        (*found, label)
        for found in all_results()
        for label, agent in zip(found[0].experiment.labels, found[0].experiment.agents, strict=True)
        if agent.kind == kind
    )
    actual = diagnostics.findings(result, label, oracle, line)
    assert set(actual) == NAMES
    for finding in actual.values():
        assert finding.verdict in figures.MARKS
        assert finding.text.endswith(".")
        assert "nan" not in finding.text
        assert finding.healthy.endswith(".")
    specs = figures.panels(result, label, actual, oracle, line)
    assert set(specs) == {"spectrum_map", *NAMES}
    # plain numbers, or gaps in arrays
    panel.pack(list(specs.values()), 280, alt=[""] * len(specs))
    for name, finding in actual.items():
        title = specs[name]["layout"]["title"]["text"]
        assert title == f"{figures.MARKS[finding.verdict]} {finding.title}"
        assert finding.text in specs[name]["layout"]["meta"]["note"]
    spans = REGISTRY[kind].spans_arms(
        result.experiment.agents[result.experiment.labels.index(label)]
    )
    assert bool(specs["spectrum_map"]["data"]) == (spans is not None)


def test_rules_on_accumulation_do_not_apply_to_forgetting_agents() -> None:
    actual = diagnose(
        LinUCB.Params(window=200),
        spectrum=lambda t: np.array([2.0, 1.1]),
        checkup=lambda t: np.concatenate([[1.0, 0.1, 1.0], places()]),
    )
    assert [
        actual[name].verdict
        for name in ("smallest_eigenvalue", "effective_dimension", "exploration_bonus")
    ] == ["none"] * 3


def test_condition_number_is_relative_to_random_choices() -> None:
    """The features themselves have a large condition number, as a constant beside products of small
    numbers has.
    """
    points, skew = np.zeros(10), 1e5
    line = LinearityCheck(points, points, points + 1, 0.5, 0.0, skew)
    shared = diagnose(
        LinUCB.Params(sharing="shared"), spectrum=lambda t: np.array([4 * skew * t, t]), line=line
    )
    assert shared["condition_number"].verdict == "healthy"
    assert (
        diagnose(LinUCB, spectrum=lambda t: np.array([4 * skew * t, t]), line=line)[
            "condition_number"
        ].verdict
        == "alarm"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["race", "slates"])
def test_a_good_agent_in_a_preset_raises_no_false_alarm(name: str) -> None:
    data = presets()[name].experiment.model_dump(mode="json")
    # the preset shows what 1.5 costs
    agent = data["agents"][0] | ({"alpha": 0.4} if name == "race" else {})
    data |= {"agents": [agent], "replications": 4, "steps": 6000 if name == "race" else 800}
    e = Experiment.model_validate(data)
    (label,) = e.labels
    actual = diagnostics.findings(
        run(e), label, diagnostics.oracle_reference(e), diagnostics.linearity_check(e)
    )
    assert [kind for kind, f in actual.items() if f.verdict == "alarm"] == []
    assert actual["exploration"].direction == "about right"
    assert sum(f.verdict == "healthy" for f in actual.values()) >= 4


def test_a_context_free_agent_with_many_arms_predicts_nothing_yet() -> None:
    settings = {"kind": "ranking", "n_items": 5000, "n_candidates": 20, "slate": 1, "embedding": 4}
    e = Experiment.model_validate(
        {"simulator": settings, "agents": [{"kind": "ucb1"}], "steps": 200, "replications": 4}
    )
    actual = diagnostics.findings(
        run(e), "UCB1", diagnostics.oracle_reference(e), diagnostics.linearity_check(e)
    )
    assert actual["predictive_r2"].verdict in ("none", "watch")


def test_references_are_not_computed_for_huge_catalogues() -> None:
    e = experiment(
        {"kind": "linucb", "sharing": "shared"},
        simulator={"kind": "petshop", "n_products": 500_000},
    )
    assert diagnostics.oracle_reference(e) is None
    assert diagnostics.linearity_check(e) is None


def test_no_verdict_if_all_replications_stopped_early() -> None:
    clicks = np.full((400, 3), np.nan)
    clicks[:30] = 1.0
    e = experiment("linucb", steps=400)
    actual = diagnostics.findings(
        Result(e, {"LinUCB": history(clicks, alive=[False] * 3)}), "LinUCB"
    )
    assert {(f.verdict, f.text) for f in actual.values()} == {("none", STOPPED)}


def test_no_verdict_before_the_first_step() -> None:
    e = experiment("lints", steps=2000)
    actual = diagnostics.findings(Result(e, {"LinTS": History(2000, 3, 10)}), "LinTS")
    assert {(f.verdict, f.text) for f in actual.values()} == {("none", TOO_EARLY)}


@pytest.mark.parametrize("clicks", [False, True])
def test_the_curvature_test_has_two_degrees_of_freedom_less_than_bins(clicks: bool) -> None:
    g = np.random.default_rng(2)
    fitted = g.random(400)
    rewards = (g.random(400) < fitted).astype(float) if clicks else g.normal(size=400)
    means, residual, error, p = curvature_test(fitted, rewards)
    assert p == pytest.approx(chi2.sf(np.square(residual / error).sum(), len(means) - 2))
