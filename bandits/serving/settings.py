"""The settings of a service."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from bandits.base.errors import UserError
from bandits.base.files import atomic_write
from bandits.base.params import Params, param
from bandits.experiments.validation import refusal

from .rollout import RolloutParams

_FILE = "settings.json"


class ServiceParams(Params):
    """How a service decides, learns and protects itself."""

    reward_window: float = param(
        86_400.0,
        title="Reward window",
        help="Seconds after a decision in which a reward is learned; a later one is only logged.",
        unit="s",
        gt=0,
        le=1e9,
    )
    several: Literal["earliest", "sum"] = param(
        "earliest",
        title="Several rewards",
        help="What counts where a decision gets several: the earliest, or their sum at the end of "
        "the window.",
    )
    default_reward: float | None = param(
        None,
        title="Default reward",
        help="Reward of a decision that gets none within the window; empty: it is not learned.",
        empty="none",
    )
    fallback: Literal["popularity", "random"] = param(
        "popularity",
        title="Fallback",
        help="What decides where no policy can: the item with the highest mean reward, or chance.",
    )
    budget: float = param(
        0.05,
        title="Time budget",
        help="Seconds of a decision; after five slower ones in a row the fallback decides for a "
        "while.",
        unit="s",
        gt=0,
    )
    pause: float = param(
        10.0,
        title="Pause",
        help="Seconds for which the fallback decides after slow decisions.",
        unit="s",
        gt=0,
    )
    snapshot_updates: int = param(
        1_000,
        title="Updates per snapshot",
        help="Learned rewards after which the state is stored; fewer make a restart shorter.",
        ge=1,
    )
    snapshot_seconds: float = param(
        10.0,
        title="Snapshot interval",
        help="Seconds after which the state is stored where something changed.",
        unit="s",
        gt=0,
    )
    max_age: float | None = param(
        None,
        title="Largest age",
        help="Seconds since the newest version was registered, after which /health states that "
        "the trainer may be dead; empty: never.",
        unit="s",
        empty="never",
        gt=0,
    )
    rollout: RolloutParams = param(
        RolloutParams(),
        title="Rollout",
        help="How a challenger gets its users.",
    )


def stored(folder: Path, otherwise: ServiceParams | None = None) -> ServiceParams:
    """Return the settings with which a folder was served last; others where it never was, by
    default the defaults.

    Raises
    ------
    UserError
        Their file is damaged.
    """
    path = folder / _FILE
    return read_settings(path) if path.is_file() else otherwise or ServiceParams()


def store(folder: Path, params: ServiceParams) -> None:
    """Keep the settings with which a folder is served, for what works on it beside the service."""
    # on a full disk the service goes on
    with suppress(OSError):
        atomic_write(folder / _FILE, params.model_dump_json(indent=2).encode())


def read_settings(path: Path) -> ServiceParams:
    """Read the settings of a service.

    Raises
    ------
    UserError
        The file cannot be read, or a setting is not allowed.
    """
    try:
        return ServiceParams.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except ValidationError as error:
        sentence = refusal(error, ServiceParams, str(path))
        about = "" if sentence.startswith(f"{path} ") else f"{path}: "
        raise UserError(about + sentence) from None
