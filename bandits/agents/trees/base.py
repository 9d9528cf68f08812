"""What agents have in common whose models are fitted afresh to the latest observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bandits.agents.facts import Representation
from bandits.agents.rows import AgentRows
from bandits.base.randomness import Streams
from bandits.base.types import SimulatorAccess, SimulatorSpec
from bandits.models.observations import Observations


class RefittedAgent(AgentRows):
    """Base class of agents with `observed`, by the parameters ``every``, ``fit_growth``,
    ``history``, ``window`` and ``sharing``.
    """

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p = self.params[0]
        self.shared = p.sharing == "shared"
        self.observed = Observations(
            len(self.params),
            spec.n_features,
            spec.slate,
            every=p.every,
            growth=p.fit_growth,
            history=p.history,
            window=p.window,
        )
        self.state = tuple(f"observed.{name}" for name in Observations.STATE)

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "features"

    @classmethod
    def generalises(cls, params: Any) -> bool:
        return bool(params.sharing == "shared")

    @classmethod
    def forgets(cls, params: Any) -> bool:
        return params.window is not None

    @staticmethod
    def observed_memory(params: Any, spec: SimulatorSpec) -> int:
        """Compute the bytes per row of the observations."""
        return Observations.memory(
            spec.n_features,
            spec.slate,
            every=params.every,
            growth=params.fit_growth,
            history=params.history,
        )
