"""Kinds from files of the user: known in every process, with the numbers of any kind, or refused in a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bandits.base.processes import worker_environment

MINE = """
from typing import Literal
from bandits.agents.context_free.random import Random
from bandits.simulators.petshop import PetShop

class Quiet(PetShop):
    class Params(PetShop.Params):
        kind: Literal["quiet"] = "quiet"

class Other(Random):
    class Params(Random.Params):
        kind: Literal["other"] = "other"
    title = "Other"
"""
RACE = {"simulator": {"kind": "quiet"}, "agents": [{"kind": "other"}, {"kind": "linucb"}], "steps": 200}
WORKER = """
import json, sys, time
from bandits import read, run
from bandits.runtime.pool import Pool
e = read(sys.argv[1])
pool = Pool()
job = pool.submit(e)
while job.active:
    time.sleep(0.02)
pool.close()
assert job.status == "finished", job.error
assert job.result.summary() == run(e).summary()
print(*job.result.histories)
"""


def command(*arguments: str, plugins: list[Path]) -> subprocess.CompletedProcess[str]:
    environment = {**worker_environment(), "BANDITS_PLUGINS": os.pathsep.join(map(str, plugins))}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return path


def test_kinds_of_a_file_are_known_here_and_in_workers(mine: Path) -> None:
    done = command("-c", WORKER, json.dumps(RACE), plugins=[mine])
    assert (done.returncode, done.stdout) == (0, "Other LinUCB\n"), done.stderr
    listed = command("-m", "bandits", "list", "--json", plugins=[mine])
    found = json.loads(listed.stdout)
    assert (list(found["simulators"])[-1], list(found["agents"])[-1]) == ("quiet", "other")
    assert found["simulators"]["quiet"]["parameters"] == found["simulators"]["petshop"]["parameters"]
    # what the file only uses is not brought once more
    assert sum(kind == "petshop" for kind in found["simulators"]) == 1


def test_what_cannot_be_brought_is_refused(mine: Path, tmp_path: Path) -> None:
    other = tmp_path / "twice.py"
    other.write_text(MINE, encoding="utf-8")
    refused = command("-c", "from bandits import Experiment", plugins=[mine, other])
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"bandits.base.errors.UserError: the plug-in {other} brings the kind 'quiet', which is there already"
    )
    refused = command("-c", "from bandits import Experiment", plugins=[tmp_path / "nowhere.py"])
    assert "nowhere.py is not a Python file" in refused.stderr.splitlines()[-1]
