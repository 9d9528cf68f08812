"""Slates of ten, the source's figures beside ours, and what was learned: ``python -m benchmarks.reproduction.ranking``.

Writes sections of docs/RANKING.md; together they take about an hour of two cores.
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

from bandits import Experiment
from bandits.base.types import FloatArray, IntArray
from bandits.diagnostics import retrieval
from bandits.experiments.lane import Lane
from bandits.experiments.presets import presets
from bandits.experiments.race import make_lane
from bandits.results import metrics
from bandits.results.metrics import Estimate
from benchmarks.measure import interleave, ratio, report, stopwatch, table
from benchmarks.speed import ranking_textbook

OUT = Path(__file__).parents[2] / "docs" / "RANKING.md"
Params = dict[str, Any]

# average regret after 5,000 rounds of one run each, as the source tells it
SOURCE = {"Popularity": 0.0528, "Neural greedy": 0.0507, "Neural click TS": 0.0455}
PUBLISHED: Params = {
    "kind": "ranking", "choice": "catalogue", "temperature": 0.001, "features": "concatenation", "constant": False,
}  # fmt: skip
LEARNABLE: Params = {"kind": "ranking", "choice": "candidates", "temperature": 0.005}
GREEDY: Params = {
    "kind": "neural_greedy", "hidden": [32, 16], "optimiser": "sgd", "loss": "log", "every": 32, "updates": 1,
    "batch": 32,
}  # fmt: skip
THOMPSON: Params = {"kind": "neural_click_ts", "vectors": "tuned"}
AGENTS: tuple[Params, ...] = (
    {"kind": "popularity"}, GREEDY, THOMPSON, {**THOMPSON, "label": "Neural click greedy", "sigma2": 0},
    {"kind": "random"}, {"kind": "oracle"},
)  # fmt: skip
LINEAR: tuple[Params, ...] = (
    {"kind": "linucb", "sharing": "shared", "alpha": 0.3, "ridge": 1e-4, "position": "aware"},
    {"kind": "lints", "sharing": "shared", "sigma2": 0.01, "ridge": 1e-3, "position": "aware"},
    {"kind": "logistic_ts", "sharing": "shared", "ridge": 1e-4, "sigma2": 0.3, "refit": 0, "position": "aware"},
    {"kind": "sgd_ts", "position": "aware", "ridge": 1e-4, "radius": 1000, "learning_rate": 100.0},
    {"kind": "neural_greedy", "every": 50},
    {"kind": "neural_click_ts"},
    {"kind": "popularity"},
    {"kind": "random"},
)


class Run(NamedTuple):
    """Sums over a race, (R,) each."""

    label: str
    clicks: FloatArray
    value: FloatArray
    best: FloatArray
    random: FloatArray

    @property
    def regret(self) -> FloatArray:
        """Pseudo-regret as a share of the optimum."""
        return (self.best - self.value) / self.best


def race(agent: Params, world: Params, steps: int, replications: int, seed: int = 42) -> Run:
    """One agent in one world."""
    data = {"simulator": world, "agents": [agent], "steps": steps, "replications": replications, "seed": seed}
    e = Experiment.model_validate(data)
    with threadpool_limits(1):
        lane = make_lane(e, 0)
        lane.agent.prepare()
        trace = lane.advance(steps)
    columns = (trace.rewards, trace.value, trace.best_value, trace.random_value)
    return Run(e.labels[0], *(column.sum(axis=0) for column in columns))


def races(agents: Sequence[Params], world: Params, steps: int, replications: int) -> list[Run]:
    """All of them, two at a time, on the same users with the same luck."""
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(partial(race, world=world, steps=steps, replications=replications), agents))


def told(estimate: Estimate, digits: int = 4) -> str:
    """A mean and its interval."""
    return f"{estimate.mean:.{digits}f} ({estimate.low:.{digits}f} to {estimate.high:.{digits}f})"


def published(steps: int = 5_000, replications: int = 16) -> str:
    """As published: nobody learns anything, and all three figures are luck."""
    found = races(AGENTS, PUBLISHED, steps, replications)
    rows = []
    for run in found:
        theirs = SOURCE.get(run.label)
        lost = metrics.estimate((run.best - run.clicks) / steps), metrics.estimate((run.best - run.value) / steps)
        rows.append((
            run.label, "–" if theirs is None else f"{theirs:.4f}",
            *map(told, lost), f"{run.clicks.mean():.1f}",
        ))  # fmt: skip
    _, other, thompson, greedy, random, oracle = found
    twin, rival = (_against(thompson, run) for run in (greedy, other))
    return "\n\n".join([
        f"{steps:,} rounds, {replications} runs of each agent. Regret is the optimum's expected value less the clicks "
        "earned (as the source plots it), and less the value of what was shown, which is free of luck; per round.",
        table(("agent", "the source", "less clicks earned", "less value shown", "clicks a run"), rows),
        f"Does Thompson sampling beat greedy? The clean rival is *{greedy.label}*: the same network with sigma^2 = 0, "
        f"so that nothing but the draw differs. Paired, a run of {steps:,} rounds: {twin}. Beside *{other.label}*, "
        f"which has another head, a replay, and vectors that stay as they are: {rival}. The optimum clicks "
        f"{oracle.clicks.mean():.0f} times, a random slate {random.clicks.mean():.1f} times.",
    ])  # fmt: skip


def _against(thompson: Run, greedy: Run) -> str:
    """What a draw is worth in clicks, and the most that the interval still allows."""
    told = []
    for name, what in (("clicks", "clicks"), ("value", "expected clicks")):
        e = metrics.estimate(getattr(thompson, name) - getattr(greedy, name))
        alike = f"they cannot be told apart, and {max(-e.low, e.high):.2f} is the most that they may differ by"
        answer = alike if e.low <= 0 <= e.high else f"{'Thompson' if e.mean > 0 else 'greedy'} wins"
        told.append(f"{e.mean:+.2f} {what} ({e.low:+.2f} to {e.high:+.2f}), {answer}")
    return "; ".join(told)


def _shares(agents: Sequence[Params], world: Params, steps: int, replications: int) -> str:
    return _table(races(agents, world, steps, replications), steps, replications)


def _table(found: Sequence[Run], steps: int, replications: int) -> str:
    rows = [
        (run.label, told(metrics.estimate(100 * run.regret), 1), f"{run.clicks.mean():,.0f}", told(_learned(run), 1))
        for run in found
    ]
    best = min(found, key=lambda run: float(run.regret.mean()))
    thompson = next(run for run in found if run.label == "Neural click TS")
    gap = metrics.estimate(best.regret / thompson.regret)
    return "\n\n".join([
        f"{steps:,} rounds, {replications} runs. Pseudo-regret in per cent of what the optimum earns, and how far from "
        "random (0) to the oracle (100) each came.",
        table(("agent", "regret, % of the optimum", "clicks a run", "of the way to the oracle, %"), rows),
        f"{best.label} has {told(gap, 3)} times the regret of Neural click TS, paired.",
    ])  # fmt: skip


def _learned(run: Run) -> Estimate:
    return metrics.estimate(100 * (run.value - run.random) / (run.best - run.random))


def learnable(steps: int = 20_000, replications: int = 8) -> str:
    """What can be learned is learned by whoever sees products of the vectors."""
    return "\n\n".join([
        _shares(LINEAR, LEARNABLE, steps, replications),
        "Not all were tuned alike: linear agents were given a ridge fit for features this small, SGD-TS a learning "
        "rate; Neural click TS has its published values. *Why the published network hardly begins* tells what LinUCB "
        "comes to with its usual values, and the network with others.",
    ])  # fmt: skip


def products(steps: int = 10_000, replications: int = 4) -> str:
    """The published world for twice as long, with linear agents on products."""
    found = races(LINEAR, {**PUBLISHED, "features": "product", "constant": True}, steps, replications)
    better = [run.label for run in found if _learned(run).low > 0]
    verdict = "nobody"
    if better:
        verdict = f"{', '.join(better)}. So the published world can be learned, though not from two vectors one after"
        verdict += " the other (*As published*), but from their products"
    return "\n\n".join([
        _table(found, steps, replications),
        f"Better than random, as far as each 95 % interval can tell: {verdict}. A random slate clicks "
        f"{found[-1].random.mean():.1f} times in all {steps:,} rounds, the optimum {found[-1].best.mean():.0f} times.",
    ])  # fmt: skip


SLOW: Params = {"kind": "neural_click_ts", "label": "Neural click TS rate .001"}
WHY: tuple[Params, ...] = (
    SLOW, {**SLOW, "label": "Neural click TS rate .1", "learning_rate": 0.1},
    {**SLOW, "label": "Neural click TS rate 1", "learning_rate": 1.0},
    {"kind": "neural_greedy", "label": "Neural greedy with Adam and replay", "every": 50},
    {"kind": "linucb", "label": "LinUCB with usual values", "sharing": "shared", "position": "aware"},
    {**LINEAR[0], "label": "LinUCB with ridge 1e-4"},
)  # fmt: skip


class Mind(NamedTuple):
    """What an agent expects after a race.

    Attributes
    ----------
    run : Run
    product : float
        Root mean square of the products that it sees.
    apart, truly : float
        Standard deviation over candidates of the chance of a click: as it expects, and in truth.
    """

    run: Run
    product: float
    apart: float
    truly: float


def mind(agent: Params, steps: int, replications: int) -> Mind:
    """Race, and ask for what is expected of the candidates of one more round."""
    data = {"simulator": LEARNABLE, "agents": [agent], "steps": steps, "replications": replications}
    e = Experiment.model_validate(data)
    with threadpool_limits(1):
        lane = make_lane(e, 0)
        trace = lane.advance(steps)
        round = lane.simulator.round_at(steps)
        told = lane.agent.explain(round)
        truth = lane.simulator.probabilities(round)
    assert told.mean is not None
    mean = expit(told.mean) if told.logit else told.mean
    columns = (trace.rewards, trace.value, trace.best_value, trace.random_value)
    run = Run(e.labels[0], *(column.sum(axis=0) for column in columns))
    values = round.contexts.values[..., :-1]  # all but the constant
    return Mind(run, float((values**2).mean() ** 0.5), float(mean.std(axis=1).mean()), float(truth.std(axis=1).mean()))


def why(steps: int = 3_000, replications: int = 8) -> str:
    """One pass at a small rate on small numbers, beside the same network's other rates and other learners."""
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(partial(mind, steps=steps, replications=replications), WHY))
    rows = [
        (m.run.label, told(metrics.estimate(100 * m.run.regret), 1), f"{m.run.clicks.mean():,.0f}", f"{m.apart:.2g}")
        for m in found
    ]
    left = [f"{100 * m.run.regret.mean():.0f} %" for m in found]
    return "\n\n".join([
        f"The world of *Where taste can be learned*, {steps:,} rounds, {replications} runs.",
        table(("agent", "regret, % of the optimum", "clicks a run", "candidates apart by"), rows),
        f"Products of two vectors' numbers are about {found[0].product:.4f} (root mean square), and a gradient by a "
        "weight of the first layer is in proportion to them. One pass of plain descent at rate .001 therefore hardly "
        f"moves the network: afterwards it tells chances of candidates apart by {found[0].apart:.2g} (standard "
        f"deviation; in truth {found[0].truly:.2g}). No draw can mend that, as it is about a mean that says nothing, "
        f"and a thousand times the rate leaves {left[2]}; Adam, whose steps do not shrink with the gradient, and a "
        f"replay together leave {left[3]}, and LinUCB with its usual values {left[4]}.",
    ])  # fmt: skip


def by_slot(agent: Params, world: Params, steps: int, replications: int, last: int) -> tuple[Run, FloatArray]:
    """A race, and over its last rounds what the agent expects of the item in each slot less its true chance, (R, S)."""
    e = Experiment.model_validate({"simulator": world, "agents": [agent], "steps": steps, "replications": replications})
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
    sums = (np.concatenate([getattr(t, name) for t in traces]).sum(axis=0) for name in
            ("rewards", "value", "best_value", "random_value"))  # fmt: skip
    return Run(e.labels[0], *sums), off


def _positions(items: IntArray, shown: IntArray) -> IntArray:
    return (items[:, :, None] == shown[:, None, :]).argmax(axis=1)


def position(steps: int = 5_000, replications: int = 16) -> str:
    """The same learner, three ways to take the slots."""
    e = presets()["position"].experiment.model_dump(mode="json")
    with ProcessPoolExecutor(2) as pool:
        work = partial(by_slot, world=e["simulator"], steps=steps, replications=replications, last=min(500, steps // 4))
        found = list(pool.map(work, e["agents"]))
    rows = []
    for run, off in found:
        slots = [metrics.estimate(100 * off[:, k]) for k in (0, 1, 4, 9)]
        rows.append((run.label, *(told(slot, 1) for slot in slots), f"{run.clicks.mean():,.0f}"))
    aware = found[-1][0]
    gaps = [(run.label, aware.clicks - run.clicks) for run, _ in found[:-1]]
    adjusted = metrics.holm([metrics.paired_test(gap)[1] for _, gap in gaps])
    verdicts = [
        f"{e.mean:+.0f} clicks ({e.low:+.0f} to {e.high:+.0f}) beside *{label}*"
        + (": nil, as far as can be told" if p >= 0.05 else "")
        for (label, gap), p in zip(gaps, adjusted, strict=True)
        for e in [metrics.estimate(gap)]
    ]
    return "\n\n".join([
        f"LinUCB on products, {steps:,} rounds, {replications} runs, temperature .01. What it expects of the item in a "
        "slot less that item's true chance, in points of 100, over the last rounds.",
        table(("learner", "slot 1", "slot 2", "slot 5", "slot 10", "clicks a run"), rows),
        f"*{aware.label}* earns {'; '.join(verdicts)}; paired, judged after Holm's correction for two comparisons (the "
        "intervals are of 95 % each). A slot holds what its learner chose for it, and chose again where it hoped too "
        "much: columns tell of each learner's own slates, not of the same items.",
    ])  # fmt: skip


def speed(steps: int = 5_000, replications: int = 8, repeats: int = 3) -> str:
    """All three agents at all replications, against the textbook's loop for one."""
    rounds = min(steps, 250)  # of the textbook; every round takes it as long as any other

    def ours() -> float:
        return stopwatch(lambda: [race(agent, PUBLISHED, steps, replications) for agent in AGENTS[:3]])

    def textbook() -> float:
        kinds = [agent["kind"] for agent in AGENTS[:3]]
        return stopwatch(lambda: [ranking_textbook.race(kind, rounds) for kind in kinds]) * steps / rounds

    with threadpool_limits(1):
        ours()  # compiled
        taken = interleave({"textbook": textbook, "ours": ours}, repeats)
    found = ratio(taken["textbook"], taken["ours"])
    return "\n\n".join([
        f"Seconds of processor time for {steps:,} rounds of popularity, neural greedy and neural click TS. The "
        f"textbook's loop (`benchmarks/ranking_textbook.py`) was timed over {rounds} rounds of each.",
        table(
            ("side", "replications", "seconds"),
            [("textbook", "1", f"{min(taken['textbook']):.0f} to {max(taken['textbook']):.0f}"),
             ("ours", str(replications), f"{min(taken['ours']):.0f} to {max(taken['ours']):.0f}")],
        ),
        f"The textbook needs {found} times as long for one replication as we for {replications}.",
    ])  # fmt: skip


SIZES = (10_000, 100_000, 1_000_000)
TWO_STAGES: Params = {
    "kind": "ranking", "choice": "sigmoid", "temperature": 0.01, "intercept": 9.0, "retrieval": "nearest",
    "n_candidates": 300,
}  # fmt: skip


def scale(steps: int = 300, replications: int = 8, repeats: int = 5) -> str:
    """Two stages against the size of the catalogue: time, recall, memory, and the regret that each stage causes."""
    agents = LINEAR[1:3]
    lanes, taken, rows = {}, {}, []
    with threadpool_limits(1):
        for agent in agents:
            for n in SIZES:
                e = _two_stages(n, agent, steps, replications)
                lanes[agent["kind"], n] = make_lane(e, 0)
                lanes[agent["kind"], n].advance(20)  # compiled, and the index built
            sides = {str(n): partial(_decisions, lanes[agent["kind"], n], steps // repeats) for n in SIZES}
            taken[agent["kind"]] = interleave(sides, repeats)
    for n in SIZES:
        found = retrieval.evaluate_retrieval(_two_stages(n, agents[0], steps, replications))
        assert found is not None
        lost = [_lost(_two_stages(n, agent, steps, replications)) for agent in agents]
        rows.append((
            f"{n:,}", *(f"{1000 * np.median(taken[agent['kind']][str(n)]):.2f}" for agent in agents),
            f"{found.index_ms:.2f}", f"{found.exact_ms:.2f}", f"{100 * found.scanned:.0f} %",
            f"{100 * found.recall.mean:.1f} %", f"{found.index_bytes / 2**20:.1f} + {found.vector_bytes / 2**20:.0f}",
            f"{found.regret_from_index.mean:.4f}", *(f"{e.mean:.4f}" for e in lost), f"{found.best:.4f}",
        ))  # fmt: skip
    labels = [lane.agent.title for (_, n), lane in lanes.items() if n == SIZES[0]]
    header = (
        "items", *(f"{label}, ms" for label in labels), "of which search, ms", "exact search, ms", "looked at",
        "recall", "index + vectors, MiB", "lost to the index", *(f"lost by {label}" for label in labels), "best slate",
    )  # fmt: skip
    growth = [ratio(times[str(SIZES[-1])], times[str(SIZES[0])]) for times in taken.values()]
    times = "; ".join(f"{label} {found}" for label, found in zip(labels, growth, strict=True))
    met = "met" if max(found.middle for found in growth) <= 3 else "**not met**"
    return "\n\n".join([
        f"{TWO_STAGES['n_candidates']} candidates by the index (faiss {version('faiss-cpu')}) at its usual breadth, "
        f"{replications} runs side by side; milliseconds of processor time per decision (world, retrieval, agent, "
        f"learning) and per search. What is lost is expected clicks per decision, by an agent over its first {steps} "
        "decisions among the candidates that it is given.",
        table(header, rows),
        f"A decision among {SIZES[-1]:,} items takes, as against {SIZES[0]:,}: {times} times as long (at most 3 is "
        f"asked for: {met}).",
    ])  # fmt: skip


def _two_stages(n: int, agent: Params, steps: int, replications: int) -> Experiment:
    data = {"simulator": {**TWO_STAGES, "n_items": n}, "agents": [agent], "steps": steps, "replications": replications}
    return Experiment.model_validate(data)


def _decisions(lane: Lane, steps: int) -> float:
    """Seconds of processor time per decision."""
    return stopwatch(lambda: lane.advance(steps)) / (steps * lane.rows)


def _lost(e: Experiment) -> Estimate:
    """Expected clicks per decision that the first agent loses among its candidates."""
    with threadpool_limits(1):
        trace = make_lane(e, 0).advance(e.steps)
    return metrics.estimate((trace.best_value - trace.value).mean(axis=0))


SECTIONS: dict[str, tuple[str, Callable[..., str]]] = {
    "published": ("As published", published),
    "products": ("As published, longer, and with products", products),
    "learnable": ("Where taste can be learned", learnable),
    "why": ("Why the published network hardly begins", why),
    "position": ("What position bias does", position),
    "speed": ("Speed", speed),
    "scale": ("Two stages at scale", scale),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make one section, or all, and put it into the report."""
    report("benchmarks.reproduction.ranking", OUT, SECTIONS, arguments)


if __name__ == "__main__":
    main()
