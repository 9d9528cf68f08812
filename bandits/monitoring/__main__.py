"""``python -m bandits.monitoring < REQUEST``: print the alarms of one agent after another, one line of JSON each."""

from __future__ import annotations

import json
import sys

from bandits.base.errors import UserError
from bandits.base.processes import run_main
from bandits.experiments.experiment import read

from .replay import watched


def main() -> int:
    """Replay the agents; print an error line if the run cannot be replayed (missing data, say)."""
    try:
        request = json.loads(sys.stdin.read())
        experiment = read(request["experiment"])
        for label, steps in request["steps"].items():
            monitors, found = watched(experiment, label, steps, rows=request["rows"])
            answer = {"label": label, "monitors": monitors, "alarms": [list(alarm) for alarm in found]}
            print(json.dumps(answer), flush=True)
    except UserError as error:
        print(json.dumps({"error": str(error)}), flush=True)
    return 0


if __name__ == "__main__":
    run_main(main)
