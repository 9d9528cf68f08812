"""Write what pre-training on a log earns and costs into docs/REPRODUCED.md.

``python -m benchmarks.reproduction.warm_start`` runs the preset *Warm against cold* (about a minute
of one core)."""

from __future__ import annotations

from pathlib import Path

from bandits import Result, run
from bandits.base.formatting import count
from bandits.experiments.presets import presets
from bandits.results import log_training, metrics
from bandits.results.metrics import Estimate
from benchmarks.measure import hardware, put, stamp, table

TITLE = "## Warm against cold: pre-training on the pet shop"
OUT = Path(__file__).parents[2] / "docs" / "REPRODUCED.md"
AGENTS = ("NeuralUCB", "Neural-linear TS", "Ensemble")


def main() -> None:
    """Run the preset; the section replaces its predecessor in the report."""
    section = warm_against_cold(run(presets()["warm-start"].experiment))
    print(section, flush=True)
    made = f"{hardware()}."
    put(OUT, f"{section}\n\n{made}\n\n{stamp(warm_against_cold)}")


def warm_against_cold(result: Result) -> str:
    """Compare each agent with and without pre-training, and the gain with the clicks that the log
    costs.
    """
    rows = []
    for name in AGENTS:
        warm, cold = (result.histories[f"{name} {start}"] for start in ("warm", "cold"))
        found = result.compare(f"{name} warm", f"{name} cold").difference
        rates = [
            f"{metrics.estimate(metrics.click_rate(history)).mean:.4f}" for history in (cold, warm)
        ]
        rows.append((name, *rates, _interval(found), verdict(found, log_training.log_regret(warm))))
    training = result.histories[f"{AGENTS[0]} warm"].training
    assert training is not None
    cost = log_training.log_regret(result.histories[f"{AGENTS[0]} warm"])
    return "\n\n".join(
        [
            TITLE,
            f"{count(result.experiment.steps)} steps, {result.experiment.replications} "
            f"replications; warm: the network is trained on {count(training.interactions)} logged "
            "interactions before step 0. No figure is published for such a start, so the "
            "verdicts rest on the intervals (paired, 95 %). Collecting the log at random costs "
            f"{_interval(cost)} clicks against the best choice.",
            table(("agent", "CTR cold", "CTR warm", "warm minus cold, clicks", "verdict"), rows),
        ]
    )


def verdict(gain: Estimate, cost: Estimate) -> str:
    """State whether the warm start earns more, and whether it pays for its log within the run."""
    if gain.low <= 0:
        return "earns less" if gain.high < 0 else "no significant difference"
    return "earns more, " + (
        "pays for its log" if gain.low > cost.high else "less than a log collected for it costs"
    )


def _interval(found: Estimate) -> str:
    return f"{found.mean:+,.0f} ({found.low:+,.0f} to {found.high:+,.0f})"


if __name__ == "__main__":
    main()
