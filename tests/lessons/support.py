"""A small lesson to change: one run, one claim, one of each kind of step."""

from __future__ import annotations

import copy
import json
from typing import Any

from bandits.lessons import Lesson, read_lesson

DATA: dict[str, Any] = {
    "title": "A small lesson",
    "minutes": 5,
    "about": "For tests.",
    "needs": "nothing",
    "allowed_numbers": ["95 %"],
    "steps": [
        {"kind": "text", "id": "welcome"},
        {
            "kind": "predict",
            "id": "guess",
            "answer": {
                "kind": "number",
                "low": 0,
                "high": 1,
                "step": 0.1,
                "unit": "clicks per visit",
                "truth": 'shop.ctr("Oracle")',
                "mark": {"plot": "ctr"},
            },
        },
        {
            "kind": "predict",
            "id": "pick",
            "answer": {
                "kind": "choice",
                "options": [
                    {"text": "Oracle", "when": 'shop.difference("Oracle", "Random") > 0'},
                    {"text": "Random", "when": 'shop.difference("Oracle", "Random") <= 0'},
                ],
            },
        },
        {
            "kind": "predict",
            "id": "rank",
            "answer": {
                "kind": "order",
                "options": [
                    {"text": "Random", "value": 'shop.ctr("Random")'},
                    {"text": "Oracle", "value": 'shop.ctr("Oracle")'},
                ],
            },
        },
        {
            "kind": "run",
            "id": "shop",
            "experiment": {
                "simulator": {"kind": "petshop", "n_products": 10},
                "agents": [
                    {"kind": "oracle"},
                    {"kind": "random"},
                    {"kind": "linucb", "label": "LinUCB alpha 1"},
                ],
                "steps": 1000,
                "replications": 4,
            },
        },
        {
            "kind": "see",
            "id": "look",
            "run": "shop",
            "plots": ["ctr", "lead"],
            "agents": ["Oracle", "Random"],
            "until": 800,
            "predictions": ["guess"],
        },
        {"kind": "explain", "id": "tell"},
        {"kind": "run", "id": "storm", "worked": "rare_feature", "shown": ["ridge"]},
        {
            "kind": "try",
            "id": "tame",
            "run": "storm",
            "parameter": "ridge",
            "low": 0,
            "high": 20,
            "step": 1,
            "start": 1,
            "solution": 10,
            "target": 0.1,
            "goal": "tried.ridge_rare < task.target",
        },
    ],
    "claims": [{"text": "The oracle wins", "holds": 'shop.difference("Oracle", "Random").low > 0'}],
}
MARKDOWN = """
## Welcome {#welcome}

{{shop.steps | count}} visits.

## A guess {#guess}

How much?

### Happened

It was {{shop.ctr("Oracle") | rate ci}}.

## A choice {#pick}

Which?

### Happened

By {{shop.difference("Oracle", "Random") | count}} clicks.

## An order {#rank}

Order them.

### Happened

Random earned {{shop.ctr("Random") | rate}}.

## Run {#shop}

It runs.

## See {#look}

The 95 % interval.

## Explain {#tell}

LinUCB alpha
1 earned {{shop.ctr("LinUCB alpha 1") | rate}} by {{formula linucb}}.

## A worked example {#storm}

Move it.

## Try {#tame}

Below {{task.target}}.

### Hint

It is {{storm.ridge_rare | rate}} now.

### Hint

More.

### Hint

Ten.
"""


def data() -> dict[str, Any]:
    """Return a copy to change."""
    return copy.deepcopy(DATA)


def lesson(changed: dict[str, Any] | None = None, markdown: str = MARKDOWN) -> Lesson:
    """Read the small lesson, or a changed copy of it."""
    return read_lesson("small", json.dumps(changed or DATA), markdown)
