"""Published figures on levers beside ours: docs/LEVERS.md.

    python -m benchmarks.reproduction.levers --write

Regret of ten arms with means U(0, 1); R's package contextual; Sutton and Barto (2018), figures 2.2
to 2.6."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from bandits import Experiment, read, run
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.results.metric_registry import METRICS
from bandits.results.result import Result
from benchmarks.measure import stamp
from benchmarks.reproduction import plain_levers

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "LEVERS.md"
PLAIN_RUNS = 10_000
UNIFORM = {"kind": "levers", "means": "uniform", "layout": "per_row"}
# ten arms, 500 pulls: our agent, a plain implementation, the published expected regret
TABLE: tuple[tuple[str, dict[str, Any], plain_levers.Choose, float | None], ...] = (
    ("Beta Thompson", {"kind": "beta_ts"}, plain_levers.thompson, 28.9),
    ("KL-UCB", {"kind": "kl_ucb"}, plain_levers.kl_ucb, 29.6),
    ("UCB1, α = 1", {"kind": "ucb1", "alpha": 1.0}, plain_levers.ucb1, 86.8),
    (
        "ε-greedy, ε = 0.1",
        {"kind": "epsilon_greedy_averages", "label": "unknown 0"},
        plain_levers.epsilon_greedy(0.0),
        None,
    ),
    (
        "ε-greedy, ε = 0.1, every arm first",
        {"kind": "epsilon_greedy_averages", "label": "unknown 2", "start": 2.0},
        plain_levers.epsilon_greedy(2.0),
        35.8,
    ),
    ("Random", {"kind": "random"}, plain_levers.uniform, 204.0),
)
# presets of the figures of the book
FIGURES = {
    "2.2": "testbed",
    "2.3": "optimistic-start",
    "2.4": "testbed-ucb",
    "2.5": "gradient-baseline",
    "2.6": "testbed-best",
}


def result_of(simulator: Any, agents: Any, steps: int, replications: int) -> Result:
    """Run an experiment without the store."""
    data = {"simulator": simulator, "agents": list(agents), "steps": steps}
    return run(read({**data, "replications": replications, "seed": 0}))


def interval(values: Any, digits: int = 1) -> str:
    """Write a mean with its 95 % interval."""
    found = metrics.estimate(values)
    return f"{found.mean:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def regret_table(replications: int) -> list[str]:
    """Compare the regret of ten arms after 500 pulls with plain implementations and the published
    table.
    """
    result = result_of(UNIFORM, [agent for _, agent, _, _ in TABLE], 500, replications)
    lines = ["| agent | published | plain implementation | ours |", "|---|---:|---:|---:|"]
    for (title, _, plain, published), history in zip(TABLE, result.histories.values(), strict=True):
        theirs = interval(plain_levers.regrets(plain, PLAIN_RUNS, 500))
        ours = METRICS["pseudo_regret"].rows(history)
        lines.append(f"| {title} | {published or ''} | {theirs} | {interval(ours)} |")
    note = (
        f"The plain implementations share no code with ours and play {PLAIN_RUNS:,} games. The "
        "order is the published one, whose details are not known: its ε-greedy tries every arm "
        "first."
    )
    return [*lines, "", note]


def contextual(replications: int) -> list[str]:
    """Repeat the example of R's contextual: ε-greedy on (0.6, 0.1, 0.1) for 100 steps."""
    simulator = {"kind": "levers", "means": "fixed", "values": [0.6, 0.1, 0.1]}
    result = result_of(simulator, [{"kind": "epsilon_greedy_averages"}], 100, replications)
    history = next(iter(result.histories.values()))
    regret, reward = (METRICS[name].rows(history) for name in ("pseudo_regret", "clicks"))
    return [
        "| | published | ours |",
        "|---|---:|---:|",
        f"| regret | 8.951 (sd 10.80) | {interval(regret, 3)} (sd {np.std(regret, ddof=1):.2f}) |",
        f"| reward | 51.09 | {interval(reward, 2)} |",
    ]


def figure(experiment: Experiment, replications: int) -> list[str]:
    """Measure the rewards and the optimal choices of one figure of the book."""
    result = run(experiment.model_copy(update={"replications": replications, "seed": 0}))
    lines = [
        "| agent | reward, all 1,000 | reward, last 200 | optimal, first 200 | optimal, last 200 |",
        "|---|---:|---:|---:|---:|",
    ]
    for label, history in result.histories.items():
        optimal, at = history.sums["optimal"], [0, *np.searchsorted(history.grid, [200, 800, 1000])]
        first, last = (optimal[at[1]] - optimal[0]) / 200, (optimal[at[3]] - optimal[at[2]]) / 200
        rates = metrics.click_rate(history), metrics.late_click_rate(history)
        cells = [interval(v, 3) for v in rates] + [f"{100 * v.mean():.0f} %" for v in (first, last)]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def document(replications: int, runs: int) -> str:
    """Return the document."""
    parts = [
        "# Levers: published figures beside ours",
        "",
        "Intervals hold 95 %. The figures come from one run of the script, whose command is below.",
        "",
        "## Regret of ten arms with means U(0, 1), 500 pulls",
        "",
        f"{replications:,} replications, each with means of its own.",
        "",
        *regret_table(replications),
        "",
        "## R's contextual: ε-greedy, ε = 0.1, on (0.6, 0.1, 0.1), 100 steps",
        "",
        f"{replications:,} replications.",
        "",
        *contextual(replications),
        "",
        "## Sutton and Barto (2018), figures 2.2 to 2.6",
        "",
        "Ten arms with means N(0, 1), in figure 2.5 N(4, 1), and rewards of variance 1; "
        f"{runs:,} replications of the presets.",
    ]
    for number, name in FIGURES.items():
        preset = presets()[name]
        title = f"### Figure {number}, preset *{preset.title}*"
        parts += ["", title, "", *figure(preset.experiment, runs)]
    return "\n".join([*parts, "", stamp(document), ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/LEVERS.md")
    parser.add_argument("--replications", type=int, default=4_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parsed = parser.parse_args()
    text = document(parsed.replications, parsed.runs)
    if parsed.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    else:
        print(text)
