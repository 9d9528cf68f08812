"""Thompson sampling with a Beta posterior per item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..params import setting
from ..randomness import Streams
from ..rounds import FloatArray, Round, Setting, World
from .base import AgentParams
from .context_free import ContextFreeAgent

_BLOCK = 1024  # steps served by one generator of the agent's stream


class BetaTS(ContextFreeAgent):
    """Thompson sampling without context [1]_: draws each item's click rate from Beta(a + clicks, b + misses).

    References
    ----------
    .. [1] Thompson (1933); Chapelle, Li (2011), An empirical evaluation of Thompson sampling, Algorithm 2.
    """

    class Params(AgentParams):
        kind: Literal["beta_ts"] = "beta_ts"
        prior_clicks: float = setting(
            1.0, title="Prior clicks", symbol="a", ge=0.01, le=1000, basic=True,
            help="Clicks each item is believed to have had before the start.",
        )  # fmt: skip
        prior_misses: float = setting(
            1.0, title="Prior misses", symbol="b", ge=0.01, le=1000, basic=True,
            help="Showings without a click each item is believed to have had before the start.",
        )  # fmt: skip

    title = "Beta Thompson"
    propensity = "monte_carlo"

    def __init__(self, params: Sequence[Any], setting: Setting, streams: Streams, world: World) -> None:
        super().__init__(params, setting, streams, world)
        self.a, self.b = self.column("prior_clicks"), self.column("prior_misses")
        # rejection sampling consumes a varying amount: one generator per row and block, its position saved
        self._block = -1
        self._generators: list[np.random.Generator] = []

    def scores(self, round: Round) -> FloatArray:
        if (block := round.step // _BLOCK) != self._block:
            self._open(block)
        shows, clicks = self.counts(round)
        a, b = self.a[:, None] + clicks, self.b[:, None] + shows - clicks
        return np.stack([g.beta(a[r], b[r]) for r, g in enumerate(self._generators)])

    def _open(self, block: int) -> None:
        self._block = block
        self._generators = [self.streams.generator("agent", row=row, block=block) for row in self.streams.rows]

    def state_dict(self) -> dict[str, Any]:
        position = {str(r): g.bit_generator.state for r, g in enumerate(self._generators)}
        return {**super().state_dict(), "block": self._block, "generators": position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._block, self._generators = -1, []
        if state["block"] >= 0:
            self._open(state["block"])
            for r, generator in enumerate(self._generators):
                generator.bit_generator.state = state["generators"][str(r)]
