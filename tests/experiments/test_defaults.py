"""Links and files that rely on the defaults of a version keep their numbers.

``defaults_1.json`` records every default of version 1.0. A recorded value is never changed. Who
changes a default raises `defaults.CURRENT`, states the former value in ``FORMER`` for every earlier
set, and records the new set; a new kind, or a field with ``later=True``, is added to every record.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from bandits import UserError, read
from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import Params
from bandits.cli.main import main
from bandits.experiments import defaults, url
from bandits.experiments.presets import presets
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.sweeps import read as read_sweep
from bandits.sweeps import url as sweep_url

RECORD: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("defaults_1.json").read_text(encoding="utf-8")
)
KINDS: dict[str, type[Params]] = {
    kind: cls.Params for kind, cls in [*AGENTS.items(), *SIMULATORS.items()]
}


def experiment_of(kind: str) -> dict[str, Any]:
    """Return an experiment with one kind and no other field."""
    if kind in SIMULATORS:
        return {"simulator": {"kind": kind}, "agents": [{"kind": "random"}], "replications": 1}
    return {"simulator": {"kind": "petshop"}, "agents": [{"kind": kind}], "replications": 1}


def part_of(kind: str, experiment: Any) -> Params:
    """Return the parameters of the one kind of `experiment_of`."""
    part: Params = experiment.simulator if kind in SIMULATORS else experiment.agents[0]
    return part


def values_of(params: Params) -> dict[str, Any]:
    """Return the fields of a record."""
    return {n: v for n, v in params.model_dump(mode="json").items() if n not in ("kind", "label")}


def test_the_defaults_are_those_of_version_1_0() -> None:
    """A kind without a record is new: its defaults are no promise until they are recorded."""
    assert {kind: values_of(KINDS[kind]()) for kind in RECORD} == RECORD
    for kind, record in RECORD.items():
        named = read({**experiment_of(kind), "defaults": 1})
        assert values_of(part_of(kind, named)) == record
        assert named == read(experiment_of(kind))


def test_a_link_states_no_default() -> None:
    for kind in RECORD:
        experiment = read(experiment_of(kind))
        fields = {"simulator", "agents.0", "steps", "replications", "seed", "check"}
        assert set(url.to_query(experiment)) == fields
        assert url.parse_query(url.to_query(experiment)) == (experiment, True)


def test_what_was_written_keeps_its_numbers_when_a_default_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Version 1.1 in small: the default of alpha was 0.7 in set 1 and has changed to today's."""
    today = AGENTS["linucb"].Params().alpha
    monkeypatch.setattr(defaults, "CURRENT", 2)
    monkeypatch.setattr(defaults, "FORMER", {1: {"linucb": {"alpha": 0.7}}})
    plain = experiment_of("linucb")

    def alpha_of(experiment: Any) -> Any:
        return experiment.agents[0].alpha

    assert alpha_of(read(plain)) == alpha_of(read({**plain, "defaults": 2})) == today
    assert alpha_of(read({**plain, "defaults": 1})) == 0.7
    assert (
        alpha_of(read({**plain, "agents": [{"kind": "linucb", "alpha": today}], "defaults": 1}))
        == today
    )
    link = {"simulator": "petshop", "agents.0": "linucb", "replications": "1"}
    former = url.parse_query(link).experiment
    assert alpha_of(former) == 0.7
    assert "agents.0.alpha" not in url.to_query(former)
    assert url.parse_query(url.to_query(read(plain))) == (read(plain), True)
    swept = {**link, "axes.0": "simulator.n_products:20,40"}
    assert alpha_of(sweep_url.parse_query(swept).experiment) == 0.7
    axes = [{"path": "simulator.n_products", "values": [20, 40]}]
    assert (
        alpha_of(read_sweep({"experiment": {**plain, "defaults": 1}, "axes": axes}).experiment)
        == 0.7
    )


@pytest.mark.parametrize("name", presets())
def test_presets_do_not_depend_on_the_defaults(name: str) -> None:
    folder = files("bandits.experiments.presets")
    file = next(path for path in folder.iterdir() if path.name.partition("-")[2] == f"{name}.json")
    experiment = json.loads(file.read_text(encoding="utf-8"))["experiment"]
    assert read({**experiment, "defaults": 1}) == presets()[name].experiment


@pytest.mark.parametrize("number", [0, -1, defaults.CURRENT + 1, True, "1", None, 1.0])
def test_an_unknown_set_is_refused(number: Any) -> None:
    with pytest.raises(UserError, match=r"defaults is .*; it must be 1$"):
        read({"agents": [{"kind": "linucb"}], "defaults": number})


@pytest.mark.parametrize(
    "agents", [None, 3, [None], [{}], [{"kind": 3}], [{"kind": "nobody"}], {"kind": "linucb"}]
)
def test_malformed_agents_are_refused_with_a_set_as_without(agents: Any) -> None:
    with pytest.raises(UserError) as without:
        read({"agents": agents})
    with pytest.raises(UserError) as named:
        read({"agents": agents, "defaults": 1})
    assert str(named.value) == str(without.value)


def test_a_set_is_named_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "experiment.json"
    file.write_text(json.dumps({"agents": [{"kind": "lints"}], "steps": 5, "replications": 1}))
    assert main(["run", str(file), "--set", "defaults=1", "--out", str(tmp_path / "out")]) == 0
    written = json.loads((tmp_path / "out" / "experiment.json").read_text())
    assert values_of(read(written).agents[0]) == RECORD["lints"]
    assert main(["run", str(file), "--set", "defaults=2"]) == 2
    assert "defaults is" in capsys.readouterr().err
