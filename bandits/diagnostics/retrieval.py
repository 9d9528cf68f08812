"""What the first of two stages is worth: recall, cost, and the regret that it causes, each by itself.

An agent's regret is counted against the best slate of the candidates it was given. What it was not given is the
retriever's fault: `of` compares with exact search, by the vectors that agents see and by the true ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.metrics import Estimate
from bandits.simulators.ranking import Ranking

USERS = 200  # visitors that are asked about
TOGETHER = 8  # of them at a time, as in a run of so many replications


class Audit(NamedTuple):
    """One index in its world.

    Attributes
    ----------
    users : int
        Visitors asked about, the first of the experiment's own.
    recall : Estimate
        Share of the exactly retrieved candidates that the index finds.
    scanned : float
        Share of the catalogue whose codes a search looks at.
    index_ms, exact_ms : float
        Processor time of one search.
    index_bytes, vector_bytes : int
        What the index holds, and the vectors that agents see of the items.
    best : float
        Expected reward of the best slate of the whole catalogue, by the true vectors.
    lost_to_index, lost_to_noise : Estimate
        Regret that the retriever causes, per decision. To the index: best slate of the exactly retrieved less that of
        those it found. To noise: best slate of the whole catalogue less that of the exactly retrieved.
    """

    users: int
    recall: Estimate
    scanned: float
    index_ms: float
    exact_ms: float
    index_bytes: int
    vector_bytes: int
    best: float
    lost_to_index: Estimate
    lost_to_noise: Estimate


def of(experiment: Experiment, users: int = USERS) -> Audit | None:
    """Ask some hundred visitors of an experiment; None where there is no index.

    A click competes with the truly nearest candidates in all comparisons, so that who retrieves weak competitors
    gains nothing by it.
    """
    p: Any = experiment.simulator
    if not isinstance(p, Ranking.Params) or p.retrieval != "nearest":
        return None
    R = min(experiment.replications, TOGETHER)
    world = Ranking(p, Streams(experiment.seed, range(R)))
    visitors = [world.visitors(step) for step in range(-(-users // R))]
    with threadpool_limits(1):
        world.retrieve(visitors[0], exact=False)  # compiled
        index_ms, found = _timed(lambda who: world.retrieve(who, exact=False), visitors)
        exact_ms, exact = _timed(lambda who: world.retrieve(who, exact=True), visitors)
        true = [world.retrieve(who, exact=True, seen=False) for who in visitors] if p.noise else exact
        scanned = np.mean([world.scanned(who).mean() for who in visitors]) / p.n_items

    def best(retrieved: list[IntArray]) -> FloatArray:
        asked = zip(visitors, retrieved, true, strict=True)
        return np.concatenate([world.best_value(who, items, among) for who, items, among in asked])

    whole, of_exact, of_found = best(true), best(exact), best(found)
    hits = [np.isin(right, mine).mean() for a, b in zip(exact, found, strict=True)
            for right, mine in zip(a, b, strict=True)]  # fmt: skip
    return Audit(
        users=len(hits),
        recall=metrics.estimate(np.array(hits)),
        scanned=float(scanned),
        index_ms=index_ms,
        exact_ms=exact_ms,
        index_bytes=sum(index.bytes for index in world.shared.indexes),
        vector_bytes=world.seen_items.nbytes,
        best=float(whole.mean()),
        lost_to_index=metrics.estimate(of_exact - of_found),
        lost_to_noise=metrics.estimate(whole - of_exact),
    )


def _timed(search: Callable[[IntArray], IntArray], visitors: list[IntArray]) -> tuple[float, list[IntArray]]:
    """Milliseconds a visitor, and what was found."""
    began = time.thread_time()
    found = [search(who) for who in visitors]
    return 1000 * (time.thread_time() - began) / sum(map(len, visitors)), found


def agent_regret(history: History) -> Estimate:
    """What an agent loses per decision against the best slate of the candidates it was given."""
    lost = metrics.total(history, "best_value") - metrics.total(history, "value")
    return metrics.estimate((lost / max(int(history.grid[history.size - 1]), 1))[history.alive])


def lines(audit: Audit, histories: dict[str, History] | None = None) -> list[tuple[str, str]]:
    """What was found, line by line: what, and how much; with the agents' own regret beside the retriever's."""
    found = [
        ("Recall", f"{_told(audit.recall, 100, 1, ' %')} of what exact search retrieves; {audit.users:,} visitors"),
        ("Looked at", f"{100 * audit.scanned:.1f} % of the catalogue"),
        ("Time of a search", f"{audit.index_ms:.2f} ms; exact search {audit.exact_ms:.2f} ms"),
        ("Memory", f"{audit.index_bytes / 2**20:,.1f} MiB; the items' vectors {audit.vector_bytes / 2**20:,.1f} MiB"),
        ("Lost to the index", f"{_told(audit.lost_to_index)} per decision, of {audit.best:.4f} that could be earned"),
    ]
    if audit.lost_to_noise.mean:
        found.append(("Lost to noise in the vectors", f"{_told(audit.lost_to_noise)} per decision"))
    for label, history in (histories or {}).items():
        if history.step and history.alive.any():
            found.append((f"Lost by {label}", f"{_told(agent_regret(history))} per decision, among its candidates"))
    return found


def _told(e: Estimate, times: float = 1, digits: int = 4, unit: str = "") -> str:
    mean, low, high = (f"{times * value + 0.0:.{digits}f}" for value in e)
    return f"{mean}{unit} ({low} to {high})" if np.isfinite([e.low, e.high]).all() else mean + unit
