"""Exact values of visits of many clicks: of the best policy, and of short-sighted ones.

The state of a visit is small (persona, mood, last clicked category, steps left), so that value
iteration computes it to rounding. Axis letters: P personas, M moods, L last categories (the last
one is none), A kinds of items (staple and treat of each category)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bandits.base.types import FloatArray, IntArray

from .petshop_rates import CATEGORIES, MOST, PERSONAS

MOODS, START = 5, 2
N_KINDS = 2 * len(CATEGORIES)
NONE = len(CATEGORIES)
# of each category: food and toy of one animal complement each other, fish has no other
COMPLEMENT = (1, 0, 3, 2, 4)
# largest change of a value in the last round of value iteration without a limit of steps
TOLERANCE = 1e-10

Choice = Callable[[FloatArray, FloatArray], FloatArray]
"""From Q (P, M, L, A) and the immediate rewards (P, 1, L, A) to the value of a state (P, M, L)."""


class VisitModel(NamedTuple):
    """What happens at one step of a visit.

    Attributes
    ----------
    clicks : float64 (P, L, A)
        Click probability.
    rewards : float64 (P, L, A)
        Expected reward: that of a click times what it pays.
    up, down, missed : float64 (A,)
        Probability that the mood rises after a click, falls after a click, and falls without one.
    leave : float64 (M,)
        Probability to leave with each mood.
    """

    clicks: FloatArray
    rewards: FloatArray
    up: FloatArray
    down: FloatArray
    missed: FloatArray
    leave: FloatArray


class Solution(NamedTuple):
    """Rewards per visit, means over the personas, and values of every state.

    Attributes
    ----------
    optimal, short_sighted, fixed, uniform : float
        Of the best policy, of the one that maximises the next reward, of the best single kind of
        item for each persona, and of uniformly random choice among the items.
    q : float64 (H, P, M, L, A)
        Optimal value of each kind of item, by the steps left (index 0: one); H is 1 without limit.
    """

    optimal: float
    short_sighted: float
    fixed: float
    uniform: float
    q: FloatArray


def visit_model(params: Any) -> VisitModel:
    """Derive the probabilities of a step from the parameters of the simulator."""
    rates = np.array(params.click_rates)
    clicks = np.empty((len(PERSONAS), NONE + 1, N_KINDS))
    for last in range(NONE + 1):
        wanted = rates
        if last < NONE:
            # the complement is liked best, everything else least
            turned = np.repeat(rates.min(axis=1, keepdims=True), NONE, axis=1)
            turned[:, COMPLEMENT[last]] = rates.max(axis=1)
            wanted = (1 - params.intent) * rates + params.intent * turned
        clicks[:, last, 0::2] = wanted
        # a rate above the largest one of treats stays as it is
        clicks[:, last, 1::2] = np.maximum(wanted, np.minimum(params.lift * wanted, MOST))
    treat, c = np.arange(N_KINDS) % 2, params.consequence
    pays = np.repeat(params.purchase_rates, 2) if params.reward == "purchase" else np.ones(N_KINDS)
    return VisitModel(
        clicks,
        clicks * pays,
        np.where(treat, params.mood_up * (1 - c), params.mood_up),
        np.where(treat, params.treat_down * c, 0.0),
        np.full(N_KINDS, params.mood_down),
        np.array(params.leave),
    )


def solve(params: Any) -> Solution:
    """Compute the optimum of a visit and the value of three simple policies by value iteration.

    Parameters
    ----------
    params : Sessions.Params

    References
    ----------
    Sutton, Barto (2018), Reinforcement Learning, section 4.4.
    """
    model, shares = visit_model(params), _persona_shares(params)

    def at_start(choice: Choice) -> FloatArray:
        return _iterate(model, choice, params.limit)[1][:, START, NONE]

    def short(q: FloatArray, now: FloatArray) -> FloatArray:
        first = np.broadcast_to(now, q.shape).argmax(axis=3)[..., None]
        return np.take_along_axis(q, first, axis=3)[..., 0]

    def always(kind: int) -> Choice:
        return lambda q, _: q[..., kind]

    fixed = np.stack([at_start(always(kind)) for kind in range(N_KINDS)])
    q, best = _iterate(model, lambda q, _: q.max(axis=3), params.limit)
    return Solution(
        float(shares @ best[:, START, NONE]),
        float(shares @ at_start(short)),
        float(shares @ fixed.max(axis=0)),
        fixed_value(params, np.full(params.n_products, 1 / params.n_products)),
        q,
    )


def fixed_value(params: Any, probabilities: FloatArray) -> float:
    """Compute the mean reward per visit of a policy that always shows the products with these
    probabilities, float64 (K,).
    """
    kinds = np.arange(params.n_products) % N_KINDS
    weights = np.bincount(kinds, weights=probabilities, minlength=N_KINDS)
    value = _iterate(visit_model(params), lambda q, _: q @ weights, params.limit)[1]
    return float(_persona_shares(params) @ value[:, START, NONE])


def _persona_shares(params: Any) -> FloatArray:
    users = np.arange(params.n_users) % len(PERSONAS)
    return np.asarray(np.bincount(users, minlength=len(PERSONAS)) / params.n_users)


def _iterate(model: VisitModel, choice: Choice, limit: int | None) -> tuple[FloatArray, FloatArray]:
    """Return Q by the steps left, (H, P, M, L, A), and the value of a whole visit, (P, M, L)."""
    tables: list[FloatArray] = []
    value = np.zeros((len(PERSONAS), MOODS, NONE + 1))
    now = model.rewards[:, None]
    while limit is None or len(tables) < limit:
        q = action_values(model, value)
        new = choice(q, now)
        done = limit is None and np.abs(new - value).max() < TOLERANCE
        tables, value = [q] if limit is None else [*tables, q], new
        if done:
            break
    return np.stack(tables), value


def action_values(model: VisitModel, value: FloatArray, discount: float = 1.0) -> FloatArray:
    """Compute Q (P, M, L, A) of a step after which states are worth ``value (P, M, L)``."""
    stays = discount * (1 - model.leave)[None, :, None] * value
    higher = stays[:, np.minimum(np.arange(MOODS) + 1, MOODS - 1)]
    lower = stays[:, np.maximum(np.arange(MOODS) - 1, 0)]
    # after a click the last category is that of the item
    own: IntArray = np.arange(N_KINDS) // 2
    clicked = (
        model.up * higher[:, :, None, own]
        + model.down * lower[:, :, None, own]
        + (1 - model.up - model.down) * stays[:, :, None, own]
    )
    missed = model.missed * lower[..., None] + (1 - model.missed) * stays[..., None]
    p = model.clicks[:, None]
    return np.asarray(model.rewards[:, None] + p * clicked + (1 - p) * missed)
