"""Figures of guards and monitors: alarms over time, and how exposure is spread over arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from bandits.base.formatting import count, percent
from bandits.base.types import FloatArray
from bandits.results import metrics
from bandits.results.change.marks import mark
from bandits.results.figures.parts import axis, drawing, error_bars, line, points
from bandits.results.figures.style import STEP, Spec, log_ticks, styles
from bandits.results.items.fairness import less_shown_half
from bandits.results.run import Run
from bandits.simulators.base import SimulatorParams

from .alarm import Alarm
from .false_alarms import score
from .registry import CHANGES, REGISTRY

BINS = 40  # of the steps


def timeline(result: Run, found: Mapping[str, Sequence[Alarm]], rows: int) -> Spec:
    """Draw the alarms of each agent by monitor and step.

    Larger where more replications rang at about this step.
    """
    e, looks = result.experiment, styles(result.experiment)
    rang = {alarm.monitor for alarms in found.values() for alarm in alarms}
    kinds = [kind for kind in REGISTRY if kind in rang]
    titles = {kind: REGISTRY[kind].title for kind in kinds}
    width, data = max(1, e.steps // BINS), []
    agents = [label for label in e.labels if label in found]
    for i, label in enumerate(agents):
        places: dict[tuple[str, int], list[Alarm]] = {}
        for alarm in found[label]:
            places.setdefault((alarm.monitor, alarm.step // width), []).append(alarm)
        share = np.array(
            [len({alarm.row for alarm in alarms}) / rows for alarms in places.values()]
        )
        # agents side by side
        offset = 0.5 * ((i + 0.5) / len(agents) - 0.5)
        x = np.array([np.mean([alarm.step for alarm in alarms]) for alarms in places.values()])
        y = np.array([kinds.index(kind) + offset for kind, _ in places])
        texts = [
            f"{titles[kind]}: {percent(s)} of the replications"
            for (kind, _), s in zip(places, share, strict=True)
        ]
        hover = f"%{{text}}<br>near step %{{x:{STEP}}}<extra>%{{fullData.name}}</extra>"
        look = {"size": 5 + 9 * np.sqrt(share), "cliponaxis": False}
        data.append(
            points(label, x, y, looks[label].color, **look, text=texts, hovertemplate=hover)
        )
    spec = drawing(
        data,
        "Alarms",
        x=axis("step", hoverformat=STEP, range=[0, e.steps]),
        y=_names(list(titles.values()), down=False),
        note=(
            "Each point is one monitor and agent; larger where more replications raised an alarm "
            "at about this step."
        ),
        caption="Larger: in more replications",
        legend=True,
    )
    return mark(spec, e, (0, max(result.histories[label].step for label in agents)))


def exposure(result: Run) -> Spec:
    """Draw the share of the shows of each arm, from the most to the least shown one, mean over
    replications.
    """
    looks, data, shares = styles(result.experiment), [], []
    for label, history in result.histories.items():
        shown = history.counts[history.count_size - 1][history.alive]
        if not len(shown) or not history.step:
            continue
        share = np.sort(shown / shown.sum(axis=1, keepdims=True), axis=1)[:, ::-1].mean(axis=0)
        shares.append(share)
        hover = "arm %{x} by shows: %{y:.2%}<extra>%{fullData.name}</extra>"
        arms, drawn = np.arange(1, len(share) + 1), np.where(share > 0, share, np.nan)
        data.append(line(label, arms, drawn, *looks[label], hovertemplate=hover))
    return drawing(
        data,
        "Exposure of the arms",
        x=axis("arms by shows"),
        y=_log_shares(shares),
        note=(
            "Share of all shows of each arm, from the most to the least shown one. A floor "
            "raises the right end, a cap lowers the left one; a curve ends where arms are never "
            "shown."
        ),
        caption="Right end: arms that are hardly shown",
        legend=True,
    )


def exposure_by_segment(result: Run) -> Spec | None:
    """Draw, per user segment, the share of its shows that the less shown half of the arms got.

    None without segments.

    Half of the arms by the shows in that segment and replication: 50 % under uniform choice, with
    enough shows."""
    names, looks, data, shares = (
        result.experiment.simulator_class().segment_names(),
        styles(result.experiment),
        [],
        [],
    )
    found = {label: less_shown_half(h) for label, h in result.histories.items() if h.alive.any()}
    halves = {
        label: rates[result.histories[label].alive]
        for label, rates in found.items()
        if rates is not None
    }
    if not halves:
        return None
    # (G, 3): mean, low, high
    estimated = {
        label: np.array([metrics.estimate(rate) for rate in rates.T])
        for label, rates in halves.items()
    }
    means = np.concatenate([each[:, 0] for each in estimated.values()])
    # where 0 is drawn: the axis is logarithmic
    edge = means[means > 0].min(initial=0.1) / 20
    for i, (label, each) in enumerate(estimated.items()):
        none = each[:, 0] == 0
        share = np.where(none, edge, each[:, 0])
        low, high = np.maximum(each[:, 1], share / 10), np.where(none, edge, each[:, 2])
        low[none] = edge
        shares += [share, low, high]
        y, color = (
            np.arange(len(share)) - 0.6 * ((i + 0.5) / len(estimated) - 0.5),
            looks[label].color,
        )
        bars = error_bars(high - share, color, below=share - low)
        symbols = ["triangle-left-open" if zero else "circle" for zero in none]
        texts = [f"{names[g]}: {percent(rate, 2)}" for g, rate in enumerate(each[:, 0])]
        hover = {"text": texts, "hovertemplate": "%{text}<extra>%{fullData.name}</extra>"}
        data.append(points(label, share, y, color, size=9, symbol=symbols, error_x=bars, **hover))
    return drawing(
        data,
        "Exposure by segment",
        x=_log_shares(shares),
        y=_names(names),
        note=(
            "For each user segment, the share of its shows that went to the half of the arms "
            "that it saw least; 50 % if all arms are shown alike. Bars: 95 % confidence "
            "intervals over replications. Open triangles at the left: 0. A floor raises it in "
            "every segment."
        ),
        caption="Share of the less shown half of the arms",
        legend=True,
    )


def _names(names: list[str], *, down: bool = True) -> Spec:
    """Name the places 0, 1, ... of a vertical axis, downwards or upwards."""
    ends = [-0.6, len(names) - 0.4]
    return {
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "automargin": True,
        "range": ends[:: -1 if down else 1],
    }


def _log_shares(shares: list[FloatArray]) -> Spec:
    return axis("share of shows", type="log", hoverformat=".2%", **log_ticks(shares))


def alarm_table(
    found: Mapping[str, Sequence[Alarm]],
    params: SimulatorParams,
    *,
    rows: int,
    steps: Mapping[str, int],
) -> pd.DataFrame:
    """Return one row per agent and monitor that raised an alarm, with its false alarms and delays,
    by first alarm.

    Few and narrow columns: the table is also read on a phone. `first_observations` has the
    sentences."""
    table = []
    for label, kind, mine in _by_monitor(found):
        scored = score(mine, params, rows=rows, steps=steps[label])
        rang = f"{len({alarm.row for alarm in mine})} of {rows}"
        row = {
            "Agent": label,
            "Monitor": REGISTRY[kind].title,
            "First alarm": f"{count(mine[0].step)} ({rang})",
        }
        if scored.cases:
            n = f"{len(scored.delays)} of {scored.cases}"
            row["Delay"] = (
                f"{count(scored.median_delay)} ({n})" if len(scored.delays) else "not reported"
            )
        row["False alarms"] = (
            f"{scored.per_10_000:.2f}" if kind in CHANGES and scored.quiet_steps else "–"
        )
        table.append(row)
    return pd.DataFrame(table)


def first_observations(found: Mapping[str, Sequence[Alarm]]) -> list[str]:
    """State what each monitor of each agent observed at its first alarm, in the order of
    `alarm_table`.
    """
    return [
        f"{label}, {REGISTRY[kind].title}, step {count(mine[0].step)}: {mine[0].sentence}"
        for label, kind, mine in _by_monitor(found)
    ]


def _by_monitor(found: Mapping[str, Sequence[Alarm]]) -> list[tuple[str, str, list[Alarm]]]:
    """Return agent, kind and alarms of each monitor that raised any, by the step of the
    first one.
    """
    parts = [
        (label, kind, [alarm for alarm in alarms if alarm.monitor == kind])
        for label, alarms in found.items()
        for kind in REGISTRY
    ]
    return sorted((part for part in parts if part[2]), key=lambda part: part[2][0].step)
