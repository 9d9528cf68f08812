"""Print a lesson: one HTML page that works offline, with blanks, and with an answer sheet at the
end.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

from pydantic.fields import FieldInfo

from bandits import __version__
from bandits.base.formatting import number
from bandits.base.params import declaration
from bandits.results.result import Result

from . import svg
from .answers import in_words, number_answer, true_options, true_order
from .expressions import Source
from .figures import see
from .lesson import (
    ChoiceAnswer,
    ExplainStep,
    Lesson,
    NumberAnswer,
    PredictStep,
    RunStep,
    SeeStep,
    Step,
    TryStep,
)
from .rules import task_of
from .texts import fill
from .worked import Table

_SYMBOLS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "varepsilon": "ε",
    "theta": "θ",
    "lambda": "λ",
    "mu": "μ",
    "sigma": "σ",
    "phi": "φ",
    "omega": "ω",
    "top": "⊤",
    "le": "≤",
    "sim": "∼",
    "sum": "∑",
    "max": "max",
    "ln": "ln",
    "quad": "  ",
    "Big": "",
    "big": "",
    "pm": "±",
    "nabla": "∇",
    "sqrt": "√",
}
_ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304"}


def to_html(markdown: str) -> str:
    """Convert a text; only what lessons use is known."""
    blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", markdown) if block.strip()]
    return "\n".join(_block(block) for block in blocks)


def inline(text: str) -> str:
    """Convert emphasis, code and formulas within a paragraph; everything else is text."""
    parts = re.split(r"(\$[^$]+\$|`[^`]+`)", text)
    return "".join(_part(part) for part in parts)


def _part(part: str) -> str:
    if len(part) > 2 and part[0] == part[-1] == "$":
        return f'<span class="formula">{formula(part[1:-1])}</span>'
    if len(part) > 2 and part[0] == part[-1] == "`":
        return f"<code>{html.escape(part[1:-1])}</code>"
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(part), flags=re.DOTALL)
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", escaped, flags=re.DOTALL)


def _block(block: str) -> str:
    lines = block.split("\n")
    if lines[0].startswith("- "):
        items = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
        return f"<ul>{''.join(f'<li>{inline(item.strip())}</li>' for item in items)}</ul>"
    if lines[0].startswith("|"):
        return table(
            [[cell.strip() for cell in line.strip("| ").split("|")] for line in _cells(lines)]
        )
    return f"<p>{inline(' '.join(lines))}</p>"


def _cells(lines: list[str]) -> list[str]:
    """Return the rows of a table, without the line below its head; an empty first cell stays."""
    rows = [line.replace("| |", "|\u00a0|", 1) for line in lines]
    return [row for row in rows if not re.fullmatch(r"[|\-: ]+", row)]


def table(rows: list[list[str]]) -> str:
    """Write a table whose first row is its head."""
    head, *body = [
        "".join(f"<{tag}>{inline(cell)}</{tag}>" for cell in row) for row, tag in _tagged(rows)
    ]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>"  # noqa: E501


def _tagged(rows: list[list[str]]) -> list[tuple[list[str], str]]:
    return [(row, "td" if i else "th") for i, row in enumerate(rows)]


def formula(latex: str) -> str:
    """Write a formula of the registry in HTML, without a typesetter: Greek letters, roots, indices
    and powers.
    """
    text = re.sub(r"\\text\{([^}]*)\}|\\mathrm\{([^}]*)\}", lambda m: m[1] or m[2], latex)
    text = re.sub(r"\\math\w+ ?(\w)", r"\1", text)
    text = re.sub(r"\\[ ,;!]", " ", text)
    text = re.sub(r"\\(hat|tilde|bar)\s*(\\[A-Za-z]+|\w)", lambda m: f"{m[2]}{{{{{m[1]}}}}}", text)
    text = re.sub(r"\\([A-Za-z]+)\s?", lambda m: _SYMBOLS.get(m[1], m[1]), text)
    text = re.sub(r"\{\{(hat|tilde|bar)\}\}", lambda m: _ACCENTS[m[1]], text)
    text = html.escape(text)
    text = re.sub(r"√\{((?:[^{}]|\{[^{}]*\})*)\}", r'√<span class="root">\1</span>', text)
    text = re.sub(r"√(\w)", r'√<span class="root">\1</span>', text)
    for sign, tag in (("_", "sub"), (r"\^", "sup")):
        text = re.sub(rf"{sign}\{{([^{{}}]*)\}}", rf"<{tag}>\1</{tag}>", text)
        text = re.sub(rf"{sign}(\w|⊤)", rf"<{tag}>\1</{tag}>", text)
    return text.replace("{", "").replace("}", "")


BLANK = "`______`"


def handout(lesson: Lesson, results: Mapping[str, Result], *, answers: bool) -> str:
    """Write a lesson as one page.

    Parameters
    ----------
    results : dict of str to Result
        Runs by step. The answers need all; with those that are there, axes have numbers.
    answers : bool
        Print the answer sheet after the pupils' pages: all texts, the answers and the numbers of
        the runs. The pupils' pages have no result: no text that explains one, empty axes, and
        blanks for numbers.
    """
    steps, data = lesson.data.steps, lesson.data
    body = "".join(
        _step(lesson, step, results, answers=False)
        for step in steps
        if not isinstance(step, ExplainStep)
    )
    if answers:
        sheet = "".join(_step(lesson, step, results, answers=True) for step in steps)
        body += f'<h1 class="sheet">Answer sheet: {html.escape(data.title)}</h1>{sheet}'
    return _PAGE.format(
        title=html.escape(data.title),
        about=html.escape(data.about),
        body=body,
        minutes=data.minutes,
        needs=html.escape(data.needs),
        version=__version__,
    )


def _step(lesson: Lesson, step: Step, results: Mapping[str, Result], *, answers: bool) -> str:
    if isinstance(step, SeeStep) and not answers:
        return f"<section>{''.join(_empty_axes(lesson, step, results))}</section>"
    section = lesson.texts[step.id]
    sources: Mapping[str, Source] = {**lesson.sources(results), **task_of(step)}
    blank = None if answers else BLANK
    parts = [
        f"<h2>{html.escape(section.title)}</h2>",
        to_html(fill(section.body, sources, blank=blank)),
    ]
    if isinstance(step, PredictStep):
        parts += _prediction(step, section.happened, sources, answers=answers)
    elif isinstance(step, RunStep) and step.worked is not None:
        params = step.example.Params.model_validate(step.given)
        parts += [_table(each, answers=answers) for each in step.example.tables(params)]
        parts += [svg.figure(spec) for spec in step.example.figures(params)] if answers else []
    elif isinstance(step, SeeStep) and lesson.runs[step.run].worked is None:
        parts += [svg.figure(spec) for spec in see(lesson, step, results[step.run], {})]
    elif isinstance(step, TryStep):
        name = _label(step.field(lesson.runs[step.run]))
        parts += [f"<p>My value of {name}: {_line(10)} Result: {_line(16)}</p>"]
        if answers:
            hints = "".join(f"<li>{inline(fill(hint, sources))}</li>" for hint in section.hints)
            solution = f"{name} = {number(step.solution)} reaches the goal."
            parts.append(f'<div class="answer"><p>{solution} Hints:</p><ul>{hints}</ul></div>')
    return f"<section>{''.join(parts)}</section>"


def _empty_axes(lesson: Lesson, step: SeeStep, results: Mapping[str, Result]) -> Iterator[str]:
    """Draw axes to draw into; without the run, they have the numbers that are known before it."""
    run = lesson.runs[step.run]
    if run.worked is not None:
        return
    shown = results.get(step.run) or Result(run.resolved, {})
    # shares; how many clicks are lost is not known before the run
    ranges: dict[str, list[float]] = {"entropy": [0, 1]}
    if run.resolved.simulator_class().reward_noun == "clicks":
        ranges["ctr"] = [0, 1]
    ranges |= {
        asked.mark.plot: [asked.low, asked.high]
        for name in step.predictions
        if isinstance(asked := lesson.predictions[name].answer, NumberAnswer)
        and asked.mark is not None
        and asked.mark.axis == "y"
    }
    for name, spec in zip(step.plots, see(lesson, step, shown, {}), strict=True):
        layout = spec["layout"]
        if name != "spectrum":
            layout["xaxis"]["range"] = [0, step.until or run.resolved.steps]
        if name in ranges:
            layout["yaxis"]["range"] = ranges[name]
        yield svg.figure(spec, empty=True)


def _prediction(
    step: PredictStep, happened: str, sources: Mapping[str, Source], *, answers: bool
) -> Iterator[str]:
    answer = step.answer
    if isinstance(answer, NumberAnswer):
        between = f"between {number(answer.low)} and {number(answer.high)}"
        yield f"<p>My prediction, {between}: {_line(14)} {html.escape(answer.unit)}</p>"
        solved = in_words(step, number_answer(answer, sources)) if answers else ""
    elif isinstance(answer, ChoiceAnswer):
        yield (
            "<ul "
            f"class=choice>{''.join(f'<li>☐ {html.escape(option.text)}</li>' for option in answer.options)}</ul>"  # noqa: E501
        )
        solved = (
            ", ".join(answer.options[i].text for i in true_options(answer, sources))
            if answers
            else ""
        )
    else:
        items = "".join(f"<li>___ {html.escape(option.text)}</li>" for option in answer.options)
        yield f"<ul class=choice>{items}</ul>"
        solved = in_words(step, true_order(answer, sources)) if answers else ""
    if answers:
        yield f'<div class="answer"><p>Answer: {html.escape(solved)}.</p>{to_html(fill(happened, sources))}</div>'  # noqa: E501


def _line(width: int) -> str:
    return f'<span class="line" style="width:{width}ch"></span>'


def _label(field: FieldInfo) -> str:
    """Write the label of a parameter as the app does: its title, and its symbol."""
    symbol = declaration(field)["symbol"]
    return inline(f"{field.title} ${symbol}$" if symbol else str(field.title))


def _table(found: Table, *, answers: bool) -> str:
    hidden = () if answers else found.results
    rows = [
        list(found.columns),
        *(["" if i in hidden else c for i, c in enumerate(row)] for row in found.rows),
    ]
    return f"<p><strong>{html.escape(found.title)}</strong></p>{table(rows)}"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body{{font:15px/1.5 Georgia,serif;color:#111;background:#fff;max-width:46rem;margin:2rem auto;padding:0 1rem}}
h1,h2{{font-family:system-ui,sans-serif;line-height:1.25}}h1{{font-size:1.7rem;margin-bottom:.2rem}}
h2{{font-size:1.1rem;margin:1.4rem 0 .3rem;break-after:avoid}}
table{{border-collapse:collapse;font-size:.85rem;break-inside:avoid}}
td,th{{border:1px solid #999;padding:.2rem .5rem;text-align:left;height:1.3em}}
figure{{margin:.8rem 0;break-inside:avoid}}figcaption{{font:600 .9rem system-ui,sans-serif}}
svg{{width:100%;height:auto;font:12px system-ui,sans-serif}}
.legend{{list-style:none;padding:0;margin:0;display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.8rem}}
.legend span{{display:inline-block;width:1.2rem;height:.25rem;margin-right:.3rem;vertical-align:middle;
print-color-adjust:exact}}
.choice{{list-style:none;padding-left:.5rem}}.line{{display:inline-block;border-bottom:1px solid #111;height:1em}}
.answer{{border-left:4px solid #0072B2;background:#eef5fb;padding:.1rem .8rem;break-inside:avoid;
print-color-adjust:exact}}
.root{{border-top:1px solid #111}}.formula{{white-space:nowrap}}code{{font-size:.9em}}
.sheet{{break-before:page}}
footer{{color:#555;font-size:.8rem;margin-top:2rem}}
@page{{margin:18mm}}
</style></head><body>
<h1>{title}</h1><p>{about}</p><p>{minutes} minutes. You need: {needs}</p>
<p>Name: ____________________________</p>
{body}
<footer>Bandit Playground {version}, page Learn.</footer>
</body></html>
"""  # noqa: E501
