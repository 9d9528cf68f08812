"""Agents and simulators from outside the package: how they are found, refused and reported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from bandits.agents import REGISTRY as AGENTS
from bandits.base.errors import UserError
from bandits.base.params import hash_content
from bandits.base.processes import worker_environment
from bandits.experiments import plugins
from bandits.simulators import REGISTRY as SIMULATORS
from tests.support import thinned

AGENT = '''
from typing import Any, Literal

import numpy as np

from bandits.agents import Agent, AgentParams
from bandits.base.params import param
from bandits.base.types import FloatArray, Round


class Fixed(Agent):
    """Always show the candidate at one position."""

    class Params(AgentParams):
        kind: Literal["fixed"] = "fixed"
        place: int = param(0, title="Position", help="Position of the candidate.", ge=0, le=9)

    title = "Fixed position"
    formula = "1"
    learns = False

    def scores(self, round: Round) -> FloatArray:
        scores = np.zeros(round.items.shape)
        scores[:, int(self.params[0].place)] = 1.0
        return scores
'''
SIMULATOR = '''
from typing import Any, Literal

import numpy as np

from bandits.simulators import SimulatorParams
from bandits.simulators.dense import DenseSimulator


class Coins(DenseSimulator):
    """Coins with different chances of heads."""

    class Params(SimulatorParams):
        kind: Literal["coins"] = "coins"

    title = "Coins"

    @classmethod
    def sizes(cls, params: Any) -> tuple[int, int]:
        return 4, 4

    def draw_weights(self, generator: np.random.Generator) -> Any:
        return generator.random(4)

    def draw_features(self, generator: np.random.Generator, n: int) -> Any:
        return np.broadcast_to(np.eye(4), (n, 4, 4)).copy()

    def expected_rewards(self, features: Any, weights: Any) -> Any:
        return np.broadcast_to(weights, (len(features), 4)).copy()
'''
REWARD = """
    def reward(self, means: Any, uniforms: Any) -> Any:
        return {}
"""
FIXED = {"kind": "fixed", "place": 1}
EXPERIMENT = {"simulator": {"kind": "coins"}, "agents": [FIXED, {"kind": "random"}], "steps": 50}


def write(path: Path, *parts: str) -> Path:
    path.write_text("\n".join(map(dedent, parts)), encoding="utf-8")
    return path


def bandits(*arguments: str, files: list[Path], text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**worker_environment(), plugins.VARIABLE: os.pathsep.join(map(str, files))}
    return subprocess.run(
        [sys.executable, "-m", "bandits", *arguments],
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )


@pytest.fixture
def registries() -> Iterator[None]:
    before = dict(AGENTS), dict(SIMULATORS), dict(plugins._sources)
    yield
    for registry, kinds in zip((AGENTS, SIMULATORS, plugins._sources), before, strict=True):
        registry.clear()
        registry.update(kinds)


@pytest.mark.slow
def test_kinds_of_two_files_are_listed_and_run_and_the_agent_reaches_the_workers(
    tmp_path: Path,
) -> None:
    files = [write(tmp_path / "mine.py", AGENT), write(tmp_path / "world.py", SIMULATOR)]
    listed = bandits("list", "--json", files=files)
    assert (listed.returncode, listed.stderr) == (0, "")
    kinds = json.loads(listed.stdout)
    # after the built-in ones
    assert list(kinds["agents"])[-1] == "fixed"
    assert kinds["simulators"]["coins"]["about"] == "Coins with different chances of heads."
    ran = bandits("run", "-", files=files, text=json.dumps(EXPERIMENT))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [line.split("  ")[0] for line in ran.stdout.splitlines()] == ["Fixed position", "Random"]
    sweep = {
        "experiment": {**EXPERIMENT, "agents": [FIXED]},
        "axes": [{"path": "agents.0.place", "values": [0, 1]}],
    }
    swept = bandits("sweep", "-", "--workers", "1", files=files, text=json.dumps(sweep))
    assert swept.returncode == 0, swept.stderr
    assert swept.stdout.startswith("best: place ")


def test_a_file_without_kinds_is_loaded_too(tmp_path: Path) -> None:
    assert plugins.load_file(write(tmp_path / "empty.py", "x = 1")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            AGENT.replace('"fixed"', '"linucb"'),
            "defines the kind 'linucb', which is a built-in agent",
        ),
        (
            SIMULATOR.replace('"coins"', '"petshop"'),
            "defines the kind 'petshop', which is a built-in simulator",
        ),
        (
            AGENT.replace('Literal["fixed"] = "fixed"', 'str = "fixed"'),
            "Fixed.Params needs a line like kind: Literal",
        ),
        (AGENT.replace('"fixed"', '"My Agent"'), "in lower-case letters, digits and underscores"),
        (AGENT.replace('title = "Fixed position"', ""), "Fixed needs a title"),
        (
            AGENT.replace("class Params(AgentParams)", "class Other(AgentParams)"),
            "needs a class Params(AgentParams)",
        ),
        (AGENT + "\n1 / 0", "cannot be loaded: ZeroDivisionError: division by zero (line 27)"),
        (AGENT + "\nraise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
        ("class :", "cannot be loaded: SyntaxError: invalid syntax (line 1)"),
        (AGENT.replace("def scores", "def score"), "Fixed needs the method scores"),
        (
            "import nowhere_at_all",
            "cannot be loaded: ModuleNotFoundError: No module named 'nowhere_at_all' (line 1)",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence_and_registers_nothing(
    text: str, message: str, tmp_path: Path, registries: None
) -> None:
    file, before = write(tmp_path / "bad.py", text), (list(AGENTS), list(SIMULATORS))
    with pytest.raises(UserError) as caught:
        plugins.register(plugins.load_file(file), str(file))
    assert message in str(caught.value)
    assert str(file) in str(caught.value)
    assert (list(AGENTS), list(SIMULATORS)) == before


def test_a_kind_of_another_plug_in_is_refused(tmp_path: Path, registries: None) -> None:
    first, second = (
        write(tmp_path / "first.py", AGENT),
        write(tmp_path / "second.py", SIMULATOR, AGENT),
    )
    plugins.register(plugins.load_file(first), str(first))
    with pytest.raises(UserError, match=f"'fixed', which the plug-in {first} defines already"):
        plugins.register(plugins.load_file(second), str(second))
    # no kind of the second file is registered
    assert "coins" not in SIMULATORS


@pytest.mark.slow
def test_errors_are_reported_and_the_others_work(tmp_path: Path) -> None:
    bad, missing, good = (
        write(tmp_path / "bad.py", "1 / 0"),
        tmp_path / "missing.py",
        write(tmp_path / "a.py", AGENT),
    )
    early = write(tmp_path / "early.py", "from bandits import Experiment")
    ran = bandits(
        "run",
        "-",
        files=[bad, early, missing, good],
        text='{"agents": [{"kind": "fixed"}], "steps": 20}',
    )
    assert ran.returncode == 0
    assert ran.stdout.startswith("Fixed position")
    assert ran.stderr.splitlines() == [
        f"the plug-in {bad} cannot be loaded: ZeroDivisionError: division by zero (line 1)",
        f"the plug-in {early} imports bandits.experiments while it is loaded; do that in a "
        "function",
        f"the plug-in {missing} does not exist",
    ]
    refused = bandits("run", "-", files=[], text='{"agents": [{"kind": "fixed"}]}')
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "error: agents.0.kind (Agent 1) is 'fixed'; it must be one of linucb"
    )


def test_entry_points_of_installed_packages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registries: None
) -> None:
    write(tmp_path / "mine_for_test.py", AGENT)
    write(tmp_path / "worlds_for_test.py", SIMULATOR)
    points = {
        "bandits.agents": [
            EntryPoint("fixed", "mine_for_test:Fixed", "bandits.agents"),
            EntryPoint("gone", "nowhere_at_all:Agent", "bandits.agents"),
        ],
        "bandits.simulators": [EntryPoint("coins", "worlds_for_test", "bandits.simulators")],
    }
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "entry_points", lambda group: points[group])
    monkeypatch.setattr(plugins, "errors", [])
    plugins.load.__wrapped__()
    assert (list(AGENTS)[-1], list(SIMULATORS)[-1]) == ("fixed", "coins")
    assert plugins.errors == [
        "the plug-in nowhere_at_all:Agent (entry point gone) cannot be loaded: "
        "ModuleNotFoundError: No module named 'nowhere_at_all'"
    ]


def test_an_edited_plug_in_has_a_different_hash(tmp_path: Path, registries: None) -> None:
    hashes: list[dict[str, Any]] = []
    for text in (AGENT, AGENT + "# edited"):
        (cls,) = classes = plugins.load_file(write(tmp_path / "mine.py", text))
        plugins.register(classes, "mine.py")
        hashes.append(hash_content(cls.Params()))
        del AGENTS["fixed"]
    assert hashes[0] != hashes[1]
    assert "source digest" not in hash_content(AGENTS["linucb"].Params())


REGISTERED = """
import sys
import bandits
from bandits.sweeps.sweep import Sweep

def refused(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except bandits.UserError as error:
        return str(error)

file, agent = sys.argv[1], {"kind": "fixed", "place": 1}
print(refused(bandits.Experiment, agents=[agent]))
# before it, so that a class that exists already must learn the kind
print(bandits.register(file), bandits.register(file))
experiment = bandits.Experiment(agents=[agent], steps=50, replications=2)
print(Sweep(experiment=experiment, axes=[{"path": "agents.0.place", "values": [0, 1]}]).size)
print(list(bandits.run(experiment, progress=False, workers=2).ctr))
open(file, "a").write("nonsense(")
print(refused(bandits.register, file))
print(list(bandits.run(experiment, progress=False, workers=0).ctr))
"""


@pytest.mark.slow
def test_a_file_is_registered_in_a_session(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.py", AGENT)
    done = subprocess.run(
        [sys.executable, "-c", REGISTERED, str(file)],
        capture_output=True,
        text=True,
        check=True,
        env={**worker_environment(), plugins.VARIABLE: ""},
    )
    unknown, kinds, size, first, broken, again = done.stdout.splitlines()
    assert unknown.startswith("agents.0.kind (Agent 1) is 'fixed'; it must be one of linucb, ")
    assert unknown.endswith('bandits.register("FILE.py"), or BANDITS_PLUGINS=FILE.py)')
    assert (kinds, size) == ("['fixed'] ['fixed']", "2")
    assert broken.startswith(f"the plug-in {file} cannot be loaded: SyntaxError")
    assert first == again == "['Fixed position']"


@pytest.mark.parametrize(
    ("text", "status", "message"),
    thinned(
        [
            (
                AGENT.replace(
                    "np.zeros(round.items.shape)", "np.zeros(round.items.shape, np.float32)"
                ),
                1,
                "fixed-petshop: scores must be float64 (3, 10); got float32 (3, 10)",
            ),
            (
                AGENT.replace('"Position of the candidate."', '"Position"'),
                1,
                "fixed: the parameter place needs help: a sentence with a full stop",
            ),
            (
                AGENT.replace("place: int = param(0,", "place: int = param(10,"),
                1,
                "fixed: all parameters need valid defaults: place: Input should be less than or "
                "equal to 9",
            ),
            (SIMULATOR.replace("(n, 4, 4)", "(n, 4, 5)"), 1, "(line 26) (and "),
            (SIMULATOR, 0, " checks passed"),
            (SIMULATOR.replace("return 4, 4", "return 4, 3"), 1, "4, 3) that sizes states; got ("),
            (
                SIMULATOR.replace("return generator.random(4)", "return 2 + generator.random(4)"),
                1,
                "coins: expected rewards must be from 0 to 1 where rewards are 0 or 1",
            ),
            (
                SIMULATOR + REWARD.format("means + uniforms"),
                1,
                "coins: rewards must be 0 or 1, or describe must not declare the capability binary",
            ),
            (
                SIMULATOR + REWARD.format("(uniforms < means / 2).astype(float)"),
                1,
                "coins: the mean of an item's rewards must be its expected reward",
            ),
            (
                SIMULATOR.replace("    @classmethod", ""),
                1,
                "coins: TypeError: Coins.sizes() missing 1 required",
            ),
            (
                SIMULATOR.replace("Coins with different chances of heads.", "Coins"),
                1,
                "must begin with a sentence",
            ),
            ("1 / 0", 2, ""),
            ("x = 1", 2, "defines no agent and no simulator"),
        ],
        lambda _: False,
        lambda number: number in (0, 3, 4),
    ),
)
def test_check_prints_one_line_for_each_failure(
    text: str, status: int, message: str, tmp_path: Path
) -> None:
    done = bandits("check", str(write(tmp_path / "mine.py", text)), files=[])
    assert done.returncode == status, done.stdout
    assert message in (done.stderr if status == 2 else done.stdout)
    assert "Traceback" not in done.stdout + done.stderr
    if status == 1:
        *lines, total = done.stdout.splitlines()
        assert re.fullmatch(r"\d+ of \d+ checks failed", total)
        assert all(re.match(r"[\w.-]+: ", line) for line in lines)


def test_check_refuses_a_missing_file(tmp_path: Path) -> None:
    done = bandits("check", str(tmp_path / "gone.py"), files=[])
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"error: {tmp_path / 'gone.py'} does not exist\n",
    )
