"""Who is shown what: the share of each category among what each user segment was shown, as maps
beside that of the optimal choice.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.experiment import read
from bandits.results.figures.parts import drawing
from bandits.results.figures.style import RATE, Spec
from bandits.results.items.demand import by_rows, demand, without_agents
from bandits.results.run import Run

BEST = "Optimal choice"


def shown(result: Run) -> dict[str, FloatArray]:
    """Compute the shares by agent, float64 (G, C): G segments by C categories, NaN in the row of a
    segment without visits.

    Those of the optimal choice over the whole run come first, as `BEST`, where they are known.
    Empty where the simulator names no segments, or no categories, or where items are too many to be
    counted by segment.
    """
    simulator = result.experiment.simulator_class()
    if not (simulator.segment_names() and simulator.category_names()):
        return {}
    categories, found = _categories(without_agents(result.experiment)), {}
    for label, history in result.histories.items():
        if history.segments is None or not history.step or not history.alive.any():
            continue
        counts = history.segments.counts[history.segments.reached(history.step) - 1]
        alive = zip(counts[history.alive], categories[history.alive], strict=True)
        C = len(simulator.category_names())
        found[label] = by_rows(
            np.sum([own @ (of[:, None] == np.arange(C)) for own, of in alive], axis=0)
        )
    wanted = demand(result.experiment) if found else None
    return found if wanted is None or wanted.best is None else {BEST: wanted.best} | found


@lru_cache(maxsize=4)
def _categories(experiment: str) -> IntArray:
    """Return the category of each item, int64 (R, K)."""
    e = read(experiment)
    streams = Streams(e.seed, range(e.replications))
    return e.simulator_class()(e.simulator, streams).categories()


def maps(result: Run) -> list[Spec]:
    """Draw the shares as maps: that of the optimal choice, then each agent's; none without
    shares.
    """
    simulator = result.experiment.simulator_class()
    segments, categories = simulator.segment_names(), simulator.category_names()
    return [
        _map(label, share, segments, categories, result.experiment.names.get(label, label))
        for label, share in shown(result).items()
    ]


def _map(
    label: str, share: FloatArray, segments: list[str], categories: list[str], title: str
) -> Spec:
    cells = {
        "type": "heatmap",
        "name": label.replace("<", "&lt;"),
        "x": categories,
        "y": segments,
        "z": share,
        "zmin": 0,
        "zmax": 1,
        "xgap": 1,
        "ygap": 1,
        "colorscale": "Cividis",
        # each cell states its share
        "showscale": False,
        "texttemplate": "%{z:.0%}",
        "hovertemplate": f"%{{y}}, %{{x}}: %{{z:{RATE}}}<extra></extra>",
    }
    whose = "the best choices for it" if label == BEST else "what the agent showed it so far"
    note = f"Share of each category in {whose}; each row sums to 100 %."
    y = {"autorange": "reversed", "type": "category", "showgrid": False, "automargin": True}
    return drawing([cells], title, note, x={"showgrid": False}, y=y)
