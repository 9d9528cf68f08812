"""In which of several runs each common agent earns more: one sentence for each pair of runs.

An agent is named as better only if its paired test is significant after correction for all pairs of runs and agents
(Holm, `run_comparison.paired`). The error rate is simulated in `tests/results/test_run_conclusion.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bandits.base.formatting import count, listed
from bandits.results import words
from bandits.results.metrics import Estimate
from bandits.results.run import Run

from .run_comparison import PairedDifference

LEVEL = 0.05


def conclusions(results: Mapping[str, Run], found: Sequence[PairedDifference]) -> list[str]:
    """State for each pair of runs with common random numbers which agents earn more in which of them.

    Parameters
    ----------
    results : mapping of str to Run
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


def _sentence(results: Mapping[str, Run], pairs: Sequence[PairedDifference]) -> str:
    a, b, step = pairs[0].a, pairs[0].b, pairs[0].step
    longest = max(results[a].experiment.steps, results[b].experiment.steps)
    until = f" up to step {count(step)}" if step < longest else ""
    rows = {pair.rows for pair in pairs}
    shared = f", {max(rows)} paired replications" if len(rows) == 1 and max(rows) > 1 else ""
    noun = results[a].experiment.simulator_class().reward_noun
    tested = [pair for pair in pairs if pair.rows > 1]
    equal = [pair for pair in tested if pair.difference.low == pair.difference.high == 0]
    exact = [pair for pair in tested if pair.difference.low == pair.difference.high != 0]
    apart = exact + [pair for pair in tested if pair.p_value < LEVEL]
    open_ = [pair for pair in tested if pair not in equal and pair not in apart]
    parts = [
        _earns(pair, noun, "" if shared else f"; {pair.rows} paired replications")
        for pair in sorted(apart, key=lambda pair: -abs(pair.difference.mean))
    ]
    parts += [f"the difference for {_names(open_)} is not significant"] if open_ else []
    parts += [f"{_names(equal)} earn{'s' * (len(equal) == 1)} the same in both"] if equal else []
    for finished, why in ((1, "one common replication cannot tell for"), (0, "no replication finished in both for")):
        few = [pair for pair in pairs if pair.rows == finished]
        parts += [f"{why} {_names(few)}"] if few else []
    return f"{b} compared with {a}{until}{shared}: {'; '.join(parts)}."


def _earns(pair: PairedDifference, noun: str, rows: str) -> str:
    word, gap = ("fewer", pair.difference) if pair.difference.mean > 0 else ("more", _negative(pair.difference))
    evidence = f"({words.interval(gap, 'count')}{rows})" if gap.low < gap.high else "in each replication"
    return f"{_name(pair)} earns {words.mean(gap, 'count')} {noun} {word} in {pair.b} {evidence}"


def _negative(e: Estimate) -> Estimate:
    return Estimate(-e.mean, -e.high, -e.low)


def _names(pairs: Sequence[PairedDifference]) -> str:
    return listed(_name(pair) for pair in pairs)


def _name(pair: PairedDifference) -> str:
    return f"{pair.label} (in {pair.b}: {pair.other})" if pair.other else pair.label
