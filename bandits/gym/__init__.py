"""Simulators as environments of Gymnasium, for agents of other libraries.

>>> from bandits.gym import make_env
>>> env = make_env({"kind": "sessions", "n_products": 10})
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bandits.base.errors import UserError
from bandits.base.extras import require
from bandits.experiments.experiment import read

if TYPE_CHECKING:
    from .environment import BanditEnv

__all__ = ["make_env"]


def make_env(simulator: Mapping[str, Any], *, steps: int = 1000) -> BanditEnv:
    """Make the environment of a simulator.

    Parameters
    ----------
    simulator : mapping
        Its kind and parameters, as in an experiment.
    steps : int
        Steps of an episode, where the simulator has no visits.

    Raises
    ------
    UserError
        Parameters are not allowed, the simulator replays a log, or gymnasium is not installed.
    """
    require("gymnasium")
    from .environment import BanditEnv

    experiment = read(
        {"simulator": dict(simulator), "agents": [{"kind": "random"}], "steps": steps}
    )
    if experiment.offers("replay"):
        raise UserError(
            f"simulator.kind is {experiment.simulator.kind}; a replayed log answers only for what "
            "it shows, so that it is no environment"
        )
    return BanditEnv(experiment.simulator, steps)
