"""Evaluate the first stage of a two-stage recommender by itself: recall, cost, and the regret that
it causes.

An agent's regret is measured against the best slate of the candidates it was given.
`evaluate_retrieval` measures what the approximate index loses before that, against exact search on
the vectors that agents see and on the true ones."""

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
from bandits.results import metrics, words
from bandits.results.metrics import Estimate
from bandits.simulators.ranking import Ranking

# visitors evaluated
USERS = 200
# visitors per search, as in a run with that many replications
BATCH = 8


class RetrievalReport(NamedTuple):
    """Recall, cost and regret of one approximate index in its simulator.

    Attributes
    ----------
    users : int
        Visitors evaluated: the first ones of the experiment.
    recall : Estimate
        Share of the exactly retrieved candidates that the index finds.
    scanned : float
        Share of the catalogue whose codes a search compares.
    index_ms, exact_ms : float
        Processor time per search in milliseconds.
    index_bytes, vector_bytes : int
        Memory of the index, and of the item vectors that agents see.
    best : float
        Expected reward of the best slate of the whole catalogue, by the true vectors.
    regret_from_index, regret_from_noise : Estimate
        Regret per decision that retrieval causes. Index: best slate of the exactly retrieved
        candidates minus that of those the index found. Noise: best slate of the whole catalogue
        minus that of the exactly retrieved candidates.
    """

    users: int
    recall: Estimate
    scanned: float
    index_ms: float
    exact_ms: float
    index_bytes: int
    vector_bytes: int
    best: float
    regret_from_index: Estimate
    regret_from_noise: Estimate


def evaluate_retrieval(experiment: Experiment, users: int = USERS) -> RetrievalReport | None:
    """Compare the index with exact search for some hundred visitors of an experiment.

    None without an index.

    In the softmax click model, the probability of a click is normalised over the truly nearest
    candidates in all comparisons, so that retrieving weak competitors does not raise it."""
    p: Any = experiment.simulator
    if not isinstance(p, Ranking.Params) or p.retrieval != "nearest":
        return None
    R = min(experiment.replications, BATCH)
    simulator = Ranking(p, Streams(experiment.seed, range(R)))
    visitors = [simulator.visitors(step) for step in range(-(-users // R))]
    with threadpool_limits(1):
        # compiled before it is timed
        simulator.retrieve(visitors[0], exact=False)
        index_ms, found = _timed(lambda batch: simulator.retrieve(batch, exact=False), visitors)
        exact_ms, exact = _timed(lambda batch: simulator.retrieve(batch, exact=True), visitors)
        true = (
            [simulator.retrieve(batch, exact=True, observed=False) for batch in visitors]
            if p.noise
            else exact
        )
        scanned = np.mean([simulator.scanned(batch).mean() for batch in visitors]) / p.n_items

    def best(retrieved: list[IntArray]) -> FloatArray:
        groups = zip(visitors, retrieved, true, strict=True)
        return np.concatenate(
            [simulator.best_value(batch, items, among) for batch, items, among in groups]
        )

    of_all, of_exact, of_found = best(true), best(exact), best(found)
    hits = [
        np.isin(expected, actual).mean()
        for a, b in zip(exact, found, strict=True)
        for expected, actual in zip(a, b, strict=True)
    ]
    return RetrievalReport(
        users=len(hits),
        recall=metrics.estimate(np.array(hits)),
        scanned=float(scanned),
        index_ms=index_ms,
        exact_ms=exact_ms,
        index_bytes=sum(index.bytes for index in simulator.shared.indexes),
        vector_bytes=simulator.observed_items.nbytes,
        best=float(of_all.mean()),
        regret_from_index=metrics.estimate(of_exact - of_found),
        regret_from_noise=metrics.estimate(of_all - of_exact),
    )


def _timed(
    search: Callable[[IntArray], IntArray], visitors: list[IntArray]
) -> tuple[float, list[IntArray]]:
    """Search for all visitors; return milliseconds per visitor and the results."""
    began = time.thread_time()
    found = [search(batch) for batch in visitors]
    return 1000 * (time.thread_time() - began) / sum(map(len, visitors)), found


def agent_regret(history: History) -> Estimate:
    """Compute an agent's regret per decision against the best slate of the candidates it
    was given.
    """
    lost = metrics.total(history, "best_value") - metrics.total(history, "value")
    return metrics.estimate((lost / max(int(history.grid[history.size - 1]), 1))[history.alive])


def summary_rows(
    report: RetrievalReport, histories: dict[str, History] | None = None
) -> list[tuple[str, str]]:
    """Format a report as rows of name and value, with each agent's own regret beside that of
    retrieval.
    """
    r = report
    rows = [
        (
            "Recall",
            f"{words.cell(r.recall, 'share')} of the exactly retrieved candidates; {r.users:,} "
            "visitors",
        ),
        ("Catalogue scanned", f"{100 * r.scanned:.1f} %"),
        ("Search time", f"{r.index_ms:.2f} ms; exact search {r.exact_ms:.2f} ms"),
        (
            "Memory",
            f"{r.index_bytes / 2**20:,.1f} MiB; item vectors {r.vector_bytes / 2**20:,.1f} MiB",
        ),
        (
            "Regret of the index",
            f"{words.cell(r.regret_from_index, 'rate')} per decision; best possible reward "
            f"{r.best:.4f}",
        ),
    ]
    if r.regret_from_noise.mean:
        rows.append(
            ("Regret of embedding noise", f"{words.cell(r.regret_from_noise, 'rate')} per decision")
        )
    for label, history in (histories or {}).items():
        if history.step and history.alive.any():
            rows.append(
                (
                    f"Regret of {label}",
                    f"{words.cell(agent_regret(history), 'rate')} per decision, among candidates",
                )
            )
    return rows
