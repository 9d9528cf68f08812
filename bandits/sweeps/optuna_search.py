"""Search with Optuna: propose points in batches.

The random numbers of a proposal depend on the seed of the sweep and the number of the proposal
alone, and a proposal follows from these and the results before it. A sweep that was interrupted in
any way therefore proposes the same points again; those that are stored with it need not be proposed
again, which may take minutes."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from bandits.base.extras import require
from bandits.base.randomness import Streams

from .axis import Axis, Value
from .blocks import StoppedError
from .sweep import Sweep

# the number of BLAS threads is a setting of the whole process
_THREAD_LIMIT = threading.Lock()
Point = tuple[Value, ...]


class OptunaSearch:
    """Proposes the points of a sweep with Optuna.

    Parameters
    ----------
    sweep : Sweep
    proposals : sequence of tuple
        Points that were proposed before, as in the attribute.
    sign : int
        1 if larger values of the metric are better, -1 if smaller values are.
    stop : callable, optional
        Called before every proposal; the search ends if it returns True.

    Attributes
    ----------
    proposals : list of tuple
        All points so far as Optuna proposed them, also repeated and invalid ones, not rounded.

    Raises
    ------
    UserError
        If Optuna is not installed.
    """

    def __init__(
        self,
        sweep: Sweep,
        proposals: Sequence[Point] = (),
        *,
        sign: int = 1,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._optuna, self._stop = import_optuna(), stop
        self.sweep, self.proposals = sweep, list(proposals)
        self._space = {axis.path: self._distribution(axis, i) for i, axis in enumerate(sweep.axes)}
        self._study = self._optuna.create_study(direction="maximize" if sign > 0 else "minimize")
        self._told = 0
        self._pending: list[Any] = []

    @property
    def complete(self) -> bool:
        """Whether all points are proposed and evaluated."""
        return self._told >= self.sweep.number

    def ask(self, *, propose: bool = True) -> list[Point]:
        """Return the next batch; empty if all points were proposed.

        Its results must be reported with `tell` before the next call. Without ``propose``, only
        stored batches are returned: a proposal may take minutes.

        Raises
        ------
        StoppedError
            If ``stop`` returned True.
        """
        end = min(self._told + self.sweep.batch, self.sweep.number)
        if len(self.proposals) < end:
            if not propose:
                return []
            # the same bits with any number of processors
            with _THREAD_LIMIT, threadpool_limits(1), _quiet():
                self._pending = [self._propose(number) for number in range(self._told, end)]
            points = [
                tuple(trial.params[axis.path] for axis in self.sweep.axes)
                for trial in self._pending
            ]
            self.proposals[self._told :] = points
        return [self._rounded(point) for point in self.proposals[self._told : end]]

    def tell(self, numbers: Sequence[float]) -> None:
        """Report the metric of each point of the batch, in its order.

        NaN for points without a valid result.
        """
        states = self._optuna.trial.TrialState
        for i, number in enumerate(numbers):
            valid = math.isfinite(number)
            state, value = (states.COMPLETE, number) if valid else (states.FAIL, None)
            if self._pending:
                self._study.tell(self._pending[i], value, state=state)
            else:
                params = dict(zip(self._space, self.proposals[self._told + i], strict=True))
                made = self._optuna.trial.create_trial(
                    state=state, value=value, params=params, distributions=self._space
                )
                self._study.add_trial(made)
        self._told, self._pending = self._told + len(numbers), []

    # -- internals
    # ---------------------------------------------------------------------------------------------

    def _propose(self, number: int) -> Any:
        if self._stop():
            raise StoppedError
        samplers, seed = self._optuna.samplers, _seed(self.sweep.experiment.seed, number)
        if self.sweep.sampler == "tpe":
            self._study.sampler = samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True
            )
        elif self.sweep.sampler == "gp":
            self._study.sampler = samplers.GPSampler(seed=seed)
        else:
            self._study.sampler = samplers.RandomSampler(seed=seed)
        return self._study.ask(self._space)

    def _distribution(self, axis: Axis, position: int) -> Any:
        kinds, values, log = (
            self._optuna.distributions,
            self.sweep.values[position],
            axis.scale == "log",
        )
        if axis.values is not None:
            return kinds.CategoricalDistribution(values)
        distribution = (
            kinds.IntDistribution if isinstance(values[0], int) else kinds.FloatDistribution
        )
        return distribution(*values, log=log)

    def _rounded(self, point: Point) -> Point:
        """Return the axis values of a proposal, rounded to six digits."""
        values: list[Value] = []
        for axis, value in zip(self.sweep.axes, point, strict=True):
            if isinstance(value, float) and axis.low is not None and axis.high is not None:
                value = min(max(float(f"{value:.6g}"), axis.low), axis.high)
            values.append(value)
        return tuple(values)


def import_optuna() -> Any:
    """Import Optuna.

    Raises
    ------
    UserError
        If it is not installed.
    """
    require("optuna")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _seed(seed: int, number: int) -> int:
    """Return the seed of one proposal."""
    return int(Streams(seed, ()).generator("proposal", block=number).integers(2**32))


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Optuna's warnings about experimental classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
