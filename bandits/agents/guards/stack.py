"""Build an agent with its guards, check a stack of guards by arithmetic, and estimate its
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bandits.agents.base import Agent
from bandits.base.randomness import Streams
from bandits.base.types import SimulatorAccess, SimulatorSpec

from . import params
from .cap import Cap
from .delay import Batch, Delay, late_memory
from .fallback import Fallback
from .floor import Floor
from .reset import Reset

GUARDS: dict[str, Any] = {
    "floor": Floor,
    "cap": Cap,
    "delay": Delay,
    "batch": Batch,
    "reset": Reset,
    "fallback": Fallback,
}


def build(
    cls: type[Agent],
    params: Sequence[Any],
    spec: SimulatorSpec,
    streams: Streams,
    access: SimulatorAccess,
) -> Agent:
    """Make an agent and put its guards around it, the first one inside.

    Parameters
    ----------
    cls : subclass of Agent
    params, spec, streams, access
        See `Agent`.
    """
    agent = cls(params, spec, streams, access)
    for position, guard in enumerate(params[0].guards):
        agent = GUARDS[guard.kind](guard, agent, streams, position)
    return agent


def check(
    guards: Sequence[params.GuardParams],
    cls: type[Agent],
    spec: SimulatorSpec,
    n_segments: int,
    name: str,
) -> None:
    """Raise ValueError, in one sentence, where guards are impossible in a simulator, or together.

    Parameters
    ----------
    guards : sequence of GuardParams
    cls : subclass of Agent
        The agent inside.
    spec : SimulatorSpec
    n_segments : int
        User segments of the simulator.
    name : str
        Of the field, for messages.
    """
    K = spec.n_candidates
    # share of the traffic that floors give to one arm, at most
    least = 0.0
    for i, guard in enumerate(guards):
        where = f"{name}.{i} ({guard.title})"
        if isinstance(guard, params.Delay | params.Batch) and "visits" in spec.capabilities:
            raise ValueError(
                f"{where}: a simulator with visits moves on by each choice and cannot show a past "
                "step again; leave it out, or choose another simulator"
            )
        if isinstance(guard, params.Floor):
            if guard.segments and len(guard.segments) != n_segments:
                expected = (
                    f"{n_segments}, one per segment"
                    if n_segments
                    else "none: the simulator has no segments"
                )
                raise ValueError(
                    f"{where}: segments has {len(guard.segments)} numbers; it must have {expected}"
                )
            largest = max(guard.segments or (guard.epsilon,))
            if guard.per == "arm" and largest * K > 1 + 1e-9:
                raise ValueError(
                    f"{where}: {K} arms with a share of {largest:g} each need {largest * K:g} of "
                    f"the traffic; give each at most {1 / K:.3g}"
                )
            new = guard.new if guard.shows else 0.0
            least = max(least, (largest if guard.per == "arm" else largest / K) + new)
        if isinstance(guard, params.Reset) and guard.monitor is not None and not cls.row_by_row:
            raise ValueError(
                f"{where}: a detector cannot reset single replications of {cls.title}, because "
                "they are trained together; give every (steps)"
            )
    for i, guard in enumerate(guards):
        if not isinstance(guard, params.Cap):
            continue
        where = f"{name}.{i} ({guard.title})"
        if guard.share * K < spec.slate - 1e-9:
            raise ValueError(
                f"{where}: {K} arms with a share of at most {guard.share:g} each fill "
                f"{guard.share * K:g} of {spec.slate} slot{'s' * (spec.slate > 1)}; allow each at "
                f"least {spec.slate / K:.3g}"
            )
        if guard.share < least - 1e-9:
            raise ValueError(
                f"{where}: share is {guard.share:g}; an exploration floor may give one arm "
                f"{least:.3g}, which is more"
            )


def stack_memory(guards: Sequence[params.GuardParams], spec: SimulatorSpec, agent: int) -> int:
    """Compute the bytes per row of guards, of which resets keep a copy of the agent, ``agent``
    bytes.
    """
    copies = sum(isinstance(guard, params.Reset) for guard in guards)
    total = copies * agent
    for i, guard in enumerate(guards):
        late = isinstance(guard, params.Delay | params.Batch)
        total += (
            late_memory(guards[i:], spec)
            if late
            else int(GUARDS[guard.kind].guard_memory(guard, spec))
        )
    return total
