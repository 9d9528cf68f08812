"""Links, files and presets that rely on the defaults of an earlier version keep their numbers.

``tests/data/defaults/N.json`` records every default of set N. A recorded value is never changed. Who changes a default
raises `earlier_defaults.CURRENT`, states the former value in ``EARLIER`` for every earlier set, and records the new
set; who adds a kind, or a field with ``later=True``, adds it to every record.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from bandits import UserError, read
from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import Params, metadata
from bandits.cli.main import main
from bandits.experiments import earlier_defaults, url
from bandits.experiments.earlier_defaults import CURRENT, EARLIER, LINKS
from bandits.experiments.presets import presets
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.sweeps import read as read_sweep
from bandits.sweeps import url as sweep_url

TESTS = Path(__file__).parents[1]
RECORDS: dict[int, dict[str, dict[str, Any]]] = {
    number: json.loads((TESTS / "data" / "defaults" / f"{number}.json").read_text(encoding="utf-8"))
    for number in range(1, CURRENT + 1)
}
HOME = json.loads((TESTS / "data" / "version_0_2_0" / "home.json").read_text(encoding="utf-8"))
KINDS: dict[str, type[Params]] = {kind: cls.Params for kind, cls in [*AGENTS.items(), *SIMULATORS.items()]}
EXPECTED = [(number, kind) for number in RECORDS for kind in RECORDS[number]]


def experiment_of(kind: str) -> dict[str, Any]:
    """Return an experiment with one kind and no other field."""
    if kind in SIMULATORS:
        return {"simulator": {"kind": kind}, "agents": [{"kind": "random"}], "replications": 1}
    return {"simulator": {"kind": "petshop"}, "agents": [{"kind": kind}], "replications": 1}


def values_of(params: Params) -> dict[str, Any]:
    """Return the fields of a record."""
    return {n: v for n, v in params.model_dump(mode="json").items() if n not in ("kind", "label")}


def part_of(kind: str, experiment: Any) -> Params:
    """Return the parameters of the one kind of `experiment_of`."""
    part: Params = experiment.simulator if kind in SIMULATORS else experiment.agents[0]
    return part


@pytest.mark.parametrize("number", RECORDS)
def test_records_hold_every_field(number: int) -> None:
    """A kind without a record is new: its defaults are no promise until they are recorded."""
    assert RECORDS[1].keys() <= RECORDS[number].keys() <= KINDS.keys()
    assert all(set(record) == set(values_of(KINDS[kind]())) for kind, record in RECORDS[number].items())


@pytest.mark.parametrize(("number", "kind"), EXPECTED)
def test_an_experiment_has_the_defaults_of_the_set_that_it_names(number: int, kind: str) -> None:
    named = read({**experiment_of(kind), "defaults": number})
    assert values_of(part_of(kind, named)) == RECORDS[number][kind]


@pytest.mark.parametrize("kind", RECORDS[CURRENT])
def test_without_a_set_an_experiment_has_the_current_defaults(kind: str) -> None:
    assert values_of(part_of(kind, read(experiment_of(kind)))) == RECORDS[CURRENT][kind]


@pytest.mark.parametrize("kind", RECORDS[LINKS])
def test_a_link_leaves_out_the_defaults_of_one_set_for_ever(kind: str) -> None:
    bare = {"simulator": "petshop", "agents.0": "random"} | (
        {"simulator": kind} if kind in SIMULATORS else {"agents.0": kind}
    )
    experiment = url.parse_query({**bare, "replications": "1"}).experiment
    assert values_of(part_of(kind, experiment)) == RECORDS[LINKS][kind]
    assert {name for name in url.to_query(experiment) if name.count(".") == 2 or name.startswith("simulator.")} == set()
    today = read(experiment_of(kind))
    assert url.parse_query(url.to_query(today)) == (today, True)


@pytest.mark.parametrize("kind", AGENTS)
def test_a_link_of_a_sweep_keeps_its_numbers(kind: str) -> None:
    field = next((n for n in AGENTS[kind].Params.model_fields if n in ("alpha", "sigma2", "learning_rate")), None)
    axis = f"agents.0.{field},0.1,1,3,linear" if field else "simulator.n_products:20,40"
    link = {"simulator": "petshop", "agents.0": kind, "replications": "1", "axes.0": axis}
    sweep = sweep_url.parse_query(link)
    assert values_of(sweep.experiment.agents[0]) == RECORDS[LINKS][kind]
    assert sweep_url.parse_query(sweep_url.to_query(sweep)).hash == sweep.hash
    experiment = {**experiment_of(kind), "defaults": LINKS}
    axes = [{"path": "simulator.n_products", "values": [20, 40]}]
    assert values_of(read_sweep({"experiment": experiment, "axes": axes}).experiment.agents[0]) == RECORDS[LINKS][kind]


def test_defaults_of_fields_added_later_never_change() -> None:
    """Files from before such a field do not hold it, and hashes leave it out at its default."""
    later = {(kind, name) for kind in KINDS for name, f in KINDS[kind].model_fields.items() if metadata(f, "later")}
    changed = {(kind, name) for table in EARLIER.values() for kind in table for name in table[kind]}
    assert later
    assert not later & changed


def test_stored_files_hold_every_field_whose_default_may_change() -> None:
    stored = [run["experiment"] for run in HOME["runs"]] + [sweep["sweep"]["experiment"] for sweep in HOME["sweeps"]]
    stored = json.loads(json.dumps(stored))
    parts = [part for experiment in stored for part in (experiment["simulator"], *experiment["agents"])]
    assert len(parts) > 10
    for part in parts:
        fields = KINDS[part["kind"]].model_fields
        assert {name for name, field in fields.items() if not metadata(field, "later")} <= set(part)
    for experiment in stored:
        if "data" in experiment["simulator"]:
            experiment["simulator"]["data"] = "digits"  # the uploaded table is not here
        assert read({**experiment, "defaults": 1}) == read(experiment)


@pytest.mark.parametrize("name", presets())
def test_presets_do_not_depend_on_the_defaults(name: str) -> None:
    folder = files("bandits.experiments.presets")
    file = next(path for path in folder.iterdir() if path.name.partition("-")[2] == f"{name}.json")
    experiment = json.loads(file.read_text(encoding="utf-8"))["experiment"]
    assert {read({**experiment, "defaults": number}) for number in RECORDS} == {presets()[name].experiment}


@pytest.mark.parametrize("number", [0, -1, CURRENT + 1, True, "1", None, 1.0])
def test_an_unknown_set_is_refused(number: Any) -> None:
    with pytest.raises(UserError, match=rf"defaults is .*; it must be a whole number from 1 to {CURRENT}"):
        read({"agents": [{"kind": "linucb"}], "defaults": number})


@pytest.mark.parametrize("agents", [None, 3, [None], [{}], [{"kind": 3}], [{"kind": "nobody"}], {"kind": "linucb"}])
def test_malformed_agents_are_refused_with_a_set_as_without(agents: Any) -> None:
    with pytest.raises(UserError) as without:
        read({"agents": agents})
    with pytest.raises(UserError) as named:
        read({"agents": agents, "defaults": 1})
    assert str(named.value) == str(without.value)


def test_a_set_is_named_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "experiment.json"
    file.write_text(json.dumps({"agents": [{"kind": "lints"}, {"kind": "sgd_ts"}], "steps": 5, "replications": 1}))
    assert main(["run", str(file), "--set", "defaults=1", "--out", str(tmp_path / "out")]) == 0
    written = json.loads((tmp_path / "out" / "experiment.json").read_text())
    assert [values_of(agent) for agent in read(written).agents] == [RECORDS[1]["lints"], RECORDS[1]["sgd_ts"]]
    assert main(["run", str(file), "--set", f"defaults={CURRENT + 1}"]) == 2
    assert "defaults is" in capsys.readouterr().err


def test_the_table_states_only_differences() -> None:
    assert set(EARLIER) == set(range(1, CURRENT))
    for number, table in earlier_defaults.EARLIER.items():
        for kind, fields in table.items():
            for name, value in fields.items():
                assert RECORDS[number][kind][name] == json.loads(json.dumps(value)) != RECORDS[CURRENT][kind][name]
