"""Search with Optuna: propose points in batches and store the study in an SQLite file that Optuna's tools can read.

The study holds finished trials only, in the order of the proposals. A sweep that was interrupted in any way finds every
finished batch there and proposes the next one again: the random numbers of a proposal depend on the seed of the sweep
and the number of the proposal alone, so that the points are the same. A trial carries a checksum of the sweep, its
number, its point and its value; a study with a damaged trial is replaced, and its points are proposed again.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from bandits.base.errors import UserError
from bandits.base.randomness import Streams

from .axis import Axis, Value
from .blocks import StoppedError
from .sweep import Sweep

if TYPE_CHECKING:
    from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_THREAD_LIMIT = threading.Lock()  # the number of BLAS threads is a setting of the whole process
CHECKSUM = "checksum"  # name of the attribute of a trial
LOCK_TIMEOUT = 60.0  # seconds for another process to release the file
Point = tuple[Value, ...]


class OptunaSearch:
    """Proposes the points of a sweep with Optuna.

    Parameters
    ----------
    sweep : Sweep
    path : Path, optional
        File of the study.
    sign : int
        1 if larger values of the metric are better, -1 if smaller values are.
    stop : callable, optional
        Called before every proposal; the search ends if it returns True.

    Attributes
    ----------
    error : str
        Why the study is not stored, in one sentence.

    Raises
    ------
    UserError
        If Optuna is not installed, or the file was written by another version of it.
    """

    def __init__(
        self, sweep: Sweep, path: Path | None = None, *, sign: int = 1, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._optuna, self._stop = import_optuna(), stop
        self.sweep, self._path, self.error = sweep, path, ""
        self._direction = "maximize" if sign > 0 else "minimize"
        self._space = {axis.path: self._distribution(axis, i) for i, axis in enumerate(sweep.axes)}
        self._study = self._optuna.create_study(direction=self._direction)
        self._stored_study: Any = None
        self._pending: list[Any] = []
        if path is not None:
            self._open(path)
        self._stored_trials: list[Any] = (
            [] if self._stored_study is None else list(self._stored_study.get_trials(deepcopy=False))
        )

    @property
    def complete(self) -> bool:
        """Whether all points are proposed and evaluated."""
        return len(self._study.get_trials(deepcopy=False)) >= self.sweep.number

    def ask(self, *, propose: bool = True) -> list[Point]:
        """Return the next batch; empty if all points were proposed.

        Its results must be reported with `tell` before the next call. Without ``propose``, only stored batches are
        returned: a proposal may take minutes.

        Raises
        ------
        StoppedError
            If ``stop`` returned True.
        """
        done = len(self._study.get_trials(deepcopy=False))
        numbers = range(done, min(done + self.sweep.batch, self.sweep.number))
        if numbers and len(self._stored_trials) >= numbers.stop:
            trials = self._stored_trials[numbers.start : numbers.stop]
            self._study.add_trials(trials)
        else:
            if not propose:
                return []
            with _THREAD_LIMIT, threadpool_limits(1), _quiet():  # the same bits with any number of processors
                trials = self._pending = [self._propose(number) for number in numbers]
        return [self._values(trial.params) for trial in trials]

    def tell(self, numbers: Sequence[float]) -> None:
        """Report the metric of each point of the batch, in its order; NaN for points without a valid result."""
        for trial, number in zip(self._pending, numbers, strict=False):  # a stored batch has no pending trials
            if math.isfinite(number):
                finished = self._study.tell(trial, number)
            else:
                finished = self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            self._store(finished)
        self._pending = []

    def close(self) -> None:
        """Close the file."""
        if self._stored_study is not None:
            self._storage.remove_session()
            self._storage.engine.dispose()
            self._stored_study = None

    # -- internals ---------------------------------------------------------------------------------------------

    def _propose(self, number: int) -> Any:
        if self._stop():
            raise StoppedError
        samplers, seed = self._optuna.samplers, _seed(self.sweep.experiment.seed, number)
        if self.sweep.sampler == "tpe":
            self._study.sampler = samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        elif self.sweep.sampler == "gp":
            self._study.sampler = samplers.GPSampler(seed=seed)
        else:
            self._study.sampler = samplers.RandomSampler(seed=seed)
        return self._study.ask(self._space)

    def _distribution(self, axis: Axis, position: int) -> Any:
        kinds, values, log = self._optuna.distributions, self.sweep.values[position], axis.scale == "log"
        if axis.values is not None:
            return kinds.CategoricalDistribution(values)
        distribution = kinds.IntDistribution if isinstance(values[0], int) else kinds.FloatDistribution
        return distribution(*values, log=log)

    def _values(self, params: dict[str, Any]) -> Point:
        """Return the axis values of a trial, rounded to six digits."""
        values: list[Value] = []
        for axis in self.sweep.axes:
            value = params[axis.path]
            if isinstance(value, float) and axis.low is not None and axis.high is not None:
                value = min(max(float(f"{value:.6g}"), axis.low), axis.high)
            values.append(value)
        return tuple(values)

    def _open(self, path: Path) -> None:
        """Load or create the study; replace a damaged file, because proposals can be made again."""
        from sqlalchemy.exc import OperationalError

        for last in (False, True):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with _file_lock(path):
                    self._stored_study = self._load(path)
                return
            except RuntimeError as error:  # written by another version of Optuna
                raise UserError(f"the study in {path.parent.name[:12]} cannot be read: {_first(error)}") from None
            except (OSError, OperationalError) as error:
                self.error = _storage_message(error)
                return
            except Exception as error:  # noqa: BLE001 - damaged files raise many kinds of errors
                if last:
                    self.error = _storage_message(error)
                for ending in ("-journal", "-wal", "-shm", ""):
                    Path(f"{path}{ending}").unlink(missing_ok=True)

    def _load(self, path: Path) -> Any:
        connect = partial(
            sqlite3.connect, path, timeout=LOCK_TIMEOUT, check_same_thread=False
        )  # a URL does not allow every path
        self._storage = self._optuna.storages.RDBStorage(f"sqlite:///{path.name}", engine_kwargs={"creator": connect})
        study = self._optuna.create_study(
            storage=self._storage, study_name=self.sweep.hash, direction=self._direction, load_if_exists=True
        )
        if not self._is_intact(study.get_trials(deepcopy=False)):  # reads all pages
            raise ValueError("a trial is damaged")
        return study

    def _is_intact(self, trials: list[Any]) -> bool:
        """Whether every trial has its checksum; the first ones lack it if an earlier version stored them."""
        sums = [(trial.user_attrs.get(CHECKSUM), self._checksum(trial)) for trial in trials]
        first = next((i for i, (stored, _) in enumerate(sums) if stored is not None), len(sums))
        numbers = [trial.number for trial in trials]
        return numbers == list(range(len(trials))) and all(stored == actual for stored, actual in sums[first:])

    def _checksum(self, trial: Any) -> str:
        distributions = {name: repr(distribution) for name, distribution in trial.distributions.items()}
        content = [self.sweep.hash, trial.number, trial.state.name, trial.values, trial.params, distributions]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _store(self, trial: Any) -> None:
        """Store a trial once; another process may run the same sweep."""
        from sqlalchemy.exc import SQLAlchemyError

        if self._stored_study is None or self._path is None:
            return
        try:
            with _file_lock(self._path):
                if len(self._stored_study.get_trials(deepcopy=False)) == trial.number:
                    self._stored_study.add_trial(self._sealed(trial))
        except (OSError, SQLAlchemyError, self._optuna.exceptions.StorageInternalError) as error:
            self.error = _storage_message(error)
            self.close()

    def _sealed(self, trial: Any) -> Any:
        """Return a copy of a finished trial that carries its checksum."""
        sealed = copy.deepcopy(trial)
        sealed.user_attrs = {CHECKSUM: self._checksum(trial)}
        return sealed


def import_optuna() -> Any:
    """Import Optuna.

    Raises
    ------
    UserError
        If it is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise UserError(
            "a search by Optuna needs Optuna, which is not installed; pip install -r requirements-optuna.txt"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _seed(seed: int, number: int) -> int:
    """Return the seed of one proposal."""
    return int(Streams(seed, ()).generator("proposal", block=number).integers(2**32))


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes, on systems that have one."""
    if fcntl is None:
        yield
        return
    with path.with_suffix(".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Optuna's warnings about experimental classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _storage_message(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"this sweep could not be kept on disk ({error.strerror or error})"
    cause = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    return f"the study of this sweep could not be kept on disk ({_first(cause)})"
