"""Texts of lessons: sections of a Markdown file, with numbers of runs in double braces.

``{{off.ctr("LinUCB") | rate}}`` is an expression and a format; ``{{formula linucb}}`` is the
formula of an agent or of a worked example, from its class."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bandits.agents import REGISTRY as AGENTS
from bandits.base.errors import UserError
from bandits.base.formatting import GLUE, count, number, percent, short
from bandits.results.metrics import Estimate

from .expressions import Source, evaluate, mean, parse, quantities
from .lesson import Section
from .worked import REGISTRY as WORKED

PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_HEADING = re.compile(r"^## (.+?) \{#([a-z0-9_]+)\}$", re.MULTILINE)
_PART = re.compile(r"^### (Happened|Hint)$", re.MULTILINE)


def _rate(value: float) -> str:
    return f"{value:.3f}".replace("-", "−") if math.isfinite(value) else "–"


_FORMATS: dict[str, Callable[[float], str]] = {
    "number": number,
    "rate": _rate,
    "fine": lambda value: f"{value:.4f}".replace("-", "−") if math.isfinite(value) else "–",
    "count": count,
    "percent": lambda value: percent(value).replace(" ", GLUE),
}


def sections(markdown: str) -> dict[str, Section]:
    """Split a Markdown file at headings ``## Title {#step}``, and a section at ``### Happened`` and
    ``### Hint``.
    """
    found: dict[str, Section] = {}
    headings = list(_HEADING.finditer(markdown))
    ends = [*(heading.start() for heading in headings[1:]), len(markdown)]
    for heading, end in zip(headings, ends, strict=True):
        if heading[2] in found:
            raise UserError(f"the text of step '{heading[2]}' appears twice")
        body, *rest = _PART.split(markdown[heading.end() : end])
        parts = [(kind, text.strip()) for kind, text in zip(rest[::2], rest[1::2], strict=True)]
        hints = tuple(text for kind, text in parts if kind == "Hint")
        happened = next((text for kind, text in parts if kind == "Happened"), "")
        found[heading[2]] = Section(heading[1], body.strip(), happened, hints)
    return found


def split_format(inner: str) -> tuple[str, str]:
    """Split what stands in the braces into expression and format."""
    expression, bar, form = inner.rpartition("|")
    return (expression.strip(), form.strip()) if bar else (inner.strip(), "number")


def formula(inner: str) -> str | None:
    """Return the formula that a placeholder names, in LaTeX; None for other placeholders.

    Raises
    ------
    UserError
        Nothing of this name has a formula.
    """
    if not inner.strip().startswith("formula "):
        return None
    name = inner.strip().removeprefix("formula ").strip()
    found = (
        AGENTS[name].formula if name in AGENTS else WORKED[name].formula if name in WORKED else ""
    )
    if not found:
        raise UserError(f"'{short(name)}' has no formula; name an agent or a worked example")
    return found


def fill(text: str, sources: Mapping[str, Source], *, blank: str | None = None) -> str:
    """Fill the placeholders of a text.

    Parameters
    ----------
    blank : str, optional
        What stands in place of every number that only a run gives: for a copy without answers.
    """

    def replace(found: re.Match[str]) -> str:
        if (latex := formula(found[1])) is not None:
            return f"${latex}$"
        if blank is None or given(found[1], sources):
            return written(found[1], sources)
        return blank

    return PLACEHOLDER.sub(replace, text)


def given(inner: str, sources: Mapping[str, Source]) -> bool:
    """Tell whether what stands in braces is known before any run: numbers of visits, parameters,
    goals.
    """
    found = quantities(parse(split_format(inner)[0]))
    return all(sources[each.source].given(each.name) for each in found)


def written(inner: str, sources: Mapping[str, Source]) -> str:
    """Compute what stands in braces, and write it in its format.

    ``ci`` adds the 95 % interval of an estimate.
    """
    expression, form = split_format(inner)
    value = evaluate(parse(expression), sources)
    name, _, interval = form.partition(" ")
    text = _FORMATS[name](mean(value))
    if interval != "ci":
        return text
    if not isinstance(value, Estimate):
        raise UserError(f"'{short(expression)}' has no interval")
    ends = (
        _FORMATS[name](end) if math.isfinite(end) else "beyond the run"
        for end in (value.low, value.high)
    )
    return f"{text} (95{GLUE}% CI {' to '.join(ends)})"


def missing_numbers(text: str, sources: Mapping[str, Source]) -> list[str]:
    """Return the expressions of a text that have no number in these runs."""
    inner = [found for found in PLACEHOLDER.findall(text) if formula(found) is None]
    expressions = [split_format(each)[0] for each in inner]
    return [each for each in expressions if not math.isfinite(mean(evaluate(parse(each), sources)))]


def check_text(
    text: str, sources: Mapping[str, Source], labels: Iterable[str], allowed: Iterable[str]
) -> None:
    """Check a text without running anything: every number in it is filled, and every placeholder
    can be.

    Parameters
    ----------
    labels : iterable of str
        Names of agents, which may contain digits.
    allowed : iterable of str
        Phrases with digits that the lesson declares, for example "chapter 16".
    """
    for inner in PLACEHOLDER.findall(text):
        if formula(inner) is None:
            expression, form = split_format(inner)
            name, _, interval = form.partition(" ")
            if name not in _FORMATS or interval not in ("", "ci"):
                raise UserError(
                    f"'{short(form)}' is not a format; there are {', '.join(_FORMATS)}, each also "
                    "with ci"
                )
            check_expression(expression, sources)
    # a name may be broken across lines
    rest = " ".join(PLACEHOLDER.sub(" ", text).split())
    for phrase in sorted({*labels, *allowed}, key=len, reverse=True):
        rest = rest.replace(phrase, " ")
    if (found := re.search(r"[^\s]*\d[^\s]*", rest)) is not None:
        raise UserError(
            f"the number '{short(found[0])}' is typed by hand: no run gives it; write an "
            "expression in braces"
        )
    if "$" in rest:
        raise UserError(
            "a formula is typed by hand; write {{formula NAME}} with the name of an agent or "
            "worked example"
        )


def check_expression(text: str, sources: Mapping[str, Source]) -> Any:
    """Parse an expression and check that the lesson's runs have all its quantities, at
    least one.
    """
    tree = parse(text)
    found = quantities(tree)
    if not found:
        raise UserError(f"'{short(text)}' names no run, so that no run gives this number")
    for each in found:
        if each.source not in sources:
            raise UserError(
                f"'{short(text)}' names '{each.source}'; there are "
                f"{', '.join(sources) or 'no runs yet'}"
            )
        sources[each.source].check(each.name, each.arguments)
    return tree


def needs(text: str, sources: Mapping[str, Source]) -> list[str]:
    """Return the runs whose results a text holds."""
    inner = [found for found in PLACEHOLDER.findall(text) if formula(found) is None]
    named = [each for found in inner for each in quantities(parse(split_format(found)[0]))]
    return sorted({each.source for each in named if not sources[each.source].given(each.name)})
