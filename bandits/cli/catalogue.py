"""List simulators and agents: on the command line, as JSON, and as the tables of README.md.

``python -m bandits.cli.catalogue --write README.md`` updates the tables between their markers.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from bandits.agents import REGISTRY as AGENTS
from bandits.base.formatting import description, references
from bandits.base.params import declaration
from bandits.experiments.kinds import agent_kinds, simulator_kinds
from bandits.experiments.validation import describe_range
from bandits.simulators import REGISTRY as SIMULATORS

# characters of a line in the terminal
WIDTH = 120


def catalogue() -> dict[str, Any]:
    """Return all kinds of simulators and agents with their parameters, as plain data."""
    groups: dict[str, Any] = {}
    for group, registry in (("simulators", SIMULATORS), ("agents", AGENTS)):
        groups[group] = {
            kind: {
                "title": cls.title,
                "about": description(cls),
                "references": references(cls),
                "parameters": {
                    name: {
                        "title": field.title,
                        "symbol": declaration(field)["symbol"],
                        "unit": declaration(field)["unit"],
                        "default": field.default,
                        "allowed": describe_range(cls.Params, name),
                        "structural": bool(declaration(field)["structural"]),
                        "help": field.description,
                    }
                    for name, field in cls.Params.model_fields.items()
                    if name not in ("kind", "label")
                },
            }
            for kind, cls in registry.items()
        }
    return groups


def run(parsed: argparse.Namespace) -> int:
    """Print the catalogue; return the exit status."""
    groups = catalogue()
    if parsed.json:
        print(json.dumps(groups, indent=2, ensure_ascii=False))
        return 0
    for group, kinds in groups.items():
        print(group.upper())
        for kind, facts in kinds.items():
            print(f"\n  {kind} — {facts['about']}")
            for name, field in facts["parameters"].items():
                default = json.dumps(field["default"])
                shown = default if len(default) <= 40 else "a table"
                print(f"    {name} = {shown}  ({field['allowed']})  {field['help']}")
            for entry in facts["references"]:
                print(
                    textwrap.fill(
                        entry, WIDTH, initial_indent="    Reference: ", subsequent_indent=" " * 15
                    )
                )
        print()
    return 0


def readme_tables() -> dict[str, str]:
    """Return the tables of README.md in Markdown, by marker."""
    simulators = ["| simulator | title | what it is |", "|---|---|---|"]
    simulators += [f"| `{k.kind}` | {k.title} | {_cell(k.summary)} |" for k in simulator_kinds()]
    agents = ["| agent | title | family | what it is |", "|---|---|---|---|"]
    agents += [
        f"| `{k.kind}` | {k.title} | {k.family} | {_cell(k.summary)} |" for k in agent_kinds()
    ]
    return {"simulators": "\n".join(simulators), "agents": "\n".join(agents)}


def with_tables(text: str) -> str:
    """Return a document with the tables between ``<!-- NAME -->`` and ``<!-- /NAME -->`` replaced
    by current ones.
    """
    for name, table in readme_tables().items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        text = re.sub(pattern, lambda m, table=table: f"{m[1]}{table}\n{m[2]}", text, flags=re.S)  # type: ignore[misc]
    return text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Write the tables into a file, or print them."""
    parser = argparse.ArgumentParser(
        prog="python -m bandits.cli.catalogue", description="Generate README's tables."
    )
    parser.add_argument(
        "--write",
        metavar="FILE",
        type=Path,
        help="update the tables of a file, for example README.md",
    )
    file = parser.parse_args().write
    if file is None:
        print("\n\n".join(readme_tables().values()))
    else:
        file.write_text(with_tables(file.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
