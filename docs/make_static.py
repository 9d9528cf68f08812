"""Write static files with which a lesson and some presets run in a browser without installation.

    python -m docs.make_static [FOLDER]     writes static/, or FOLDER

The files work from any web server, and from the disk. docs/playground/engine.js holds the agents
and simulators in JavaScript, with the random streams of the engine.
"""

from __future__ import annotations

import html
import json
import shutil
import sys
from importlib import resources
from pathlib import Path
from typing import Any

from scipy.stats import t

from bandits import run
from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import Params, declaration
from bandits.experiments.experiment import Experiment
from bandits.experiments.labels import main_parameter
from bandits.experiments.presets import presets
from bandits.lessons import Lesson, lessons
from bandits.lessons.handout import inline, to_html
from bandits.lessons.lesson import NumberAnswer, PredictStep, RunStep, SeeStep, Step, TryStep
from bandits.lessons.rules import task_of
from bandits.lessons.texts import fill
from bandits.results.figures.style import styles
from bandits.results.result import Result

SOURCE, STATIC = Path(__file__).parent / "playground", Path(__file__).parents[1] / "static"
LESSON = "explore-or-exploit"
# Parameters that engine.js knows; all others must have their defaults.
KNOWN = {
    "levers": {"n_arms", "layout"},
    "petshop": {"n_products", "n_users", "click_rates"},
    "linucb": {"alpha", "ridge"},
    "lints": {"sigma2", "ridge"},
    "epsilon_greedy": {"epsilon", "decay", "ridge"},
    "ucb1": {"alpha"},
    "beta_ts": {"prior_clicks", "prior_misses"},
    "epsilon_greedy_averages": {"epsilon", "decay", "start"},
    "random": set(),
    "oracle": set(),
}


def runs_in_browser(experiment: Experiment) -> bool:
    """Return whether engine.js computes an experiment."""
    return all(map(_known, (experiment.simulator, *experiment.agents)))


def _known(params: Params) -> bool:
    fields = type(params).model_fields
    return params.kind in KNOWN and all(
        getattr(params, name) == field.default
        for name, field in fields.items()
        if name not in KNOWN[params.kind] | {"kind", "label"}
    )


def as_data(experiment: Experiment) -> dict[str, Any]:
    """Return what the page needs of an experiment: values, labels, colours, sliders, and the factor
    of a 95 % confidence interval over its replications.
    """
    data: dict[str, Any] = experiment.model_dump(mode="json")
    for agent, (label, style) in zip(data["agents"], styles(experiment).items(), strict=True):
        cls, name = AGENTS[agent["kind"]], main_parameter(agent["kind"])
        agent |= {"label": label, "colour": style.color, "dash": style.dash}
        if name is not None:
            field = cls.Params.model_fields[name]
            low, high = declaration(field)["typical"] or (agent[name] / 10, 10 * agent[name])
            agent["slider"] = {
                "name": name,
                "title": inline(f"{field.title} ${declaration(field)['symbol']}$"),
                "low": low,
                "high": max(high, agent[name]),
            }
    rows = experiment.replications
    data["factor"] = float(t.ppf(0.975, rows - 1)) / rows**0.5 if rows > 1 else 0.0
    data["noun"] = experiment.simulator_class().reward_noun
    data["rate"] = experiment.simulator_class().rate_title
    return data


def lesson_page(lesson: Lesson, result: Result, name: str) -> str:
    """Write a lesson: texts with the numbers of its run, predictions, and the run in the page."""
    parts = [_step(lesson, step, {name: result}) for step in lesson.data.steps]
    return _PAGE.format(
        title=html.escape(lesson.data.title),
        about=html.escape(lesson.data.about),
        body="".join(parts),
        kind="lesson",
    )


def _step(lesson: Lesson, step: Step, results: dict[str, Result]) -> str:
    if isinstance(step, SeeStep):
        title = html.escape(lesson.texts[step.id].title)
        text = to_html(fill(lesson.texts[step.id].body, lesson.sources(results)))
        shown = html.escape(json.dumps(step.model_dump(mode="json")))
        return (
            f'<section class="after"><h2>{title}</h2>{text}<div data-see="{shown}"></div></section>'
        )
    section = lesson.texts[step.id]
    sources = {**lesson.sources(results), **task_of(step)}
    parts = [f"<h2>{html.escape(section.title)}</h2>", to_html(fill(section.body, sources))]
    after = "" if isinstance(step, PredictStep | RunStep) or step.id == "welcome" else "after"
    if isinstance(step, PredictStep):
        answer = step.answer
        if isinstance(answer, NumberAnswer):
            start = (answer.low + answer.high) / 2
            parts.append(
                f'<p><label>My prediction: <input type="range" data-predict="{step.id}" '
                f'min="{answer.low:g}" max="{answer.high:g}" step="{answer.step:g}" '
                f'value="{start:g}"> <output>{start:g}</output> {html.escape(answer.unit)}'
                "</label></p>"
            )
        else:
            kind = "radio" if answer.kind == "choice" else "checkbox"
            parts += [
                f'<p><label><input type="{kind}" name="{step.id}"> {html.escape(option.text)}'
                "</label></p>"
                for option in answer.options
            ]
        happened = to_html(fill(section.happened, sources))
        parts.append(f'<details class="after"><summary>What happened</summary>{happened}</details>')
    elif isinstance(step, RunStep):
        parts.append(
            '<p><button id="run" class="main">Run</button> <output id="status"></output></p>'
        )
    elif isinstance(step, TryStep):
        task = html.escape(json.dumps(step.model_dump(mode="json")))
        hints = "".join(
            f"<details><summary>Hint</summary>{to_html(fill(hint, sources))}</details>"
            for hint in section.hints
        )
        parts.append(f'<div data-try="{task}"></div>{hints}')
    return f'<section class="{after}">{"".join(parts)}</section>'


def write(folder: Path) -> None:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("engine.js", "page.js", "page.css"):
        shutil.copy(SOURCE / name, folder / name)
    bundle = resources.files("plotly") / "package_data" / "plotly.min.js"
    (folder / "plotly.min.js").write_bytes(bundle.read_bytes())
    lesson = lessons()[LESSON]
    ((name, step),) = lesson.runs.items()
    assert runs_in_browser(step.resolved)
    found = {k: p for k, p in presets().items() if runs_in_browser(p.experiment)}
    experiments = {
        k: {"title": p.title, "about": p.about, "experiment": as_data(p.experiment)}
        for k, p in found.items()
    }
    title = lesson.data.title
    experiments["lesson"] = {"title": title, "about": "", "experiment": as_data(step.resolved)}
    script = f"const EXPERIMENTS = {json.dumps(experiments, ensure_ascii=False)};\n"
    (folder / "experiments.js").write_text(script, "utf-8")
    result = run(step.resolved, progress=False)
    (folder / "lesson.html").write_text(lesson_page(lesson, result, name), "utf-8")
    options = "".join(
        f'<option value="{k}">{html.escape(p.title)}</option>' for k, p in found.items()
    )
    body = (
        f'<p><label>Preset <select id="preset">{options}</select></label> '
        '<button id="run" class="main">Run</button> <output id="status"></output></p>'
        '<p id="about"></p><div id="sliders"></div><div id="board"></div>'
    )
    about = (
        "Agents that learn by trial which arm earns most, in this page: linear and context-free "
        "agents with the random numbers of the app, so that all numbers are equal to its own."
    )
    page = _PAGE.format(title="Bandit Playground", about=about, body=body, kind="presets")
    (folder / "index.html").write_text(page, "utf-8")


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title><link rel="stylesheet" href="page.css"></head>
<body data-kind="{kind}"><nav><a href="index.html">Presets</a> <a href="lesson.html">Lesson: explore or exploit</a></nav>
<main><h1>{title}</h1><p>{about}</p>{body}</main>
<script src="plotly.min.js"></script><script src="engine.js"></script><script src="experiments.js"></script>
<script src="page.js"></script></body></html>
"""  # noqa: E501


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else STATIC
    write(target)
    size = sum(file.stat().st_size for file in target.iterdir()) / 1e6
    print(f"{target}: {size:.1f} MB; open index.html")
