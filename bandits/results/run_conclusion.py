"""In which of several runs each common agent earns more: one sentence for each pair of runs.

An agent is named as better only if its paired test is significant after correction for all pairs of runs and agents
(Holm, `run_comparison.paired`). The error rate is simulated in `tests/results/test_run_conclusion.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bandits.base.formatting import count, count_of, listed

from .metrics import Estimate
from .result import Result
from .run_comparison import PairedDifference
from .text import interval

LEVEL = 0.05


def conclusions(results: Mapping[str, Result], found: Sequence[PairedDifference]) -> list[str]:
    """State for each pair of runs with common random numbers which agents earn more in which of them.

    Parameters
    ----------
    results : mapping of str to Result
        By name of the run.
    found : sequence of PairedDifference
        All of `run_comparison.paired`, for which p-values are corrected together.

    Returns
    -------
    list of str
        One sentence for each pair of runs with an agent in common.
    """
    runs = dict.fromkeys((pair.a, pair.b) for pair in found)
    return [_sentence(results, [pair for pair in found if (pair.a, pair.b) == names]) for names in runs]


def _sentence(results: Mapping[str, Result], pairs: Sequence[PairedDifference]) -> str:
    a, b, step = pairs[0].a, pairs[0].b, pairs[0].step
    longest = max(results[a].experiment.steps, results[b].experiment.steps)
    until = f" up to step {count(step)}" if step < longest else ""
    noun = results[a].experiment.simulator_class().reward_noun
    apart = sorted((p for p in pairs if p.p_value < LEVEL), key=lambda pair: -abs(pair.difference.mean))
    equal = [p for p in pairs if p.difference.low == p.difference.high == 0]
    single = [p for p in pairs if p.rows < 2]  # without an interval
    open_ = [p for p in pairs if p not in apart and p not in equal and p not in single]
    parts = [_earns(pair, noun) for pair in apart]
    parts += [f"the difference for {listed(map(_name, open_))} is not significant"] if open_ else []
    parts += [f"{listed(map(_name, equal))} earn{'s' * (len(equal) == 1)} the same in both"] if equal else []
    parts += [f"one replication cannot tell for {listed(map(_name, single))}"] if single else []
    return f"{b} compared with {a}{until}: {'; '.join(parts)}."


def _earns(pair: PairedDifference, noun: str) -> str:
    more, gap = (pair.a, pair.difference) if pair.difference.mean > 0 else (pair.b, _negative(pair.difference))
    return f"{_name(pair)} earns {count_of(gap.mean, noun)} more in {more} ({interval(gap)})"


def _negative(e: Estimate) -> Estimate:
    return Estimate(-e.mean, -e.high, -e.low)


def _name(pair: PairedDifference) -> str:
    return f"{pair.label} (in {pair.b}: {pair.other})" if pair.other else pair.label
