"""The registry of simulators: one line each, in the order in which they are offered."""

from __future__ import annotations

from bandits.base.params import registry

from .base import Simulator, SimulatorParams

REGISTRY: dict[str, type[Simulator]] = registry(
    __name__,
    "petshop.PetShop",
    "classification.Classification",
    "rewards.Rewards",
    "synthetic.Synthetic",
    "levers.Levers",
    "wheel.Wheel",
    "articles.Articles",
    "sessions.Sessions",
    "ranking.Ranking",
    "artwork.Artwork",
    "logged.Logged",
)

__all__ = ["REGISTRY", "Simulator", "SimulatorParams"]
