"""A result to take along: tables, a script that makes it again, and one page that works without a network."""

from __future__ import annotations

import csv
import html
import io
import json
from importlib import resources
from typing import Any

import plotly

from . import metrics, words
from .experiment import Experiment
from .figures import board, styles
from .result import Result

_FORMULAS = "=+-@\t\r"  # a spreadsheet takes a cell that begins so for a formula


def table_csv(result: Result) -> str:
    """All curves in long form, as CSV that no spreadsheet will run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    frame = result.table()
    writer.writerow(frame.columns)
    for row in frame.itertuples(index=False, name=None):
        writer.writerow([_defused(cell) for cell in row])
    return out.getvalue()


def _defused(cell: Any) -> Any:
    return "'" + cell if isinstance(cell, str) and cell[:1] in _FORMULAS else cell


def script(experiment: Experiment) -> str:
    """Ten lines of Python that make the same numbers again."""
    text = experiment.model_dump_json(exclude_defaults=False)
    return "\n".join(
        [
            f"# Bandit Playground, experiment {experiment.hash[:12]}",
            "from bandits import read, run",
            "",
            f"experiment = read({text!r})",
            f'assert experiment.hash == "{experiment.hash}"',
            "result = run(experiment)",
            "for label, agent in result.summary()['agents'].items():",
            "    print(label, agent['ctr'], agent['pseudo_regret'])",
            'result.save("results")',
            "",
        ]
    )


def report(result: Result, *, window: int = metrics.WINDOW) -> str:
    """One self-contained HTML page: live plots, leaderboard, sentences, configuration; light and dark, offline."""
    experiment = result.experiment
    bundle = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    figures = json.dumps(board(result, window), default=lambda a: a.tolist()).replace("</", "<\\/")
    rows = []
    looks = styles(experiment)
    summary = result.summary()["agents"]
    for label in words.ranking(result):
        found = summary[label]
        numbers = [
            _rate(found["ctr"]),
            words.count(found["clicks"]["mean"]) if found["clicks"]["mean"] is not None else "–",
            words.count(found["pseudo_regret"]["mean"]) if found["pseudo_regret"]["mean"] is not None else "–",
            words.percent(found["learned"]["mean"]) if found["learned"]["mean"] is not None else "–",
        ]
        cells = "".join(f"<td>{n}</td>" for n in numbers)
        dot = f'<span style="color:{looks[label].color}">●</span>'
        rows.append(f"<tr><th scope=row>{dot} {html.escape(label)}</th>{cells}</tr>")
    sentences = "".join(f"<li>{html.escape(s)}</li>" for s in [*words.verdicts(result), words.lesson(result)])
    return _PAGE.format(
        title=html.escape(", ".join(experiment.labels)),
        subtitle=html.escape(
            f"{experiment.simulator_class().title}, {experiment.steps:,} steps, {experiment.replications} runs, seed "
            f"{experiment.seed}"
        ),
        rows="".join(rows),
        sentences=sentences,
        json=html.escape(experiment.model_dump_json(indent=2)),
        script=html.escape(script(experiment)),
        hash=experiment.hash,
        version=plotly.__version__,
        bundle=bundle.replace("</script", "<\\/script"),
        figures=figures,
    )


def _rate(found: dict[str, Any]) -> str:
    if found["mean"] is None:
        return "–"
    spread = "" if found["low"] is None else f" <small>({found['low']:.4f} to {found['high']:.4f})</small>"
    return f"{found['mean']:.4f}{spread}"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Bandit Playground: {title}</title>
<style>
:root{{--ink:#1d282c;--page:#fcfcfb;--line:#d5dbd9;color-scheme:light dark}}
@media (prefers-color-scheme:dark){{:root{{--ink:#e3e9ea;--page:#0d1316;--line:#303c42}}}}
body{{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:70rem;margin:2rem auto;
padding:0 1rem}}
h1{{margin:0;font-size:1.6rem}}p{{margin:.2rem 0 1rem}}small{{opacity:.75}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}}
th,td{{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line)}}
.scroll{{overflow-x:auto}}
.plots{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(26rem,100%),1fr));gap:1rem;margin:1.5rem 0}}
.plots figure{{margin:0;padding:.8rem;border:1px solid var(--line);border-radius:.6rem;min-width:0}}
figcaption b{{display:block}}figcaption{{font-size:.85rem}}
pre{{overflow:auto;border:1px solid var(--line);border-radius:.6rem;padding:.8rem;font-size:.8rem}}
</style></head><body>
<h1>{title}</h1><p>{subtitle}</p>
<div class="scroll"><table><thead><tr><th>agent</th><th>clicks per step (95 %)</th><th>clicks</th>
<th>regret</th><th>way from random to oracle</th></tr></thead><tbody>{rows}</tbody></table></div>
<div class="plots" id="plots"></div>
<ul>{sentences}</ul>
<details><summary>Configuration and hash</summary><p>{hash}</p><pre>{json}</pre></details>
<details><summary>The same numbers again, in Python</summary><pre>{script}</pre></details>
<script>{bundle}</script>
<script>
const figures = {figures};
const dark = matchMedia("(prefers-color-scheme: dark)");
function draw() {{
  const ink = dark.matches ? "#e3e9ea" : "#1d282c", line = dark.matches ? "#303c42" : "#d5dbd9";
  figures.forEach((figure, i) => {{
    const box = document.getElementById("plot" + i);
    const axis = {{gridcolor: line, zerolinecolor: line, linecolor: line}};
    const layout = {{...figure.layout, title: undefined, height: 320, margin: {{l: 60, r: 15, t: 10, b: 45}},
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: {{color: ink}}, hovermode: "x unified",
      xaxis: {{...figure.layout.xaxis, ...axis}}, yaxis: {{...figure.layout.yaxis, ...axis}},
      hoverlabel: {{bgcolor: dark.matches ? "#182126" : "#ffffff", font: {{color: ink}}}}}};
    const config = {{responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: ""}};
    Plotly.react(box, figure.data, layout, config);
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
"""
