"""The two ways to forget old observations, as parameters: a discount factor and a sliding window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bandits.base.params import param


def gamma_param(*, later: bool = True) -> Any:
    """Declare the discount factor; ``later``: added after the first release of its class."""
    return param(
        1.0, title="Discount factor", symbol=r"\gamma", gt=0, le=1, typical=(0.99, 1), later=later,
        help="Discount factor for past observations: one that is k steps old has weight γ to the power k. Larger "
        "values forget more slowly; usually 0.99 to 1 (no forgetting). For U changes in T steps, theory recommends "
        "1 − √(U/T)/4.",
    )  # fmt: skip


def window_param(*, later: bool = True) -> Any:
    """Declare the sliding window."""
    return param(
        None, title="Sliding window", unit="steps", empty="all steps", ge=1, le=1_000_000, structural=True, later=later,
        help="Number of most recent steps that the models are fitted to. Larger values forget more slowly; usual "
        "are 500 to 10,000; empty means all steps.",
    )  # fmt: skip


def closest_way(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with one way to forget: with both, the window is left out."""
    both = values.get("gamma", 1.0) < 1 and values.get("window") is not None
    return {**values, "window": None} if both else dict(values)


def check_one_way(kind: str, gamma: float, window: int | None) -> None:
    """Check that an agent forgets in one way.

    Raises
    ------
    ValueError
        It has a discount factor below 1 and a window.
    """
    if gamma < 1 and window is not None:
        raise ValueError(f"{kind}: choose gamma below 1 or a window, not both")
