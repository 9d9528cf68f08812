"""``python -m bandits.profiling [QUESTION]``: measure, a line of JSON per step."""

from __future__ import annotations

import json
import os
import sys

from . import measure, read
from .background import data_of


def main() -> int:
    """Measure what the first argument (JSON) asks, or the usual; 2 if it cannot be measured."""
    try:
        question = read(json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}"))
    except ValueError as sentence:
        print(f"error: {sentence}", file=sys.stderr)
        return 2
    for step in measure(question):
        print(json.dumps(data_of(step)), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
