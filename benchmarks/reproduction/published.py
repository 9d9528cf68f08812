"""Compare published figures of neural agents with ours.

``python -m benchmarks.reproduction.published SECTION ...`` writes one section of docs/REPRODUCED.md
each. The wheel and the synthetic functions take minutes, the wheel with the published program's
settings an hour. MAGIC takes hours, because its protocol takes 100 training steps on all
observations after every decision."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits import read, run
from bandits.base.files import cached_arrays, is_cached
from bandits.results import metrics
from bandits.results.metrics import FloatArray
from benchmarks.measure import machine, report, table


class Line(NamedTuple):
    """Summary of the replications of one line of the wheel: shares of uniform choice's regret, in
    percent.
    """

    mean: float
    low: float
    high: float
    smallest: float
    largest: float

    @classmethod
    def of(cls, share: FloatArray) -> Line:
        """Summarise shares, float64 (R,), with a 95 % interval of their mean."""
        found = metrics.estimate(share)
        return cls(found.mean, found.low, found.high, float(share.min()), float(share.max()))


REPORT = Path(__file__).parents[2] / "docs" / "REPRODUCED.md"

Params = dict[str, Any]

# program of Riquelme et al.: regret as a percentage of the uniform agent's, standard error (50
# trials, 80,000 steps)
WHEEL = {
    0.5: (0.95, 0.02),
    0.7: (1.60, 0.03),
    0.9: (4.65, 0.18),
    0.95: (9.56, 0.36),
    0.99: (49.63, 2.41),
}
NEURAL_LINEAR: Params = {
    "kind": "neural_linear_ts",
    "heads": "per_arm",
    "noise": "inverse_gamma",
    "a0": 6.0,
    "b0": 6.0,
    "ridge": 0.25,
    "hidden": [50],
    "every": 400,
    "updates": 100,
    "batch": 512,
    "learning_rate": 0.01,
    "buffer": 100_000,
}

# example_main.py of that program, agent NeuralLinear. Its learning rate falls to lr / (1 + s / 2)
# after s steps and is to begin anew at each training (reset_lr), but the optimiser in its graph
# keeps the first tensor: it never does.
PROGRAM: Params = {
    **NEURAL_LINEAR,
    "initial_pulls": 2,
    "every": 50,
    "optimiser": "rmsprop",
    "learning_rate": 0.1,
    "learning_rate_decay": 0.5,
    "gradient_limit": 5.0,
    "initial_scale": 0.3,
}
# replications that are run together
BLOCK = 4
# lines of 4 replications run on 2026-11-24: mean, low, high, smallest, largest share; the values
# were not kept
EARLIER_LINES = {
    ("training", 0.5): Line(1.28, 0.83, 1.74, 0.96, 1.58),
    ("training", 0.7): Line(1.43, 1.41, 1.45, 1.42, 1.44),
    ("training", 0.9): Line(3.18, 1.42, 4.94, 2.36, 4.75),
    ("training", 0.95): Line(5.54, 3.88, 7.19, 4.72, 7.04),
    ("training", 0.99): Line(89.29, 67.95, 110.63, 70.29, 100.31),
    ("start", 0.5): Line(2.37, 2.07, 2.66, 2.17, 2.61),
    ("start", 0.95): Line(8.21, 6.10, 10.31, 6.92, 9.96),
}

LINFULLPOST: Params = {
    "kind": "lints",
    "sharing": "per_arm",
    "noise": "inverse_gamma",
    "a0": 6.0,
    "b0": 6.0,
    "ridge": 0.25,
}

# a separate run of the paper's experiment, two seeds: uniform, LinUCB, NeuralUCB; none of the
# cosine
SYNTHETIC: dict[str, tuple[int, ...]] = {
    "quadratic": (6476, 4082, 1110),
    "form": (59_500, 52_000, 4_700),
    "cosine": (),
}
SYNTHETIC_AGENTS: tuple[Params, ...] = (
    {"kind": "random"},
    {"kind": "linucb", "alpha": 1.0, "sharing": "shared"},
    {
        "kind": "neural_ucb",
        "hidden": [20],
        "training": "replay",
        "every": 1,
        "updates": 5,
        "batch": 64,
        "alpha": 0.1,
        "learning_rate": 0.01,
        "ridge": 1.0,
    },
)

# Zhang, Zhou, Li, Gu (2021): mean and standard deviation of 8 runs
MAGIC = {"neural_ucb": (2033.0, 48.6), "neural_ts": (2037.4, 61.3)}
# replications 0 to 3 of each agent, run on 2026-11-21: number, mean, standard deviation; the values
# were not kept
EARLIER = {"neural_ucb": (4, 1989.0, 42.5), "neural_ts": (4, 2000.2, 33.5)}
RIDGE, NU = 0.001, 0.1
PROTOCOL: Params = {
    "hidden": [100],
    "covariance": "diagonal",
    "scaling": "code",
    "regularised": True,
    "ridge": RIDGE,
    "optimiser": "sgd",
    "learning_rate": 0.01,
    "training": "everything",
    "every": 1,
    "updates": 100,
}
# the authors' bonus is sqrt(lambda nu g'U^-1 g), the variance of their draw lambda nu g'U^-1 g
SPREAD: dict[str, Params] = {
    "neural_ucb": {"alpha": (RIDGE * NU) ** 0.5},
    "neural_ts": {"sigma2": RIDGE * NU},
}

# BFTS (arXiv 2602.07767) and TETS (arXiv 2402.06963), both of trees, at 10,000 steps
TREES = {"magic": (1490, 1590), "adult": (1540, 1560)}
# a fit uses all observations
TREE_AGENTS: dict[str, Params] = {
    "oracle_based": {"kind": "oracle_based", "history": 10_000},
    "oracle_based, inverse gaps": {
        "kind": "oracle_based",
        "history": 10_000,
        "exploration": "squarecb",
    },
    "tree_ts": {"kind": "tree_ts", "history": 10_000},
    "linucb": {"kind": "linucb"},
}


def regret(
    simulator: Params, agent: Params, steps: int, replications: int, seed: int = 0
) -> FloatArray:
    """Compute the regret of every replication, float64 (R,)."""
    data = {
        "simulator": simulator,
        "agents": [agent],
        "steps": steps,
        "replications": replications,
        "seed": seed,
    }
    (history,) = run(read({**data, "defaults": 1})).histories.values()
    return metrics.total(history, "best_value") - metrics.total(history, "value")


def wheel_share(
    delta: float, steps: int, replications: int, agent: Params | None = None
) -> FloatArray:
    """Compute the regret as a percentage of that of uniform choice, float64 (R,)."""
    simulator = {"kind": "wheel", "delta": delta}
    uniform = steps * ((1 - delta**2) * 39.16 + delta**2 * 0.16)
    return 100 * regret(simulator, agent or NEURAL_LINEAR, steps, replications) / uniform


def wheel_rows(lines: Sequence[Line | None]) -> list[tuple[str, ...]]:
    """Compare the line of each delta with the published one; None: not run."""
    rows: list[tuple[str, ...]] = []
    for (delta, (published, error)), line in zip(WHEEL.items(), lines, strict=True):
        theirs = f"{published:.2f} ({error:.2f})"
        if line is None:
            rows.append((f"{delta}", theirs, "not run", "–", "–"))
            continue
        allowed = ((line.high - line.mean) ** 2 + (1.96 * error) ** 2) ** 0.5
        verdict = "agrees" if abs(line.mean - published) <= allowed else "differs"
        rows.append(
            (
                f"{delta}",
                theirs,
                f"{line.mean:.2f} ({line.low:.2f} to {line.high:.2f})",
                f"{line.smallest:.2f} to {line.largest:.2f}",
                f"{line.mean - published:+.2f}, allowed {allowed:.2f}: {verdict}",
            )
        )
    return rows


WHEEL_HEAD = (
    "delta",
    "published (standard error)",
    "ours: mean (95 % interval)",
    "smallest to largest replication",
    "difference",
)


def wheel(steps: int = 80_000, replications: int = 8) -> str:
    """Reproduce the NeuralLinear row of the wheel."""
    with ProcessPoolExecutor(2) as pool:
        shares = list(pool.map(partial(wheel_share, steps=steps, replications=replications), WHEEL))
    return "\n\n".join(
        [
            f"Regret as a percentage of that of uniform choice, {steps:,} steps, {replications} "
            "replications; published: 50 trials of the program of Riquelme et al. Heads per arm "
            "on one hidden layer of 50, inverse-gamma noise (a0 = b0 = 6), prior precision .25, "
            "batches of 512. Differences from that program: Adam with learning rate .01 instead "
            "of RMSprop with .1 and decay; 100 training steps after every 400 observations "
            "instead of 50; no forced initial pulls. Allowed is the 95 % interval of the "
            "difference of both means.",
            table(WHEEL_HEAD, wheel_rows([Line.of(share) for share in shares])),
        ]
    )


def program_key(delta: float, decay_from: str, seed: int, steps: int) -> str:
    """Return everything that a block of replications of the published program's agent
    depends on.
    """
    return json.dumps(
        ["wheel_program", 1, delta, {**PROGRAM, "decay_from": decay_from}, steps, BLOCK, seed]
    )


def program_block(job: tuple[float, str, int], steps: int) -> tuple[FloatArray, float, str]:
    """Run `BLOCK` replications of the published program's agent.

    Return shares, hours and machine, which are cached.
    """
    delta, decay_from, seed = job

    def make() -> dict[str, Any]:
        began = time.process_time()
        found = regret(
            {"kind": "wheel", "delta": delta},
            {**PROGRAM, "decay_from": decay_from},
            steps,
            BLOCK,
            seed,
        )
        uniform = steps * ((1 - delta**2) * 39.16 + delta**2 * 0.16)
        hours = (time.process_time() - began) / 3600
        return {
            "share": 100 * found / uniform,
            "hours": np.array(hours),
            "machine": np.array(machine()),
        }

    stored = cached_arrays("published", program_key(delta, decay_from, seed, steps), make)
    print(
        f"wheel {delta} {decay_from} {seed}: {stored['share'].round(2)} in "
        f"{float(stored['hours']):.2f} h",
        flush=True,
    )
    return stored["share"], float(stored["hours"]), str(stored["machine"])


WAYS = {
    "training": "The learning rate begins anew at each training, as the program's settings say",
    "start": "The learning rate falls through all trainings, as the program's graph computes it",
}


def wheel_program(steps: int = 80_000, replications: int = BLOCK, kept: bool = False) -> str:
    """Reproduce the NeuralLinear row of the wheel with the settings of the published program.

    ``kept``: write the replications that are in the cache, and run none.
    """
    jobs = [
        (delta, way, seed)
        for way in WAYS
        for delta in WHEEL
        for seed in range(replications // BLOCK)
    ]
    if kept:
        jobs = [job for job in jobs if is_cached("published", program_key(*job, steps))]
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(partial(program_block, steps=steps), jobs))
    parts = [
        f"Regret as a percentage of that of uniform choice, {steps:,} steps, {replications} "
        "replications of each line, about .1 hours of one core for a line; published: 50 trials "
        "of the program of Riquelme et al. Settings of that program's example: every arm is "
        "played twice first; RMSprop (decay .9) with learning rate .1, divided by 1 + s/2 after s "
        "steps; gradients no longer than 5; initial weights U(-.3, .3), biases 0; 100 training "
        "steps on batches of 512 after every 50 observations; the rest as above. The program "
        "means to begin anew with .1 at each training, but the optimiser in its graph never "
        "receives the new rate, so both ways are shown. Difference left: while fewer than 512 "
        "observations are stored, batches are as small as their number. Allowed is the 95 % "
        "interval of the difference of both means."
    ]
    for way, title in WAYS.items():
        lines = []
        for delta in WHEEL:
            own = [
                share
                for job, (share, _, _) in zip(jobs, found, strict=True)
                if job[:2] == (delta, way)
            ]
            lines.append(Line.of(np.concatenate(own)) if own else EARLIER_LINES.get((way, delta)))
        parts += [f"{title}:", table(WHEEL_HEAD, wheel_rows(lines))]
    made = machines({where for _, _, where in found})
    run_now = {(way, delta) for delta, way, _ in jobs}
    short = {"training": "rate anew", "start": "rate falling"}
    earlier = [
        f"delta {delta}, {short[way]}"
        for way, delta in EARLIER_LINES
        if (way, delta) not in run_now
    ]
    kept_lines = (
        f" Lines that were run on 2026-11-24, on an AMD EPYC with 2 cores: {'; '.join(earlier)}."
    )
    blocks = f"The replications were run separately, in blocks of {BLOCK}: {made}."
    return "\n\n".join([*parts, blocks + (kept_lines if earlier else "")])


def wheel_kept(steps: int = 80_000, replications: int = BLOCK) -> str:
    """Write what has been run so far of `wheel_program`."""
    return wheel_program(steps, replications, kept=True)


def linear_wheel_share(delta: float, steps: int, replications: int) -> FloatArray:
    """Compute the regret of LinFullPost as a percentage of that of uniform choice, float64 (R,)."""
    simulator = {"kind": "wheel", "delta": delta, "features": "constant"}
    uniform = steps * ((1 - delta**2) * 39.16 + delta**2 * 0.16)
    return 100 * regret(simulator, LINFULLPOST, steps, replications) / uniform


def linear_wheel(steps: int = 80_000, replications: int = 8) -> str:
    """Run LinFullPost, Bayesian regression per arm without a network, on the wheel."""
    with ProcessPoolExecutor(2) as pool:
        shares = list(
            pool.map(partial(linear_wheel_share, steps=steps, replications=replications), WHEEL)
        )
    rows = []
    for delta, share in zip(WHEEL, shares, strict=True):
        found = metrics.estimate(share)
        rows.append(
            (
                f"{delta}",
                f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})",
                f"{share.min():.2f} to {share.max():.2f}",
            )
        )
    return "\n\n".join(
        [
            f"Regret as a percentage of that of uniform choice, {steps:,} steps, {replications} "
            "replications: LinTS per arm with inverse-gamma noise (a0 = b0 = 6), prior precision "
            ".25 and a constant feature. Difference from the program of Riquelme et al.: no "
            "forced initial pulls. Their values for this agent were not at hand.",
            table(("delta", "ours: mean (95 % interval)", "smallest to largest replication"), rows),
        ]
    )


def synthetic(steps: int = 10_000, replications: int = 8) -> str:
    """Reproduce the order of uniform choice, LinUCB and NeuralUCB."""
    rows = []
    for function, separate in SYNTHETIC.items():
        simulator = {"kind": "synthetic", "function": function}
        regret_of = partial(regret, simulator, steps=steps, replications=replications)
        with ProcessPoolExecutor(2) as pool:
            found = [metrics.estimate(r) for r in pool.map(regret_of, SYNTHETIC_AGENTS)]
        name = {"quadratic": "h1 = 10 (x.a)^2", "form": "h2 = x'A'Ax", "cosine": "h3 = cos(3 x.a)"}[
            function
        ]
        ours = (f"{e.mean:,.0f} ({e.low:,.0f} to {e.high:,.0f})" for e in found)
        order = "yes" if found[0].low > found[1].high and found[1].low > found[2].high else "**no**"
        rows.append((name, " / ".join(f"{value:,}" for value in separate) or "–", *ours, order))
    return "\n\n".join(
        [
            f"Regret over {steps:,} steps, d = 20, K = 4, {replications} replications. The paper "
            "shows figures only. The second column is from a separate implementation with two "
            "seeds (uniform / LinUCB / NeuralUCB) and other hidden weights, so only the order "
            "can be compared. NeuralUCB: one hidden layer of 20, diagonal covariance, alpha .1, "
            "five batches of 64 after every observation.",
            table(
                (
                    "function",
                    "separate implementation",
                    "uniform",
                    "LinUCB",
                    "NeuralUCB",
                    "order holds",
                ),
                rows,
            ),
        ]
    )


def machines(made: Iterable[str]) -> str:
    """Join descriptions of machines: each is named once, with the days of its runs."""
    days: dict[str, set[str]] = {}
    for each in sorted(made):
        what, when, _ = each.rsplit("; ", 2)
        days.setdefault(what.split(";")[0], set()).add(when.split()[0])
    return "; ".join(f"{what}, {', '.join(sorted(dates))}" for what, dates in days.items())


def magic_run(job: tuple[str, int], steps: int) -> tuple[float, float, str]:
    """Run one replication of one agent under the protocol.

    Return its regret, hours and machine, which are cached.
    """
    kind, seed = job
    agent = {"kind": kind, **PROTOCOL, **SPREAD[kind], "buffer": max(steps, 100)}

    def make() -> dict[str, Any]:
        began = time.process_time()
        data = {"kind": "classification", "data": "magic", "scale": "norm", "constant": False}
        found = regret(data, agent, steps, 1, seed)
        hours = (time.process_time() - began) / 3600
        return {"regret": found, "hours": np.array(hours), "machine": np.array(machine())}

    stored = cached_arrays("published", json.dumps(["magic", 1, agent, steps, seed]), make)
    print(
        f"magic {kind} {seed}: {float(stored['regret'][0]):,.0f} in {float(stored['hours']):.2f} h",
        flush=True,
    )
    return float(stored["regret"][0]), float(stored["hours"]), str(stored["machine"])


def pooled(earlier: tuple[int, float, float], values: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation of earlier replications (number, mean, standard deviation)
    and of others.
    """
    n, mean, sd = earlier
    both = np.concatenate([np.full(n, mean), values])
    squares = (n - 1) * sd**2 + ((both - both.mean()) ** 2).sum()
    return float(both.mean()), float((squares / (len(both) - 1)) ** 0.5)


def magic(steps: int = 10_000, replications: int = 8) -> str:
    """Reproduce the neural agents on MAGIC; the first replications are those of `EARLIER`."""
    jobs = [(kind, seed) for kind, (n, _, _) in EARLIER.items() for seed in range(n, replications)]
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(partial(magic_run, steps=steps), jobs))
    hours, made = [h for _, h, _ in found], machines({where for _, _, where in found})
    rows = []
    for kind, (theirs, spread) in MAGIC.items():
        later = np.array([r for (k, _), (r, _, _) in zip(jobs, found, strict=True) if k == kind])
        mean, sd = pooled(EARLIER[kind], later)
        limit = 3 * (spread**2 / 8 + sd**2 / replications) ** 0.5
        verdict = "agrees" if abs(mean - theirs) <= limit else "differs"
        rows.append(
            (
                kind,
                f"{theirs:,.1f} ({spread})",
                f"{mean:,.1f} ({sd:.1f})",
                ", ".join(f"{r:,.0f}" for r in later),
                f"{mean - theirs:+.1f}, allowed {limit:.1f}: {verdict}",
            )
        )
    earlier = "; ".join(f"{kind} {mean:,.1f} ({sd:.1f})" for kind, (_, mean, sd) in EARLIER.items())
    return "\n\n".join(
        [
            f"Regret over {steps:,} steps, {replications} replications per agent. One hidden "
            "layer of 100, SGD with learning rate .01, weight penalty lambda / t, 100 steps on "
            "all observations after every decision, diagonal covariance, warm start, lambda "
            ".001, nu .1.",
            table(
                (
                    "agent",
                    "published mean (sd)",
                    "ours: mean (sd)",
                    "single later replications",
                    "difference",
                ),
                rows,
            ),
            "Four replications of each agent were run on 2026-11-21, and of these only mean and "
            f"standard deviation were kept: {earlier}. The others were run separately, in "
            f"{min(hours):.2f} to {max(hours):.2f} hours of one core each, {sum(hours):.1f} in "
            f"total: {made}.",
        ]
    )


def trees_run(job: tuple[str, str, int], steps: int) -> tuple[float, float]:
    """Return the regret of one replication of an agent of trees, and its hours, which are cached."""
    data, name, seed = job

    def make() -> dict[str, Any]:
        began = time.process_time()
        found = regret({"kind": "classification", "data": data}, TREE_AGENTS[name], steps, 1, seed)
        return {"regret": found, "hours": np.array((time.process_time() - began) / 3600)}

    key = json.dumps(["trees", 1, data, TREE_AGENTS[name], steps, seed])
    stored = cached_arrays("published", key, make)
    print(f"{data} {name} {seed}: {float(stored['regret'][0]):,.0f}", flush=True)
    return float(stored["regret"][0]), float(stored["hours"])


def trees(steps: int = 10_000, replications: int = 4) -> str:
    """Run our agents of trees beside published ones."""
    jobs = [(d, name, s) for s in range(replications) for name in TREE_AGENTS for d in TREES]
    found = dict(zip(jobs, (trees_run(job, steps) for job in jobs), strict=True))
    rows = []
    for data, (bfts, tets) in TREES.items():
        for name in TREE_AGENTS:
            own = np.array([found[data, name, seed][0] for seed in range(replications)])
            took = sum(found[data, name, seed][1] for seed in range(replications))
            ours = metrics.estimate(own)
            mean = f"{ours.mean:,.0f} ({ours.low:,.0f} to {ours.high:,.0f})"
            minutes = f"{60 * took / replications:.1f}"
            rows.append((data, name, mean, f"{bfts:,}", f"{tets:,}", minutes))
    return "\n\n".join(
        [
            f"Regret over {steps:,} steps, {replications} replications, with a 95 % interval, agents "
            "at their defaults but for the history, which holds all observations. Published: BFTS, "
            "Bayesian forests with Thompson sampling, and TETS, Thompson sampling on XGBoost, read "
            "from an index of the papers; their encoding of the columns and their tuning are not "
            "ours. Minutes: processor time of a replication.",
            table(("data", "agent", "ours", "BFTS", "TETS", "minutes"), rows),
        ]
    )


SECTIONS: dict[str, tuple[str, Callable[..., str]]] = {
    "wheel": ("Wheel bandit, NeuralLinear", wheel),
    "wheel_kept": ("Wheel bandit, NeuralLinear with the published program's settings", wheel_kept),
    "wheel_program": (
        "Wheel bandit, NeuralLinear with the published program's settings",
        wheel_program,
    ),
    "linear_wheel": ("Wheel bandit, LinFullPost", linear_wheel),
    "synthetic": ("Synthetic functions, order of agents", synthetic),
    "magic": ("MAGIC telescope, neural agents", magic),
    "trees": ("MAGIC and Adult, trees", trees),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write one section, or all, into the report."""
    report("benchmarks.reproduction.published", REPORT, SECTIONS, arguments)


if __name__ == "__main__":
    main()
