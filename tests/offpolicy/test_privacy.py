"""What was hashed on upload stays hashed in decision logs, their exports and kept logs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bandits import offpolicy
from bandits.base.files import home
from bandits.cli.main import main
from bandits.offpolicy import reading
from bandits.offpolicy.keeping import keep_for_replay
from bandits.simulators.datasets import csv_table, uploads
from bandits.simulators.datasets.protection import protect

WORDS = [f"Zaphod{i}Beeblebrox" for i in range(3)]


def decoded(path: Path) -> bytes:
    """Return the bytes of a file, and of a compressed table also what they decode to."""
    text = path.read_bytes()
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        text += (
            table.to_pandas().to_csv().encode()
            + repr(table.schema.to_string(show_field_metadata=True)).encode()
        )
    return text


@pytest.mark.parametrize("hashed", [("who", "bought"), ()])
def test_logged_contexts_inherit_what_was_hashed(hashed: tuple[str, ...], tmp_path: Path) -> None:
    """Every byte of BANDITS_HOME, with a run, its decision logs in three formats, and a log kept
    for replays.
    """
    rows = "".join(f"{WORDS[i % 3]},{20 + i % 9},{WORDS[i % 2]}x\n" for i in range(60))
    table = csv_table.inspect(f"who,age,bought\n{rows}".encode())
    name = uploads.save_dataset(
        protect(table, target="bought", hashed=hashed), target="bought", title="Mine"
    )
    simulator = {"kind": "classification", "data": name, "encoding": "context"}
    agents = [{"kind": "random"}, {"kind": "epsilon_greedy"}]
    experiment = tmp_path / "experiment.json"
    text = {"simulator": simulator, "agents": agents, "steps": 60, "replications": 2}
    experiment.write_text(json.dumps(text), encoding="utf-8")
    out = home() / "out"
    assert (
        main(["run", str(experiment), "--workers", "0", "--keep", "--log", "--out", str(out)]) == 0
    )
    assert sorted(path.name for path in (out / "log").iterdir()) == [
        "Random.parquet",
        "ε-greedy.parquet",
    ]
    for path in list((out / "log").iterdir()):
        for ending in (".csv", ".dsjson"):
            reading.convert(path, out / f"{path.stem}{ending}")
    log = offpolicy.read_log(out / "log" / "Random.parquet")
    # the contexts themselves
    assert log.features is not None
    keep_for_replay(log, "Mine")
    files = [path for path in home().rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} >= {"data", "logs", "log", "out"}
    found = [path for path in files if b"Zaphod" in decoded(path)]
    # in clear text, the same search finds them
    assert bool(found) != bool(hashed), found
