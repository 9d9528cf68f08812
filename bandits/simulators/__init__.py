"""The registry of simulators: one line each."""

from __future__ import annotations

from .base import Simulator, SimulatorParams
from .classification import Classification
from .petshop import PetShop

_CLASSES: tuple[type[Simulator], ...] = (
    PetShop,
    Classification,
)

REGISTRY: dict[str, type[Simulator]] = {str(c.Params.model_fields["kind"].default): c for c in _CLASSES}

__all__ = ["REGISTRY", "Simulator", "SimulatorParams"]
