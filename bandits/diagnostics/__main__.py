"""``python -m bandits.diagnostics < EXPERIMENT``: print the reference values, one line of JSON each."""

from __future__ import annotations

import json
import sys

from bandits.base.errors import UserError
from bandits.base.processes import run_main
from bandits.experiments.experiment import read

from .background import KINDS, to_json


def main() -> int:
    """Compute the references; print an error line if the simulator cannot be created (missing data, say)."""
    try:
        experiment = read(sys.stdin.read())
        for kind in KINDS:
            print(json.dumps(to_json(kind, experiment)), flush=True)
    except UserError as error:
        print(json.dumps({"error": str(error)}), flush=True)
    return 0


if __name__ == "__main__":
    run_main(main)
