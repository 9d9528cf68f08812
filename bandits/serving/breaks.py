"""What goes wrong in production, on request: versions that are bad or slow."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

from bandits.base.errors import UserError
from bandits.policy import Policy

from .decisions import join
from .event_log import newest
from .registry import Registry

# latest decisions from which the bad version learns, and how many it learns from, each several
# times: it learns on while it serves, and would soon be as good as the champion
_DECISIONS, _LEARNED = 2_000, 20_000
# of a slow version, per decision: some 100 ms
_REDRAWS = 3_500


def bad_model(folder: Path) -> int:
    """Roll out a version that learned the opposite of the latest rewards; return its number.

    Raises
    ------
    UserError
        There is no champion, or no reward in the log yet.
    """
    registry, champion = _champion(folder)
    policy = champion.untrained()
    # a decision and its reward are two events, and some are other ones
    found = join(newest(folder / "log", 3 * _DECISIONS))
    rewarded = [each for each in found if each.reward == each.reward]
    if not rewarded:
        raise UserError("no decision of the log has a reward yet")
    ends = [each.reward for each in rewarded]
    for each in islice(cycle(rewarded), _LEARNED):
        body = each.body
        opposite = min(ends) + max(ends) - each.reward
        policy.learn(body["context"], body["item"], opposite, body["candidates"])
    number = registry.register(policy.to_bytes(), {"made_by": "opposite rewards"})
    registry.point("challenger", number)
    return number


def slow_model(folder: Path) -> int:
    """Promote a version whose decisions take some 100 ms, past the rollout; return its number.

    Its propensities are estimated by many redraws.

    Raises
    ------
    UserError
        There is no champion.
    """
    registry, champion = _champion(folder)
    schema = champion.schema.fresh() if champion.schema is not None else None
    # with a known noise its propensities would be exact, and fast
    agent = {"kind": "lints", "noise": "inverse_gamma"}
    policy = Policy(agent, champion.items.names, schema, redraws=_REDRAWS)
    number = registry.register(policy.to_bytes(), {"made_by": f"{_REDRAWS:,} redraws"})
    registry.promote(number)
    return number


def _champion(folder: Path) -> tuple[Registry, Policy]:
    registry = Registry(folder / "registry")
    number = registry.aliases().champion
    if number is None:
        raise UserError("the registry has no champion")
    return registry, Policy.from_bytes(registry.version(number).policy)
