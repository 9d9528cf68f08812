"""Changes during a run, declared as data: what changes, when, and which changes contradict each
other.

The parameters of a simulator hold a list of those kinds that it offers; at step t every change that
begins at t or before is in force. The oracle knows the rewards of the moment, so regret is dynamic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bandits.base.params import Params, param
from bandits.base.types import FloatArray, IntArray

# the largest step that a change may name
LAST = 100_000_000
NEVER = 2**62
MAX_CHANGES = 20


def step_param(title: str, help: str) -> Any:
    return param(..., title=title, ge=1, le=LAST, help=help)


def changes_param(kinds: str, *, features: bool = True) -> Any:
    """Declare the field ``changes`` of a simulator that offers these kinds and, unless it has
    none, features that break.
    """
    broken = ", or the features that agents observe (features)" if features else ""
    return param(
        (),
        title="Changes",
        later=True,
        max_length=MAX_CHANGES,
        help=f"What changes during the run: {kinds}{broken}.",
    )


class Change(Params):
    """One change of a simulator during a run.

    Attributes
    ----------
    title : str
        Its name in menus.
    """

    kind: str
    title: ClassVar[str]

    @property
    def begins(self) -> int:
        """The first step at which something is different."""
        return int(getattr(self, "at", 0))

    @property
    def ends(self) -> int | None:
        """The first step from which this change moves nothing any more.

        None if it never comes to rest.
        """
        return self.begins

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:
        """Return values to begin with in a run of so many steps, as plain data."""
        return {"kind": cls.model_fields["kind"].default, "at": max(1, steps // 2)}

    def sentence(self) -> str:
        """Describe it in a few words: the mark in plots."""
        return self.title

    def contradicts(self, other: Change) -> str:
        """Name what it has in common with another change so that both cannot hold.

        Empty if they agree.
        """
        same = type(self) is type(other) and self.begins == other.begins
        return f"both begin at step {self.begins:,}" if same else ""


HOW = {
    "next": "preferences rotate",
    "reverse": "preferences reversed",
    "table": "new click probabilities",
}


class Shock(Change):
    """From one step on, every segment (persona, class, user, quadrant, weight) has the preferences
    of another.
    """

    kind: Literal["shock"] = "shock"
    at: int = step_param("Step", "First step with the new preferences.")
    how: Literal["next", "reverse"] = param(
        "next",
        title="New preferences",
        help=(
            "next: each group of users, class or weight takes the place of the next one. "
            "reverse: the first takes the place of the last, and so on."
        ),
    )

    title = "Market shock"

    def sentence(self) -> str:
        return f"{self.title} ({HOW[self.how]})"


class Season(Change):
    """Rates rise and fall: each is multiplied by 1 + A sin(2 pi t / P + phase of its category),
    within 0 to 1.
    """

    kind: Literal["season"] = "season"
    period: int = param(
        5000, title="Period", symbol="P", unit="steps", ge=2, le=LAST, help="Steps of one cycle."
    )
    amplitude: float = param(
        0.3,
        title="Amplitude",
        symbol="A",
        ge=0,
        le=1,
        help=(
            "Largest relative change of a rate. Larger values make the seasons more different; "
            "usually 0.1 to 0.5."
        ),
    )

    title = "Season"

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:
        return {"kind": "season", "period": max(2, steps // 4)}

    @property
    def ends(self) -> None:
        return None

    def factor(self, steps: IntArray, categories: int) -> FloatArray:
        """Compute the factor of every category at ``steps (T,)``, float64 (T, C).

        The phases are evenly spaced.
        """
        phase = 2 * np.pi * np.arange(categories) / categories
        turn = 2 * np.pi * (steps % self.period) / self.period
        return np.asarray(1 + self.amplitude * np.sin(turn[:, None] + phase))

    def sentence(self) -> str:
        return f"{self.title} of {self.period:,} steps"

    def contradicts(self, other: Change) -> str:
        same = isinstance(other, Season) and self.period == other.period
        return f"both have a period of {self.period:,} steps" if same else ""


class Traffic(Change):
    """From one step on, the segments have other shares of the visitors."""

    kind: Literal["traffic"] = "traffic"
    at: int = step_param("Step", "First step with the new visitors.")
    shares: tuple[float, ...] = param(
        ...,
        title="Shares",
        strict=False,
        min_length=2,
        max_length=20,
        help="Share of the visitors that each segment has from then on; they add up to 1.",
    )

    title = "New traffic"

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:
        return {**super().suggested(steps), "shares": [0.1, 0.2, 0.3, 0.4]}

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-6:
            given = ", ".join(f"{share:g}" for share in self.shares)
            raise ValueError(f"shares are {given}; they must be from 0 to 1 and add up to 1")
        return self


class Features(Change):
    """From one step on, a feature arrives broken, while tastes stay: a fault of the pipeline."""

    kind: Literal["features"] = "features"
    at: int = step_param("Step", "First step with the broken feature.")
    column: int = param(0, title="Feature", ge=0, le=100_000, help="Its column, counted from 0.")
    how: Literal["missing", "shifted", "scaled", "swapped"] = param(
        "missing",
        title="Fault",
        help=(
            "missing: it is 0. shifted: a constant is added. scaled: it is multiplied. swapped: "
            "it is exchanged with another column."
        ),
    )
    by: float = param(
        1.0,
        title="Amount",
        ge=-1000,
        le=1000,
        typical=(-10, 10),
        help=(
            "What is added (shifted) or multiplied by (scaled). Larger values do more harm; "
            "usually -10 to 10."
        ),
    )
    other: int | None = param(
        None,
        title="Other feature",
        empty="none",
        ge=0,
        le=100_000,
        help="The column that it is exchanged with (swapped).",
    )

    title = "Broken feature"

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:
        how = values.get("how", "missing")
        return frozenset({"by"} if how not in ("shifted", "scaled") else ()) | (
            {"other"} if how != "swapped" else set()
        )

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("how") != "swapped":
            return {**values, "other": None}
        column, other = values.get("column", 0), values.get("other")
        return {**values, "other": int(column == 0) if other is None or other == column else other}

    @model_validator(mode="after")
    def _two_columns(self) -> Self:
        if (self.how == "swapped") != (self.other is not None):
            raise ValueError(
                "other names the column of a swap: give it with how swapped, and only then"
            )
        if self.other == self.column:
            raise ValueError(f"column and other are both {self.column}; they must differ")
        return self

    @property
    def columns(self) -> set[int]:
        """The columns that it touches."""
        return {self.column} if self.other is None else {self.column, self.other}

    def sentence(self) -> str:
        return f"Feature {self.column} {self.how}"

    def contradicts(self, other: Change) -> str:
        if not isinstance(other, Features) or self.at != other.at:
            return ""
        both = sorted(self.columns & other.columns)
        return f"both break feature {both[0]} at step {self.at:,}" if both else ""


ShocksAndFaults = tuple[Annotated[Shock | Features, Field(discriminator="kind")], ...]


def check(changes: Mapping[str, Change], n_features: int) -> None:
    """Raise ValueError, in one sentence, where two changes contradict each other or name a missing
    feature.

    Parameters
    ----------
    changes : mapping of str to Change
        By the name of the field.
    n_features : int
        D.
    """
    for (name, one), (other_name, other) in combinations(changes.items(), 2):
        if both := one.contradicts(other):
            raise ValueError(f"{name} and {other_name} contradict each other: {both}")
    for name, change in changes.items():
        if isinstance(change, Features) and max(change.columns) >= n_features:
            raise ValueError(
                f"{name} names feature {max(change.columns)}; the features are numbered 0 to "
                f"{n_features - 1}"
            )


def permutation(how: str, n: int) -> IntArray:
    """Return, for each of n places, the place whose preferences it takes in a shock."""
    return (np.arange(n) + 1) % n if how == "next" else np.arange(n)[::-1].copy()


def order_at(changes: Iterable[Change], step: int, n: int) -> IntArray | None:
    """Return, for each of n places, the one whose preferences it has at a step after all shocks.

    None without one.
    """
    shocks = sorted(
        (c for c in changes if isinstance(c, Shock) and c.at <= step), key=lambda c: c.at
    )
    if not shocks:
        return None
    order = np.arange(n)
    for shock in shocks:
        order = order[permutation(shock.how, n)]
    return order


def more_stored(changes: Iterable[Change], n_stored: int, n_features: int) -> int:
    """Count the stored entries per vector that shifted features add to ``n_stored``: shifts make
    zeros non-zero.
    """
    shifted = {c.column for c in changes if isinstance(c, Features) and c.how == "shifted"}
    return min(len(shifted), n_features - n_stored)
