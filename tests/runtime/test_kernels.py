"""Kernels are compiled once for all processes, and those that a run needs are known."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

from bandits.agents import REGISTRY
from bandits.experiments.experiment import Experiment
from bandits.runtime import kernels

ROOT = Path(__file__).parents[2]
# compiles or loads what an agent needs; prints what it had to compile and what it reported
COMPILE = """
from numba.core import event
from bandits.runtime import kernels

class Started(event.Listener):
    def on_start(self, event):
        name = kernels._name(event.data["dispatcher"])
        if name.startswith("bandits."):
            print("compiled", name)

    def on_end(self, event): ...

event.register("numba:compile", Started())
kernels.compile_once(lambda name: print("ready", name))
kernels.compile_for({"kind": "default"})
"""


def test_every_kernel_and_agent_in_the_list_exists() -> None:
    known = kernels._known()
    # a kind that is not in the list is compiled without being counted
    assert known.keys() <= REGISTRY.keys()
    for name in {name for names in known.values() for name in names}:
        module, _, function = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), function), Dispatcher), name


def test_what_is_missing_is_what_the_agents_of_a_run_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_index", lambda dispatcher: tmp_path / dispatcher.__name__)
    agents = [{"kind": "linucb"}, {"kind": "lints"}]
    experiment = Experiment.model_validate({"agents": agents})
    known = kernels._known()
    needed = sorted({*known["linucb"], *known["lints"]})
    assert kernels.missing(experiment) == needed
    (tmp_path / needed[0].rpartition(".")[2]).touch()
    assert kernels.missing(experiment) == needed[1:]


def test_one_process_at_a_time_compiles_ahead(tmp_path: Path) -> None:
    with kernels.warming(tmp_path) as first, kernels.warming(tmp_path) as second:
        assert (first, second) == (True, False)
    with kernels.warming(tmp_path) as again:
        assert again


@pytest.mark.slow
def test_two_processes_compile_each_kernel_once(tmp_path: Path) -> None:
    places = {"NUMBA_CACHE_DIR": str(tmp_path), "BANDITS_HOME": str(tmp_path / "home")}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE],
            cwd=ROOT,
            env={**os.environ, **places},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    lines = [process.communicate()[0].split("\n") for process in both]
    assert [process.returncode for process in both] == [0, 0]
    compiled = [line for part in lines for line in part if line.startswith("compiled")]
    assert len(compiled) == len(set(compiled)) > 3
    ready = {line.removeprefix("ready ") for part in lines for line in part if "ready" in line}
    assert ready >= set(kernels._known()["default"])
