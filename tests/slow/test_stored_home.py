"""Runs, sweeps, links and data sets stored by version 0.2.0 open with the same numbers."""

from __future__ import annotations

import hashlib
import json
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from bandits import Experiment, Result, UserError, read, run
from bandits.cli.sweep import save
from bandits.experiments import url
from bandits.results.result import plain
from bandits.runtime.job import Job
from bandits.runtime.pool import Pool
from bandits.simulators.classification import load
from bandits.simulators.datasets import uploads
from bandits.storage.run_store import EvictedError, Store
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps import read as read_sweep
from bandits.sweeps import url as sweep_url
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.manager import SweepJob, SweepManager
from bandits.sweeps.runner import Runner
from bandits.sweeps.storage.block_files import BlockFiles, stored_sweep
from bandits.sweeps.storage.catalogue import Catalogue
from tests.slow.version_0_2_0 import FOLDER, HOME, comparable, curves_digest, differences, digest, same_machine

RUNS = {run["name"]: run for run in HOME["runs"]}
SWEEPS = {sweep["name"]: sweep for sweep in HOME["sweeps"]}
UNFINISHED = {run["name"]: run for run in HOME["unfinished"]}
EXACT = same_machine(HOME["machine"])
PATIENCE = 300.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with tarfile.open(FOLDER / "home.tar.gz") as tar:
        tar.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def pool(home: Path) -> Iterator[Pool]:
    workers = Pool(workers=1, store=Store())
    yield workers
    workers.close()


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def check_result(result: Result, expected: dict[str, Any], folder: Path) -> None:
    """Check a result against the recorded one, to the byte on the same kind of machine."""
    result.save(folder)
    summary = json.loads((folder / "summary.json").read_bytes())
    ctr = {}
    for label, band in result.ctr.items():
        ends = {
            name: [float(getattr(band, name)[0]), float(getattr(band, name)[-1])] for name in ("mid", "low", "high")
        }
        ctr[label] = plain({"points": len(band.x), "x": [int(band.x[0]), int(band.x[-1])], **ends})
    assert summary["hash"] == expected["hash"]
    assert differences(comparable(summary), comparable(expected["summary"])) == []
    assert differences(ctr, expected["ctr"]) == []
    if EXACT:
        assert curves_digest(folder / "curves.parquet") == expected["curves_sha256"]


def measured(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what a summary states of the data, without tests and intervals of differences.

    Those of version 0.2.0 ignored that the same data chose the best point (docs/decisions/intervals.md).
    """
    tested = ("good", "matters")
    sensitivity = [
        {k: v["mean"] if k == "cost" else v for k, v in each.items() if k not in tested}
        for each in sorted(summary["sensitivity"], key=lambda each: str(each["path"]))
    ]
    return {k: v for k, v in summary.items() if k != "best_region"} | {"sensitivity": sensitivity}


def check_sweep(landscape: Landscape, expected: dict[str, Any], folder: Path) -> None:
    """Check a sweep against the recorded one."""
    save(landscape, folder)
    means = plain(landscape.table(landscape.sweep.metric)["mean"].tolist())
    summary = json.loads((folder / "summary.json").read_bytes())
    assert differences(measured(summary), measured(expected["summary"])) == []
    assert differences(means, expected["means"]) == []
    if EXACT:
        assert means == expected["means"]


# -- runs --------------------------------------------------------------------------------------------------------


def test_the_stored_home_is_undamaged(home: Path) -> None:
    store = Store()
    assert store.repairs == []
    assert store.check() == []
    assert list((home / "quarantine").iterdir()) == []


def test_stored_runs_are_listed(home: Path) -> None:
    listed = {line.id: line for line in Store().runs()}
    assert set(listed) == {expected["hash"] for expected in RUNS.values()}
    for expected in RUNS.values():
        line = listed[expected["hash"]]
        assert (line.title, line.tags, line.evicted) == (expected["title"], expected["tags"], expected["evicted"])
        assert (line.created, line.seconds, line.bytes) == (expected["created"], expected["seconds"], expected["bytes"])
        assert line.experiment.hash == line.id
        assert line.experiment == read(expected["experiment"])
        assert list(line.experiment.labels) == expected["labels"]


@pytest.mark.parametrize("name", [name for name, expected in RUNS.items() if not expected["evicted"]])
def test_a_stored_run_has_the_same_numbers(name: str, home: Path, tmp_path: Path) -> None:
    actual = Store().get(RUNS[name]["hash"])
    assert actual is not None
    check_result(actual, RUNS[name], tmp_path / "out")


def test_an_evicted_run_stays_listed_and_is_recomputed(pool: Pool, tmp_path: Path) -> None:
    expected, store = RUNS["evicted"], pool.store
    assert store is not None
    with pytest.raises(EvictedError):
        store.get(expected["hash"])
    job = pool.submit(read(expected["experiment"]))
    wait_until(lambda: job.status == "finished")
    actual = store.get(expected["hash"])
    assert actual is not None
    check_result(actual, expected, tmp_path / "out")
    line = next(line for line in store.runs() if line.id == expected["hash"])
    assert (line.title, line.tags, line.evicted) == (expected["title"], expected["tags"], False)


def test_unfinished_runs_resume_to_the_same_result(pool: Pool, tmp_path: Path) -> None:
    store = pool.store
    assert store is not None
    assert {e.hash for e in pool.unfinished()} == {expected["hash"] for expected in UNFINISHED.values()}
    for name, expected in UNFINISHED.items():
        job = pool.get(expected["hash"])
        assert isinstance(job, Job)
        assert (job.status, job.interrupted, job.step) == (expected["status"], True, expected["step"])
        assert list(job.histories) == expected["labels"]
        assert job.experiment == read(expected["experiment"])
        n_continued = [job.step]
        pool.resume_unfinished(job.experiment, "visitor")
        wait_until(lambda job=job, steps=n_continued: steps.append(job.step) or job.status in ("finished", "failed"))
        assert job.status == "finished", job.error
        assert min(n_continued) >= expected["step"]  # it was not restarted
        actual = store.get(expected["hash"])
        assert actual is not None
        if EXACT or not expected["neural"]:
            check_result(actual, expected, tmp_path / name)
    assert pool.unfinished() == []


def test_a_finished_run_is_extended(pool: Pool, tmp_path: Path) -> None:
    expected = HOME["extended"]
    job = pool.get(expected["of"])
    assert job is not None
    longer = pool.extend(job, expected["steps"])
    assert longer.saved  # it resumes from the stored checkpoint
    wait_until(lambda: longer.status in ("finished", "failed"))
    assert longer.status == "finished", longer.error
    assert longer.id == expected["hash"]
    if EXACT:  # with a network
        check_result(longer.result, expected, tmp_path / "out")


# -- sweeps ------------------------------------------------------------------------------------------------------


def test_stored_sweeps_are_listed(home: Path) -> None:
    catalogue = Catalogue(home / "sweeps")
    listed = {line.sweep.hash: line for line in catalogue.entries()}
    assert set(listed) == {expected["hash"] for expected in SWEEPS.values()}
    for expected in SWEEPS.values():
        assert listed[expected["hash"]].progress == expected["done"]
        assert listed[expected["hash"]].sweep == read_sweep(expected["sweep"])
        at = catalogue.estimate_at(expected["hash"], 0)
        assert differences(plain(None if at is None else [list(at[0]), at[1]]), expected["first_point"]) == []


@pytest.mark.parametrize("name", list(SWEEPS))
def test_a_stored_sweep_has_the_same_numbers(name: str, pool: Pool, home: Path, tmp_path: Path) -> None:
    expected = SWEEPS[name]
    sweep = stored_sweep(home / "sweeps", expected["hash"])
    assert isinstance(sweep, Sweep)
    assert sweep.hash == read_sweep(expected["sweep"]).hash == expected["hash"]
    actual = SweepManager(pool, home / "sweeps").get(expected["hash"])
    assert isinstance(actual, SweepJob)
    assert (actual.status, actual.landscape.progress) == (expected["status"], expected["done"])
    assert [list(point) for point in actual.landscape.sweep.proposed] == expected["proposed"]
    check_sweep(actual.landscape, expected, tmp_path / "out")


@pytest.mark.parametrize("name", [name for name, expected in SWEEPS.items() if expected["status"] == "finished"])
def test_a_finished_sweep_is_not_recomputed(name: str, home: Path, tmp_path: Path) -> None:
    sweep = read_sweep(SWEEPS[name]["sweep"])
    before = {path.name: path.stat().st_mtime_ns for path in (home / "sweeps" / sweep.hash).glob("*.block")}
    assert sorted(before) == SWEEPS[name]["blocks"]
    landscape = Runner(sweep, InProcessExecutor(), BlockFiles(sweep, home / "sweeps")).run()
    check_sweep(landscape, SWEEPS[name], tmp_path / "out")
    after = {path.name: path.stat().st_mtime_ns for path in (home / "sweeps" / sweep.hash).glob("*.block")}
    assert after == before


@pytest.mark.parametrize("name", [name for name, expected in SWEEPS.items() if expected["status"] != "finished"])
def test_an_unfinished_sweep_resumes_to_the_same_result(name: str, pool: Pool, home: Path, tmp_path: Path) -> None:
    expected = SWEEPS[name]
    folder = home / "sweeps" / expected["hash"]
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.block")}
    assert sorted(path.name for path in before) == expected["blocks"]
    actual = SweepManager(pool, home / "sweeps").submit(read_sweep(expected["sweep"]), "visitor")
    wait_until(lambda: not actual.active)
    assert (actual.status, actual.error) == ("finished", "")
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    if EXACT or not any(kind in json.dumps(expected["sweep"]) for kind in ("neural", "ensemble", "dropout")):
        check_sweep(actual.landscape, expected["continued"], tmp_path / "out")


# -- data, arrays, links -----------------------------------------------------------------------------------------


def test_stored_data_sets_are_listed(home: Path) -> None:
    here = {data.id: data for data in uploads.listing()}
    assert set(here) == {expected["id"] for expected in HOME["data"]}
    for expected in HOME["data"]:
        assert here[expected["id"]]._asdict() == {name: expected[name] for name in here[expected["id"]]._fields}
        frame = uploads.load(expected["id"])
        assert hashlib.sha256(frame.to_csv(index=False).encode()).hexdigest() == expected["frame_sha256"]
        assert digest(home / "data" / f"{expected['id']}.parquet") == expected["file_sha256"]
        features, labels, classes = load(expected["id"])
        assert (len(labels), features.shape[1], len(classes)) == (
            expected["rows"],
            expected["features"],
            expected["classes"],
        )


def test_a_cached_network_is_not_trained_again(home: Path, tmp_path: Path) -> None:
    def weights() -> dict[str, str]:
        return {path.relative_to(home).as_posix(): digest(path) for path in (home / "weights").iterdir()}

    assert weights() == HOME["cached"]
    result = run(read(RUNS["shop"]["experiment"]))
    assert weights() == HOME["cached"]
    if EXACT:
        check_result(result, RUNS["shop"], tmp_path / "out")


@pytest.mark.parametrize("at", range(len(HOME["links"])))
def test_a_link_opens_the_same_experiment(at: int, home: Path) -> None:
    expected = HOME["links"][at]
    given = dict(parse_qsl(expected["query"], keep_blank_values=True, strict_parsing=True))
    assert url.holds_experiment(given)
    experiment, same = url.parse_query(given)
    assert isinstance(experiment, Experiment)
    assert same
    assert experiment.hash == expected["hash"]
    if not expected.get("bare"):
        assert url.query(experiment) == expected["query"]


@pytest.mark.parametrize("at", range(len(HOME["sweep_links"])))
def test_a_link_opens_the_same_sweep(at: int) -> None:
    expected = HOME["sweep_links"][at]
    given = dict(parse_qsl(expected["query"], keep_blank_values=True, strict_parsing=True))
    assert sweep_url.holds_sweep(given)
    sweep = sweep_url.parse_query(given)
    assert sweep.hash == expected["hash"]
    assert sweep_url.query(sweep) == expected["query"]


def test_a_link_to_missing_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "empty"))
    query = next(expected["query"] for expected in HOME["links"] if "obst-und-beeren" in expected["query"])
    with pytest.raises(UserError, match="is not stored here"):
        url.parse_query(dict(parse_qsl(query)))
