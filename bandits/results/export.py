"""Export a result: tables, a script that reproduces it, and a self-contained HTML report."""

from __future__ import annotations

import csv
import html
import io
import json
import math
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from bandits import __version__
from bandits.experiments.experiment import Experiment
from bandits.results import guard_cost
from bandits.results.caveats import (
    caveats,
    divergence_notes,
    rare_reward_notes,
    stopped_notes,
)
from bandits.results.comparison.conclusion import (
    learning_summary,
    main_comparison,
    ranking,
    shock_summary,
)
from bandits.results.describe import describe_experiment

from . import metrics, words
from .change import conclusion as change_conclusion
from .change import lost_clicks, recovery
from .change.marks import variation_budget
from .figures.board import board
from .figures.style import AXIS, styles
from .metric_registry import METRICS, leaderboard, leaderboard_metrics
from .metrics import Estimate
from .result import Result

if TYPE_CHECKING:
    import pandas as pd

# first characters that make a spreadsheet read a cell as a formula
_FORMULAS = "=+-@\t\r\n"


def table_csv(result: Result) -> str:
    """Write all curves in long form as CSV without cells that a spreadsheet would evaluate."""
    return csv_of(result.table())


def csv_of(frame: pd.DataFrame) -> str:
    """Write a table as CSV without cells that a spreadsheet would evaluate."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(frame.columns)
    for row in frame.itertuples(index=False, name=None):
        writer.writerow([_defused(cell) for cell in row])
    return out.getvalue()


def _defused(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    # the csv module would not quote it
    text = cell.replace("\r", " ")
    return "'" + text if cell.startswith(tuple(_FORMULAS)) else text


def table_parquet(result: Result) -> bytes:
    """Write all curves in long form as a Parquet file, with full precision and types."""
    return parquet_of(result.table())


def parquet_of(frame: pd.DataFrame) -> bytes:
    """Write a table as a Parquet file."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def script(experiment: Experiment) -> str:
    """Write a short Python script that reproduces the numbers, with comments on how to run it."""
    content = experiment.model_dump_json(exclude_defaults=False)
    return "\n".join(
        [
            f"# {describe_experiment(experiment)} (experiment {experiment.hash[:12]}).",
            f"# Written by Bandit Playground {__version__}. Run this file (here: run.py) in any "
            "folder. Install",
            "# the package from a checkout of the repository:   pip install CHECKOUT, then "
            "python run.py",
            "# or use the environment that make setup creates:  PYTHONPATH=CHECKOUT "
            "CHECKOUT/.venv/bin/python run.py",
            "# It prints CTR and regret of every agent and writes the curves to the folder "
            "results.",
            *_requirements(experiment),
            "from bandits import read, run",
            "",
            f"experiment = read({content!r})",
            f'assert experiment.hash == "{experiment.hash}"',
            "result = run(experiment)",
            "for label, agent in result.summary()['agents'].items():",
            "    print(label, agent['ctr'], agent['pseudo_regret'])",
            'result.save("results")',
            "",
        ]
    )


def _requirements(experiment: Experiment) -> list[str]:
    """Name what the experiment needs beside the package, as comments."""
    lines = []
    if not experiment.simulator_class().portable(experiment.simulator):
        lines.append(
            "# It needs the uploaded data: upload the same file there first (a table: Your data; "
            "a log: What if?)."
        )
    if any(type(params).source_digest for params in (experiment.simulator, *experiment.agents)):
        lines.append("# It needs the plug-in of this experiment: set BANDITS_PLUGINS to its file.")
    return lines


def report(result: Result, *, window: int = metrics.WINDOW, date: datetime | None = None) -> str:
    """Write a self-contained HTML page: interactive plots, leaderboard, sentences, configuration;
    works offline.

    Parameters
    ----------
    result : Result
    window : int
        Steps of the moving averages.
    date : datetime, optional
        Date of the report; now by default.
    """
    experiment = result.experiment
    written = (date or datetime.now(UTC)).astimezone(UTC)
    bundle = (
        resources.files("plotly")
        .joinpath("package_data", "plotly.min.js")
        .read_text(encoding="utf-8")
    )
    unfinished = stopped_notes(result) if _reached(result) < experiment.steps else []
    first, compared = main_comparison(result)
    sentences = (
        [
            *divergence_notes(result),
            *rare_reward_notes(result),
            *compared,
            *shock_summary(result),
            *change_conclusion.sentences(result),
            *recovery.sentences(result),
            *guard_cost.fallback_sentences(result),
            *lost_clicks.sentences(result),
            *variation_budget(result.experiment),
            *filter(None, [learning_summary(result)]),
        ]
        if result.histories
        else []
    )
    return _PAGE.format(
        title=html.escape(", ".join(experiment.labels)),
        subtitle=html.escape(_subtitle(result)),
        origin=(
            f"Report of {written:%Y-%m-%d %H:%M} UTC, Bandit Playground {__version__}, seed "
            f"{experiment.seed}"
        ),
        caveats="".join(f"<li>{html.escape(s)}</li>" for s in caveats(result)),
        rows="".join(_rows(result)),
        first="".join(f"<p>{html.escape(note)}</p>" for note in unfinished)
        + (f"<p><b>{html.escape(first)}</b></p>" if first else ""),
        sentences="".join(f"<li>{html.escape(s)}</li>" for s in sentences),
        json=html.escape(experiment.model_dump_json(indent=2)),
        script=html.escape(script(experiment)),
        head="".join(
            f"<th>{html.escape(METRICS[name].of(experiment).heading)}</th>"
            for name in leaderboard_metrics(experiment)
        ),
        hash=experiment.hash,
        axis=json.dumps(AXIS),
        bundle=bundle.replace("</script", "<\\/script"),
        # no text can close the script element
        figures=json.dumps(board(result, window), default=_numbers, allow_nan=False).replace(
            "<", "\\u003c"
        ),
    )


def _subtitle(result: Result) -> str:
    e = result.experiment
    description = describe_experiment(e)
    reached = _reached(result)
    return (
        description if reached == e.steps else f"{description}; not finished, at step {reached:,}"
    )


def _reached(result: Result) -> int:
    return min((h.step for h in result.histories.values()), default=0)


def _rows(result: Result) -> list[str]:
    """Make the rows of the leaderboard, best first, agents without steps last."""
    e = result.experiment
    looks, order = styles(e), ranking(result)
    rows = []
    for label in [*order, *(one for one in e.labels if one not in order)]:
        history = result.histories.get(label)
        found = {} if history is None else leaderboard(e, history)
        alive = 0 if history is None else int(history.alive.sum())
        if not found or not math.isfinite(found["ctr"].mean):
            status = (
                "not started"
                if not found
                else "no counted events"
                if alive
                else "all replications diverged"
            )
            cells = f"<td colspan={len(leaderboard_metrics(e))}>{status}</td>"
        else:
            numbers = [_cell(found[name], METRICS[name].form) for name in found]
            if alive < e.replications:
                numbers[0] += f"<br><small>{alive} of {e.replications} replications</small>"
            cells = "".join(f"<td>{n}</td>" for n in numbers)
        dot = f'<span style="color:{looks[label].color}" aria-hidden="true">●</span>'
        rows.append(f"<tr><th scope=row>{dot} {html.escape(e.names[label])}</th>{cells}</tr>")
    return rows


def _cell(estimate: Estimate, form: words.Form) -> str:
    interval = (
        f" <small>({words.ends(estimate, form)})</small>" if words.has_interval(estimate) else ""
    )
    return words.mean(estimate, form) + interval


def _numbers(array: Any) -> Any:
    """Convert an array for JSON, with null for NaN and infinity."""
    if array.dtype.kind != "f":
        return array.tolist()
    return [value if math.isfinite(value) else None for value in array.tolist()]


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline';
style-src 'unsafe-inline'; img-src data: blob:">
<title>Bandit Playground: {title}</title>
<style>
:root{{--ink:#1d282c;--page:#fcfcfb;--line:#d5dbd9;color-scheme:light dark}}
@media (prefers-color-scheme:dark){{:root{{--ink:#e3e9ea;--page:#0d1316;--line:#303c42}}}}
body{{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:70rem;margin:2rem auto;
padding:0 1rem}}
h1{{margin:0;font-size:1.6rem}}h2{{margin:1.5rem 0 0;font-size:1.2rem}}p{{margin:.2rem 0 1rem}}small{{opacity:.75}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}}
th,td{{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line)}}
thead th{{font-size:.85rem;vertical-align:bottom}}th[scope=row],td small{{white-space:nowrap}}
.scroll{{overflow-x:auto}}
@media (max-width:700px){{table{{font-size:.85rem}}td small{{display:block}}th,td{{padding:.3rem .3rem}}
thead th{{font-size:.75rem}}thead th:last-child{{min-width:5rem}}}}
.plots{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(26rem,100%),1fr));gap:1rem;margin:1.5rem 0}}
.plots figure{{display:flex;flex-direction:column;margin:0;padding:.8rem;
border:1px solid var(--line);border-radius:.6rem;min-width:0}}
figcaption b{{display:block}}figcaption{{font-size:.85rem;flex:1}}
pre{{overflow:auto;border:1px solid var(--line);border-radius:.6rem;padding:.8rem;font-size:.8rem}}
</style></head><body>
<h1>{title}</h1><p>{subtitle}<br><small>{origin}</small></p>{first}
<div class="scroll"><table><caption>Means over replications with 95&nbsp;% confidence intervals</caption>
<thead><tr><th>Agent</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>
<div class="plots" id="plots"></div>
<ul>{sentences}</ul>
<h2>What these numbers mean</h2><ul>{caveats}</ul>
<details><summary>Configuration and hash</summary><p>{hash}</p><pre>{json}</pre></details>
<details><summary>Reproduce in Python</summary><pre>{script}</pre></details>
<script>{bundle}</script>
<script type="application/json" id="figures">{figures}</script>
<script>
const figures = JSON.parse(document.getElementById("figures").textContent);
const numbers = {axis};
const dark = matchMedia("(prefers-color-scheme: dark)");
const pointer = matchMedia("(hover: hover)");  // without one, the bar would stay over the curves
function draw() {{
  const ink = dark.matches ? "#e3e9ea" : "#1d282c", line = dark.matches ? "#303c42" : "#d5dbd9";
  figures.forEach((figure, i) => {{
    const box = document.getElementById("plot" + i);
    const axis = {{gridcolor: line, zerolinecolor: line, linecolor: line}};
    const top = figure.layout.margin?.t ?? 10;  // room for the names of changes
    const legend = {{orientation: "h", y: -0.25, yanchor: "top", x: 0}};
    const data = figure.data.map((trace) => (trace.fill ? {{...trace, showlegend: false}} : trace));
    const layout = {{...figure.layout, title: undefined, height: 380, showlegend: true, legend,
      margin: {{l: 60, r: 15, t: top, b: 105}},
      font: {{color: ink, family: "system-ui, sans-serif"}}, hovermode: "x unified",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      xaxis: {{...numbers, ...figure.layout.xaxis, ...axis}}, yaxis: {{...numbers, ...figure.layout.yaxis, ...axis}},
      hoverlabel: {{bgcolor: dark.matches ? "#182126" : "#ffffff", font: {{color: ink}}}}}};
    const config = {{responsive: true, displaylogo: false, displayModeBar: pointer.matches && "hover", showSendToCloud: false, plotlyServerURL: ""}};
    Plotly.react(box, data, layout, config);
  }});
}}
figures.forEach((figure, i) => {{
  const cell = document.createElement("figure"), caption = document.createElement("figcaption");
  const name = document.createElement("b"), box = document.createElement("div");
  name.textContent = figure.layout.title.text;
  caption.append(name, figure.layout.meta.note);
  box.id = "plot" + i;
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", caption.textContent);
  cell.append(caption, box);
  document.getElementById("plots").append(cell);
}});
draw();
dark.addEventListener("change", draw);
</script></body></html>
"""  # noqa: E501
