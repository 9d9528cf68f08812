"""Move an experiment to another simulator: what fits is kept, what does not is changed or left out,
with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import AgentParams
from bandits.agents.context_free.baselines import Random
from bandits.base.errors import UserError
from bandits.simulators import REGISTRY as SIMULATORS

from .experiment import MEMORY_LIMIT, Experiment, read
from .labels import labels_of
from .presets import presets
from .repair import MAX_AGENTS, repair
from .suitability import (
    Adaptation,
    Data,
    Setting,
    Statement,
    differences,
    distinct_labels,
    fit,
    obstacle,
    parse,
    plain,
)

# bytes of one agent: twelve of them fit
SHARE = MEMORY_LIMIT // MAX_AGENTS


def suggestion(kind: str) -> Experiment | None:
    """Return the experiment of the preset that a simulator declares; None if it declares none."""
    name = SIMULATORS[kind].preset
    return presets()[name].experiment if name else None


def adapt(data: Data, kind: str) -> Adaptation:
    """Move an experiment to another simulator.

    The simulator's parameters, steps and replications come from its preset. Agents that fit are
    kept. Where the preset has an agent of the same kind, it replaces one that does not fit, has its
    default settings, or those of the old simulator's preset. The preset's other agents are added.

    Parameters
    ----------
    data : dict
        An experiment as plain data. Its agents are of registered kinds, but their parameters may be
        invalid.
    kind : str
        Of the new simulator.
    """
    given, old = suggestion(kind), suggestion(data["simulator"]["kind"])
    model: type[Any] = SIMULATORS[kind].Params
    setting = Setting(
        given.simulator if given else model(),
        given.steps if given else data["steps"],
        given.replications if given else data["replications"],
    )
    usual = old.agents if old else ()
    suited: dict[str, list[AgentParams]] = {}
    for params in given.agents if given else ():
        suited.setdefault(params.kind, []).append(params)
    agents, changed, left_out = _moved(data["agents"], setting, usual, suited)
    if len(agents) > MAX_AGENTS:
        names = labels_of(distinct_labels([plain(p) for p in agents]))[MAX_AGENTS:]
        left_out += [(name, f"an experiment has at most {MAX_AGENTS} agents") for name in names]
        agents = agents[:MAX_AGENTS]
    kinds = {params.kind for params in agents}
    more = [params for kind, several in suited.items() if kind not in kinds for params in several]
    more = more[: MAX_AGENTS - len(agents)]
    if not agents and not more:
        more = [Random.Params()]
    moved = {
        **setting.with_agents(distinct_labels([plain(p) for p in (*agents, *more)])),
        "seed": data["seed"],
    }
    added = labels_of(moved["agents"])[len(agents) :]
    smaller = repair(moved)
    if smaller is not None:
        return Adaptation(
            smaller.experiment,
            (*left_out, *smaller.left_out),
            (*changed, *smaller.changed),
            smaller.added,
        )
    return Adaptation(read(moved), tuple(left_out), tuple(dict.fromkeys(changed)), added)


def _moved(
    given: Sequence[Data],
    setting: Setting,
    usual: Sequence[AgentParams],
    suited: Mapping[str, Sequence[AgentParams]],
) -> tuple[list[AgentParams], list[Statement], list[Statement]]:
    """Return the agents that can move, what is changed about them, and what is left out."""
    agents: list[AgentParams] = []
    changed: list[Statement] = []
    left_out: list[Statement] = []
    for values, label in zip(given, labels_of(given), strict=True):
        model: type[Any] = AGENTS[values["kind"]].Params
        own: AgentParams | None = parse(model, values)
        better = suited.get(values["kind"], ())
        replace = bool(better) and (own is None or own in usual or own == model())
        fitting = None if own is None or replace else fit(own, setting, SHARE)
        if own is not None and fitting is not None:
            agents.append(fitting)
            changed += differences(label, own, fitting)
        elif better:
            new = [params for params in better if params not in agents]
            agents += new
            if not new:
                left_out.append((label, "with the preset's settings it equals another agent"))
            elif own not in better:
                changed.append((label, "the preset's settings"))
        else:
            left_out.append(
                (
                    label,
                    "its settings are not valid" if own is None else obstacle(own, setting, SHARE),
                )
            )
    return agents, changed, left_out


def suited_agent(kind: str, data: Data) -> Data:
    """Return an agent to add to an experiment: its defaults, or the alternative to them that fits.

    Parameters
    ----------
    kind : str
        Of the agent.
    data : dict
        The experiment as plain data.
    """
    simulator = parse(SIMULATORS[data["simulator"]["kind"]].Params, data["simulator"])
    model: type[Any] = AGENTS[kind].Params
    params = model()
    if simulator is not None:
        # data that are not stored here: explained when it is run
        with suppress(UserError):
            params = (
                fit(params, Setting(simulator, data["steps"], data["replications"]), SHARE)
                or params
            )
    return {"kind": kind, **params.model_dump(mode="json", exclude_defaults=True)}
