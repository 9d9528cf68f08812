"""Show a result in a notebook: plotly figures of its curves, and its leaderboard as HTML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.results.comparison.conclusion import ranking
from bandits.results.describe import describe_experiment

from . import words
from .figures.board import Options, board
from .figures.board import plot as draw
from .figures.curves import figure
from .figures.style import Spec, styles
from .items import segment_rates
from .items.shown import maps
from .metric_registry import CURVES, METRICS, leaderboard, leaderboard_metrics
from .run import Run

if TYPE_CHECKING:
    import plotly.graph_objects as go


def plot(result: Run, name: str, *, dark: bool = False, growth: bool = False) -> go.Figure:
    """Draw the curves of one name, the board of four plots, or maps; see `Result.plot`."""
    if name == "board":
        return _with_legend(_grid(board(result, growth=growth), dark=dark))
    if name == "shown":
        if not (found := maps(result)):
            raise UserError(
                "plot is 'shown', for which the simulator must have user segments and categories"
            )
        return _grid(found, dark=dark)
    if name == "segments":
        if not (found := segment_rates.plots(result)):
            raise UserError("plot is 'segments', for which the simulator must have user segments")
        return _with_legend(_grid(found, dark=dark))
    if name not in CURVES:
        names = ", ".join(["board", *CURVES, "shown", "segments"])
        raise UserError(f"plot is '{short(name)}'; it must be one of {names}")
    return _with_legend(figure(draw(result, name, Options(growth=growth)), dark=dark))


def _grid(specs: list[Spec], *, dark: bool) -> go.Figure:
    """Draw plots in two columns."""
    from plotly.subplots import make_subplots

    made = make_subplots(
        rows=-(-len(specs) // 2),
        cols=2,
        subplot_titles=[spec["layout"]["title"]["text"] for spec in specs],
    )
    for i, spec in enumerate(specs):
        row, column = divmod(i, 2)
        for trace in figure(spec).data:
            made.add_trace(trace, row=row + 1, col=column + 1)
        made.update_xaxes(spec["layout"]["xaxis"], row=row + 1, col=column + 1)
        made.update_yaxes(spec["layout"]["yaxis"], row=row + 1, col=column + 1)
    made.update_layout(
        template="plotly_dark" if dark else "plotly_white", height=750, font={"size": 13}
    )
    return made


def _with_legend(made: go.Figure) -> go.Figure:
    """Show one legend entry per name; the app has its leaderboard as the legend."""
    seen: set[str] = set()
    for trace in made.data:
        first = trace.mode == "lines" and trace.fill is None and trace.name not in seen
        trace.showlegend = first
        if first:
            seen.add(trace.name)
    made.update_layout(showlegend=True)
    return made


def leaderboard_html(result: Run) -> str:
    """Make the leaderboard as an HTML table, with 95 % confidence intervals; labels are escaped."""
    experiment = result.experiment
    looks = styles(experiment)
    shown = [METRICS[name].of(experiment) for name in leaderboard_metrics(experiment)]
    head = ("agent", *(html.escape(f"{metric.heading} (95 % CI)") for metric in shown))
    rows = []
    for label in ranking(result):
        found = leaderboard(experiment, result.histories[label])
        cells = [
            f'<span style="color:{looks[label].color}">●</span> {html.escape(label)}',
            *(words.cell(found[metric.name], metric.form) for metric in shown),
        ]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    heads = "".join(f"<th>{name}</th>" for name in head)
    caption = html.escape(describe_experiment(experiment))
    return f"<table><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"  # noqa: E501
