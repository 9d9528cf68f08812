"""The registry of monitors, and how they are chosen by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.params import registry
from bandits.experiments.validation import parse

from .base import Monitor, MonitorParams

REGISTRY: dict[str, type[Monitor]] = registry(
    "bandits.monitoring",
    "detectors.PageHinkleyMonitor",
    "detectors.AdwinMonitor",
    "ctr_range.CtrRange",
    "feature_monitors.FeatureDrift",
    "entropy.Entropy",
    "entropy.SegmentEntropy",
    "entropy.Coverage",
    "feature_monitors.Correlation",
    "statements.Calibration",
    "statements.Fallbacks",
    "statements.Exploration",
    "statements.ImportanceWeight",
)

# monitors that report a change, not a state
CHANGES = ("page_hinkley", "adwin", "ctr_range", "feature_drift")


def read(monitors: Sequence[str | dict[str, Any] | MonitorParams]) -> list[MonitorParams]:
    """Read monitors given by kind, or as parameters with a field ``kind``.

    Raises
    ------
    UserError
        A kind is unknown or repeated, or a parameter is not allowed.
    """
    found = [_read(each) for each in monitors]
    kinds = [params.kind for params in found]
    if repeated := next((kind for kind in kinds if kinds.count(kind) > 1), None):
        raise UserError(f"the monitor {repeated} is named twice; name each once")
    return found


def _read(given: str | dict[str, Any] | MonitorParams) -> MonitorParams:
    if isinstance(given, MonitorParams):
        return given
    data = {"kind": given} if isinstance(given, str) else given
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in REGISTRY:
        raise UserError(f"the monitor is '{short(kind)}'; it must be one of {', '.join(REGISTRY)}")
    model = REGISTRY[kind].Params
    return parse(json.dumps(data), f"monitor {kind}", model, model.model_validate)
