"""What a guard costs and how it changes exposure, and how often a fallback decided in place of an
agent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bandits.base.formatting import count, count_of, listed, percent
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.comparison.paired_tests import Comparison, compare, differs
from bandits.results.describe import describe_guard
from bandits.results.items.fairness import less_shown_half, most_shown, smallest_segment
from bandits.results.metrics import Estimate, estimate, total
from bandits.results.run import Run

if TYPE_CHECKING:
    from bandits.agents.guards.params import GuardParams


def guarded_pairs(experiment: Experiment) -> dict[str, str]:
    """Return by label the agents that are otherwise equal to another one without their outermost
    guard.
    """
    plain = {
        agent.model_dump_json(exclude={"label"}): label
        for label, agent in zip(experiment.labels, experiment.agents, strict=True)
    }
    pairs = {}
    for label, agent in zip(experiment.labels, experiment.agents, strict=True):
        without = agent.model_copy(update={"guards": agent.guards[:-1]}).model_dump_json(
            exclude={"label"}
        )
        if agent.guards and without in plain:
            pairs[label] = plain[without]
    return pairs


def sentences(result: Run) -> list[str]:
    """State what each guard costs its agent in clicks, and what a floor or a cap changes in what is
    shown.

    Intervals are corrected for the number of agents (Bonferroni)."""
    noun, histories = result.experiment.simulator_class().reward_noun, result.histories
    pairs, costs = _costs(result)
    agents = dict(zip(result.experiment.labels, result.experiment.agents, strict=True))
    texts = []
    for label, cost in costs.items():
        plain, earned = pairs[label], float(total(histories[pairs[label]], "clicks").mean())
        fewer = cost.difference.mean >= 0
        # so that all numbers are positive
        shown = cost.difference if fewer else -cost.difference
        text = f"{plain} earns {count_of(shown.mean, ('fewer ' if fewer else 'more ') + noun)}"
        if earned > 0:
            text += f", {percent(shown.mean / earned, 1)},"
        evidence = "one replication: no interval"
        if cost.rows > 1:
            evidence = f"{words.interval(shown, 'count')}; {cost.rows} paired replications"
        if cost.rows > 1 and shown.low == shown.high:
            evidence = f"in each of {cost.rows} paired replications"
        guard, it = (
            describe_guard(agents[label].guards[-1]),
            "them" if _plural(agents[label].guards[-1]) else "it",
        )
        evidence += ", not significant" if _effect(cost) == "open" else ""
        changed = _stated(_exposure(result, label, plain, len(pairs)))
        texts.append(
            f"{guard[0].upper()}{guard[1:]}: {text} than without {it} ({evidence}){changed}."
        )
    return texts


def conclusion(result: Run) -> str:
    """State what the guards of a run cost: the sentence of the one agent with a guard, or a clause
    for each guard.

    Empty where no agent runs with a guard and without it.
    """
    pairs, costs = _costs(result)
    if len(pairs) < 2:
        return next(iter(sentences(result)), "")
    agents = dict(zip(result.experiment.labels, result.experiment.agents, strict=True))
    guards = {label: agents[label].guards[-1] for label in pairs}
    effects = {label: _effect(costs[label]) for label in pairs}
    clauses, noun = [], result.experiment.simulator_class().reward_noun
    for guard in {describe_guard(guard): guard for guard in guards.values()}.values():
        name = f"the {describe_guard(guard)}"
        s, are = ("", "are") if _plural(guard) else ("s", "is")
        less, more, open_, untold = (
            listed(
                pairs[label]
                for label in pairs
                if guards[label] == guard and effects[label] == effect
            )
            for effect in ("less", "more", "open", "untold")
        )
        parts = [f"cost{s} {noun} with {less}"] if less else []
        parts += [f"earn{s} more {noun} with {more}"] if more else []
        parts += [f"{are} not shown to change the {noun} of {open_}"] if open_ else []
        clauses += [f"{name} {listed(parts)}"] if parts else []
        clauses += [f"one replication cannot tell what {name} cost{s} {untold}"] if untold else []
    text = "; ".join(clauses)
    exposed = [_exposure(result, label, plain, len(pairs)) for label, plain in pairs.items()]
    # else shares cannot be put down to one
    alike = len({describe_guard(guard) for guard in guards.values()}) == 1
    changed = _summarised([each for each in exposed if each is not None]) if alike else ""
    return f"{text[0].upper()}{text[1:]}{changed}."


def _effect(cost: Comparison) -> str:
    """Return what a guard does to the clicks of an agent: less, more, open (not significant),
    untold (no test).
    """
    if cost.rows < 2:
        return "untold"
    if not differs(cost.difference, cost.p_value):
        return "open"
    return "less" if cost.difference.mean > 0 else "more"


def _plural(guard: GuardParams) -> bool:
    """Return whether the title of a guard takes a plural verb: delayed rewards cost, an exploration
    floor costs.
    """
    return guard.title.endswith("s")


def _costs(result: Run) -> tuple[dict[str, str], dict[str, Comparison]]:
    """Return the pairs with a common replication, and what each guard costs, corrected for all."""
    histories = result.histories
    pairs = {
        a: b
        for a, b in guarded_pairs(result.experiment).items()
        if a in histories and b in histories
    }
    pairs = {a: b for a, b in pairs.items() if (histories[a].alive & histories[b].alive).any()}
    costs = {a: compare(histories[b], histories[a], family=len(pairs)) for a, b in pairs.items()}
    return pairs, costs


class _Exposure(NamedTuple):
    """What is counted, its share with the guard and without it, and the paired difference."""

    what: str
    after: Estimate
    before: Estimate
    change: Estimate


def _exposure(result: Run, label: str, plain: str, family: int) -> _Exposure | None:
    """Return how a floor or a cap changes what is shown.

    None for other guards, and where it is not counted.
    """
    simulator, histories = result.experiment.simulator_class(), result.histories
    kind = result.experiment.agents[result.experiment.labels.index(label)].guards[-1].kind
    guarded, bare = histories[label], histories[plain]
    both = guarded.alive & bare.alive
    if kind == "cap":
        what, pair = (
            f"the most shown {simulator.item_noun} gets",
            (most_shown(bare)[both], most_shown(guarded)[both]),
        )
    elif kind == "floor":
        halves, segment = (
            (less_shown_half(bare), less_shown_half(guarded)),
            smallest_segment(guarded),
        )
        if halves[0] is None or halves[1] is None or segment is None:
            return None
        name = simulator.segment_names()[segment]
        what = (
            f"for {name}, the smallest segment, the less shown half of the {simulator.item_noun}s "
            "gets"
        )
        pair = halves[0][both, segment], halves[1][both, segment]
    else:
        return None
    before, after, change = (estimate(x, family=family) for x in (*pair, pair[1] - pair[0]))
    return _Exposure(what, after, before, change) if math.isfinite(change.mean) else None


def _stated(found: _Exposure | None) -> str:
    if found is None:
        return ""
    digits = _digits(found)
    text = f", and {found.what} {percent(found.after.mean, digits)} of the shows instead of "
    text += percent(found.before.mean, digits)
    if not math.isfinite(found.change.low):
        return text
    low, high = (
        f"{100 * end:+.{digits}f}".replace("-", "−")
        for end in (found.change.low, found.change.high)
    )
    return f"{text} (95 % CI of the difference {low} to {high} percentage points)"


def _summarised(found: Sequence[_Exposure]) -> str:
    """State the exposure under the guards of several agents."""
    if not found or len({each.what for each in found}) > 1:
        return ""
    digits = max(map(_digits, found))
    after, before = (
        _range([getattr(each, name).mean for each in found], digits) for name in ("after", "before")
    )
    varies = ", depending on the agent" if " to " in after + before else ""
    return f"; {found[0].what} {after} of the shows instead of {before}{varies}"


def _range(shares: Sequence[float], digits: int) -> str:
    low, high = percent(min(shares), digits), percent(max(shares), digits)
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def _digits(found: _Exposure) -> int:
    return 1 if max(found.before.mean, found.after.mean) >= 0.01 else 2


class Fallbacks(NamedTuple):
    """Decisions of a fallback.

    Attributes
    ----------
    decisions : Estimate
        Their number per replication.
    share : float
        Of all decisions.
    cost : Estimate
        Expected clicks that they earned less than as many average decisions of the agent itself,
        per replication; without numbers where the agent made none.
    """

    decisions: Estimate
    share: float
    cost: Estimate


def fallbacks(history: History) -> Fallbacks | None:
    """Count what a fallback decided; None for an agent without one."""
    if "fallbacks" not in history.sums:
        return None
    n, instead, value = (
        metrics.total(history, name) for name in ("fallbacks", "fallback_value", "value")
    )
    steps = int(history.grid[history.size - 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        own = (value - instead) / (steps - n)
    share = float(n[history.alive].mean() / max(steps, 1)) if history.alive.any() else 0.0
    return Fallbacks(metrics.estimate(n), share, metrics.estimate(n * own - instead))


def fallback_sentences(result: Run) -> list[str]:
    """State in one sentence per agent with a fallback how often it decided, and at what cost."""
    found = []
    for label, history in result.histories.items():
        if (f := fallbacks(history)) is None:
            continue
        if f.decisions.mean == 0:
            found.append(f"{label}: the fallback never decided.")
            continue
        text = (
            f"{label}: the fallback made {percent(f.share)} of the decisions "
            f"({count(f.decisions.mean)} a run)"
        )
        if not result.experiment.offers("truth"):
            found.append(f"{text}; what they cost is not known.")
            continue
        if not np.isfinite(f.cost.mean):
            found.append(f"{text}, all of them.")
            continue
        cost = abs(f.cost)
        less = f"{words.mean(cost, 'count')} clicks {'less' if f.cost.mean >= 0 else 'more'}"
        found.append(
            f"{text}; they earned {less}{words.bracket(cost, 'count')} than as many average "
            "decisions of its own."
        )
    return found
