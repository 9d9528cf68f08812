"""Which agents can act outside of a simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from bandits.agents import REGISTRY as AGENTS
from bandits.agents.params import AgentParams
from bandits.base.errors import UserError
from bandits.base.formatting import listed, short
from bandits.experiments import plugins
from bandits.experiments.validation import refusal

# capabilities that a loop of one's own has
OFFERED = frozenset({"binary", "arm_features"})
WHY_NOT = {
    "truth": "the true expected rewards, which only a simulator knows",
    "log": "logged interactions",
    "categories": "categories of items, which a policy has not",
    "vectors": "vectors of users and items as features",
    "ids": "identifiers of users",
    "segments": "user segments",
    "states": "states of a visit",
    "visits": "visits of many decisions",
}
LATE = {"delay", "batch"}


def read_agent(agent: Mapping[str, Any] | str | AgentParams) -> AgentParams:
    """Return the parameters of an agent.

    Raises
    ------
    UserError
        The kind is not known, or a parameter is not allowed.
    """
    plugins.load()
    if isinstance(agent, AgentParams):
        return agent
    data = {"kind": agent} if isinstance(agent, str) else agent
    if not isinstance(data, Mapping) or not isinstance(kind := data.get("kind"), str):
        raise UserError(
            f'agent is {short(agent)}; it must be parameters with a kind, as {{"kind": "linucb"}}'
        )
    if kind not in AGENTS:
        raise UserError(f"kind is '{short(kind)}'; it must be one of {', '.join(AGENTS)}")
    model = AGENTS[kind].Params
    try:
        found: AgentParams = model.model_validate(dict(data))
    except ValidationError as error:
        raise UserError(f"{AGENTS[kind].title}: {refusal(error, model)}") from None
    return found


def refuse(params: AgentParams, *, trained: bool = False) -> None:
    """Raise UserError where an agent cannot act outside of a simulator.

    ``trained``: what a log teaches before the first step has been learned.
    """
    cls = AGENTS[params.kind]
    required = cls.needs if trained else cls.requires(params)
    if missing := sorted(required - OFFERED):
        needs = listed(WHY_NOT.get(name, name) for name in missing)
        raise UserError(f"{cls.title} cannot be a policy of its own: it needs {needs}")
    if getattr(params, "prior", "") == "given" and cls.representation(params) is not None:
        raise UserError(
            f"{cls.title} cannot be a policy of its own: the prior given needs the contexts of a "
            "simulator; use prior zero or pooled"
        )
    if late := [guard.title for guard in params.guards if guard.kind in LATE]:
        raise UserError(
            f"{cls.title} has the guard '{late[0]}', which holds rewards back; a policy learns "
            "each reward when it comes, so leave the guard out"
        )
