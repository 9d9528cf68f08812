"""Describe where a run stands in one line."""

from __future__ import annotations

import time

from bandits.base.formatting import count, count_of, time_left
from bandits.runtime.pool import Job
from bandits_app.session import workers


def status(job: Job) -> str:
    """Describe the progress of a run in one line."""
    steps = count(job.experiment.steps)
    if job.status == "offered":
        return "Not started: a long run waits for Run"
    if job.status == "queued":
        if workers.pool().broken:
            return "The workers do not start (see the server's log); trying again"
        if ahead := workers.pool().queue_position(job):
            return f"Queued{_waited(job)}: {count_of(ahead, 'runs')} ahead"
        return _waiting_for_a_worker(job)
    if job.status == "running":
        return _running(job)
    if job.status == "finished":
        replications = count_of(job.experiment.replications, "replications")
        text = f"Finished: {steps} steps, {replications}, in {job.seconds:.1f} s"
        return f"{text} · {job.error}" if job.error else text
    if job.status == "paused":
        return f"Paused {_where(job)}"
    if job.status == "stopped":
        return f"Stopped {_where(job)}; results so far are kept" + (
            f" · {job.error}" if job.error else ""
        )
    return f"Failed: {job.error}"


def _waited(job: Job) -> str:
    """State how long a run has waited in the queue, where that is known."""
    return f" for {count(time.monotonic() - job.queued)} s" if job.queued else ""


def _where(job: Job) -> str:
    """State how far a run has come that goes no further: its agents may have come to different
    steps.
    """
    steps, agents = job.experiment.steps, [h.step for h in job.histories.values()]
    if 0 < (done := agents.count(steps)) < len(agents):
        return f"with {done} of {count_of(len(agents), 'agents')} finished"
    return f"at step {count(reached(job))} of {count(steps)}"


def _waiting_for_a_worker(job: Job) -> str:
    if workers.pool().busy:
        return f"Queued{_waited(job)}: next, starts when another run ends"
    if workers.pool().starting:
        seconds = count(time.monotonic() - job.queued)
        return f"Starting workers: loading libraries · {seconds} s"
    return "Queued: starts when a worker is free"


def _running(job: Job) -> str:
    """State what is being computed, and the time left where it is known."""
    steps, reached = job.experiment.steps, {label: h.step for label, h in job.histories.items()}
    computing = {
        label: step for label, step in reached.items() if step < steps and label not in job.waiting
    }
    done = len(reached) - len(computing) - len(job.waiting)
    begun = any(reached.values())
    if job.to_compile and not begun:
        compiled = len(job.compiled & job.to_compile)
        parts = [f"Compiling once: {compiled} of {len(job.to_compile)}"]
    elif not begun and not job.waiting:
        parts = [f"Preparing simulator and agents · {count(job.seconds)} s"]
    elif done == 0:
        parts = [f"Step {count(max(reached.values(), default=0))} of {count(steps)}"]
    elif done == len(reached):
        parts = [f"All {count_of(done, 'agents')} finished; storing the results"]
    else:
        parts = [f"{done} of {count_of(len(reached), 'agents')} finished"]
        if len(computing) > 2:
            parts.append(f"slowest at step {count(min(computing.values()))} of {count(steps)}")
        else:
            parts += [
                f"{label} at step {count(step)} of {count(steps)}"
                for label, step in computing.items()
            ]
    parts += [f"{label} is being trained on logged data" for label in sorted(job.waiting)]
    return " · ".join(parts + ([] if job.seconds_left is None else [time_left(job.seconds_left)]))


def reached(job: Job) -> int:
    """Return the last step that any agent has reached: the one that the curves show."""
    return max((h.step for h in job.histories.values()), default=job.step)
