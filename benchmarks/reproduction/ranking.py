"""Compare agents on slates of ten with published figures: ``python -m
benchmarks.reproduction.ranking``.

Writes the sections of docs/RANKING.md; together they take about an hour on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from bandits import Experiment, read
from bandits.base.types import FloatArray, IntArray
from bandits.diagnostics import retrieval
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import CHUNK, make_lane
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.results.metrics import Estimate
from benchmarks.measure import interleave, ratio, report, stopwatch, table
from benchmarks.speed import ranking_vectorised

OUT = Path(__file__).parents[2] / "docs" / "RANKING.md"
Params = dict[str, Any]

# published average regret after 5,000 rounds, one replication each
SOURCE = {"Popularity": 0.0528, "Neural greedy": 0.0507, "Neural click TS": 0.0455}
PUBLISHED: Params = {
    "kind": "ranking",
    "choice": "catalogue",
    "temperature": 0.001,
    "features": "concatenation",
    "constant": False,
}
LEARNABLE: Params = {"kind": "ranking", "choice": "candidates", "temperature": 0.005}
GREEDY: Params = {
    "kind": "neural_greedy",
    "hidden": [32, 16],
    "optimiser": "sgd",
    "loss": "log",
    "every": 32,
    "updates": 1,
    "batch": 32,
    "learning_rate": 1e-3,
}
# as published: the agents' defaults are others
CLICK_TS: Params = {
    "kind": "neural_click_ts",
    "sigma2": 1e-4,
    "epsilon": 1e-6,
    "inverse": "pseudo",
    "hidden": [32, 16],
    "learning_rate": 1e-3,
    "batch": 32,
}
ADAM: Params = {
    "kind": "neural_greedy",
    "every": 50,
    "hidden": [64, 32],
    "learning_rate": 1e-3,
}
THOMPSON: Params = {**CLICK_TS, "vectors": "tuned"}
AGENTS: tuple[Params, ...] = (
    {"kind": "popularity"},
    GREEDY,
    THOMPSON,
    {**THOMPSON, "label": "Neural click greedy", "sigma2": 0},
    {"kind": "random"},
    {"kind": "oracle"},
)
LINEAR: tuple[Params, ...] = (
    {"kind": "linucb", "sharing": "shared", "alpha": 0.3, "ridge": 1e-4, "position": "aware"},
    {"kind": "lints", "sharing": "shared", "sigma2": 0.01, "ridge": 1e-3, "position": "aware"},
    {
        "kind": "logistic_ts",
        "sharing": "shared",
        "ridge": 1e-4,
        "sigma2": 0.3,
        "refit": 0,
        "position": "aware",
    },
    {"kind": "sgd_ts", "position": "aware", "ridge": 1e-4, "radius": 1000, "learning_rate": 100.0},
    ADAM,
    CLICK_TS,
    {"kind": "popularity"},
    {"kind": "random"},
)


class Run(NamedTuple):
    """Sums over all rounds, (R,) each."""

    label: str
    clicks: FloatArray
    value: FloatArray
    best: FloatArray
    random: FloatArray

    @property
    def regret(self) -> FloatArray:
        """Pseudo-regret as a share of the optimum."""
        return (self.best - self.value) / self.best


def run_agent(
    agent: Params, simulator: Params, steps: int, replications: int, seed: int = 42
) -> Run:
    """Run one agent in one environment."""
    data = {
        "simulator": simulator,
        "agents": [agent],
        "steps": steps,
        "replications": replications,
        "seed": seed,
    }
    e = read({**data, "defaults": 1})
    with threadpool_limits(1):
        lane = make_lane(e, 0)
        lane.agent.prepare()
        trace = lane.advance(steps)
    columns = (trace.rewards, trace.value, trace.best_value, trace.random_value)
    return Run(e.labels[0], *(column.sum(axis=0) for column in columns))


def run_agents(
    agents: Sequence[Params], simulator: Params, steps: int, replications: int
) -> list[Run]:
    """Run all agents, two at a time, on the same users and random numbers."""
    with ProcessPoolExecutor(2) as pool:
        return list(
            pool.map(
                partial(run_agent, simulator=simulator, steps=steps, replications=replications),
                agents,
            )
        )


def interval(estimate: Estimate, digits: int = 4) -> str:
    """Format a mean and its interval."""
    return f"{estimate.mean:.{digits}f} ({estimate.low:.{digits}f} to {estimate.high:.{digits}f})"


def published(steps: int = 5_000, replications: int = 16) -> str:
    """Reproduce the published setting, in which no agent learns and the differences are within
    sampling error.
    """
    found = run_agents(AGENTS, PUBLISHED, steps, replications)
    rows = []
    for run in found:
        theirs = SOURCE.get(run.label)
        lost = (
            metrics.estimate((run.best - run.clicks) / steps),
            metrics.estimate((run.best - run.value) / steps),
        )
        rows.append(
            (
                run.label,
                "–" if theirs is None else f"{theirs:.4f}",
                *map(interval, lost),
                f"{run.clicks.mean():.1f}",
            )
        )
    _, other, thompson, greedy, random, oracle = found
    twin, rival = (_against(thompson, run) for run in (greedy, other))
    return "\n\n".join(
        [
            f"{steps:,} rounds, {replications} replications of each agent. Regret per round is "
            "the expected clicks of the optimal slate minus the clicks earned (as published), or "
            "minus the expected clicks of the slate shown, which has less sampling noise.",
            table(
                (
                    "agent",
                    "published",
                    "minus clicks earned",
                    "minus expected clicks",
                    "clicks per replication",
                ),
                rows,
            ),
            "Does Thompson sampling beat greedy choice? The controlled comparison is "
            f"*{greedy.label}*: the same network with sigma^2 = 0, so that only the posterior "
            f"draw differs. Paired, over {steps:,} rounds: {twin}. Compared with *{other.label}*, "
            f"which has another head, a replay buffer and fixed vectors: {rival}. The optimal "
            f"slates earn {oracle.clicks.mean():.0f} clicks, random slates "
            f"{random.clicks.mean():.1f}.",
        ]
    )


def _against(thompson: Run, greedy: Run) -> str:
    """Describe the effect of posterior draws in clicks, and the largest effect that the interval
    allows.
    """
    effects = []
    for name, what in (("clicks", "clicks"), ("value", "expected clicks")):
        e = metrics.estimate(getattr(thompson, name) - getattr(greedy, name))
        equal = f"no significant difference (at most {max(-e.low, e.high):.2f})"
        conclusion = (
            equal
            if e.low <= 0 <= e.high
            else f"{'Thompson sampling' if e.mean > 0 else 'greedy'} is better"
        )
        effects.append(f"{e.mean:+.2f} {what} ({e.low:+.2f} to {e.high:+.2f}), {conclusion}")
    return "; ".join(effects)


def _shares(agents: Sequence[Params], simulator: Params, steps: int, replications: int) -> str:
    return _table(run_agents(agents, simulator, steps, replications), steps, replications)


def _table(found: Sequence[Run], steps: int, replications: int) -> str:
    rows = [
        (
            run.label,
            interval(metrics.estimate(100 * run.regret), 1),
            f"{run.clicks.mean():,.0f}",
            interval(_learned(run), 1),
        )
        for run in found
    ]
    best = min(found, key=lambda run: float(run.regret.mean()))
    thompson = next(run for run in found if run.label == "Neural click TS")
    gap = metrics.estimate(best.regret / thompson.regret)
    return "\n\n".join(
        [
            f"{steps:,} rounds, {replications} replications. Pseudo-regret as a percentage of the "
            "expected clicks of the optimal slates, and the share of the gap between random (0) "
            "and oracle (100) that each agent closed.",
            table(
                (
                    "agent",
                    "regret, % of the optimum",
                    "clicks per replication",
                    "share of the gap, %",
                ),
                rows,
            ),
            f"{best.label} has {interval(gap, 3)} times the regret of Neural click TS, paired.",
        ]
    )


def _learned(run: Run) -> Estimate:
    return metrics.estimate(100 * (run.value - run.random) / (run.best - run.random))


def learnable(steps: int = 20_000, replications: int = 8) -> str:
    """Compare agents in a setting that is learnable from product features."""
    return "\n\n".join(
        [
            _shares(LINEAR, LEARNABLE, steps, replications),
            "The agents were not tuned equally: the ridge of the linear agents and the learning "
            "rate of SGD-TS suit features this small, while Neural click TS has its published "
            "values. *Why the published network hardly learns* shows LinUCB with its default "
            "values and the network with other learning rates.",
        ]
    )


def products(steps: int = 10_000, replications: int = 4) -> str:
    """Run the published setting for longer, with linear agents on product features."""
    found = run_agents(
        LINEAR, {**PUBLISHED, "features": "product", "constant": True}, steps, replications
    )
    better = [run.label for run in found if _learned(run).low > 0]
    verdict = "no agent"
    if better:
        verdict = (
            f"{', '.join(better)}. The published setting is therefore learnable from products of "
            "the two vectors,"
        )
        verdict += " though not from their concatenation (*As published*)"
    return "\n\n".join(
        [
            _table(found, steps, replications),
            f"Better than random by their 95 % intervals: {verdict}. Random slates are expected "
            f"to earn {found[-1].random.mean():.1f} clicks in {steps:,} rounds, the optimal "
            f"slates {found[-1].best.mean():.0f}.",
        ]
    )


SLOW: Params = {**CLICK_TS, "label": "Neural click TS rate .001"}
WHY: tuple[Params, ...] = (
    SLOW,
    {**SLOW, "label": "Neural click TS rate .1", "learning_rate": 0.1},
    {**SLOW, "label": "Neural click TS rate 1", "learning_rate": 1.0},
    {**ADAM, "label": "Neural greedy with Adam and replay"},
    {
        "kind": "linucb",
        "label": "LinUCB with usual values",
        "sharing": "shared",
        "position": "aware",
    },
    {**LINEAR[0], "label": "LinUCB with ridge 1e-4"},
)


class Predictions(NamedTuple):
    """What an agent predicts after its last round.

    Attributes
    ----------
    run : Run
    product : float
        Root mean square of the product features.
    predicted_sd, true_sd : float
        Standard deviation over candidates of the click probability: predicted, and true.
    """

    run: Run
    product: float
    predicted_sd: float
    true_sd: float


def predictions(agent: Params, steps: int, replications: int) -> Predictions:
    """Run an agent, and read its predictions for the candidates of one more round."""
    data = {"simulator": LEARNABLE, "agents": [agent], "steps": steps, "replications": replications}
    e = read({**data, "defaults": 1})
    with threadpool_limits(1):
        lane = make_lane(e, 0)
        trace = lane.advance(steps)
        round = lane.simulator.round_at(steps)
        explanation = lane.agent.explain(round)
        truth = lane.simulator.probabilities(round)
    assert explanation.mean is not None
    mean = expit(explanation.mean) if explanation.logit else explanation.mean
    columns = (trace.rewards, trace.value, trace.best_value, trace.random_value)
    run = Run(e.labels[0], *(column.sum(axis=0) for column in columns))
    # all but the constant
    values = round.contexts.values[..., :-1]
    sds = float(mean.std(axis=1).mean()), float(truth.std(axis=1).mean())
    return Predictions(run, float((values**2).mean() ** 0.5), *sds)


def why(steps: int = 3_000, replications: int = 8) -> str:
    """Compare the published learning rate with larger rates, and with other agents."""
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(partial(predictions, steps=steps, replications=replications), WHY))
    rows = [
        (
            m.run.label,
            interval(metrics.estimate(100 * m.run.regret), 1),
            f"{m.run.clicks.mean():,.0f}",
            f"{m.predicted_sd:.2g}",
        )
        for m in found
    ]
    left = [f"{100 * m.run.regret.mean():.0f} %" for m in found]
    return "\n\n".join(
        [
            f"The setting of *A learnable setting*, {steps:,} rounds, {replications} replications.",
            table(
                (
                    "agent",
                    "regret, % of the optimum",
                    "clicks per replication",
                    "sd of predictions",
                ),
                rows,
            ),
            f"The product features have a root mean square of about {found[0].product:.4f}, and "
            "the gradients of the first layer are proportional to them. One pass of SGD with "
            "learning rate .001 therefore hardly changes the network: afterwards its predicted "
            f"click probabilities differ between candidates by {found[0].predicted_sd:.2g} "
            f"(standard deviation; true {found[0].true_sd:.2g}). Posterior draws around an "
            "uninformative mean cannot compensate for this. A learning rate a thousand times "
            f"larger leaves a regret of {left[2]}; Adam, whose steps do not shrink with the "
            f"gradient, with a replay buffer leaves {left[3]}, and LinUCB with its default values "
            f"{left[4]}.",
        ]
    )


def by_slot(
    agent: Params, simulator: Params, steps: int, replications: int, last: int
) -> tuple[Run, FloatArray]:
    """Run an agent; return its prediction errors for the shown items in the last rounds, by slot,
    float64 (R, S).
    """
    data = {"simulator": simulator, "agents": [agent], "steps": steps, "replications": replications}
    e = read({**data, "defaults": 1})
    with threadpool_limits(1):
        lane = make_lane(e, 0)
        traces = [lane.advance(steps - last)]
        off = np.zeros((replications, lane.simulator.spec.slate))
        rows = np.arange(replications)[:, None]
        for step in range(steps - last, steps):
            round = lane.simulator.round_at(step)
            mean, truth = lane.agent.explain(round).mean, lane.simulator.probabilities(round)
            assert mean is not None
            traces.append(lane.advance(1))
            slate = _positions(round.items, traces[-1].items[0])
            off += (mean[rows, slate] - truth[rows, slate]) / last
    sums = (
        np.concatenate([getattr(t, name) for t in traces]).sum(axis=0)
        for name in ("rewards", "value", "best_value", "random_value")
    )
    return Run(e.labels[0], *sums), off


def _positions(items: IntArray, shown: IntArray) -> IntArray:
    return (items[:, :, None] == shown[:, None, :]).argmax(axis=1)


def position(steps: int = 5_000, replications: int = 16) -> str:
    """Compare three slot treatments of the same agent."""
    e = presets()["position"].experiment.model_dump(mode="json")
    with ProcessPoolExecutor(2) as pool:
        work = partial(
            by_slot,
            simulator=e["simulator"],
            steps=steps,
            replications=replications,
            last=min(500, steps // 4),
        )
        found = list(pool.map(work, e["agents"]))
    rows = []
    for run, off in found:
        slots = [metrics.estimate(100 * off[:, k]) for k in (0, 1, 4, 9)]
        rows.append(
            (run.label, *(interval(slot, 1) for slot in slots), f"{run.clicks.mean():,.0f}")
        )
    aware = found[-1][0]
    gaps = [(run.label, aware.clicks - run.clicks) for run, _ in found[:-1]]
    verdicts = [
        f"{e.mean:+.0f} clicks ({e.low:+.0f} to {e.high:+.0f}) compared with *{label}*"
        + (" (not significant)" if e.low <= 0 <= e.high else "")
        for label, gap in gaps
        for e in [metrics.estimate(gap, family=len(gaps))]
    ]
    return "\n\n".join(
        [
            f"LinUCB on product features, {steps:,} rounds, {replications} replications, "
            "temperature .01. Predicted minus true click probability of the item in a slot, in "
            "percentage points, over the last rounds.",
            table(
                (
                    "slot treatment",
                    "slot 1",
                    "slot 2",
                    "slot 5",
                    "slot 10",
                    "clicks per replication",
                ),
                rows,
            ),
            f"*{aware.label}* earns {'; '.join(verdicts)}; paired, 95 % intervals that hold "
            "together (Bonferroni). Each agent chose its own slates, and prefers items that it overestimates, so the rows do not compare "
            "predictions of the same items.",
        ]
    )


def speed(steps: int = 5_000, replications: int = 8, repeats: int = 3) -> str:
    """Time three agents with all replications against a vectorised program with one."""
    e = read(
        {
            "simulator": PUBLISHED,
            "agents": list(AGENTS[:3]),
            "steps": steps,
            "replications": replications,
            "seed": 42,
            "defaults": 1,
        }
    )

    def run_all() -> None:
        lanes: list[Lane] = []
        for agent in range(3):
            lanes.append(make_lane(e, agent, simulator=lanes[0].simulator if lanes else None))
        for start in range(0, steps, CHUNK):
            for lane in lanes:
                lane.advance(min(CHUNK, steps - start))

    def ours() -> float:
        return stopwatch(run_all)

    def rival() -> float:
        return stopwatch(
            lambda: [ranking_vectorised.simulate(agent["kind"], steps) for agent in AGENTS[:3]]
        )

    with threadpool_limits(1):
        ours()  # compiled
        taken = interleave({"rival": rival, "ours": ours}, repeats)
    found = ratio(taken["ours"], taken["rival"])
    return "\n\n".join(
        [
            f"Seconds of processor time of one thread for {steps:,} rounds of popularity, neural "
            "greedy and neural click TS, set-up included. Our three agents share one simulator, "
            "as in every run in one process. The other program "
            "(`benchmarks/speed/ranking_vectorised.py`) runs one agent at a time and is written "
            "for this setting alone, with NumPy and torch: one forward pass for all candidates, "
            "a batched quadratic form, one pseudo-inverse per training, sparse gradients of the "
            "embeddings.",
            table(
                ("side", "replications", "seconds"),
                [
                    (
                        "other program",
                        "1",
                        f"{min(taken['rival']):.1f} to {max(taken['rival']):.1f}",
                    ),
                    (
                        "ours",
                        str(replications),
                        f"{min(taken['ours']):.1f} to {max(taken['ours']):.1f}",
                    ),
                ],
            ),
            f"Ours takes {found} times as long for {replications} replications as the other "
            f"program for one; a replication of ours takes {found.middle / replications:.2g} "
            "times as long. Target: at most 0.8 times "
            f"({'met' if found.middle <= 0.8 else '**not met**'}).",
        ]
    )


SIZES = (10_000, 100_000, 1_000_000)
TWO_STAGES: Params = {
    "kind": "ranking",
    "choice": "sigmoid",
    "temperature": 0.01,
    "intercept": 9.0,
    "retrieval": "nearest",
    "n_candidates": 300,
}


def scale(steps: int = 300, replications: int = 8, repeats: int = 5) -> str:
    """Measure time, recall, memory and the regret of each stage by size of the catalogue."""
    agents = LINEAR[1:3]
    lanes, taken, rows = {}, {}, []
    with threadpool_limits(1):
        for agent in agents:
            for n in SIZES:
                e = _two_stages(n, agent, steps, replications)
                lanes[agent["kind"], n] = make_lane(e, 0)
                # compiled, and the index built
                lanes[agent["kind"], n].advance(20)
            sides = {
                str(n): partial(_decisions, lanes[agent["kind"], n], steps // repeats)
                for n in SIZES
            }
            taken[agent["kind"]] = interleave(sides, repeats)
    for n in SIZES:
        found = retrieval.evaluate_retrieval(_two_stages(n, agents[0], steps, replications))
        assert found is not None
        lost = [_lost(_two_stages(n, agent, steps, replications)) for agent in agents]
        rows.append(
            (
                f"{n:,}",
                *(f"{1000 * np.median(taken[agent['kind']][str(n)]):.2f}" for agent in agents),
                f"{found.index_ms:.2f}",
                f"{found.exact_ms:.2f}",
                f"{100 * found.scanned:.0f} %",
                f"{100 * found.recall.mean:.1f} %",
                f"{found.index_bytes / 2**20:.1f} + {found.vector_bytes / 2**20:.0f}",
                f"{found.regret_from_index.mean:.4f}",
                *(f"{e.mean:.4f}" for e in lost),
                f"{found.best:.4f}",
            )
        )
    labels = [lane.agent.title for (_, n), lane in lanes.items() if n == SIZES[0]]
    header = (
        "items",
        *(f"{label}, ms" for label in labels),
        "of which search, ms",
        "exact search, ms",
        "scanned",
        "recall",
        "index + vectors, MiB",
        "regret of the index",
        *(f"regret of {label}" for label in labels),
        "best slate",
    )
    growth = [ratio(times[str(SIZES[-1])], times[str(SIZES[0])]) for times in taken.values()]
    times = "; ".join(f"{label} {found}" for label, found in zip(labels, growth, strict=True))
    met = "met" if max(found.middle for found in growth) <= 3 else "**not met**"
    return "\n\n".join(
        [
            f"{TWO_STAGES['n_candidates']} candidates from the index (faiss "
            f"{version('faiss-cpu')}) with default parameters, {replications} replications "
            "together; milliseconds of processor time per decision (simulator, retrieval, agent, "
            "learning) and per search. Regret is in expected clicks per decision; that of an "
            f"agent is relative to the best slate of its candidates, over its first {steps} "
            "decisions.",
            table(header, rows),
            f"Time of a decision among {SIZES[-1]:,} items relative to {SIZES[0]:,} items: "
            f"{times}. Target: at most 3 times ({met}).",
        ]
    )


def _two_stages(n: int, agent: Params, steps: int, replications: int) -> Experiment:
    data = {
        "simulator": {**TWO_STAGES, "n_items": n},
        "agents": [agent],
        "steps": steps,
        "replications": replications,
    }
    return read({**data, "defaults": 1})


def _decisions(lane: Lane, steps: int) -> float:
    """Measure the seconds of processor time per decision."""
    return stopwatch(lambda: lane.advance(steps)) / (steps * lane.rows)


def _lost(e: Experiment) -> Estimate:
    """Estimate the regret of an agent relative to the best slate of its candidates, per
    decision.
    """
    with threadpool_limits(1):
        trace = make_lane(e, 0).advance(e.steps)
    return metrics.estimate((trace.best_value - trace.value).mean(axis=0))


SECTIONS: dict[str, tuple[str, Callable[..., str]]] = {
    "published": ("As published", published),
    "products": ("As published, with product features", products),
    "learnable": ("A learnable setting", learnable),
    "why": ("Why the published network hardly learns", why),
    "position": ("Effect of position bias", position),
    "speed": ("Speed", speed),
    "scale": ("Two stages at scale", scale),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write one section, or all, into the report."""
    report("benchmarks.reproduction.ranking", OUT, SECTIONS, arguments)


if __name__ == "__main__":
    main()
