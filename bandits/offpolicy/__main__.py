"""``python -m bandits.offpolicy < REQUEST``: record, summarise or evaluate a log; print lines of JSON."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from bandits.base.errors import UserError
from bandits.base.formatting import size
from bandits.base.processes import run_main
from bandits.experiments.experiment import read

from .background import LARGER, MEMORY, to_message
from .choices import summarise
from .evaluation import evaluate
from .keeping import keep_for_replay
from .parquet import write_parquet
from .reading import read_log
from .recording import record


def main() -> int:
    """Carry out the request; print an error line if it is refused."""
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if limit[1] < 0 else min(MEMORY, limit[1]), limit[1]))
    try:
        request = json.loads(sys.stdin.read())
        if "experiment" in request:
            experiment = read(request["experiment"])
            log = record(experiment, request["label"], rows=request["rows"], progress=lambda steps: _print(steps=steps))
            write_parquet(log, Path(request["path"]))
            _print(written=True)
        elif "title" in request:
            log = read_log(request["log"], request["mapping"])
            _print(kept=keep_for_replay(log, request["title"], uniform=request["uniform"]))
        elif "target" not in request:
            _print(summary=summarise(read_log(request["log"], request["mapping"])).as_message())
        else:
            found = evaluate(read_log(request["log"], request["mapping"]), request["target"], **request["options"])
            _print(evaluation=to_message(found))
    except MemoryError:
        _print(error=f"the log takes more than {size(MEMORY)} of memory; {LARGER}")
    except UserError as error:
        _print(error=str(error))
    return 0


def _print(**message: Any) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    run_main(main)
