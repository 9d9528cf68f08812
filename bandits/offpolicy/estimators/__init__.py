"""Estimators of a target policy's value, one file each: from rounds to contributions, whose mean is the estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from bandits.base.types import FloatArray

from ..rounds import Rounds
from .clipped_ips import clipped_ips
from .dm import dm
from .dr import dr
from .dros import dros
from .ips import ips
from .replay import replay
from .sndr import sndr
from .snips import snips
from .switch_dr import switch_dr


class Kind(NamedTuple):
    """An estimator and what it requires.

    Attributes
    ----------
    title : str
    name : str
        What the title abbreviates, in full.
    words : str
        What it averages, in a few words.
    estimate : callable
        From `Rounds` to contributions, float64 (n,); with ``tuned``, also takes that keyword.
    weights, model : bool
        Whether it uses importance weights and predicted rewards.
    tuned : str
        The parameter that SLOPE++ chooses; empty where there is none.
    reference : str
        For a biased estimator: the unbiased one whose interval it has; otherwise empty.
    """

    title: str
    name: str
    words: str
    estimate: Callable[..., FloatArray]
    weights: bool = True
    model: bool = False
    tuned: str = ""
    reference: str = ""


REGISTRY: Mapping[str, Kind] = {
    "ips": Kind(
        "IPS",
        "inverse propensity scoring",
        "observed rewards, weighted; unbiased where the log supports the target",
        ips,
    ),
    "clipped_ips": Kind(
        "Clipped IPS",
        "inverse propensity scoring with clipped weights",
        "IPS with bounded weights",
        clipped_ips,
        tuned="clip",
        reference="ips",
    ),
    "snips": Kind(
        "SNIPS",
        "self-normalised inverse propensity scoring",
        "IPS, divided by the mean weight: less variance",
        snips,
    ),
    "dm": Kind(
        "DM",
        "direct method",
        "predicted rewards of what the target would choose",
        dm,
        weights=False,
        model=True,
        reference="dr",
    ),
    "dr": Kind("DR", "doubly robust", "predicted rewards, corrected by observed ones", dr, model=True),
    "sndr": Kind(
        "SNDR", "self-normalised doubly robust", "DR, divided by the mean weight: less variance", sndr, model=True
    ),
    "switch_dr": Kind(
        "Switch-DR",
        "doubly robust up to a largest weight, direct method beyond",
        "DR; large weights are left to the prediction",
        switch_dr,
        model=True,
        tuned="tau",
        reference="dr",
    ),
    "dros": Kind(
        "DR with shrinkage",
        "doubly robust with shrunk weights",
        "DR; large weights are shrunk",
        dros,
        model=True,
        tuned="shrinkage",
        reference="dr",
    ),
    "replay": Kind(
        "Replay",
        "rejection of events in which the target chose something else",
        "rewards where the target chose what was shown; for random logs",
        replay,
        weights=False,
    ),
}

__all__ = [
    "REGISTRY", "Kind", "Rounds", "clipped_ips", "dm", "dr", "dros", "ips", "replay", "sndr", "snips", "switch_dr",
]  # fmt: skip
