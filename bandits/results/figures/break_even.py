"""Break-even on the curves of cumulative clicks: where the leading agent overtakes the others."""

from __future__ import annotations

import numpy as np

from bandits.base.formatting import count
from bandits.results import metrics, words
from bandits.results.comparison.paired_tests import Comparison, compare, differs, family_of
from bandits.results.metrics import Estimate
from bandits.results.run import Run, headline

from .parts import error_bars, points
from .style import Spec, styles


def overtaken(result: Run, leader: str) -> dict[str, tuple[int, Comparison]]:
    """Return the break-even step of an agent with each agent that it overtook, by label, in the
    order of the steps.
    """
    own, family = result.histories[leader], family_of(result.experiment)
    pairs = {
        label: compare(own, history, family=family)
        for label, history in result.histories.items()
        if label != leader
    }
    found = {
        label: (pair.break_even_step, pair)
        for label, pair in pairs.items()
        if pair.break_even_step is not None
        and pair.overtook
        and differs(pair.difference, pair.p_value)
    }
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


def marks(result: Run) -> tuple[list[Spec], str]:
    """Mark each break-even on the curve of the leading agent, with its interval, in the colour of
    the agent that was overtaken; and state them in a sentence.

    The oracle does not lead. Nothing where a log was replayed, in which nothing is paired.
    """
    best = headline(result.experiment, result.histories)
    if best is None or result.experiment.offers("replay"):
        return [], ""
    looks, names = styles(result.experiment), result.experiment.names
    curve = metrics.cumulative_clicks(result.histories[best.label])
    drawn, stated = [], []
    for label, (step, pair) in overtaken(result, best.label).items():
        low, high = pair.break_even_interval or (step, step)
        color = looks[label].color
        text = count(step) + words.bracket(Estimate(step, low, high), "count") * (low < high)
        stated.append(f"{names[label]}, {text}")
        more = {
            "legendgroup": label,
            "showlegend": False,
            "hovertemplate": f"ahead of {label} from step {text}".replace("<", "&lt;")
            + "<extra></extra>",
            "error_x": error_bars([high - step], color, below=[step - low], width=6),
        }
        y = curve.mid[np.searchsorted(curve.x, step)]
        drawn.append(
            points("break-even", np.array([step]), np.array([y]), color, 10, "diamond", **more)
        )
    if not drawn:
        return [], ""
    return drawn, (
        f" Diamonds: break-even, the step from which {names[best.label]} stays ahead of an agent "
        f"that it trailed: {'; '.join(stated)}. Bars: 95 % confidence interval."
    )
