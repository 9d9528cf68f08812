"""Run a sweep on the command line; a sweep that was stopped continues where it was."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

from bandits.base.errors import UserError
from bandits.base.files import home
from bandits.base.formatting import number, percent, short
from bandits.experiments.experiment import Experiment
from bandits.results import words
from bandits.results.metric_registry import OBJECTIVES
from bandits.runtime.cores import read_workers
from bandits.runtime.pool import Pool
from bandits.sweeps.analysis.landscape import EQUIVALENT, Landscape
from bandits.sweeps.at_best import at_best
from bandits.sweeps.execution.audit import Audit
from bandits.sweeps.execution.executors import (
    Executor,
    FailoverExecutor,
    InProcessExecutor,
    PoolExecutor,
)
from bandits.sweeps.optuna_search import import_optuna
from bandits.sweeps.refinement import refine, unresolved
from bandits.sweeps.runner import Runner
from bandits.sweeps.storage.block_files import BlockFiles
from bandits.sweeps.sweep import Sweep, read


def run(
    text: bytes | str,
    out: str | None,
    workers: str | None,
    cluster: str | None,
    *,
    to_refine: bool = False,
) -> int:
    """Run a sweep to its end, with a progress bar; return the exit status.

    With ``to_refine``, values are added around the best point until it is enclosed by near ones
    (`refine`).

    Raises
    ------
    UserError
    KeyboardInterrupt
        Finished blocks are stored: the same command continues from there.
    """
    sweep = read(text)
    if not sweep.is_grid:
        if to_refine:
            raise UserError("--refine is for a grid; Optuna refines its search itself")
        import_optuna()
    if out:
        # fails before the run, not after it
        Path(out).mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        executor = _executor(
            read_workers(workers), cluster or os.environ.get("BANDITS_CLUSTER", ""), stack
        )
        landscape = _run(sweep, executor)
        while to_refine and (found := unresolved(landscape, sweep.metric)):
            print("\n".join(one.sentence() for one in found))
            try:
                refined = refine(landscape, sweep.metric)
            except UserError as error:
                # too many points or refinements
                print(f"not refined any further: {error}")
                break
            if refined is None:
                break
            print(f"refined: {refined.size - landscape.sweep.size} points are added", flush=True)
            landscape = _run(refined, executor)
    if out:
        save(landscape, out)
    print(summary_text(landscape))
    return 0


def tune(experiment: Experiment, workers: int) -> Experiment:
    """Return the comparison of all agents at their best, and print which values were chosen.

    Raises
    ------
    UserError
    KeyboardInterrupt
    """
    with ExitStack() as stack:
        executor = _executor(workers, os.environ.get("BANDITS_CLUSTER", ""), stack)
        found = at_best(experiment, partial(_run, executor=executor))
    print(found.sentence, flush=True)
    return found.experiment


def _run(sweep: Sweep, executor: Executor) -> Landscape:
    from tqdm import tqdm

    runner = Runner(sweep, executor, BlockFiles(sweep, home() / "sweeps"))
    printed: list[str] = []
    with tqdm(total=100, unit="%", desc="sweeping", file=sys.stderr, disable=None) as bar:

        def report(done: float) -> None:
            bar.update(int(100 * done) - bar.n)
            for notice in runner.notices:
                if notice not in printed:
                    printed.append(notice)
                    bar.write(notice, file=sys.stderr)

        runner.on_progress = report
        try:
            landscape = runner.run()
        except KeyboardInterrupt:
            print(
                "Finished blocks are stored: the same command continues from there.",
                file=sys.stderr,
            )
            raise
        report(1.0)
    return landscape


def save(landscape: Landscape, folder: str | Path) -> None:
    """Write ``sweep.json, points.parquet, summary.json, timing.json`` into a folder."""
    out, sweep = Path(folder), landscape.sweep.with_proposals(())
    out.mkdir(parents=True, exist_ok=True)
    (out / "sweep.json").write_text(sweep.model_dump_json(indent=2) + "\n", encoding="utf-8")
    landscape.table(sweep.metric).to_parquet(out / "points.parquet", index=False)
    for name, data in (
        ("summary", landscape.summary(sweep.metric)),
        ("timing", {"seconds": landscape.seconds}),
    ):
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
        (out / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def summary_text(landscape: Landscape) -> str:
    """Describe the best point, the points tied with it, and the importance of each parameter, one
    line each.
    """
    sweep = landscape.sweep
    metric, best = OBJECTIVES[sweep.metric].of(sweep.experiment), landscape.best(sweep.metric)
    noun = sweep.experiment.simulator_class().reward_noun
    if not landscape.completed.any():
        return "every proposed point is invalid: there is no best point"
    if best is None:
        return "every replication of every point diverged: there is no best point"
    lines = [
        f"best: {_point(sweep, best.point)}  {metric.title.lower()} "
        f"{words.cell(best.estimate, metric.form)}"
    ]
    states = [cell.state for cell in landscape.results(sweep.metric)]
    tried = sweep.size if sweep.is_grid else len(sweep.proposed)
    tests = f"{best.runs} replications, level {number(landscape.level)}"
    lines.append(
        f"of {tried} points ({tests}): {states.count('tied')} tied with the best (at most "
        f"{percent(EQUIVALENT)} worse), {states.count('unclear')} too noisy to tell, "
        f"{states.count('worse')} worse"
        + (f", {states.count('dropped')} dropped early" if "dropped" in states else "")
    )
    chosen, own = landscape.recommended(sweep.metric), landscape.unchanged(sweep.metric)
    if chosen and states.count("tied") > 1:
        what = "choose the middle of the tied points"
        if own is not None and own.point == chosen.point:
            what = "keep the values so far, tied with the best"
        lines.append(f"{what}: {_point(sweep, chosen.point)}")
    names = {axis.path: axis.spoken for axis in sweep.axes}
    for each in landscape.importance(sweep.metric):
        loss = f"worst {short(each.worst)} loses {words.cell(each.cost)} {noun} per 1,000 visitors"
        tested = (
            f"best {short(each.best)}, {loss}"
            if each.matters
            else "no value is significantly worse"
        )
        lines.append(f"{names[each.path]}: {tested}")
    ranges = {axis.path for axis in sweep.axes if axis.values is None}
    for one in landscape.explained(sweep.metric):
        tied_values = (" to " if one.path in ranges else ", ").join(map(short, one.good))
        explains = (
            f"; explains {percent(one.share)} of the variance" if one.share == one.share else ""
        )
        lines.append(f"{names[one.path]}: best {short(one.best)}, tied {tied_values}{explains}")
    if landscape.saved_share and sweep.is_grid:
        lines.append(f"replications saved by early stopping: {100 * landscape.saved_share:.0f} %")
    lines += [
        f"{one.sentence()} --refine adds values there."
        for one in unresolved(landscape, sweep.metric)
    ]
    return "\n".join(lines)


def _point(sweep: Sweep, point: int) -> str:
    values = zip(sweep.axes, sweep.values_at(point), strict=True)
    return ", ".join(f"{axis.spoken} {short(value)}" for axis, value in values)


def _executor(workers: int, cluster: str, stack: ExitStack) -> Executor:
    """Compute on the cluster, and on this machine if the cluster is lost.

    Without a cluster on this machine.
    """
    if not cluster:
        return _machine(workers, stack)
    from bandits.sweeps.execution.dask_client import DaskExecutor

    # the pool is started when it is needed
    local = cache(partial(_machine, workers, stack))
    executor = FailoverExecutor(DaskExecutor(cluster, Audit(local)), local)
    stack.callback(executor.close)
    return executor


def _machine(workers: int, stack: ExitStack) -> Executor:
    if workers == 0:
        return InProcessExecutor()
    pool = Pool(workers)
    stack.callback(pool.close)
    return PoolExecutor(pool)
