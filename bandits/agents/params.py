"""Parameters that all agents have, and those of agents that learn."""

from __future__ import annotations

from bandits.base.params import Params, param
from bandits.models.position_bias import Position

from .guards.params import GuardList, guards_param


class AgentParams(Params):
    """Parameters that every agent has."""

    kind: str
    label: str | None = param(
        None,
        title="Name",
        help="Label of this agent in plots and tables.",
        pattern=r"^[\w.-][\w .-]{0,39}$",
    )
    guards: GuardList = guards_param()


class LearnerParams(AgentParams):
    """Parameters of agents that learn from clicks."""

    position: Position = param(
        "examined",
        title="Slot treatment",
        structural=True,
        later=True,
        slates=True,
        help=(
            "How the slots of a slate count in learning. examined: a slot counts once if the "
            "user examined it. ignored: every slot counts once, examined or not (a common "
            "mistake). aware: an examined slot counts in proportion to its position bias."
        ),
    )
