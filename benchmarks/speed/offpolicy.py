"""Time evaluations of large logs against plain vectorised numpy, and the recording of a log against
its lane.

python -m benchmarks.speed.offpolicy --write
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from bandits import Experiment
from bandits.base.types import FloatArray
from bandits.experiments.lockstep import make_lane
from bandits.offpolicy import DecisionLog, Matrix, evaluate, record
from benchmarks.measure import Section, interleave, keep, machine, ratio, stamp, stopwatch

N, K = 1_000_000, 80
KINDS = ("ips", "snips", "dr")
STEPS, PART = 20_000, 200
RECORDED = {
    "LinUCB with a floor": {"kind": "linucb", "guards": [{"kind": "floor", "epsilon": 0.2}]},
    "ε-greedy": {"kind": "epsilon_greedy"},
    "Random": {"kind": "random"},
    "LinUCB": {"kind": "linucb"},
    "LinTS with a floor": {"kind": "lints", "guards": [{"kind": "floor", "epsilon": 0.2}]},
}


def _log(n: int) -> tuple[DecisionLog, FloatArray, FloatArray]:
    """Make a log with a matrix of target probabilities and one of predicted rewards, both float64
    (n, K).
    """
    g = np.random.default_rng(0)
    p, q = g.random((n, K)), g.random((n, K))
    p /= p.sum(axis=1, keepdims=True)
    log = DecisionLog(
        actions=g.integers(0, K, n),
        rewards=(g.random(n) < 0.1).astype(float),
        names=tuple(map(str, range(K))),
        propensities=np.full(n, 1 / K),
    )
    return log, p, q


def _ours(log: DecisionLog, p: FloatArray, q: FloatArray) -> None:
    evaluate(log, Matrix(p), q=q, estimators=KINDS)


def _rival(log: DecisionLog, p: FloatArray, q: FloatArray) -> list[tuple[float, float]]:
    """Compute the three estimates with their standard errors, and the support, by whole arrays."""
    rows, n = np.arange(len(log)), len(log)
    w = p[rows, log.actions] / np.asarray(log.propensities)
    dr = (p * q).sum(axis=1) + w * (log.rewards - q[rows, log.actions])
    value = (w * log.rewards).mean() / w.mean()
    found = [w * log.rewards, value + w * (log.rewards - value) / w.mean(), dr]
    # the input is checked on both sides
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-6
    assert p.min() >= 0
    float(w.sum() ** 2 / (w @ w))
    float((p @ (np.bincount(log.actions, minlength=K) == 0)).mean())
    return [(float(c.mean()), float(c.std(ddof=1)) / n**0.5) for c in found]


def measure(repeats: int = 7) -> Section:
    """Measure IPS, SNIPS and DR with given q, and the time and memory of a million decisions."""
    section = Section(
        "Off-policy evaluation: IPS, SNIPS and DR with given predicted rewards",
        f"Processor time of evaluations of n decisions and {K} actions, with checks of the input "
        f"and the support, in turn {repeats} times, against the same in plain numpy on whole "
        f"arrays. The peak of memory includes both matrices. {machine()}.",
        ("what", "result"),
        code=stamp(measure),
    )
    for n in (10_000, 100_000):
        data = _log(n)
        sides = {
            "ours": partial(stopwatch, partial(_ours, *data)),
            "numpy": partial(stopwatch, partial(_rival, *data)),
        }
        times = interleave(sides, repeats)
        share = ratio(times["ours"], times["numpy"])
        section.rows.append((f"{n:,} decisions, ratio to numpy", str(share)))
        section.targets.append(
            (f"{n:,} decisions: at most 1.5", f"{share.middle:.2f}", share.middle <= 1.5)
        )
    data = _log(N)
    began = time.perf_counter()
    _ours(*data)
    seconds = time.perf_counter() - began
    peak = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        * (1 if sys.platform == "darwin" else 1024)
        / 1e9
    )
    section.rows += [
        (f"{N:,} decisions, seconds", f"{seconds:.2f}"),
        ("peak of memory, GB", f"{peak:.2f}"),
    ]
    section.targets.append((f"{N:,} decisions: under 3 s", f"{seconds:.2f} s", seconds < 3))
    section.targets.append((f"{N:,} decisions: under 2 GB", f"{peak:.2f} GB", peak < 2))
    return section


def _lane(experiment: Experiment, *, compiled: bool) -> None:
    """Run the lane of which the log is recorded."""
    lane = make_lane(experiment, 0)
    lane.use_compiled = compiled
    with threadpool_limits(1):
        lane.agent.prepare()
        while lane.step < experiment.steps:
            lane.advance(min(PART, experiment.steps - lane.step))


def measure_recording(repeats: int = 3) -> Section:
    """Measure `bandits.offpolicy.record` against the lane step by step and compiled."""
    section = Section(
        "Recording: a log of decisions against its lane, step by step",
        f"`bandits.offpolicy.record` in the pet shop with 10 products, {STEPS:,} steps; processor "
        f"time, in turn {repeats} times. The log has the probability of every product at every "
        "decision; a lane computes none. A lane runs step by step, or in compiled code where "
        "agent and guards allow it. The probabilities of LinTS are integrals over the posterior "
        f"of every product, which its lane does not need. {machine()}.",
        (
            "agent, replications",
            "ratio to the lane step by step",
            "ratio to the lane as a run computes it",
        ),
        code=stamp(measure_recording),
    )
    shop = {"kind": "petshop", "n_products": 10}
    for name, agent in RECORDED.items():
        for R in (4, 16):
            asked = {"simulator": shop, "agents": [agent], "replications": R}
            e = Experiment.model_validate({**asked, "steps": STEPS})
            record(Experiment.model_validate({**asked, "steps": 200}))  # compile
            _lane(Experiment.model_validate({**asked, "steps": 200}), compiled=False)
            sides = {"log": partial(stopwatch, partial(record, e))}
            sides |= {
                str(c): partial(stopwatch, partial(_lane, e, compiled=c)) for c in (False, True)
            }
            times = interleave(sides, repeats)
            share = ratio(times["log"], times["False"])
            section.rows.append(
                (f"{name}, {R}", str(share), str(ratio(times["log"], times["True"])))
            )
            goal = f"{name}, {R} replications: at most 1.2"
            section.targets.append((goal, f"{share.middle:.2f}", share.middle <= 1.2))
    return section


SECTIONS = {"evaluation": measure, "recording": measure_recording}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.offpolicy")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--only", choices=SECTIONS, help="one of the two tables")
    asked = parser.parse_args()
    for part in [asked.only] if asked.only else SECTIONS:
        measured = SECTIONS[part]()
        print(measured)
        if asked.write:
            keep(measured)
