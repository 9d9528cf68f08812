"""``python -m bandits.width_cost.linear [REQUEST]``: print one line of JSON per result."""

from __future__ import annotations

import json
import sys

from bandits.base.processes import run_main

from . import measure_linear, read
from .results import to_json


def main() -> int:
    """Measure the request in the first argument (JSON); return 2 if it is invalid.

    Without an argument, the default request is measured.
    """
    try:
        request = read(json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}"))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for progress in measure_linear(request):
        print(json.dumps(to_json(progress)), flush=True)
    return 0


if __name__ == "__main__":
    run_main(main)
