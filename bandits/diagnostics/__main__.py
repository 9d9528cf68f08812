"""``python -m bandits.diagnostics < EXPERIMENT``: what its agents are compared with, a line of JSON each."""

from __future__ import annotations

import json
import os
import sys

from bandits.base.errors import UserError
from bandits.experiments.experiment import read

from .background import KINDS, data_of


def main() -> int:
    """Compare; a world that cannot be made (its data are gone) is said in one sentence."""
    try:
        experiment = read(sys.stdin.read())
        for kind in KINDS:
            print(json.dumps(data_of(kind, experiment)), flush=True)
    except UserError as sentence:
        print(json.dumps({"refused": str(sentence)}), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
