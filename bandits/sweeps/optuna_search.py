"""Points that Optuna proposes, a batch at a time, and its study of them: an SQLite file that its own tools read.

The study holds what is over and nothing else, in the order of the proposals. So a sweep that was ended in whatever way
finds every finished batch there, and has the next one proposed anew: each proposal's dice are its own, and follow from
the sweep's seed and its number.
"""

from __future__ import annotations

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

from .blocks import StoppedError
from .sweep import Axis, Sweep, Value

if TYPE_CHECKING:
    from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_ALONE = threading.Lock()  # the number of threads is the whole process's
PATIENCE = 60.0  # seconds for another process to leave the file
Point = tuple[Value, ...]


class OptunaSearch:
    """What Optuna proposes for a sweep.

    Parameters
    ----------
    sweep : Sweep
    path : Path, optional
        Where it is kept, and found again.
    sign : int
        1 where more is better, -1 where less is.
    stop : callable, optional
        Asked before every proposal whether to give up.

    Attributes
    ----------
    error : str
        Why it is not kept, in one sentence.

    Raises
    ------
    UserError
        Optuna is not installed; the file is one of another version.
    """

    def __init__(
        self, sweep: Sweep, path: Path | None = None, *, sign: int = 1, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._optuna, self._stop = import_optuna(), stop
        self.sweep, self._path, self.error = sweep, path, ""
        self._direction = "maximize" if sign > 0 else "minimize"
        self._space = {axis.path: self._distribution(axis, i) for i, axis in enumerate(sweep.axes)}
        self._study = self._optuna.create_study(direction=self._direction)
        self._kept: Any = None
        self._asked: list[Any] = []
        if path is not None:
            self._open(path)
        self._stored: list[Any] = [] if self._kept is None else list(self._kept.get_trials(deepcopy=False))

    @property
    def complete(self) -> bool:
        """Whether there were enough points."""
        return len(self._study.get_trials(deepcopy=False)) >= self.sweep.number

    def ask(self, *, propose: bool = True) -> list[Point]:
        """The next batch, to be told of before the one after it; empty when there were enough.

        Or, where nothing shall be proposed, when no more are kept: that may take minutes.

        Raises
        ------
        Stopped
        """
        begun = len(self._study.get_trials(deepcopy=False))
        numbers = range(begun, min(begun + self.sweep.batch, self.sweep.number))
        if numbers and len(self._stored) >= numbers.stop:
            found = self._stored[numbers.start : numbers.stop]
            self._study.add_trials(found)
        else:
            if not propose:
                return []
            with _ALONE, threadpool_limits(1), _quiet():  # the same bits on every machine's number of processors
                found = self._asked = [self._propose(number) for number in numbers]
        return [self._values(trial.params) for trial in found]

    def tell(self, numbers: Sequence[float]) -> None:
        """What the points of the batch have given, in its order; not-a-number for those that cannot be judged."""
        for trial, number in zip(self._asked, numbers, strict=False):  # nothing was asked of a batch that was kept
            if math.isfinite(number):
                over = self._study.tell(trial, number)
            else:
                over = self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            self._keep(over)
        self._asked = []

    def close(self) -> None:
        """Let go of the file."""
        if self._kept is not None:
            self._storage.remove_session()
            self._storage.engine.dispose()
            self._kept = None

    # -- behind the scenes -------------------------------------------------------------------------------------

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
        found, values, log = self._optuna.distributions, self.sweep.values[position], axis.scale == "log"
        if axis.values is not None:
            return found.CategoricalDistribution(values)
        of = found.IntDistribution if isinstance(values[0], int) else found.FloatDistribution
        return of(*values, log=log)

    def _values(self, params: dict[str, Any]) -> Point:
        """Of a trial, to six digits."""
        found: list[Value] = []
        for axis in self.sweep.axes:
            value = params[axis.path]
            if isinstance(value, float) and axis.low is not None and axis.high is not None:
                value = min(max(float(f"{value:.6g}"), axis.low), axis.high)
            found.append(value)
        return tuple(found)

    def _open(self, path: Path) -> None:
        """Find the study, or begin it; begin it again where the file is damaged: proposals can be made again."""
        from sqlalchemy.exc import OperationalError

        for last in (False, True):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with _alone(path):
                    self._kept = self._load(path)
                return
            except RuntimeError as error:  # a version of Optuna whose tables are others
                raise UserError(f"the study in {path.parent.name[:12]} cannot be read: {_first(error)}") from None
            except (OSError, OperationalError) as error:
                self.error = _unkept(error)
                return
            except Exception as error:  # noqa: BLE001 - what Optuna makes of flipped bits has many names
                if last:
                    self.error = _unkept(error)
                for ending in ("-journal", "-wal", "-shm", ""):
                    Path(f"{path}{ending}").unlink(missing_ok=True)

    def _load(self, path: Path) -> Any:
        connect = partial(
            sqlite3.connect, path, timeout=PATIENCE, check_same_thread=False
        )  # any path, as no URL takes it
        self._storage = self._optuna.storages.RDBStorage(f"sqlite:///{path.name}", engine_kwargs={"creator": connect})
        kept = self._optuna.create_study(
            storage=self._storage, study_name=self.sweep.hash, direction=self._direction, load_if_exists=True
        )
        kept.get_trials(deepcopy=False)  # all pages can be read
        return kept

    def _keep(self, trial: Any) -> None:
        """Write a trial, once: another process may be at the very same sweep."""
        from sqlalchemy.exc import SQLAlchemyError

        if self._kept is None or self._path is None:
            return
        try:
            with _alone(self._path):
                if len(self._kept.get_trials(deepcopy=False)) == trial.number:
                    self._kept.add_trial(trial)
        except (OSError, SQLAlchemyError, self._optuna.exceptions.StorageInternalError) as error:
            self.error = _unkept(error)
            self.close()


def import_optuna() -> Any:
    """Optuna, imported.

    Raises
    ------
    UserError
        It is not installed.
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
    """Of one proposal's dice."""
    return int(Streams(seed, ()).generator("proposal", block=number).integers(2**32))


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While no other process is here, where the system can lock."""
    if fcntl is None:
        yield
        return
    with path.with_suffix(".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's warnings that one of its classes is new."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _unkept(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"this sweep could not be kept on disk ({error.strerror or error})"
    cause = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    return f"what Optuna was told could not be kept on disk ({_first(cause)})"
