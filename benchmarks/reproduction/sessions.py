"""Visits of many clicks: exact values, simulated visits, Q-learning and DQN.

``python -m benchmarks.reproduction.sessions`` writes docs/SESSIONS.md (about 12 hours on one core);
``--short`` makes the learning runs short and says so in the document."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bandits.experiments.experiment import Experiment, read
from bandits.experiments.history import History
from bandits.experiments.lockstep import Lockstep, run_to_end
from bandits.results.metric_registry import METRICS
from bandits.results.metrics import Estimate, estimate
from bandits.simulators.session_values import NONE, action_values, visit_model
from bandits.simulators.sessions import Sessions, solve

PATH = Path("docs/SESSIONS.md")
CONSEQUENCES = (1.0, 0.75, 0.5, 0.25, 0.0)
# rows and steps of simulated visits: above 200,000 of them
VISITS = 1000, 3200
DISCOUNT = 0.99


def experiment(agents: list[Any], steps: int, replications: int, **simulator: Any) -> Experiment:
    """Return an experiment in the simulator of visits, with one product of each kind."""
    return read(
        {
            "simulator": {"kind": "sessions", "n_products": 10, **simulator},
            "agents": agents,
            "steps": steps,
            "replications": replications,
        }
    )


def run(e: Experiment) -> tuple[dict[str, History], float]:
    """Run it, and return the histories and the seconds that it took."""
    lockstep, began = Lockstep(e), time.perf_counter()
    run_to_end(lockstep)
    return lockstep.histories, time.perf_counter() - began


def exact() -> list[str]:
    """Return the table of exact values."""
    lines = [
        "| consequence | optimum | short-sighted | best fixed choice per persona | uniform |",
        "|---|---|---|---|---|",
    ]
    for c in CONSEQUENCES:
        values = solve(Sessions.Params(consequence=c))[:4]
        lines.append(f"| {c:g} | " + " | ".join(f"{v:.4f}" for v in values) + " |")
    return lines


def simulated() -> list[str]:
    """Return the table of simulated visits beside the exact values, at consequence 1."""
    rows, steps = VISITS
    agents = [
        {"kind": "oracle"},
        {"kind": "oracle", "label": "next click", "maximises": "step"},
        "random",
    ]
    given = [{"kind": a} if isinstance(a, str) else a for a in agents]
    e = experiment(given, steps, rows, observed="nothing")
    truth = solve(e.simulator)
    lines = [
        "| policy | visits | clicks per visit | standard error | exact | z |",
        "|---|---|---|---|---|---|",
    ]
    values = truth.optimal, truth.short_sighted, truth.uniform
    for (label, h), value in zip(run(e)[0].items(), values, strict=True):
        clicks, visits = h.sums["clicks"][-1], h.sums["visits"][-1]
        ratio = clicks.sum() / visits.sum()
        error = (clicks - ratio * visits).std(ddof=1) * np.sqrt(rows) / visits.sum()
        z = (ratio - value) / error
        lines.append(
            f"| {label} | {int(visits.sum()):,} | {ratio:.4f} | {error:.4f} | {value:.4f} | {z:.2f} |"
        )
    return lines


def tabular(steps: int) -> list[str]:
    """Return how far Q-learning is from the discounted optimum, by run."""
    agent = {"kind": "q_learning", "epsilon": 0.5, "step_power": 0.7, "discount": DISCOUNT}
    e = experiment([agent], steps, 8, observed="mood", limit=None)
    lockstep, began = Lockstep(e), time.perf_counter()
    run_to_end(lockstep)
    seconds = time.perf_counter() - began
    model = visit_model(e.simulator)
    value = np.zeros((4, 5, NONE + 1))
    for _ in range(2000):
        q = action_values(model, value, DISCOUNT)
        value = q.max(axis=3)
    truth = q[:, :, NONE].reshape(20, -1)
    learned = next(iter(lockstep.runners.values())).lane.agent.q  # type: ignore[attr-defined]
    error = np.abs(learned - truth).max(axis=(1, 2))
    right = (learned.argmax(axis=2) == truth.argmax(axis=1)).sum(axis=1)
    return [
        f"8 runs of {steps:,} steps, mood observed, no limit of steps, ε = 0.5, step n^-0.7, "
        f"discount {DISCOUNT} ({seconds:.0f} s): max |Q - Q*| from {error.min():.2f} to "
        f"{error.max():.2f}; the greedy choice is right in {right.min()} to {right.max()} of 20 "
        "states."
    ]


def late(h: History) -> Estimate:
    """Estimate the clicks per visit of the last fifth of a run."""
    return METRICS["late_per_visit"].estimate(h)


def learned(steps: int, rows: int, consequence: float) -> list[str]:
    """Return the table of DQN beside LinUCB, the same with discount 0, and a network."""
    dqn = {"kind": "dqn", "decay": max(steps // 2, 1), "learning_starts": min(1000, steps // 4)}
    agents = [
        dqn,
        {**dqn, "label": "DQN discount 0", "discount": 0},
        {"kind": "linucb", "sharing": "shared"},
    ]
    e = experiment(agents, steps, rows, consequence=consequence, features="interaction")
    truth = solve(e.simulator)
    histories, seconds = run(e)
    lines = [
        f"Consequence {consequence:g}: {rows} runs of {steps:,} steps each ({seconds:.0f} s). "
        f"Optimum {truth.optimal:.2f}, short-sighted {truth.short_sighted:.2f}.",
        "",
        "| agent | clicks per visit, last fifth | within 10 % of the optimum | visits until ahead |",
        "|---|---|---|---|",
    ]
    base = histories[e.labels[2]]
    for label, h in histories.items():
        found = late(h)
        close = METRICS["late_per_visit"].rows(h) >= 0.9 * truth.optimal
        share = f"{int(close.sum())} of {rows}"
        lines.append(
            f"| {label} | {found.mean:.2f} ({found.low:.2f} to {found.high:.2f}) | {share} | "
            f"{break_even(h, base) if h is not base else ''} |"
        )
    lost = estimate(base.sums["clicks"][-1] - histories[e.labels[0]].sums["clicks"][-1])
    lines += [
        "",
        f"Clicks that LinUCB earned more than DQN over the run: {lost.mean:.0f} ({lost.low:.0f} to {lost.high:.0f}).",
    ]
    return lines


def break_even(h: History, base: History) -> str:
    """Return the mean number of visits after which cumulative clicks stay above those of another
    agent at equal numbers of visits; never if they are below at the end.
    """
    n = np.arange(1, 1 + int(min(h.sums["visits"][-1].min(), base.sums["visits"][-1].min())))
    mine, other = (
        np.mean(
            [np.interp(n, x.sums["visits"][:, r], x.sums["clicks"][:, r]) for r in range(x.rows)],
            axis=0,
        )
        for x in (h, base)
    )
    behind = np.flatnonzero(mine <= other)
    if len(behind) and behind[-1] == len(n) - 1:
        return "never"
    return f"{int(n[behind[-1]]) + 1 if len(behind) else 1:,}"


def ablations(steps: int, rows: int) -> list[str]:
    """Return the table of DQN without one of its parts."""
    dqn = {"kind": "dqn", "decay": max(steps // 2, 1), "learning_starts": min(1000, steps // 4)}
    variants = {
        "DQN": {},
        "no target network": {"target_every": 1},
        "no replay": {"buffer": 74, "batch": 64},
        "no double": {"double": False},
    }
    agents = [{**dqn, **change, "label": name} for name, change in variants.items()]
    histories, seconds = run(experiment(agents, steps, rows, features="interaction"))
    lines = [
        f"{rows} runs of {steps:,} steps, consequence 1 ({seconds:.0f} s). No replay: a buffer of "
        "the last 74 steps for batches of 64.",
        "",
        "| variant | clicks per visit, last fifth |",
        "|---|---|",
    ]
    for label, h in histories.items():
        found = late(h)
        lines.append(f"| {label} | {found.mean:.2f} ({found.low:.2f} to {found.high:.2f}) |")
    return lines


def main() -> None:
    short = "--short" in sys.argv
    size = (3_000, 4) if short else (1_000_000, 16)
    parts = {
        "Exact values": exact(),
        "Simulated visits": simulated(),
        "Tabular Q-learning": tabular(10_000 if short else 10_000_000),
    }
    for c in (1.0, 0.0) if short else CONSEQUENCES:
        parts[f"DQN at consequence {c:g}"] = learned(*size, c)
    if not short:
        parts["Ablations"] = ablations(size[0], 8)
    note = (
        "This document is of a short run (`--short`): the runs that learn are far shorter than "
        "those of the full one (16 runs of 1,000,000 steps, Q-learning 10,000,000, ablations with 8 "
        "runs), which has not been made. They state what was measured and decide nothing about the "
        "end of learning."
    )
    head = [
        "# Sessions: visits of many clicks",
        "",
        "Made by `python -m benchmarks.reproduction.sessions`. Clicks per visit, means over the "
        "four personas, with at most 40 steps per visit and 95 % intervals over replications.",
        *(["", note] if short else []),
    ]
    body = [line for title, lines in parts.items() for line in ("", f"## {title}", "", *lines)]
    PATH.write_text("\n".join([*head, *body]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
