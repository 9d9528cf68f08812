"""The command line: lists, written files and error messages."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bandits import Experiment, run
from bandits.agents import REGISTRY as AGENTS
from bandits.base.processes import worker_environment
from bandits.cli import main as cli
from bandits.results.metric_registry import CURVES
from bandits.simulators import REGISTRY as SIMULATORS

ROOT = Path(__file__).parents[2]
SMALL = {
    "simulator": {"kind": "petshop", "n_products": 10},
    "agents": [{"kind": "linucb", "alpha": 1.5}, {"kind": "ucb1"}, {"kind": "random"}],
    "steps": 1500,
    "replications": 3,
}
# more than Python turns into a number
DIGITS = "1" * 5000
FILES = ["curves.parquet", "experiment.json", "summary.json", "timing.json"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(SMALL), encoding="utf-8")
    return path


def command(
    *arguments: str | Path, stdin: str = "", **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell."""
    return subprocess.run(
        [sys.executable, "-m", "bandits", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=worker_environment(),
        check=False,
        **options,
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return the one line that a refused command prints."""
    assert cli.main([*map(str, arguments)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("error: ")
    assert "Traceback" not in line
    return line


def test_list_names_every_kind_and_parameter() -> None:
    done = command("list")
    assert (done.returncode, done.stderr) == (0, "")
    for registry in (SIMULATORS, AGENTS):
        for kind, cls in registry.items():
            assert f"\n  {kind} — " in done.stdout
            for name in cls.Params.model_fields:
                assert name in ("kind", "label") or f"    {name} = " in done.stdout


def test_list_json_has_every_field_with_its_bounds_and_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert set(listed) == {"simulators", "agents"}
    for group, registry in (("simulators", SIMULATORS), ("agents", AGENTS)):
        assert list(listed[group]) == list(registry)
        for kind, cls in registry.items():
            facts = listed[group][kind]
            assert facts["title"] == cls.title
            assert facts["about"].endswith(".")
            assert set(facts["parameters"]) == set(cls.Params.model_fields) - {"kind", "label"}
            for field in facts["parameters"].values():
                assert set(field) >= {
                    "title",
                    "symbol",
                    "unit",
                    "default",
                    "allowed",
                    "structural",
                    "help",
                }
                assert field["title"]
                assert field["help"].endswith(".")
                assert field["allowed"]
    alpha = listed["agents"]["linucb"]["parameters"]["alpha"]
    assert alpha["allowed"] == "a number from 0 to 10"
    assert alpha["default"] == 0.5
    features = listed["simulators"]["petshop"]["parameters"]["features"]
    assert features["allowed"] == "one of additive, interaction, both"


def test_list_prints_descriptions_and_references_without_markup(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "    Reference: Li, Chu, Langford, Schapire (2010), " in listed
    assert not re.search(r"``|\[\d+\]_|\.\. \[|:\w+:`", listed)
    references = cli.catalogue.catalogue()["agents"]["linucb"]["references"]
    assert (
        len(references) == len(re.findall(r"^\s+\.\. \[", AGENTS["linucb"].__doc__ or "", re.M)) > 1
    )


def test_the_tables_of_the_readme_match_the_registries() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, registry in (("simulators", SIMULATORS), ("agents", AGENTS)):
        assert f"<!-- {name} -->" in text
        assert f"<!-- /{name} -->" in text
        assert cli.catalogue.readme_tables()[name].count("\n") == len(registry) + 1
    again = "regenerate the tables: python -m bandits.cli.catalogue --write README.md"
    assert cli.catalogue.with_tables(text) == text, again


@pytest.mark.slow
def test_run_writes_four_files_with_the_same_numbers_as_a_script(
    file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "folder"
    done = command("run", file, "--out", out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["LinUCB", "UCB1", "Random"]
    assert sorted(path.name for path in out.iterdir()) == FILES
    e = Experiment.model_validate(SMALL)
    result = run(e)
    assert Experiment.model_validate_json((out / "experiment.json").read_text("utf-8")) == e
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    check_summary(summary, e)
    assert summary == json.loads(json.dumps(result.summary()))
    timing = json.loads((out / "timing.json").read_text("utf-8"))
    assert set(timing) == {"agents", "seconds"}
    assert timing["seconds"] > 0
    assert list(timing["agents"]) == list(e.labels)
    assert all(set(t) == {"microseconds_per_decision"} for t in timing["agents"].values())
    assert all(t["microseconds_per_decision"] > 0 for t in timing["agents"].values())

    table = pd.read_parquet(out / "curves.parquet")
    assert list(table.columns) == ["agent", "metric", "step", "mid", "low", "high"]
    assert [t.kind for t in table.dtypes[2:]] == ["i", "f", "f", "f"]
    # of logs and of visits
    others = {"spectrum", "counted", "per_visit", "visit_length", "visit_regret"}
    assert set(table.metric) == set(CURVES) - others
    for name in set(CURVES) - others:
        for label, band in result.curve(name).items():
            rows = table[(table.agent == label) & (table.metric == name)]
            np.testing.assert_array_equal(rows.step, band.x)
            np.testing.assert_array_equal(rows.mid, band.mid)
            np.testing.assert_array_equal(rows.low, band.low)
            np.testing.assert_array_equal(rows.high, band.high)


def check_summary(summary: dict[str, Any], e: Experiment) -> None:
    """Check the keys of a summary and that its values are numbers."""
    estimate = {"mean", "low", "high"}
    assert set(summary) == {"hash", "agents", "comparisons"}
    assert summary["hash"] == e.hash
    assert list(summary["agents"]) == list(e.labels)
    for agent in summary["agents"].values():
        assert set(agent) >= {"ctr", "clicks", "pseudo_regret", "realised_regret", "entropy"}
        assert all(
            set(agent[name]) == estimate
            for name in ("ctr", "clicks", "pseudo_regret", "realised_regret", "entropy")
        )
        if e.replications == 1:
            # one replication has no interval
            assert agent["ctr"]["low"] is agent["ctr"]["high"] is None
        else:
            assert agent["ctr"]["low"] <= agent["ctr"]["mean"] <= agent["ctr"]["high"]
        assert agent["clicks"]["mean"] == pytest.approx(agent["ctr"]["mean"] * e.steps)
    pairs = [(c["a"], c["b"]) for c in summary["comparisons"]]
    assert (
        len(pairs)
        == len({frozenset(pair) for pair in pairs})
        == len(e.labels) * (len(e.labels) - 1) // 2
    )
    for c in summary["comparisons"]:
        assert set(c) >= {"a", "b", "difference", "probability_better", "break_even_step"}
        assert set(c["difference"]) == estimate
        assert 0 <= c["probability_better"] <= 1
        assert c["break_even_step"] is None or 0 <= c["break_even_step"] <= e.steps
        clicks = (
            summary["agents"][c["a"]]["clicks"]["mean"]
            - summary["agents"][c["b"]]["clicks"]["mean"]
        )
        assert c["difference"]["mean"] == pytest.approx(clicks)


def test_options_on_the_command_line_change_the_experiment(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    changes = [
        "--set",
        "agents.0.alpha=2",
        "--set",
        "simulator.features=interaction",
        "--set",
        "agents.1.label=Mine",
    ]
    changes += [
        "--set",
        "simulator.shock_step=null",
        "--set",
        "seed=7",
        "--steps",
        "200",
        "--replications",
        "2",
    ]
    assert cli.main(["run", str(file), "--out", str(out), *changes]) == 0
    changed = json.loads(json.dumps(SMALL))
    changed["agents"][0]["alpha"], changed["agents"][1]["label"] = 2.0, "Mine"
    changed["simulator"]["features"] = "interaction"
    e = Experiment.model_validate({**changed, "steps": 200, "replications": 2, "seed": 7})
    assert Experiment.model_validate_json((out / "experiment.json").read_text("utf-8")) == e
    assert json.loads((out / "summary.json").read_text("utf-8")) == json.loads(
        json.dumps(run(e).summary())
    )


def test_a_whole_agent_can_be_replaced(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--set", 'agents.2={"kind": "lints", "sigma2": 0.5}', "--steps", "50"]
    assert cli.main(["run", str(file), "--out", str(out), *arguments]) == 0
    assert json.loads((out / "experiment.json").read_text("utf-8"))["agents"][2]["kind"] == "lints"


def test_an_experiment_is_read_from_standard_input_and_printed_only(tmp_path: Path) -> None:
    done = command("run", "-", stdin=json.dumps({**SMALL, "steps": 100}), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("LinUCB  ")
    assert list(tmp_path.iterdir()) == []


def test_stopped_agents_and_single_replications_give_valid_json(tmp_path: Path) -> None:
    out = tmp_path / "out"
    lone = {"agents": [{"kind": "random"}], "steps": 1, "replications": 1}
    (tmp_path / "lone.json").write_text(json.dumps(lone), encoding="utf-8")
    assert cli.main(["run", str(tmp_path / "lone.json"), "--out", str(out)]) == 0
    check_summary(
        json.loads((out / "summary.json").read_text("utf-8")), Experiment.model_validate(lone)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[1, 2]", ""),
        ('"linucb"', ""),
        ("\ufeff{}", "agents is missing"),
        ('{"agents": [{"kind": "linucb", "alpha": NaN}]}', "NaN is not a number"),
        ('{"agents": [{"kind": "linucb", "alpha": Infinity}]}', "Infinity is not a number"),
        ('{"agents": [{"kind": "linucb", "alpha": true}]}', "agents.0.alpha"),
        ('{"agents": [{"kind": "linucb", "alpha": "2"}]}', "agents.0.alpha"),
        ('{"agents": [{"kind": "linucb", "alpha": 11}]}', "a number from 0 to 10"),
        ('{"agents": [{"kind": "linucb", "alpha": -1e400}]}', ""),
        ('{"agents": [{"kind": "linucb", "bogus": 1}]}', "bogus"),
        ('{"agents": [{"kind": "nobody"}]}', "nobody"),
        ('{"agents": [{}]}', "agents.0"),
        ('{"agents": []}', "agents"),
        ("{}", "agents"),
        ('{"agents": [{"kind": "random"}], "steps": true}', "steps"),
        ('{"agents": [{"kind": "random"}], "steps": 0}', "from 1 to 10,000,000"),
        ('{"agents": [{"kind": "random"}], "steps": 1.5}', "steps"),
        ('{"agents": [{"kind": "random"}], "steps": 1, "steps": 2}', "appears twice"),
        (
            '{"agents": [{"kind": "random", "label": "a"}, {"kind": "ucb1", "label": "a"}]}',
            "used twice",
        ),
        (
            '{"agents": [{"kind": "linucb"}], "simulator": {"kind": "petshop", "n_products": 10000000}}',  # noqa: E501
            "GiB",
        ),
        ("[" * 5000, ""),
        (f'{{"agents": [{{"kind": "random"}}], "steps": {DIGITS}}}', "a number has 5,000 digits"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    assert message in refused(capsys, "run", path, "--out", out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "agents.0.alpha"], "write PATH=VALUE"),
        (["--set", "agents.9.alpha=1"], "'9' is not a position from 0 to 2"),
        (["--set", "agents.one.alpha=1"], "'one' is not a position from 0 to 2"),
        (["--set", "agents.0.alfa=1"], "alfa"),
        (["--set", "nothing.at.all=1"], "'nothing' is not a known field"),
        (["--set", "steps.more=1"], "there is nothing under 'steps'"),
        (["--set", "agents.0.alpha=NaN"], "NaN is not a number"),
        (["--set", "agents.0.alpha=true"], "agents.0.alpha"),
        (["--set", "=3"], "not a known field"),
        (["--set", "agents.0=3"], "agents.0"),
        (["--steps", "many"], "steps"),
        (["--steps", "0"], "steps"),
        (["--replications", "-1"], "replications"),
        (["--replications", "5000"], "from 1 to 4,096"),
        (["--set", f"steps={DIGITS}"], "steps is 111"),
        (["--set", f"steps=-{DIGITS}"], "from 1 to 10,000,000"),
        (["--set", f"agents.{DIGITS}.alpha=1"], "is not a position from 0 to 2"),
        (["--set", f"steps={'[' * 100_000}"], "from 1 to 10,000,000"),
        (["--steps", DIGITS], "from 1 to 10,000,000"),
        (["--replications", DIGITS], "from 1 to 4,096"),
        (["--workers", DIGITS], "from 0 (in this process) to 64"),
    ],
)
def test_a_bad_change_is_refused_in_one_sentence(
    arguments: list[str], message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "run", file, *arguments)


def test_missing_and_unwritable_files_are_refused(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No such file" in refused(capsys, "run", tmp_path / "nowhere.json")
    assert "Is a directory" in refused(capsys, "run", tmp_path)
    # a file is no folder, not even for root
    assert str(file) in refused(capsys, "run", file, "--out", file / "below")
    assert str(file) in refused(capsys, "run", file, "--out", file)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00{")
    refused(capsys, "run", binary)
    monkeypatch.setattr(sys, "stdin", io.StringIO("{"))
    assert "not JSON" in refused(capsys, "run", "-")


SWEEP = {**SMALL, "agents": [{"kind": "linucb"}]}
AXES = [{"path": "agents.0.alpha", "values": [0.5, 1.0]}]


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (
            {"experiment": SWEEP, "axes": AXES},
            ["--workers", "many"],
            "--workers is many; it must be a whole number",
        ),
        (
            {"experiment": SWEEP, "axes": AXES},
            ["--workers", "-1"],
            "from 0 (in this process) to 64",
        ),
        (
            {"experiment": SWEEP, "axes": AXES},
            ["--workers", "65"],
            "from 0 (in this process) to 64",
        ),
        (
            {"experiment": SWEEP, "axes": AXES},
            ["--cluster", "somewhere"],
            "it must be tls://host:port",
        ),
        (
            {"experiment": SWEEP, "axes": AXES},
            ["--cluster", "tcp://192.0.2.1:8786"],
            "is not encrypted",
        ),
        (
            {"experiment": SWEEP, "axes": AXES},
            ["--cluster", "tcp://localhost\n:1"],
            "it must be tls://host:port",
        ),
        ({"experiment": SMALL, "axes": AXES}, [], "a sweep varies one agent; its experiment has 3"),
        (
            {"experiment": SWEEP, "axes": [{"path": "agents.0.alfa", "values": [1, 2]}]},
            [],
            "no such parameter",
        ),
        (SWEEP, [], "is not a known field; known are experiment, axes"),
        ([], [], "must be an object"),
    ],
)
def test_a_bad_sweep_is_refused_in_one_sentence(
    data: Any,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert message in refused(capsys, "sweep", path, *arguments)
    assert "No such file" in refused(capsys, "sweep", tmp_path / "nowhere.json", *arguments)


@pytest.mark.slow
def test_a_refusal_in_a_shell_is_one_line_and_status_2(tmp_path: Path) -> None:
    done = command("run", tmp_path / "nowhere.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    usage = command("run")
    assert usage.returncode == 2
    assert "Traceback" not in usage.stderr
