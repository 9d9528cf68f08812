"""Runs in worker processes: submit an experiment, look at it while it grows, pause it, continue it, stop it.

Knows nothing of any user interface. Each run has a warm worker of its own for as long as it lasts; more runs
than workers wait their turn. Equal experiments are one job. Every few seconds a worker hands over the state of its
race: a paused run, a run whose worker died and a finished run that is to be longer all go on from there, to the bit.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import IO, Any, BinaryIO, cast

from bandits.base.files import Arrays, pack, unpack
from bandits.base.processes import worker_environment
from bandits.experiments.experiment import Experiment, UserError, read
from bandits.experiments.race import load_histories
from bandits.storage.run_store import RUN_ID, CorruptFileError, Store

from .job import Job, JobStatus
from .task_queue import FairQueue, Task, settle
from .worker import receive, send

__all__ = ["Job", "Pool"]
MAX_ENDED_JOBS = 24  # ended jobs that stay in memory
ATTEMPTS = 3  # workers that may die under one run
MAX_ACTIVE = 4  # runs that one owner may have queued, running or paused
TIME_LIMIT = 1800.0  # seconds of wall time that one run may take
SHORT_RUN = 10_000_000  # decisions (steps x runs x agents): seconds of linear agents, minutes of neural ones
GRACE = 3.0  # seconds a worker has to stop by itself


class Pool:
    """A few warm worker processes and a queue.

    Parameters
    ----------
    workers : int
        Runs at the same time.
    store : Store, optional
        Keeps finished runs and checkpoints beyond the life of this process.
    """

    def __init__(self, workers: int = 1, store: Store | None = None) -> None:
        self.workers, self.store = workers, store
        self.failed_starts = 0  # in a row
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: deque[Job] = deque()
        self._tasks = FairQueue()
        self._task_next = False  # where runs and tasks take turns
        self._change = threading.Condition()
        self._processes: dict[Job, subprocess.Popen[bytes]] = {}
        self._doing: dict[Task, subprocess.Popen[bytes]] = {}
        self._closed = False
        for _ in range(workers):
            threading.Thread(target=self._serve, daemon=True).start()
        atexit.register(self.close)

    # -- what a user does ------------------------------------------------------------------------------------

    def submit(self, experiment: Experiment, owner: str = "", *, saved: dict[str, Any] | None = None) -> Job:
        """Run an experiment, unless the same one is here already, finished or on its way: then that job.

        One that was interrupted, stopped or failed goes on from its last checkpoint, to the same bits.

        Raises
        ------
        UserError
            The owner has too many runs going, or the disk is too full to keep another.
        """
        found = self.get(experiment.hash)
        with self._change:
            known = self._jobs.get(experiment.hash, found)  # somebody else may have submitted it meanwhile
            if known is not None and (known.live or known.status == "finished"):
                return known
            if known is None or not known.interrupted:
                self._admit(owner)
                job = Job(experiment, owner, saved=(known.saved if known else {}) or saved or {})
                self._jobs[job.id] = job
                self._forget()
                self._enqueue(job)
                return job
        self.resume(known, owner)
        return known

    def get(self, job_id: str) -> Job | None:
        """The job of an experiment's hash, from memory or from the store, if it is known.

        A run that the last process did not finish comes back as stopped, with all that its checkpoint holds.
        """
        with self._change:
            if (job := self._jobs.get(job_id)) is not None:
                self._jobs.move_to_end(job_id)
                return job
        if self.store is None or not RUN_ID.fullmatch(job_id):
            return None
        why = "interrupted when the app ended"
        try:
            result = self.store.get(job_id)
        except (CorruptFileError, OSError, UserError) as sentence:  # set aside, or its disk or its data are gone
            result, why = None, str(sentence)
        if result is not None:
            steps = result.experiment.steps
            job = Job(result.experiment, status="finished", step=steps, histories=result.histories)
            job.seconds_before = self.store.seconds(job_id)
        elif (found := self._interrupted(job_id, why)) is not None:
            job = found
        else:
            return None
        with self._change:
            self._forget()
            return self._jobs.setdefault(job_id, job)

    def queue_position(self, job: Job) -> int:
        """Queued jobs in front of this one."""
        with self._change:
            return self._queue.index(job) if job in self._queue else 0

    @property
    def busy(self) -> bool:
        """Every worker has a run."""
        return len(self._processes) >= self.workers

    @property
    def broken(self) -> bool:
        """No worker has come up lately, though each has been tried."""
        return self.failed_starts >= 2 * self.workers and not self._processes

    def pause(self, job: Job, owner: str = "") -> None:
        """Let a run rest; its worker serves others meanwhile.

        Raises
        ------
        UserError
            Somebody else's run; so too for `resume`, `stop` and `extend`.
        """
        self._leave(job, owner, "paused")

    def stop(self, job: Job, owner: str = "") -> None:
        """End a job; what it has computed stays."""
        self._leave(job, owner, "stopped")

    def resume(self, job: Job, owner: str = "") -> None:
        """Go on with a paused, stopped or failed run from where it was saved; nobody's becomes this owner's.

        Raises
        ------
        UserError
            Somebody else's run, or the owner has too many going, or the disk is too full.
        """
        self._require(job, owner)
        with self._change:
            gone = self._change.wait_for(lambda: job not in self._processes, 2 * GRACE)
            if gone and job.status in ("paused", "stopped", "failed"):
                if self._jobs.setdefault(job.id, job) is not job:
                    return  # forgotten meanwhile, and begun anew by somebody else
                self._admit(owner, job)
                if job.interrupted:
                    job.owner = owner
                job.worker_deaths = 0
                self._enqueue(job)

    def extend(self, job: Job, steps: int, owner: str = "") -> Job:
        """Continue a finished run up to more steps: the longer experiment's own run, begun where this one ended."""
        longer = read({**job.experiment.model_dump(mode="json"), "steps": steps})
        return self.submit(longer, owner, saved=job.saved or self._checkpoint(job.id))

    def unfinished(self) -> list[Experiment]:
        """Experiments whose runs ended early and have a checkpoint to go on from, newest first.

        None while another process runs experiments on the same folder: they may be its own, and going on.
        """
        if self.store is None or not self.store.claim():
            return []
        found = []
        for run, text in self.store.checkpoints():
            with suppress(UserError):  # written by a version whose parameters this one does not know
                job, experiment = self._jobs.get(run), read(text)
                if experiment.hash == run and (job is None or job.status in ("stopped", "failed")):
                    found.append(experiment)
        return found

    def resume_unfinished(self, experiment: Experiment, owner: str = "") -> Job:
        """Go on with an unfinished run from its stored checkpoint."""
        job = self.get(experiment.hash)
        if job is None:
            return self.submit(experiment, owner)
        self.resume(job, owner)
        return job

    def live_jobs(self) -> list[Job]:
        """Runs that are queued, running or paused, oldest first."""
        with self._change:
            return [job for job in self._jobs.values() if job.live]

    def discard(self, run: str, owner: str = "") -> None:
        """Drop an unfinished run with all that it has computed; it is stopped first.

        Raises
        ------
        UserError
            It is somebody else's.
        """
        with self._change:
            job = self._jobs.get(run)
        if job is not None:
            self._require(job, owner)
        if job is not None and job.live:
            self._leave(job, owner, "stopped")
        with self._change:
            # its worker still hands over a last checkpoint
            self._change.wait_for(lambda: job not in self._processes, 2 * GRACE)
        self.delete(run)

    def delete(self, run: str) -> None:
        """Forget a run, here and in the store.

        Raises
        ------
        UserError
            It is going on.
        """
        with self._change:
            job = self._jobs.get(run)
            if job is not None and job.live:
                raise UserError("this run is going on; stop it before you delete it")
            self._jobs.pop(run, None)
        if self.store is not None:
            self.store.delete(run)

    def close(self) -> None:
        """End all workers."""
        with self._change:
            self._closed = True
            for task in self._tasks.drain():
                task.future.cancel()
            self._change.notify_all()
            processes = [*self._processes.values(), *self._doing.values()]
        for process in processes:
            process.kill()
        if self.store is not None:
            self.store.release()

    def compute(self, group: str, message: dict[str, Any], on_progress: Callable[[int], None]) -> Future[Arrays]:
        """Have a worker compute a piece of something, between the runs.

        Parameters
        ----------
        group : str
            What the task is a part of: groups take turns.
        message : dict
            The request that is sent to the worker.
        on_progress : callable
            Called with the step that the task has reached, a few times a second.

        Returns
        -------
        Future
            Of the worker's arrays. Cancelling it ends the work within a second. It raises UserError where the worker
            says why it cannot, or died of it.
        """
        task = Task(group, message, on_progress)
        with self._change:
            if self._closed:
                settle(task.future, UserError("the app was closed"))
            else:
                self._tasks.put(task)
                self._change.notify()
        return task.future

    # -- behind the scenes -----------------------------------------------------------------------------------

    def _require(self, job: Job, owner: str) -> None:
        if job.owner and job.owner != owner:
            raise UserError("only who started this run may pause, continue or stop it")

    def _admit(self, owner: str, job: Job | None = None) -> None:
        """Refuse one run too many (``job`` itself, if it is to go on, is none), and a run that could not be kept."""
        if self.store is not None:
            self.store.require_space()
        if owner and sum(j.live and j.owner == owner and j is not job for j in self._jobs.values()) >= MAX_ACTIVE:
            raise UserError(f"you have {MAX_ACTIVE} runs going; stop one or wait for it")

    def _enqueue(self, job: Job, *, first: bool = False) -> None:
        job.status, job.error, job.interrupted = "queued", "", False
        (self._queue.appendleft if first else self._queue.append)(job)
        self._change.notify()

    def _leave(self, job: Job, owner: str, status: JobStatus) -> None:
        self._require(job, owner)
        with self._change:
            if not job.live:
                return
            if job in self._queue:
                self._queue.remove(job)
            job.end(status)
            process = self._processes.get(job)
        if process is not None:
            with suppress(OSError):
                send(_pipe(process.stdin), {"command": "leave"})
            timer = threading.Timer(GRACE, self._kill_later, (job, process))
            timer.daemon = True
            timer.start()

    def _kill_later(self, job: Job, process: subprocess.Popen[bytes]) -> None:
        if self._processes.get(job) is process:
            process.kill()

    def _interrupted(self, run: str, why: str) -> Job | None:
        """A run of which only a checkpoint is left; None without one that this version can read."""
        text = self.store.checkpoint_experiment(run) if self.store is not None and self.store.claim() else None
        if text is None or not (saved := self._checkpoint(run)):
            return None
        try:
            return Job.from_checkpoint(read(text), saved, why)
        except (KeyError, ValueError):  # another version's parameters or arrays: it begins afresh
            return None

    def _checkpoint(self, run: str) -> dict[str, Any]:
        data = self.store.checkpoint(run) if self.store is not None else None
        return unpack(data) if data else {}

    def _forget(self) -> None:
        over = len(self._jobs) - MAX_ENDED_JOBS
        for job in [j for j in self._jobs.values() if not j.live][: max(over, 0)]:
            del self._jobs[job.id]

    def _serve(self) -> None:
        """A thread's life: keep a warm worker, give it the next job, replace it when it is gone."""
        while not self._closed:
            process = _start()
            try:
                if receive(_pipe(process.stdout)) is None:
                    self.failed_starts += 1
                    if self.broken:
                        self._give_up()
                    time.sleep(1)  # it died while starting: do not spin
                    continue
                self.failed_starts = 0
                while (work := self._next(process)) is not None:
                    if not (self._do(work, process) if isinstance(work, Task) else self._run(work, process)):
                        break
            finally:
                process.kill()
                process.wait()

    def _next(self, process: subprocess.Popen[bytes]) -> Job | Task | None:
        """Wait for work for this worker; None if there will be none, or if the worker died waiting."""
        with self._change:
            while not self._queue and not self._tasks and not self._closed:
                self._change.wait()
            if self._closed or process.poll() is not None:
                return None
            if self._tasks and (self._tasks_first() or not self._queue):
                self._task_next = False
                return self._tasks.take()
            self._task_next = True
            job = self._queue.popleft()
            now = time.monotonic()
            job.status, job.since, job.started = "running", now, job.started or now
            self._processes[job] = process
            return job

    def _tasks_first(self) -> bool:
        """Runs and tasks take turns, but the kind that more workers are at lets the other go first.

        A short run need not: it soon gives its worker back. So long runs leave sweeps a worker, and wait for no other.
        """
        more = len(self._doing) - len(self._processes)
        if more < 0 and self._queue and _decisions(self._queue[0]) <= SHORT_RUN:
            return self._task_next
        return self._task_next if more == 0 else more < 0

    def _do(self, task: Task, process: subprocess.Popen[bytes]) -> bool:
        """Have a task done; whether the worker lives on."""
        if task.future.cancelled():
            return True
        lives = False
        with suppress(OSError):
            with self._change:  # nobody can recall it before the worker has been told of it
                self._doing[task] = process
                send(_pipe(process.stdin), task.message)
            task.future.add_done_callback(lambda future: self._recall(task) if future.cancelled() else None)
            lives = self._listen(task, process)
        with self._change:
            del self._doing[task]
            if not lives:
                task.worker_deaths += 1
                if task.worker_deaths < ATTEMPTS and not self._closed:
                    self._tasks.put(task, first=True)
                    self._change.notify()
                else:
                    why = "the app was closed" if self._closed else f"its worker process died {ATTEMPTS} times"
                    settle(task.future, UserError(why))
        return lives

    def _listen(self, task: Task, process: subprocess.Popen[bytes]) -> bool:
        """Take in what the worker says of a task; False if it died."""
        while (message := receive(_pipe(process.stdout))) is not None:
            header, arrays = message
            if header["event"] == "tick":
                task.on_progress(header["step"])
                continue
            if header["event"] == "finished":
                settle(task.future, arrays)
            elif header["event"] == "failed":
                settle(task.future, UserError(header["error"]))
            return True
        return False

    def _recall(self, task: Task) -> None:
        """Tell the worker of a cancelled task to leave it; one that does not listen is ended."""
        with self._change:
            process = self._doing.get(task)
            if process is None:
                return
            with suppress(OSError):
                send(_pipe(process.stdin), {"command": "leave"})
        timer = threading.Timer(GRACE, self._insist_on, (task, process))
        timer.daemon = True
        timer.start()

    def _insist_on(self, task: Task, process: subprocess.Popen[bytes]) -> None:
        if self._doing.get(task) is process:
            process.kill()

    def _give_up(self) -> None:
        with self._change:
            for task in self._tasks.drain():
                settle(task.future, UserError("no worker process can be started on this machine"))

    def _run(self, job: Job, process: subprocess.Popen[bytes]) -> bool:
        """Run a job until it ends, pauses or its worker dies; whether the worker can take another."""
        e = job.experiment
        lives = False
        try:
            if not job.histories:
                with job.lock:
                    job.histories = load_histories(e)
            send(_pipe(process.stdin), {"experiment": e.model_dump(mode="json")}, job.saved)
            lives = self._follow(job, process)
        except UserError as sentence:  # its data were taken away while it waited
            self._end(job, "failed", str(sentence))
            lives = True
        except OSError:
            lives = False
        with self._change:
            del self._processes[job]
            self._change.notify_all()
            if not lives and job.status == "running":
                job.worker_deaths += 1
                if self._closed:
                    job.end("stopped", "the app was closed")
                elif job.worker_deaths < ATTEMPTS:
                    job.end("queued")
                    self._enqueue(job, first=True)
                else:
                    job.end("failed", f"its worker process died {ATTEMPTS} times")
        return lives

    def _follow(self, job: Job, process: subprocess.Popen[bytes]) -> bool:
        """Take in what the worker sends; False if it died."""
        while (message := receive(_pipe(process.stdout))) is not None:
            header, arrays = message
            event = header["event"]
            if event == "news":
                with job.lock:
                    job.histories[header["label"]].merge(arrays)
                    (job.waiting.add if header["waiting"] else job.waiting.discard)(header["label"])
            elif event == "tick":
                job.step = header["step"]
                if job.seconds > TIME_LIMIT:
                    self._leave(job, job.owner, "stopped")
                    job.error = f"stopped after {TIME_LIMIT / 60:.0f} minutes, the limit for one run"
            elif event == "checkpoint":
                job.saved = arrays
                self._keep(job, finished=False)
            elif event == "finished":
                self._keep(job, finished=True)
                self._end(job, "finished")
                return True
            elif event == "failed":
                self._end(job, "failed", header["error"])
                return True
            elif event == "left":
                return True
        return False

    def _end(self, job: Job, status: JobStatus, error: str = "") -> None:
        with self._change:
            if job.status == "running" or status == "finished":  # not if it was stopped meanwhile
                job.end(status, error or job.error)

    def _keep(self, job: Job, *, finished: bool) -> None:
        """Write a run, or its checkpoint, to the store; a full disk is said and costs nothing else."""
        if self.store is None:
            return
        try:
            self.store.keep_checkpoint(job.id, job.experiment, pack(job.saved))
            if finished:
                self.store.put(job.experiment, job.histories, job.seconds)
        except OSError as error:
            job.error = f"this run could not be kept on disk ({error.strerror or error}); it stays until the app ends"


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "bandits.runtime.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=worker_environment(),
        process_group=0,  # Ctrl-C is for its owner, which ends it
    )


def _pipe(stream: IO[bytes] | None) -> BinaryIO:
    return cast(BinaryIO, stream)


def _decisions(job: Job) -> int:
    e = job.experiment
    return e.steps * e.replications * len(e.agents)
