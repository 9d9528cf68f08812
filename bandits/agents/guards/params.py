"""The parameters of guards: the entries of an agent's field ``guards``, applied in their order from
the inside out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bandits.base.params import Params, param

MAX_GUARDS = 8


class GuardParams(Params):
    """One guard around an agent.

    Attributes
    ----------
    title : str
        Its name in menus.
    main : tuple of str
        Fields that a short description states, whatever their values are.
    """

    kind: str
    title: ClassVar[str]
    main: ClassVar[tuple[str, ...]]

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:  # noqa: ARG003
        """Return values to begin with in a run of so many steps, as plain data."""
        return {"kind": cls.model_fields["kind"].default}


class Floor(GuardParams):
    """Shows a random arm in a share of the decisions, so that every arm keeps being tried."""

    kind: Literal["floor"] = "floor"
    epsilon: float = param(
        0.05,
        title="Share",
        symbol=r"\varepsilon",
        ge=0,
        le=0.5,
        help=(
            "Share of the decisions that show a random arm. Larger values explore more; usually "
            "0.01 to 0.1."
        ),
    )
    per: Literal["traffic", "arm"] = param(
        "traffic",
        title="Share counts",
        help="traffic: all arms together get the share. arm: each arm gets it.",
    )
    segments: tuple[float, ...] = param(
        (),
        title="Share by segment",
        max_length=20,
        help=(
            "Share of each user segment, in their order, in place of one for all; empty means "
            "the same for all."
        ),
    )
    shows: int = param(
        0,
        title="New until",
        unit="shows",
        ge=0,
        le=1_000_000,
        typical=(0, 1000),
        help=(
            "An arm with fewer shows is new. Larger values keep arms new for longer; 0 means "
            "that none is new."
        ),
    )
    new: float = param(
        0.05,
        title="Share of new",
        ge=0,
        le=0.5,
        help=(
            "Share of the decisions that show a random new arm, while there is one. Larger "
            "values try new arms sooner; usually 0.01 to 0.1."
        ),
    )

    title = "Exploration floor"
    main = ("epsilon", "new")

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:
        unused = {"epsilon": bool(values.get("segments")), "new": not values.get("shows")}
        return frozenset(name for name, idle in unused.items() if idle)

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.segments and (min(self.segments) < 0 or max(self.segments) > 0.5):
            given = ", ".join(f"{share:g}" for share in self.segments)
            raise ValueError(f"segments are {given}; each must be from 0 to 0.5")
        return self


class Cap(GuardParams):
    """Keeps each arm's share of the last decisions under a limit: the agent chooses among the other
    arms.
    """

    kind: Literal["cap"] = "cap"
    share: float = param(
        0.5,
        title="Largest share",
        symbol="c",
        ge=0.02,
        le=1,
        help=(
            "Largest share of the last decisions that one arm may have. Smaller values spread "
            "the shows more; usually 0.1 to 0.5."
        ),
    )
    window: int = param(
        1000,
        title="Window",
        symbol="w",
        unit="steps",
        ge=10,
        le=100_000,
        help=(
            "Number of last decisions that the share is counted in. Larger values allow longer "
            "series of one arm; usually 100 to 10,000."
        ),
    )

    title = "Exposure cap"
    main = ("share",)


class Delay(GuardParams):
    """Rewards arrive late; the agent learns from them with the features as they were shown."""

    kind: Literal["delay"] = "delay"
    steps: int = param(
        500,
        title="Delay",
        symbol="d",
        unit="steps",
        ge=1,
        le=100_000,
        help=(
            "Steps until a reward arrives (their mean, if they vary). Larger values delay "
            "learning; usually 10 to 5,000."
        ),
    )
    law: Literal["constant", "geometric"] = param(
        "constant",
        title="Distribution",
        help=(
            "constant: every reward takes as long. geometric: random delays, the same in all "
            "replications and at most ten times the mean."
        ),
    )

    title = "Delayed rewards"
    main = ("steps",)


class Batch(GuardParams):
    """The agent learns only every n steps, from all that happened since.

    In between its policy is frozen.
    """

    kind: Literal["batch"] = "batch"
    steps: int = param(
        500,
        title="Batch",
        symbol="n",
        unit="steps",
        ge=1,
        le=100_000,
        help=(
            "Steps between two updates of the agent. Larger values delay learning; usually 10 to "
            "5,000."
        ),
    )

    title = "Batch updates"
    main = ("steps",)


class Reset(GuardParams):
    """The agent forgets everything and begins anew: at intervals, or when a detector sees its
    rewards change.
    """

    kind: Literal["reset"] = "reset"
    every: int | None = param(
        None,
        title="Interval",
        unit="steps",
        empty="by detector",
        ge=2,
        le=100_000_000,
        typical=(1000, 20_000),
        help=(
            "Steps between two resets. Smaller values forget more often; empty means that a "
            "detector decides."
        ),
    )
    monitor: Literal["page_hinkley", "adwin"] | None = param(
        None,
        title="Detector",
        empty="none",
        help=(
            "Detector of changes of the mean reward that resets the agent, each replication by "
            "itself. page_hinkley: the Page-Hinkley test. adwin: adaptive windowing. Not for "
            "networks, whose replications share the batches and steps of their training: give an "
            "interval."
        ),
    )

    title = "Reset"
    main = ("every",)

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:
        return {"kind": "reset", "every": max(2, steps // 4)}

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("every") is None and values.get("monitor") is None:
            return {**values, "monitor": "page_hinkley"}
        return {**values, "monitor": None} if values.get("every") is not None else values

    @model_validator(mode="after")
    def _one_reason(self) -> Self:
        if (self.every is None) == (self.monitor is None):
            raise ValueError("reset: give either every (steps) or monitor (page_hinkley, adwin)")
        return self


class Fallback(GuardParams):
    """Another policy decides when the agent fails or takes too long.

    Response times are simulated.
    """

    kind: Literal["fallback"] = "fallback"
    to: Literal["random", "epsilon_greedy", "popularity", "default"] = param(
        "random",
        title="Fall back to",
        help="The policy that decides in place of the agent; it learns all the time.",
    )
    budget_ms: float = param(
        10.0,
        title="Time limit",
        unit="ms",
        gt=0,
        le=60_000,
        typical=(1, 100),
        help=(
            "Longest response time of the agent. Smaller values fall back more often; usually 5 "
            "to 100 ms."
        ),
    )
    median_ms: float = param(
        1.0,
        title="Median time",
        unit="ms",
        gt=0,
        le=60_000,
        typical=(0.1, 50),
        help=(
            "Median of the agent's simulated response times, which are log-normal. Larger values "
            "fall back more often; usually 0.5 to 20 ms."
        ),
    )
    p99_ms: float = param(
        5.0,
        title="99th percentile",
        unit="ms",
        gt=0,
        le=60_000,
        typical=(0.1, 500),
        help=(
            "Response time that 1 in 100 decisions exceeds. Larger values fall back more often; "
            "usually 5 to 50 times the median at most."
        ),
    )

    title = "Fallback"
    main = ("to", "budget_ms")

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        median = values.get("median_ms", 1.0)
        return {**values, "p99_ms": max(values.get("p99_ms", 5.0), median)}

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.p99_ms < self.median_ms:
            raise ValueError(
                f"fallback: p99_ms is {self.p99_ms:g}; it must be at least median_ms, "
                f"{self.median_ms:g}"
            )
        return self


# from the inside out
GuardList = tuple[
    Annotated[Floor | Cap | Delay | Batch | Reset | Fallback, Field(discriminator="kind")], ...
]


def guards_param() -> Any:
    """Declare the field ``guards``."""
    return param(
        (),
        title="Guards",
        later=True,
        structural=True,
        max_length=MAX_GUARDS,
        help=(
            "What stands between the agent and the users, from the inside out: a floor of "
            "exploration, a cap on shares, delayed rewards, batch updates, resets, a fallback."
        ),
    )


def leak(guard: GuardParams | Mapping[str, Any]) -> str:
    """Name a guard, and what it takes from single observations without the noise of a private
    model.

    Parameters
    ----------
    guard : GuardParams or dict
        A guard, or its values as plain data.

    Returns
    -------
    str
        Empty if it takes nothing.
    """
    values = dict(guard)
    match values.get("kind"):
        case "reset":
            return "reset: a reset would use the noise again"
        case "cap":
            return "cap: it counts what is shown, without noise"
        case "floor" if values.get("shows", 0):
            return "floor with new arms (shows): it counts what is shown, without noise"
        case "fallback" if (to := values.get("to", "random")) not in ("random", "default"):
            return f"fallback to {to}: it learns from the rewards, without noise"
    return ""
