"""Rules on regret and exploration: how much an agent loses, and whether it explores too little or
too much.

The thresholds were chosen on one set of seeds and are shown on another in ``docs/EXPLORATION.md``.
"""

from __future__ import annotations

import math

from bandits.agents import AgentParams, agent_class
from bandits.base.formatting import number, percent
from bandits.diagnostics.curves import recent_entropy
from bandits.diagnostics.finding import NOTHING_TO_GAIN, Direction, Finding, Verdict, at_most
from bandits.diagnostics.references import OracleReference
from bandits.diagnostics.regret import (
    RegretShares,
    RegretSources,
    is_locked_in,
    regret_shares,
    regret_sources,
)
from bandits.diagnostics.siblings import MIN_LOSS, SEVERE_LOSS, Sibling
from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.metrics import Estimate

# of the gain: what an agent loses over the last third is small below it
LOW_REGRET = 0.1
HIGH_REGRET = 0.5
# of what the greedy choices would gain: lost by exploring, over the run
MAX_COST = 0.13
# late exploration rate; with good estimates, only `MAX_COST_MOST` may then be lost by exploring
MOST_DECISIONS = 0.5
MAX_COST_MOST = 0.05
# of the gain, below which that of the greedy choices is too small to divide by
MIN_GREEDY = 0.25
# of the gain: regret due to greedy choices that are not the optimum, over the run
MAX_MISSED = 0.1
# exploration rate up to which an agent hardly explores
MAX_RATE = 0.05
# exploration rate of an agent that never explores, up to ties
NEVER = 0.001
# of selection entropy, above or below the oracle's
TOLERANCE = 0.1
# of the gain of the best setting: all that lose significantly more are named in docs/EXPLORATION.md
DETECTED = 0.1
# exploration rate below which an agent hardly explores any more
ENDED = 0.01
# replications: one has no interval
MIN_ROWS = 2

ONE_REPLICATION = "A single replication has no interval: at least 2 are required."
IGNORES_CONTEXT = "it ignores the context, which may be the cause."
NO_CHECKS = "too few snapshots of the exploration rate so far."
CHANGED = (
    "Whether it explores too little or too much cannot be decided: the simulator has changed "
    "during the run, for which no error rates of this verdict are known."
)
OWN_TABLE = (
    "on a table of your own the features may not tell better choices apart; run the same agent "
    "with more exploration beside it."
)


def regret(history: History, *, learns: bool = True) -> Finding:
    """Grade the regret of the last third, and state whether it still falls per step."""
    title = "Regret"
    healthy = (
        f"Over the last third the agent loses at most {percent(LOW_REGRET)} of the oracle's gain "
        "over random choice."
    )
    shares = regret_shares(history)
    if shares is None:
        return Finding(title, healthy, "none", NOTHING_TO_GAIN)
    late, change = metrics.estimate(shares.late), metrics.estimate(shares.late - shares.middle)
    trend = (
        "falling"
        if change.high < 0
        else "rising"
        if change.low > 0
        else "not changing significantly"
    )
    text = (
        f"Over the last third the agent loses {words.mean(late, 'share')} of the "
        f"gain{words.bracket(late, 'share')}, "
    )
    text += (
        f"{percent(float(shares.middle.mean()))} over the second third (a change of "
        f"{percent(change.mean, 1)}): the loss per step is {trend}."
    )
    if not learns:
        return Finding(title, healthy, "none", f"The agent does not learn during the run. {text}")
    verdict = at_most(late.mean, healthy=LOW_REGRET, watch=HIGH_REGRET)
    if verdict == "healthy":
        text += " What remains is small" + (
            "." if change.high < 0 else ", but regret goes on to grow in a straight line."
        )
    return Finding(title, healthy, verdict, text)


def exploration(
    history: History,
    params: AgentParams,
    oracle: OracleReference | None = None,
    sibling: Sibling | None = None,
    *,
    learns: bool = True,
    changed: bool = False,
    own_table: bool = False,
) -> Finding:
    """Decide whether an agent explores too little, about right or too much.

    The regret has two sources: choices other than the greedy one (the cost of exploring), and
    greedy choices that are not optimal (what the agent does not know). Too much: the first is
    large, and the second is smaller or no longer falls; or most decisions still explore at the end
    although the second is small. Too little: the second is large, to the end, while the agent
    hardly explores, and chance decided what it shows. A sibling that earns clearly more with
    another exploration rate is direct evidence, and decides.

    Where the simulator has ``changed`` during the run, both sources also depend on how fast the
    agent follows. Only a sibling decides there. So it is with too little exploration on a user's
    ``own_table``: where its features cannot express who earns what, all that is missed looks as if
    exploring more would find it."""
    title = "Exploration"
    healthy = (
        f"Exploring costs at most {percent(MAX_COST)} of what the agent's own estimates would gain "
    )
    healthy += (
        f"({percent(MAX_COST_MOST)} if good estimates are ignored in most decisions to the end), "
        "stopping early "
    )
    healthy += (
        f"costs at most {percent(MAX_MISSED)} of the oracle's gain, and no agent of this run that "
        "differs in "
    )
    healthy += (
        f"its exploration parameter alone earns {percent(MIN_LOSS)} more of the gain by exploring "
        "less or more."
    )
    shares, sources = regret_shares(history), regret_sources(history)
    if shares is None:
        return Finding(title, healthy, "none", NOTHING_TO_GAIN)
    lost = _lost(float(shares.total.mean()))
    if not learns:
        text = "The agent does not learn during the run: it need not explore."
        return Finding(
            title, healthy, "none", text, "", f"{lost}. It does not learn during the run."
        )
    if len(shares.total) < MIN_ROWS:
        return Finding(title, healthy, "none", ONE_REPLICATION, "", f"{lost}. {ONE_REPLICATION}")
    verdict, direction, text = (
        _from_regret(history, shares, oracle, changed, own_table)
        if sources is None
        else _from_sources(history, params, shares, sources, sibling, changed, own_table)
    )
    if sibling is not None and sources is not None:
        cause = (
            f". {'Less' if direction == 'too much' else 'More'} exploration earns more: "
            f"{sibling.sentence}"
        )
    else:
        cause = (
            _cause(verdict, direction, history, shares, sources) or f". {text.rsplit('. ', 1)[-1]}"
        )
    if direction and oracle is not None:
        entropy = recent_entropy(history, oracle.steps)[0]
        text += f" Selection entropy: {entropy:.2f} (oracle: {oracle.entropy:.2f})."
    return Finding(title, healthy, verdict, text, direction, lost + cause)


def _from_sources(
    history: History,
    params: AgentParams,
    shares: RegretShares,
    sources: RegretSources,
    sibling: Sibling | None,
    changed: bool,
    own_table: bool,
) -> tuple[Verdict, Direction, str]:
    """Grade by what the regret is due to."""
    missed, trend = metrics.estimate(sources.estimating), metrics.estimate(sources.trend)
    cost = metrics.estimate(sources.exploring / max(1 - missed.mean, MIN_GREEDY))
    rate, late_rate = float(sources.rate.mean()), metrics.estimate(sources.late_rate)
    step = f"step {history.step:,}"
    observed = (
        f"{_still(late_rate)} at {step}. Exploring costs {words.mean(cost, 'share')} of what its "
        "own estimates would "
    )
    observed += (
        f"gain{words.bracket(cost, 'share')}; wrong estimates cost {words.mean(missed, 'share')} "
        "of the oracle's gain"
    )
    observed += f"{words.bracket(missed, 'share')}."
    pays_off = missed.mean > float(sources.exploring.mean()) and trend.high < 0
    costly = cost.mean > MAX_COST and not pays_off
    ignored = late_rate.mean > MOST_DECISIONS and missed.mean <= MAX_MISSED
    wasteful = ignored and cost.low > MAX_COST_MOST
    too_much: Verdict = "alarm" if costly and cost.low > MAX_COST else "watch"
    if sibling is not None:
        severe = sibling.lost.low > SEVERE_LOSS or (
            sibling.direction == "too much" and too_much == "alarm"
        )
        return ("alarm" if severe else "watch"), sibling.direction, f"{observed} {sibling.sentence}"
    if changed:
        return "none", "", f"{observed} {CHANGED}"
    if costly or wasteful:
        return too_much, "too much", observed
    if missed.low <= MAX_MISSED or shares.late.mean() <= LOW_REGRET:
        return "healthy", "about right", observed
    reason = f"{observed} Whether more exploration would help cannot be decided: "
    if agent_class(params).representation(params) is None:
        return "none", "", reason + IGNORES_CONTEXT
    if own_table:
        return "none", "", reason + OWN_TABLE
    if rate <= NEVER and not is_locked_in(history):
        text = (
            f"{observed} It never explores, so it cannot know what it misses; its reward model may "
            "be the cause too."
        )
        return "watch", "too little", text
    if rate > MAX_RATE or not is_locked_in(history):
        cause = (
            "the agent is still learning."
            if trend.high < 0
            else "its reward model may be the cause."
        )
        return "none", "", reason + cause
    return (
        "alarm",
        "too little",
        f"{observed} What it shows was decided by chance early in the run.",
    )


def _from_regret(
    history: History,
    shares: RegretShares,
    oracle: OracleReference | None,
    changed: bool,
    own_table: bool,
) -> tuple[Verdict, Direction, str]:
    """Grade a run without enough checks by its regret and its selection entropy.

    No alarm from these alone.
    """
    total = metrics.estimate(shares.total)
    lost = (
        f"The agent loses {words.mean(total, 'share')} of the gain{words.bracket(total, 'share')}"
    )
    if changed:
        return "none", "", f"{lost}. {CHANGED}"
    if total.low <= MAX_COST:
        return "healthy", "about right", f"{lost}."
    gap = math.nan if oracle is None else recent_entropy(history, oracle.steps)[0] - oracle.entropy
    if gap > TOLERANCE:
        return "watch", "too much", f"{lost} and selects more evenly than the oracle."
    if gap < -TOLERANCE and not own_table:
        return "watch", "too little", f"{lost} and selects less evenly than the oracle."
    return "none", "", f"{lost}. The cause cannot be decided: {NO_CHECKS}"


def _cause(
    verdict: Verdict,
    direction: Direction,
    history: History,
    shares: RegretShares,
    sources: RegretSources | None,
) -> str:
    """State why an agent loses, as the continuation of `_lost`.

    Empty where it cannot be decided.
    """
    step = f"step {history.step:,}"
    if direction == "too much" and sources is not None and sources.late_rate.mean() < ENDED:
        return f": it explored for too long, and hardly does at {step}. Less would earn more."
    if direction == "too much":
        share = (
            "" if sources is None else f", in {_of_decisions(metrics.estimate(sources.late_rate))}"
        )
        return f": it still explores at {step}{share}. Less exploration would earn more."
    if direction == "too little" and verdict == "watch" and sources is not None:
        return (
            ": it never explores, so it cannot know what it misses. More exploration may earn more."
        )
    if direction == "too little":
        return (
            ": it stopped exploring before it had found the best choices. More exploration would "
            "earn more."
        )
    early = shares.total.mean() > LOW_REGRET > shares.late.mean()
    plateau = f", most of it early on: by {step} its regret has reached a plateau" if early else ""
    if not direction:
        return ""
    best, random = (metrics.total(history, name).mean() for name in ("best_value", "random_value"))
    gain = 1000 * DETECTED * float(best - random) / history.step
    # the best setting gains at most as much as the oracle
    return (
        f"{plateau}. No sign of too little or too much exploration. Losses of up to "
        f"{percent(DETECTED)} of the gain (here {number(gain)} per 1,000 steps) may go unseen: in "
        "measured runs of LinUCB, LinTS and ε-greedy this rule found all significantly larger ones."
    )


def _lost(share: float) -> str:
    """State a regret relative to the oracle's gain over random choice."""
    if share >= 1:
        return "It loses all of the possible gain (it earns no more than random choice)"
    return f"It loses {percent(share)} of the possible gain"


def _still(rate: Estimate) -> str:
    """Describe the exploration rate at the end of a run."""
    if rate.mean <= 0.01:
        return "The agent no longer explores"
    return f"The agent still explores in {_of_decisions(rate)}"


def _of_decisions(rate: Estimate) -> str:
    # of each replication a sample of the decisions is checked
    return f"{words.mean(rate, 'share')} of its decisions{words.bracket(rate, 'share')}"
