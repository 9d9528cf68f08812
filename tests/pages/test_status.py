"""The status line of a run: what is being computed, and how long it takes."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from bandits.base.formatting import GLUE, time_left
from bandits.experiments.lockstep import load_histories
from bandits.runtime.job import Job
from bandits_app.run_view.status import status
from bandits_app.session import workers
from tests.support import experiment


def running(*steps: int, waiting: tuple[str, ...] = ()) -> Job:
    agents = ("linucb", "lints", "random", "beta_ts")
    job = Job(
        experiment(*agents[: len(steps)], steps=20_000),
        status="running",
        running_since=time.monotonic(),
    )
    job.histories = load_histories(job.experiment)
    for history, step in zip(job.histories.values(), steps, strict=True):
        history.step = step
    job.waiting = set(waiting)
    return job


@pytest.mark.parametrize(
    ("steps", "waiting", "expected"),
    [
        ((8000, 7900), (), "Step 8,000 of 20,000"),
        ((0, 0), (), "Preparing simulator and agents · 0 s"),
        ((0, 500), ("LinUCB",), "Step 500 of 20,000 · LinUCB is being trained on logged data"),
        ((20_000, 0), ("LinTS",), "1 of 2 agents finished · LinTS is being trained on logged data"),
        ((20_000, 7000, 20_000), (), "2 of 3 agents finished · LinTS at step 7,000 of 20,000"),
        (
            (20_000, 7000, 0),
            ("Random",),
            "1 of 3 agents finished · LinTS at step 7,000 of 20,000 · "
            "Random is being trained on logged data",
        ),
        (
            (20_000, 7000, 6000, 9000),
            (),
            "1 of 4 agents finished · slowest at step 6,000 of 20,000",
        ),
        ((20_000, 20_000), (), "All 2 agents finished; storing the results"),
    ],
)
def test_the_status_states_what_is_still_computed(
    steps: tuple[int, ...], waiting: tuple[str, ...], expected: str
) -> None:
    assert status(running(*steps, waiting=waiting)) == expected


@pytest.mark.parametrize(
    ("steps", "where"),
    [
        ((8000, 7900), "at step 8,000 of 20,000"),
        ((20_000, 15_101, 20_000), "with 2 of 3 agents finished"),
        ((20_000, 20_000), "at step 20,000 of 20,000"),
        ((), "at step 0 of 20,000"),
    ],
)
def test_a_run_that_goes_no_further_states_how_far_it_came(
    steps: tuple[int, ...], where: str
) -> None:
    job = running(*steps) if steps else Job(experiment("random", steps=20_000))
    job.status = "stopped"
    assert status(job) == f"Stopped {where}; results so far are kept"
    job.status = "paused"
    assert status(job) == f"Paused {where}"


def test_the_time_left_is_stated_once_it_is_known() -> None:
    job = running(8000, 7900)
    job.clock.seconds_left = 130.0
    assert status(job) == f"Step 8,000 of 20,000 · about 2{GLUE}min left"


def test_a_run_that_waits_states_what_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SimpleNamespace(broken=False, busy=False, starting=2, queue_position=lambda job: 0)
    monkeypatch.setattr(workers, "pool", lambda: pool)
    job = Job(experiment(), queued=time.monotonic() - 4.0)
    assert status(job) == "Starting workers: loading libraries · 4 s"
    pool.starting = 0
    assert status(job) == "Queued: starts when a worker is free"
    pool.busy = True
    assert status(job) == "Queued for 4 s: next, starts when another run ends"


def test_kernels_that_are_compiled_for_a_run_are_counted() -> None:
    job = running(0, 0)
    job.to_compile.update(["a", "b", "c"])
    # one that was not known to be missing is not counted
    job.compiled.update(["b", "other"])
    assert status(job) == "Compiling once: 1 of 3"
    done = running(10, 0)
    done.to_compile.update(["a", "b"])
    assert status(done).startswith("Step 10 of")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.2, "a few seconds"),
        (9.9, "a few seconds"),
        (12, "about 10 s"),
        (54, "about 50 s"),
        (56, "about 1 min"),
        (128, "about 2 min"),
        (3500, "about 58 min"),
        (3580, "about 1 hour"),
        (3700, "about 1 hour"),
        (5400, "about 1.5 hours"),
        (52_790, "about 15 hours"),
    ],
)
def test_a_time_left_is_in_words(seconds: float, expected: str) -> None:
    assert time_left(seconds).replace(GLUE, " ") == f"{expected} left"
