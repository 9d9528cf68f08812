"""Visits of many clicks: exact values, simulated visits, Q-learning and DQN.

``python -m benchmarks.reproduction.sessions [PART ...]`` writes docs/SESSIONS.md, all of it or these
sections (about two hours of one free core for all)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from bandits.base.formatting import listed
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.history import History
from bandits.experiments.lockstep import Lockstep, run_to_end
from bandits.offpolicy import Evaluation, Matrix, evaluate, record
from bandits.results.metric_registry import METRICS
from bandits.results.metrics import Estimate, estimate
from bandits.results.visit import break_even
from bandits.simulators.session_values import NONE, action_values, visit_model
from bandits.simulators.sessions import Sessions, solve
from benchmarks.measure import stamp

from .cartpole import cartpole

PATH = Path("docs/SESSIONS.md")
CONSEQUENCES = (1.0, 0.75, 0.5, 0.25, 0.0)
# rows and steps of simulated visits: above 200,000 of them
VISITS = 1000, 3200
DISCOUNT = 0.99
# of the runs below the search, which are not those of the search
SEED = 1
# changes of the defaults of DQN
SEARCHED: tuple[dict[str, Any], ...] = (
    {},
    {"learning_rate": 0.0003},
    {"learning_rate": 0.003},
    {"n_step": 3},
    {"train_every": 4},
    {"target_every": 2000},
    {"double": False},
)
# used by the sections below the search where it is not run
SETTINGS: dict[str, Any] = {"n_step": 3}
# steps and runs
SEARCH = 10_000, 4
TABULAR = 10_000_000
# of Q-learning
TIMED = 1_000_000, 16
PEER = 10_000, 8
EVEN = 60_000, 8
# batches of logs, logs in each, steps
LOGS = 10, 100, 1000
# of the choices that a target gives to one treat, beyond the uniform share
SHARES = 0.05, 0.1, 0.2, 0.5
ABLATIONS = 200_000, 8
LEARNED = {
    "dqn-1": (200_000, 16, 1.0),
    "dqn-0.5": (200_000, 16, 0.5),
    "dqn-0": (200_000, 16, 0.0),
}
# in the order in which they are made
PARTS = {
    "exact": "Exact values",
    "simulated": "Simulated visits",
    "search": "Settings of DQN",
    **{name: f"DQN at consequence {c:g}" for name, (_, _, c) in LEARNED.items()},
    "even": "Break-even",
    "ablations": "Ablations",
    "peer": "Beside stable-baselines3",
    "cartpole": "CartPole",
    "tabular": "Tabular Q-learning",
    "offpolicy": "Off-policy evaluation",
}
# in the order of the document
TITLES = (
    *("Exact values", "Simulated visits", "Tabular Q-learning", "Settings of DQN"),
    *(f"DQN at consequence {c:g}" for c in CONSEQUENCES),
    "Break-even",
    "Ablations",
    "Beside stable-baselines3",
    "CartPole",
    "Off-policy evaluation",
)
HEAD = [
    "# Sessions: visits of many clicks",
    "",
    "Made by `python -m benchmarks.reproduction.sessions`; a part of it by its name. Clicks per visit, "
    "means over the four personas, with at most 40 steps per visit and 95 % intervals over runs. "
    "Times are processor time of one thread in sections that state their commit.",
    "",
    "Each section states the size of its runs. Those with fewer than 200,000 steps (*Settings of "
    "DQN*, *Break-even*, *Beside stable-baselines3*) decide nothing about the end of learning.",
]


def experiment(
    agents: list[Any], steps: int, replications: int, *, seed: int = 0, **simulator: Any
) -> Experiment:
    """Return an experiment in the simulator of visits, with one product of each kind."""
    return read(
        {
            "simulator": {"kind": "sessions", "n_products": 10, **simulator},
            "agents": agents,
            "steps": steps,
            "replications": replications,
            "seed": seed,
        }
    )


def run(e: Experiment) -> tuple[dict[str, History], float]:
    """Run it, and return the histories and the processor time, s."""
    lockstep, began = Lockstep(e), time.process_time()
    run_to_end(lockstep)
    return lockstep.histories, time.process_time() - began


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


def tabular(steps: int = TABULAR) -> list[str]:
    """Return how far Q-learning is from the discounted optimum, by run."""
    agent = {"kind": "q_learning", "epsilon": 0.5, "step_power": 0.7, "discount": DISCOUNT}
    world: dict[str, Any] = {"observed": "mood", "limit": None}
    _, speed = run(experiment([agent], TIMED[0], TIMED[1], **world))
    e = experiment([agent], steps, 8, **world)
    lockstep, began = Lockstep(e), time.process_time()
    run_to_end(lockstep)
    seconds = time.process_time() - began
    model = visit_model(e.simulator)
    value = np.zeros((4, 5, NONE + 1))
    for _ in range(2000):
        q = action_values(model, value, DISCOUNT)
        value = q.max(axis=3)
    truth = q[:, :, NONE].reshape(20, -1)
    learned = next(iter(lockstep.runners.values())).lane.agent.q  # type: ignore[attr-defined]
    error = np.abs(learned - truth).max(axis=(1, 2))
    greedy, best = learned.argmax(axis=2), truth.max(axis=1)
    right = (greedy == truth.argmax(axis=1)).sum(axis=1)
    costs = best - truth[np.arange(20), greedy]
    gaps = best - np.sort(truth, axis=1)[:, -2]
    return [
        f"8 runs of {steps:,} steps, mood observed, no limit of steps, ε = 0.5, step n^-0.7, "
        f"discount {DISCOUNT} ({seconds:.0f} s): max |Q - Q*| from {error.min():.2f} to "
        f"{error.max():.2f}, below 0.3 in {(error < 0.3).sum()} of 8 runs; the greedy choice is right "
        f"in {right.min()} to {right.max()} of 20 states, and costs at most {costs.max():.3f} of Q* in "
        f"the others. In {(gaps < 0.1).sum()} states the best two choices differ by less than 0.1, by "
        f"{gaps.min():.3f} at least.",
        "",
        f"{TIMED[1]} runs of {TIMED[0]:,} steps take {speed:.0f} s of processor time.",
    ]


def late(h: History) -> Estimate:
    """Estimate the clicks per visit of the last fifth of a run."""
    return METRICS["late_per_visit"].estimate(h)


def interval(found: Estimate, digits: int = 2) -> str:
    """Format a mean with its interval."""
    return f"{found.mean:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def dqn(steps: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Return DQN whose exploration decays over half of the run."""
    starts = min(1000, steps // 4)
    return {"kind": "dqn", "decay": steps // 2, "learning_starts": starts, **settings}


def search(steps: int, rows: int) -> tuple[list[str], dict[str, Any]]:
    """Return the table of settings at consequence 1, and those of the highest mean."""
    names = {
        ", ".join(f"{k} {str(v).lower()}" for k, v in change.items()) or "defaults": change
        for change in SEARCHED
    }
    agents = [{**dqn(steps, change), "label": name} for name, change in names.items()]
    histories, seconds = run(experiment(agents, steps, rows, features="interaction"))
    found = {name: late(h) for name, h in histories.items()}
    best = max(found, key=lambda name: found[name].mean)
    lines = [
        f"{rows} runs of {steps:,} steps each at consequence 1 ({seconds:.0f} s). The sections "
        f"below use the change of the highest mean: {best}. Its own mean is biased upwards, since "
        "it was chosen; the runs below have other seeds.",
        "",
        "| change | clicks per visit, last fifth |",
        "|---|---|",
        *(f"| {name} | {interval(value)} |" for name, value in found.items()),
    ]
    return lines, names[best]


def learned(steps: int, rows: int, consequence: float, settings: dict[str, Any]) -> list[str]:
    """Return the table of DQN beside the same with discount 0, and LinUCB."""
    far = dqn(steps, settings)
    agents = [
        far,
        {**far, "label": "DQN discount 0", "discount": 0},
        {"kind": "linucb", "sharing": "shared"},
    ]
    e = experiment(agents, steps, rows, seed=SEED, consequence=consequence, features="interaction")
    truth = solve(e.simulator)
    histories, seconds = run(e)
    lines = [
        f"{rows} runs of {steps:,} steps each ({seconds:.0f} s), history observed. Optimum "
        f"{truth.optimal:.2f}, short-sighted {truth.short_sighted:.2f}.",
        "",
        "| agent | clicks per visit, last fifth | within 10 % of the optimum | visits until ahead |",
        "|---|---|---|---|",
    ]
    base = histories[e.labels[2]]
    for label, h in histories.items():
        close = METRICS["late_per_visit"].rows(h) >= 0.9 * truth.optimal
        share = f"{int(close.sum())} of {rows}"
        visits = break_even(h, base)
        ahead = "" if h is base else "never" if visits is None else f"{visits:,}"
        lines.append(f"| {label} | {interval(late(h))} | {share} | {ahead} |")
    far_h, near_h = (histories[label] for label in e.labels[:2])
    values = METRICS["late_per_visit"].rows
    above = estimate(values(far_h) - truth.short_sighted)
    gain = estimate(values(far_h) - values(base))
    lost = estimate(base.sums["clicks"][-1] - far_h.sums["clicks"][-1])
    myopic = estimate(near_h.sums["clicks"][-1] - far_h.sums["clicks"][-1])
    return [
        *lines,
        "",
        f"In the last fifth, DQN earns {interval(above)} clicks per visit more than the "
        f"short-sighted optimum ({verdict(above)}), and {interval(gain)} more than LinUCB "
        f"({verdict(gain)}). Over the whole run, LinUCB earned {interval(lost, 0)} clicks more than "
        f"DQN, and DQN with discount 0 {interval(myopic, 0)}: what learning to plan cost.",
    ]


def even(steps: int, rows: int, settings: dict[str, Any]) -> list[str]:
    """Return the table of the visits after which DQN is ahead of LinUCB, by consequence."""
    lines = [
        f"{rows} runs of {steps:,} steps each. Clicks per visit of the last fifth; visits until the "
        "clicks of DQN stay above those of LinUCB at equal numbers of visits.",
        "",
        "| consequence | optimum | short-sighted | DQN | LinUCB | DQN earns more | clicks that DQN is "
        "behind, whole run | visits until ahead |",
        "|---|---|---|---|---|---|---|---|",
    ]
    values, found = METRICS["late_per_visit"].rows, {}
    for c in CONSEQUENCES[:-1]:
        agents = [dqn(steps, settings), {"kind": "linucb", "sharing": "shared"}]
        e = experiment(agents, steps, rows, seed=SEED, consequence=c, features="interaction")
        truth = solve(e.simulator)
        histories, _ = run(e)
        far, base = (histories[label] for label in e.labels)
        gain = estimate(values(far) - values(base))
        lost = estimate(base.sums["clicks"][-1] - far.sums["clicks"][-1])
        visits = break_even(far, base)
        found[c] = verdict(gain), visits
        lines.append(
            f"| {c:g} | {truth.optimal:.2f} | {truth.short_sighted:.2f} | {interval(late(far))} | "
            f"{interval(late(base))} | {interval(gain)}: {verdict(gain)} | {interval(lost, 0)} | "
            f"{'never' if visits is None else f'{visits:,}'} |"
        )
    return [*lines, "", summary(steps, found)]


def summary(steps: int, found: Mapping[float, tuple[str, int | None]]) -> str:
    """State at which consequences DQN earns more than LinUCB, per visit and over the whole run."""

    def at(consequences: list[float]) -> str:
        return listed([f"{c:g}" for c in consequences]) if consequences else "none"

    judged = {word: at([c for c in found if found[c][0] == word]) for word in VERDICTS}
    ahead = at([c for c in found if found[c][1] is not None])
    return (
        f"Consequences at which DQN earns more per visit than LinUCB in the last fifth: "
        f"{judged['above']}; less: {judged['below']}; undecided: {judged['undecided']}. At which its "
        f"clicks stay above those of LinUCB within {steps:,} steps: {ahead}."
    )


VERDICTS = "above", "below", "undecided"


def verdict(found: Estimate) -> str:
    """Judge a difference by its interval."""
    return "above" if found.low > 0 else "below" if found.high < 0 else "undecided"


def ablations(steps: int, rows: int, settings: dict[str, Any]) -> list[str]:
    """Return the table of DQN without one of its parts, and what each part earns."""
    full = dqn(steps, {"double": True, **settings})
    batch = settings.get("batch", 64)
    # the smallest buffer: nearly every batch is the latest steps
    small = batch + settings.get("n_step", 1)
    variants = {
        "DQN": {},
        "no target network": {"target_every": 1},
        "no replay": {"buffer": small},
        "double inverted": {"double": not full["double"]},
    }
    agents = [{**full, **change, "label": name} for name, change in variants.items()]
    e = experiment(agents, steps, rows, seed=SEED, features="interaction")
    histories, seconds = run(e)
    lines = [
        f"{rows} runs of {steps:,} steps, consequence 1 ({seconds:.0f} s). No replay: a buffer of "
        f"the last {small} steps for batches of {batch}. DQN has `double` "
        f"{str(full['double']).lower()}.",
        "",
        "| variant | clicks per visit, last fifth | DQN earns more than it |",
        "|---|---|---|",
    ]
    values = METRICS["late_per_visit"].rows
    for label, h in histories.items():
        gain = estimate(values(histories["DQN"]) - values(h))
        more = f"{interval(gain)}: {verdict(gain)}" if label != "DQN" else ""
        lines.append(f"| {label} | {interval(late(h))} | {more} |")
    return lines


def peer(steps: int, rows: int) -> list[str]:
    """Return DQN beside that of stable-baselines3 at equal settings.

    Both: two hidden layers of 64 units, Adam, Huber loss, no double, one-step targets, clipping of
    no gradient that occurs.
    """
    settings = {"double": False, "n_step": 1, "loss": "huber", "learning_starts": steps // 10}
    e = experiment([dqn(steps, settings)], steps, rows, seed=SEED, features="interaction")
    histories, seconds = run(e)
    ours = METRICS["late_per_visit"].rows(next(iter(histories.values())))
    began = time.process_time()
    theirs = np.array([of_stable_baselines(e, steps, seed) for seed in range(rows)])
    truth = solve(e.simulator)
    gap = ours.mean() - theirs.mean()
    error = np.sqrt(ours.var(ddof=1) / rows + theirs.var(ddof=1) / rows)
    half = float(stdtrit(rows - 1, 0.975)) * error
    difference = Estimate(gap, gap - half, gap + half)
    return [
        f"{rows} runs of {steps:,} steps each ({seconds:.0f} s, and {time.process_time() - began:.0f} "
        f"s), consequence 1, history observed; optimum {truth.optimal:.2f}. Equal: learning rate "
        "0.001, batch 64, buffer 10,000, training every 10 steps, target every 500, discount 0.99, "
        "ε from 1 to 0.05 over half of the run, two layers of 64, Huber loss, no double, one-step "
        "targets. Different: our network reads state and item and has one output; that of "
        "stable-baselines3 reads the features of all items and has an output for each.",
        "",
        "| implementation | clicks per visit, last fifth |",
        "|---|---|",
        f"| ours | {interval(estimate(ours))} |",
        f"| stable-baselines3 | {interval(estimate(theirs))} |",
        "",
        f"Ours earns {interval(difference)} more ({verdict(difference)}; runs are not paired).",
    ]


def of_stable_baselines(e: Experiment, steps: int, seed: int) -> float:
    """Return the clicks per visit of the last fifth of one run of stable-baselines3's DQN."""
    import gymnasium
    import torch
    from stable_baselines3 import DQN

    from bandits.gym import make_env

    torch.set_num_threads(1)
    earned: list[tuple[float, bool]] = []

    class Recorded(gymnasium.Wrapper):  # type: ignore[type-arg]
        def step(self, action: Any) -> Any:
            found = self.env.step(action)
            earned.append((float(found[1]), bool(found[2])))
            return found

    model = DQN(
        "MlpPolicy",
        Recorded(make_env(e.simulator.model_dump())),
        learning_rate=1e-3,
        buffer_size=10_000,
        learning_starts=steps // 10,
        batch_size=64,
        tau=1.0,
        gamma=DISCOUNT,
        train_freq=10,
        gradient_steps=1,
        target_update_interval=500,
        exploration_fraction=0.5,
        exploration_final_eps=0.05,
        max_grad_norm=1e9,
        policy_kwargs={"net_arch": [64, 64]},
        seed=1000 + seed,
        device="cpu",
    )
    model.learn(steps)
    clicks, ended = np.array(earned[steps - steps // 5 :]).T
    return float(clicks.sum() / ended.sum())


def offpolicy() -> list[str]:
    """Return what logs of uniformly random choice state of policies that are ever further away."""
    batches, rows, steps = LOGS
    lines = [
        f"{batches * rows:,} logs of {steps:,} steps each, uniformly random choice among ten kinds of "
        "products, consequence 1; the target shows one treat more often. The true value is that of "
        "value iteration. Coverage: share of normal 95 % intervals over visits that hold it.",
        "",
        "| share of the treat | true value | estimator | mean | z | coverage | ESS at step 1, 2, 5, "
        "10, 20 |",
        "|---|---|---|---|---|---|---|",
    ]
    found: dict[float, list[Evaluation]] = {share: [] for share in SHARES}
    for batch in range(batches):
        log = record(experiment([{"kind": "random"}], steps, rows, seed=batch))
        for share in SHARES:
            target = Matrix((1 - share) / 10 + share * (np.arange(10) == 1))
            found[share] += [evaluate(log.select(log.rows == row), target) for row in range(rows)]
    for share, evaluations in found.items():
        truth = evaluations[0].truth
        assert truth is not None
        ess = [np.median([e.ess_by_length[h - 1] for e in evaluations]) for h in (1, 2, 5, 10, 20)]
        for name in ("pdis", "wpdis"):
            each = [e.estimates[name] for e in evaluations]
            values = np.array([e.value for e in each])
            z = (values.mean() - truth.value) / values.std(ddof=1) * len(values) ** 0.5
            held = np.mean([e.low <= truth.value <= e.high for e in each])
            lines.append(
                f"| {share + (1 - share) / 10:g} | {truth.value:.4f} | {name} | {values.mean():.4f} | "
                f"{z:.2f} | {held:.1%} | {', '.join(f'{x:.1f}' for x in ess)} |"
            )
    visits = np.mean([e.n for e in evaluations])
    return [
        *lines,
        "",
        f"A log has {visits:.0f} whole visits on average; the effective sample size (ESS) is the "
        "median of the logs. What a target shows more often than the log multiplies the weights at "
        "every step of a visit, so that far targets rest on few visits: their intervals hold less "
        "often than stated, and an alarm rings below an ESS of 100.",
    ]


def write(parts: dict[str, list[str]]) -> None:
    """Replace these sections of the document; the others stay."""
    old = PATH.read_text(encoding="utf-8") if PATH.exists() else ""
    found = {
        title: body.strip("\n").split("\n")
        for title, _, body in (section.partition("\n") for section in old.split("\n## ")[1:])
    }
    sections = {**found, **parts}
    body = [
        line
        for title in TITLES
        if title in sections
        for line in ("", f"## {title}", "", *sections[title])
    ]
    PATH.write_text("\n".join([*HEAD, *body]) + "\n", encoding="utf-8")


MAKERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(LEARNED, learned),
    "exact": exact,
    "simulated": simulated,
    "search": search,
    "even": even,
    "ablations": ablations,
    "peer": peer,
    "cartpole": cartpole,
    "tabular": tabular,
    "offpolicy": offpolicy,
}


def main() -> None:
    names = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"unknown part {unknown[0]}; parts are: {', '.join(PARTS)}")
    sizes = {"search": SEARCH, "even": EVEN, "ablations": ABLATIONS, "peer": PEER, **LEARNED}
    settings = SETTINGS
    for name in names:
        maker, size = MAKERS[name], sizes.get(name, ())
        if name == "search":
            lines, settings = maker(*size)
        elif name in ("even", "ablations", *LEARNED):
            lines = maker(*size, settings)
        else:
            lines = maker(*size)
        write({PARTS[name]: [*lines, "", stamp(maker)]})


if __name__ == "__main__":
    main()
