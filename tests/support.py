"""Shared helpers of tests: small experiments, constructed histories, waiting for a condition."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import Experiment, History, Trace, simulate
from bandits.base.processes import Line
from bandits.base.types import Contexts, FloatArray
from bandits.experiments.lane import join
from bandits.runtime.job import Job
from bandits.runtime.pool import Pool
from bandits.runtime.worker_handle import WorkerProcess

STRESS = os.environ.get("BANDITS_STRESS") == "1"
# seconds after which waiting for a condition fails
PATIENCE = 240.0


def often(usually: int, stress: int) -> int:
    """Return the number of repetitions: the second one under ``make stress``."""
    return stress if STRESS else usually


def thinned(
    cases: Iterable[Any],
    quick: Callable[[int], bool],
    usual: Callable[[int], bool] = lambda _: True,
) -> list[Any]:
    """Mark the cases of a parametrized test as slow whose number is not quick: `make test` leaves
    them out.

    Parameters
    ----------
    cases : iterable
        Values, tuples of values or `pytest.param`.
    quick : callable
        From the number of a case to whether it is quick.
    usual : callable
        From the number of a case to whether `make test-slow` runs it; `make stress` runs all.
    """
    found = []
    for number, case in enumerate(cases):
        if not (STRESS or quick(number) or usual(number)):
            continue
        if not isinstance(case, pytest.ParameterSet):
            case = pytest.param(*case if isinstance(case, tuple) else (case,))
        marks = case.marks if quick(number) else [*case.marks, pytest.mark.slow]
        found.append(pytest.param(*case.values, id=case.id, marks=marks))
    return found


class _Held:
    """Stands in a line like a task."""

    address = ""


@contextmanager
def hold(line: Line) -> Iterator[None]:
    """Occupy the first place of a line, so that all tasks wait."""
    task: Any = _Held()
    line.enter(task)
    try:
        yield
    finally:
        line.leave(task)


def wait_for(
    condition: Callable[[], object], what: str, unless: Callable[[], object] = lambda: None
) -> None:
    """Wait until a condition holds; the duration is not tested.

    Parameters
    ----------
    condition : callable
    what : str
        Description of the condition, for the error message.
    unless : callable, optional
        Return the reason why the condition cannot hold any more, or a false value.
    """
    end = time.monotonic() + PATIENCE
    while True:
        began = time.process_time()
        # before the condition: the event that ends the wait may also fulfil it
        reason = unless()
        if condition():
            return
        if reason:
            raise AssertionError(f"{what} cannot happen any more: {reason}")
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE:.0f} s in vain for {what}")
        # a condition that draws a page leaves the processor to what is waited for
        time.sleep(max(0.02, min(3 * (time.process_time() - began), 2)))


def over(*jobs: Job) -> Callable[[], str]:
    """Return a function for `wait_for` that describes those of these runs that have ended."""
    return lambda: "; ".join(
        f"the run has {job.status} at step {job.step} {job.error}" for job in jobs if not job.live
    )


def experiment(*agents: str | dict[str, Any], **changes: Any) -> Experiment:
    """Return an experiment on a pet shop of ten products that runs in a fraction of a second."""
    data: dict[str, Any] = {
        "simulator": {"kind": "petshop", "n_products": 10},
        "steps": 300,
        "replications": 3,
    }
    data["agents"] = [
        {"kind": a} if isinstance(a, str) else a for a in agents or ("linucb", "random")
    ]
    return Experiment.model_validate({**data, **changes})


def traces(e: Experiment) -> dict[str, Trace]:
    """Return the trace of every step, by agent."""
    parts: dict[str, list[Trace]] = {}
    for label, trace in simulate(e):
        parts.setdefault(label, []).append(trace)
    return {label: join(pieces) for label, pieces in parts.items()}


def history(
    rewards: FloatArray,
    items: Any = None,
    *,
    n_items: int = 5,
    alive: Any = None,
    steps: int = 0,
    segments: Any = None,
    n_segments: int = 0,
) -> History:
    """Construct a history of clicks ``rewards (T, R)``; true expected rewards are zero."""
    T, R = rewards.shape
    shown = np.zeros((T, R, 1), np.int64) if items is None else items
    rows_alive = np.ones(R, np.bool_) if alive is None else np.array(alive)
    groups = np.zeros((T, R), np.int64) if segments is None else segments
    result = History(steps or T, R, n_items, n_segments)
    zeros = np.where(np.isnan(rewards), np.nan, 0.0)
    result.extend(Trace(0, shown, groups, rewards, zeros, zeros, zeros, zeros, rows_alive))
    return result


def same(a: History, b: History) -> None:
    """Assert that two histories are bit-identical: sums, counts, spectra, rows alive."""
    assert (a.step, a.size, a.count_size) == (b.step, b.size, b.count_size)
    for name in History.SUMS:
        np.testing.assert_array_equal(a.sums[name][: a.size], b.sums[name][: b.size])
    np.testing.assert_array_equal(a.counts[: a.count_size], b.counts[: b.count_size])
    assert (a.segments is None) == (b.segments is None)
    if a.segments is not None and b.segments is not None:
        reached = a.segments.reached(a.step)
        np.testing.assert_array_equal(a.segments.counts[:reached], b.segments.counts[:reached])
    assert (a.segment_sums is None) == (b.segment_sums is None)
    if a.segment_sums is not None and b.segment_sums is not None:
        reached = a.segment_sums.reached(a.step)
        np.testing.assert_array_equal(a.segment_sums.sums[:reached], b.segment_sums.sums[:reached])
    assert (a.launch_sums is None) == (b.launch_sums is None)
    if a.launch_sums is not None and b.launch_sums is not None:
        reached = a.launch_sums.reached(a.step)
        np.testing.assert_array_equal(a.launch_sums.sums[:reached], b.launch_sums.sums[:reached])
    assert [c.step for c in a.segment_checks] == [c.step for c in b.segment_checks]
    for left, right in zip(a.segment_checks, b.segment_checks, strict=True):
        np.testing.assert_array_equal(left.values, right.values)
    np.testing.assert_array_equal(a.alive, b.alive)
    assert [s.step for s in a.spectra] == [s.step for s in b.spectra]
    for own, other in zip(a.spectra, b.spectra, strict=True):
        np.testing.assert_array_equal(own.eigenvalues, other.eigenvalues)
    assert [c.step for c in a.calibrations] == [c.step for c in b.calibrations]
    for c, d in zip(a.calibrations, b.calibrations, strict=True):
        np.testing.assert_array_equal(c.inside, d.inside)
    assert [c.step for c in a.belief_checks] == [c.step for c in b.belief_checks]
    for one, another in zip(a.belief_checks, b.belief_checks, strict=True):
        np.testing.assert_array_equal(one.values, another.values)
    assert [c.step for c in a.exploration_checks] == [c.step for c in b.exploration_checks]
    for check, same_check in zip(a.exploration_checks, b.exploration_checks, strict=True):
        np.testing.assert_array_equal(check.values, same_check.values)
    assert a.note == b.note


def workers_of(pool: Pool, job: Job) -> list[WorkerProcess]:
    """List the worker processes that compute a run at present."""
    with pool._change:
        division = pool._supervisor.division
        return [division.processes[share] for share in division.shares(job)]


def sparse_contexts(features: FloatArray) -> Contexts:
    """Store as many entries as the densest vector of ``features (C, K, D)`` has non-zeros."""
    width = max(1, int((features != 0).sum(axis=-1).max()))
    order = np.argsort(features == 0, axis=-1, kind="stable")[..., :width]
    columns = np.ascontiguousarray(np.sort(order, axis=-1).astype(np.int64))
    values = np.ascontiguousarray(np.take_along_axis(features, columns, axis=-1))
    return Contexts(values, columns, features.shape[-1])


def copy_sources(target: Path) -> None:
    """Copy what a wheel is built from: a build writes beside its sources."""
    root, ignored = Path(__file__).parents[1], shutil.ignore_patterns("__pycache__")
    for name in ("bandits", "bandits_app", "pages", ".streamlit"):
        shutil.copytree(root / name, target / name, ignore=ignored)
    for name in ("app.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(root / name, target)
