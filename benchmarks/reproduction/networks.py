"""Networks that are trained alike, agents that forget, and the two numbers of MC dropout.

``python -m benchmarks.reproduction.networks showdown_again|mc_dropout`` writes one section of
docs/REPRODUCED.md each. The experiments are the preset "showdown-again" and the sweep preset
"mc-dropout"; they take about 15 and 3 minutes of a core."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from bandits import Experiment, run
from bandits.base.types import FloatArray
from bandits.experiments.lockstep import make_lane
from bandits.experiments.presets import presets
from bandits.experiments.snapshots import LEVELS
from bandits.results import metrics
from bandits.results.metrics import Estimate
from bandits.sweeps import Sweep
from bandits.sweeps import run as run_sweep
from bandits.sweeps.presets import presets as sweep_presets
from benchmarks.measure import interleave, ratio, report, stopwatch, table
from benchmarks.reproduction.showdown import ClickCurves, recovery, totals

REPORT = Path(__file__).parents[2] / "docs" / "REPRODUCED.md"

SHOCK = 5_000
GREEDY = "Neural greedy"
FORGETTING = (
    "LinUCB gamma 0.9995",
    "LinUCB window 2500",
    "Neural-linear TS buffer 2500",
    "Ensemble buffer 2500",
)


def again(shock: int | None, steps: int = 0, replications: int = 0) -> ClickCurves:
    """Run the preset with or without a shock."""
    data = presets()["showdown-again"].experiment.model_dump(mode="json")
    data["simulator"] |= {"shock_step": shock}
    if steps:
        data |= {"steps": steps, "replications": replications}
    histories = run(Experiment.model_validate(data)).histories
    clicks = {label: h.sums["clicks"] for label, h in histories.items()}
    return ClickCurves(next(iter(histories.values())).grid, clicks)


def word(found: Estimate) -> str:
    """Say whether exploration earns more, fewer or undecided clicks."""
    return "more" if found.low > 0 else "fewer" if found.high < 0 else "undecided"


def against_greedy(curves: ClickCurves) -> dict[str, Estimate]:
    """Estimate what every network that explores earns more than neural greedy, clicks of the whole
    run.

    The intervals hold for all of them together (Bonferroni). Networks with a small buffer are left
    out."""
    last = {label: clicks[-1] for label, clicks in curves.clicks.items()}
    networks = [
        label
        for label in last
        if label != GREEDY and "LinUCB " not in label and label not in FORGETTING
    ]
    return {
        label: metrics.estimate(last[label] - last[GREEDY], family=len(networks))
        for label in networks
    }


def claims(gains: Mapping[str, Estimate], recovered: Sequence[tuple[str, ...]]) -> str:
    """Judge the two statements by the intervals."""
    by_word = {
        w: [label for label, gain in gains.items() if word(gain) == w]
        for w in ("more", "fewer", "undecided")
    }
    pays = by_word["more"], by_word["fewer"]
    verdict = (
        "mixed"
        if all(pays)
        else "confirmed"
        if pays[0]
        else "refuted"
        if pays[1]
        else "inconclusive"
    )
    lines = [
        f"- Networks that explore earn more clicks than one that does not: **{verdict}**. More "
        f"than {GREEDY}: {_listed(by_word['more'])}. Fewer: {_listed(by_word['fewer'])}. "
        f"Undecided: {_listed(by_word['undecided'])}."
    ]
    groups = {
        "forget": list(FORGETTING),
        "do not forget": [row[0] for row in recovered if row[0] not in FORGETTING],
    }
    for name, labels in groups.items():
        back, lost, unclear = (
            [row[0] for row in recovered if row[0] in labels and row[-1] == w]
            for w in ("yes", "no", "inconclusive")
        )
        verdict = (
            "mixed"
            if back and lost
            else "confirmed"
            if back and not unclear
            else "refuted"
            if lost and not unclear
            else "inconclusive"
        )
        lines.append(
            f"- Agents that {name} recover from the shock: **{verdict}**. Recovered: "
            f"{_listed(back)}. Not recovered: {_listed(lost)}. Inconclusive: {_listed(unclear)}."
        )
    return "\n".join(lines)


def showdown_again() -> str:
    """Compare networks trained alike, and agents that forget, with and without a shock."""
    with ProcessPoolExecutor(2) as pool:
        stationary, shocked = pool.map(again, (None, SHOCK))
    gains, recovered = against_greedy(stationary), recovery(shocked, stationary, SHOCK)
    e = presets()["showdown-again"].experiment
    rows = [
        (label, f"{g.mean:+,.0f} ({g.low:+,.0f} to {g.high:+,.0f})", word(g))
        for label, g in gains.items()
    ]
    return "\n\n".join(
        [
            f"The preset *showdown-again*: {e.steps:,} steps, {e.replications} replications of "
            "one pet shop with common random numbers. All networks have hidden layers of 32 and "
            "16 and make five Adam steps (learning rate .003) on batches of 32 from the replay "
            f"buffer after every ten observations. NeuralUCB and NeuralTS differ from {GREEDY} in "
            "how they explore alone; heads, ensembles and dropout also predict differently. "
            "Intervals are 95 % (Student t over replications, paired where agents are compared); "
            "they hold for this shop.",
            claims(gains, recovered),
            f"Clicks of the whole run, difference from {GREEDY}, which never explores; intervals "
            "hold for all lines together (Bonferroni):",
            table(("network", "difference, clicks", "earns"), rows),
            "Without a shock:",
            table(
                (
                    "agent",
                    "clicks per step",
                    "in the last 2,000",
                    "difference from the best, clicks",
                ),
                totals(stationary),
            ),
            f"With a market shock at step {SHOCK:,}: clicks per step in the 2,000 steps before "
            "it, in the 2,000 after it and in the last 2,000; the difference there from the run "
            "without a shock; recovered if that loss is below 5 % of the clicks, by its interval:",
            table(
                ("agent", "before", "just after", "at the end", "effect at the end", "recovered"),
                recovered,
            ),
        ]
    )


# samples at which the exploration rate and the calibration are measured
MEASURED = 10
# nominal coverage of the interval around the mean of the samples
NOMINAL = 0.95


def decision_times(sweep: Sweep, decisions: int = 200) -> dict[int, str]:
    """Measure the time of decisions with each number of samples, as a ratio to the smallest
    number.
    """
    rate = sweep.values[0][0]
    sides: dict[str, Callable[[], float]] = {}
    for point in range(sweep.size):
        dropout, passes = sweep.values_at(point)
        if dropout == rate:
            lane = make_lane(sweep.point(point), 0)
            lane.advance(50)
            sides[str(passes)] = partial(stopwatch, partial(lane.advance, decisions))
    times = interleave(sides, 5)
    first = next(iter(times.values()))
    return {int(passes): str(ratio(taken, first)) for passes, taken in times.items()}


def uncertainty(experiment: Experiment) -> tuple[FloatArray, FloatArray]:
    """Measure exploration rate and coverage of the 95 % interval over a run's snapshots, two of
    float64 (R,).
    """
    (history,) = run(experiment).histories.values()
    explored = metrics.mean_exploration_rate(history)
    assert explored is not None
    at = LEVELS.index(NOMINAL)
    return explored, np.mean([c.inside[:, at] for c in history.calibrations], axis=0)


def trade_offs(
    rates: Mapping[tuple[float, int], FloatArray],
    measured: Mapping[float, tuple[FloatArray, FloatArray]],
) -> list[tuple[str, str, str]]:
    """Judge the chapter's statements on too small and too large numbers; rows of a table.

    Too small and too large are the ends of the sweep; they are compared with the rate, or the
    number of samples, that earns most."""
    dropouts, passes = (sorted({key[i] for key in rates}) for i in (0, 1))
    best = max(dropouts, key=lambda p: np.mean([rates[p, t].mean() for t in passes]))  # type: ignore[index]
    low, high, few, many = dropouts[0], dropouts[-1], passes[0], passes[-1]

    def mean_over_passes(p: float) -> FloatArray:
        return np.asarray(np.mean([rates[p, t] for t in passes], axis=0))  # type: ignore[index]

    def mean_over_rates(t: int) -> FloatArray:
        return np.asarray(np.mean([rates[p, t] for p in dropouts], axis=0))  # type: ignore[index]

    def line(statement: str, what: str, difference: FloatArray, sign: int) -> tuple[str, str, str]:
        found = metrics.estimate(sign * difference)
        verdict = "confirmed" if found.low > 0 else "refuted" if found.high < 0 else "inconclusive"
        shown = metrics.estimate(difference)
        return (
            statement,
            f"{what}: {shown.mean:+.3f} ({shown.low:+.3f} to {shown.high:+.3f})",
            f"**{verdict}**",
        )

    explored, inside = ([measured[p][i] for p in dropouts] for i in (0, 1))
    return [
        line(
            "too small p underestimates the uncertainty",
            f"coverage of the 95 % interval at p = {low:g}, minus .95",
            inside[0] - NOMINAL,
            -1,
        ),
        line(
            "too small p explores too little",
            f"exploration rate at p = {low:g}, minus that at {best:g}",
            explored[0] - explored[dropouts.index(best)],
            -1,
        ),
        line(
            "too small p costs clicks",
            f"clicks per step at p = {low:g}, minus those at {best:g}",
            mean_over_passes(low) - mean_over_passes(best),
            -1,
        ),
        line(
            "too large p learns badly",
            f"clicks per step at p = {high:g}, minus those at {best:g}",
            mean_over_passes(high) - mean_over_passes(best),
            -1,
        ),
        line(
            "too small T is noisy and costs clicks",
            f"clicks per step at T = {few}, minus those at {many}",
            mean_over_rates(few) - mean_over_rates(many),
            -1,
        ),
    ]


def mc_dropout() -> str:
    """Measure what the dropout rate and the number of samples of MC dropout cost."""
    sweep = sweep_presets()["mc-dropout"].sweep
    clicks = run_sweep(sweep).numbers("ctr")
    rates = {sweep.values_at(point): clicks[point] for point in range(sweep.size)}
    points = {sweep.values_at(point): sweep.point(point) for point in range(sweep.size)}
    measured = {
        p: uncertainty(experiment) for (p, t), experiment in points.items() if t == MEASURED
    }
    times = decision_times(sweep)
    dropouts, passes = sweep.values
    rows = []
    for p in dropouts:
        cells = [
            f"{e.mean:.3f} ({e.low:.3f} to {e.high:.3f})"
            for e in (metrics.estimate(rates[p, t]) for t in passes)
        ]
        explored, inside = (metrics.estimate(values) for values in measured[p])  # type: ignore[index]
        rows.append((f"{p:g}", *cells, f"{explored.mean:.3f}", f"{inside.mean:.3f}"))
    e = sweep.experiment
    return "\n\n".join(
        [
            f"The sweep preset *mc-dropout*: clicks per step in the pet shop, {e.steps:,} steps, "
            f"{e.replications} replications with common random numbers; strategy bonus, α = 1. "
            f"Rows: dropout rate p; columns: number of samples T. At T = {MEASURED}: the share of "
            "decisions that are not the agent's own best estimate (exploration rate), and how "
            "often the true click-through rate lies in the 95 % interval around the mean of the "
            "samples (coverage). Intervals are 95 %, one by one.",
            table(("p", *(f"T = {t}" for t in passes), "exploration rate", "coverage"), rows),
            "Statements of chapter 16 on MC dropout, judged by 95 % intervals of paired "
            "differences (clicks are averaged over the other number):",
            table(("statement", "measured", "verdict"), trade_offs(rates, measured)),  # type: ignore[arg-type]
            "Too large T takes time: processor time of a step, with learning, relative to T = "
            f"{passes[0]} (median, smallest and largest of five): "
            + "; ".join(f"T = {t}: {text}" for t, text in times.items() if t != passes[0])
            + ".",
        ]
    )


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(labels) or "none"


SECTIONS: dict[str, tuple[str, Callable[..., str]]] = {
    "showdown_again": ("Showdown, networks trained alike and agents that forget", showdown_again),
    "mc_dropout": ("MC dropout, dropout rate and number of samples", mc_dropout),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write one section, or both, into the report."""
    report("benchmarks.reproduction.networks", REPORT, SECTIONS, arguments)


if __name__ == "__main__":
    main()
