"""Execute the example notebook and write it, or check that its stored outputs are still what the
code prints.

    python -m docs.make_notebook            writes docs/notebook.ipynb
    python -m docs.make_notebook --check    exits with 1 where an output differs

The cells are below; no Jupyter is needed. Figures are stored as plotly data without the plotly
library."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("notebook.ipynb")

CELLS = [
    (
        "markdown",
        "# Bandit Playground in a notebook\n\nThis notebook compares four agents in the pet shop "
        "simulator: the same visitors and random numbers for each agent (common random numbers), "
        "eight replications, 95 % confidence intervals. Run the cells from top to bottom.",
    ),
    ("code", "import bandits\nfrom bandits import Experiment, run\n\nbandits.list_agents()"),
    ("code", "bandits.list_simulators()"),
    (
        "markdown",
        "An experiment is data: a simulator, agents, steps, replications and a seed. What is "
        "left out has its default; a wrong value is reported in one sentence.",
    ),
    (
        "code",
        "experiment = Experiment(\n"
        '    simulator={"kind": "petshop", "features": "interaction"},\n'
        "    agents=[\n"
        '        {"kind": "linucb", "sharing": "shared", "alpha": 1.0},\n'
        '        {"kind": "lints", "sharing": "shared"},\n'
        '        {"kind": "popularity"},\n'
        '        {"kind": "random"},\n'
        "    ],\n"
        "    steps=3000,\n"
        "    replications=8,\n"
        ")\n"
        "experiment.labels",
    ),
    (
        "code",
        "from bandits import UserError, read\n\n"
        "try:\n"
        '    read({"agents": [{"kind": "linucb", "alpha": -1}]})\n'
        "except UserError as error:\n"
        "    print(error)",
    ),
    (
        "markdown",
        "`run` computes the experiment with a progress bar. A result shows as its leaderboard.",
    ),
    ("code", "result = run(experiment)\nresult"),
    (
        "markdown",
        "`result.compare` is the paired comparison of two agents on the same replications; "
        "`plot` draws any curve in the colours of the app.",
    ),
    (
        "code",
        'difference = result.compare("LinUCB", "Popularity").difference\n'
        'print(f"{difference.mean:.0f} clicks more (95 % CI {difference.low:.0f} to {difference.high:.0f})")',  # noqa: E501
    ),
    ("code", 'result.plot("ctr")'),
    ("code", 'result.plot("pseudo_regret")'),
    ("markdown", "`to_frame` gives all curves in long form, for pandas, seaborn or a database."),
    (
        "code",
        "frame = result.to_frame()\n"
        'last = frame[(frame.metric == "entropy") & (frame.step == frame.step.max())]\n'
        'last[["agent", "mid"]].round(2).reset_index(drop=True)',
    ),
    (
        "markdown",
        "One decision can be explained: the replication is replayed up to that step and the "
        "agent's scores are read there.",
    ),
    (
        "code",
        "from bandits import why\n"
        "from bandits.results.decision_report import explain_decision\n\n"
        'for sentence in explain_decision(why(experiment, "LinUCB", step=2000)):\n'
        "    print(sentence)",
    ),
]


def execute(cells: list[tuple[str, str]]) -> list[list[dict[str, Any]]]:
    """Run the code cells in one namespace.

    Return the outputs of each cell as a notebook stores them.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for kind, source in cells:
        found: list[dict[str, Any]] = []
        if kind == "code":
            tree = ast.parse(source)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream):
                exec(compile(tree, "cell", "exec"), namespace)  # noqa: S102
                value = (
                    eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # noqa: S307
                    if last
                    else None
                )
            if stream.getvalue():
                found.append(
                    {"name": "stdout", "output_type": "stream", "text": _lines(stream.getvalue())}
                )
            if value is not None:
                found.append(
                    {"data": _mime(value), "metadata": {}, "output_type": "execute_result"}
                )
        outputs.append(found)
    return outputs


def _mime(value: Any) -> dict[str, Any]:
    if hasattr(value, "to_plotly_json"):
        figure = json.loads(
            value.to_json(engine="json"), parse_float=lambda text: float(f"{float(text):.4g}")
        )
        # the front end has it
        figure["layout"].pop("template", None)
        return {"application/vnd.plotly.v1+json": figure, "text/plain": ["plotly figure"]}
    html = {"text/html": _lines(value._repr_html_())} if hasattr(value, "_repr_html_") else {}
    plain = "Leaderboard" if type(value).__name__ == "Result" else repr(value)
    return {**html, "text/plain": _lines(plain)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook(outputs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the notebook as JSON of format 4.5."""
    cells, count = [], 0
    for i, ((kind, source), found) in enumerate(zip(CELLS, outputs, strict=True)):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"cell-{i}",
            "metadata": {},
            "source": _lines(source),
        }
        if kind == "code":
            count += 1
            numbered = [
                {**o, "execution_count": count} if o["output_type"] == "execute_result" else o
                for o in found
            ]
            cell |= {"execution_count": count, "outputs": numbered}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def differences(stored: dict[str, Any]) -> list[str]:
    """Run the code cells of a stored notebook and list those whose text outputs differ."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in stored["cells"]]
    found = []
    for cell, outputs in zip(stored["cells"], execute(cells), strict=True):
        if cell["cell_type"] == "code" and _text(cell["outputs"]) != _text(outputs):
            found.append(
                f"{''.join(cell['source'])}\n  stored: {_text(cell['outputs'])}\n  now: "
                f"{_text(outputs)}"
            )
    return found


def _text(outputs: list[dict[str, Any]]) -> list[str]:
    """The outputs without figures, whose last digits may depend on the machine."""
    texts = [
        o.get("text") or [*o["data"].get("text/html", []), *o["data"]["text/plain"]]
        for o in outputs
    ]
    return ["".join(text) for text in texts]


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        found = differences(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
        print(
            "\n".join(found),
            "\nIf these changes are intended: python -m docs.make_notebook" if found else "",
        )
        sys.exit(bool(found))
    text = json.dumps(
        notebook(execute(CELLS)), ensure_ascii=False, indent=None, separators=(",", ":")
    )
    NOTEBOOK.write_text(text + "\n", encoding="utf-8")
    print(f"{NOTEBOOK}: {NOTEBOOK.stat().st_size / 1000:.0f} kB")
