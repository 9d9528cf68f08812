"""Write the sources of the documentation site into build/site, and its settings beside them.

    make docs                               builds site/ from them

The pages are the Markdown files of the repository, as far as links lead from README.md, the lessons
without their answers, and what docstrings and declared parameters state. Nothing else is written
here. `mkdocs build --strict` then checks every link.
"""

from __future__ import annotations

import html
import inspect
import json
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import bandits
from bandits.agents import REGISTRY as AGENTS
from bandits.cli.catalogue import catalogue
from bandits.lessons import Lesson, lessons
from bandits.lessons.handout import BLANK, inline, to_html
from bandits.lessons.lesson import ChoiceAnswer, ExplainStep, PredictStep, SeeStep
from bandits.lessons.rules import task_of
from bandits.lessons.texts import fill
from bandits.simulators import REGISTRY as SIMULATORS

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
SITE = BUILD / "site"
# packages whose names users import, beside those of bandits itself
PACKAGES = ("policy", "gym", "diagnostics", "offpolicy", "monitoring", "sweeps", "lessons")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
GUIDE = (
    "docs/walkthrough.md",
    "docs/questions.md",
    "docs/cli.md",
    "docs/data.md",
    "docs/policy.md",
    "docs/serving.md",
    "docs/deploy.md",
    "docs/security.md",
    "docs/cluster.md",
    "docs/glossary.md",
    "docs/LESSONS.md",
)


def linked(start: str) -> dict[str, str | None]:
    """Return the files to which relative links lead, with the text of those in Markdown."""
    found: dict[str, str | None] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        file = ROOT / name
        if name in found or not file.is_file():
            continue
        found[name] = text = file.read_text("utf-8") if file.suffix == ".md" else None
        for target in _LINK.findall(text or ""):
            path = target.partition("#")[0]
            if path and ":" not in path:
                target_file = (file.parent / path).resolve()
                if target_file.is_relative_to(ROOT):
                    waiting.append(target_file.relative_to(ROOT).as_posix())
    return found


def lesson_page(lesson: Lesson) -> str:
    """Write a lesson for its readers: without results, answers and what explains them."""
    data = lesson.data
    needs = f"{data.minutes} minutes. You need: {data.needs}"
    parts = [f"# {data.title}", data.about, needs, "Open it in the app, page *Learn*."]
    for step in data.steps:
        if isinstance(step, ExplainStep | SeeStep):
            continue
        section = lesson.texts[step.id]
        text = to_html(fill(section.body, {**lesson.sources({}), **task_of(step)}, blank=BLANK))
        parts.append(f"## {section.title}\n\n<div>{text}</div>")
        if isinstance(step, PredictStep) and isinstance(step.answer, ChoiceAnswer):
            parts.append("\n".join(f"- {option.text}" for option in step.answer.options))
    return "\n\n".join(parts)


def reference(title: str, module: ModuleType) -> str:
    """Write the page of a package: each public name, from its docstring."""
    names = getattr(module, "__all__", None) or sorted(
        name for name in vars(module) if not name.startswith("_")
    )
    objects = [getattr(module, name) for name in names]
    public = [
        f"::: {each.__module__}.{each.__qualname__}"
        for each in objects
        if (inspect.isclass(each) or inspect.isfunction(each))
        and each.__module__.startswith(module.__name__)
    ]
    return "\n\n".join([f"# {title}", _text(module), *dict.fromkeys(public)])


def _text(documented: Any) -> str:
    """Return a docstring up to its sections as Markdown; examples and indented lines are code."""
    text = re.split(r"\n\n[A-Z][a-z ]+\n-{3,}\n", inspect.getdoc(documented) or "")[0]
    # footnotes, and double backticks
    text = re.sub(r"(\[\d+\])_", r"\1", text).replace("``", "`")
    parts = [
        f"```python\n{part}\n```" if part.startswith(">>>") else part for part in text.split("\n\n")
    ]
    return "\n\n".join(parts)


def kinds_page(title: str, group: str, registry: dict[str, Any]) -> str:
    """Write the page of all agents or simulators: their docstrings, parameters and references."""
    parts = [f"# {title}"]
    for kind, facts in catalogue()[group].items():
        rows = "".join(map(_row, facts["parameters"], facts["parameters"].values()))
        numbered = enumerate(facts["references"], 1)
        parts += [
            f"## {facts['title']} {{#{kind}}}\n\n`{kind}`",
            _text(registry[kind]),
            f"<table><thead><tr>{_HEAD}</tr></thead><tbody>{rows}</tbody></table>" if rows else "",
            "\n\n".join(f"\\[{i}\\] {entry}" for i, entry in numbered),
        ]
    return "\n\n".join(parts)


_HEAD = "<th>parameter</th><th></th><th>default</th><th>allowed</th><th>meaning</th>"


def _row(name: str, field: dict[str, Any]) -> str:
    value = json.dumps(field["default"], ensure_ascii=False)
    texts = (value if len(value) <= 40 else "a table", field["allowed"], field["help"] or "")
    symbol = inline(f"${field['symbol']}$") if field["symbol"] else ""
    cells = [f"<code>{name}</code>", symbol, *map(html.escape, texts)]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the pages that are made here, with their paths."""
    for name, lesson in lessons().items():
        yield f"lessons/{name}.md", lesson_page(lesson)
    yield "reference/bandits.md", reference("bandits", bandits)
    for name in PACKAGES:
        yield f"reference/{name}.md", reference(name, import_module(f"bandits.{name}"))
    yield "reference/agents.md", kinds_page("Agents", "agents", dict(AGENTS))
    yield "reference/simulators.md", kinds_page("Simulators", "simulators", dict(SIMULATORS))


def settings(documents: dict[str, str | None], made: list[str]) -> dict[str, Any]:
    """Return the settings of MkDocs."""
    written = [name for name, text in documents.items() if text is not None]
    decisions = sorted(name for name in written if name.startswith("docs/decisions/"))
    top = ("README.md", *GUIDE, *decisions)
    rest = sorted(name for name in written if name not in top)
    return {
        "site_name": "Bandit Playground",
        "docs_dir": str(SITE),
        "site_dir": str(ROOT / "site"),
        "use_directory_urls": False,
        # no fonts from elsewhere: the site opens offline
        "hooks": [str(ROOT / "docs" / "site_hooks.py")],
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.indexes", "toc.follow"],
            "palette": [
                {"media": f"(prefers-color-scheme: {way})", "scheme": scheme, "primary": "teal"}
                for way, scheme in (("light", "default"), ("dark", "slate"))
            ],
        },
        "markdown_extensions": [
            "admonition",
            "attr_list",
            "md_in_html",
            "tables",
            "pymdownx.superfences",
        ],
        "plugins": [
            "search",
            {
                "mkdocstrings": {
                    "handlers": {
                        "python": {
                            "paths": [str(ROOT)],
                            "options": {
                                "docstring_style": "numpy",
                                "show_root_heading": True,
                                "show_root_full_path": False,
                                "show_source": False,
                                "heading_level": 2,
                                "filters": ["!^_"],
                            },
                        }
                    }
                }
            },
        ],
        "validation": dict.fromkeys(
            ("omitted_files", "absolute_links", "unrecognized_links", "anchors"), "warn"
        ),
        "nav": [
            {"Start": "README.md"},
            {"Guide": [name for name in GUIDE if name in written]},
            {"Lessons": [name for name in made if name.startswith("lessons/")]},
            {"Reference": [name for name in made if name.startswith("reference/")]},
            {"Decisions": decisions},
            {"Documents": rest},
        ],
    }


def write() -> None:
    """Write all sources."""
    shutil.rmtree(SITE, ignore_errors=True)
    documents = linked("README.md")
    for name, text in documents.items():
        target = SITE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            shutil.copy(ROOT / name, target)
        else:
            target.write_text(text, "utf-8")
    made = dict(pages())
    for name, text in made.items():
        target = SITE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{text}\n", "utf-8")
    # JSON is YAML too
    (BUILD / "mkdocs.yml").write_text(json.dumps(settings(documents, list(made))), "utf-8")


if __name__ == "__main__":
    write()
