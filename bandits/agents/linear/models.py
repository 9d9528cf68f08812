"""The ridge models that an agent's parameters choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bandits.agents.facts import SPECTRA
from bandits.agents.model_params import ESTIMATED, groups_of
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.linear.empirical_bayes import PriorRidge, PriorState
from bandits.models.linear.given_prior import given_memory, given_sums
from bandits.models.linear.nonstationary import DiscountedRidge, SlidingWindowRidge
from bandits.models.linear.private_ridge import PrivateRidge
from bandits.models.linear.ridge import Ridge, n_models

from .params import LinearParams, PrivateLinearParams

Model = Ridge | DiscountedRidge


def make_model(
    params: Sequence[LinearParams],
    spec: SimulatorSpec,
    streams: Streams,
    access: SimulatorAccess,
    rounds: Callable[[int], Round],
    *,
    joint: bool,
) -> Model:
    """Build the models of R rows.

    Parameters
    ----------
    params : sequence of LinearParams
        One per row; structural fields are equal in all of them.
    spec : SimulatorSpec
        With the number of features that the models read.
    streams, access
        See `Agent`.
    rounds : callable, int -> Round
        What the models read at a step.
    joint : bool
        See `Ridge`.
    """
    p, D, K = params[0], spec.n_features, spec.n_items

    def column(name: str) -> FloatArray:
        return np.array([getattr(each, name) for each in params], dtype=np.float64)

    ridge = column("ridge")
    if isinstance(p, PrivateLinearParams) and p.private is not None:
        budget, norm, S = p.private, p.private_norm, spec.slate
        return PrivateRidge(
            ridge, D, K, p.sharing, epsilon=budget, norm=norm, slate=S, streams=streams, joint=joint
        )
    if p.window is not None:
        return SlidingWindowRidge(ridge, spec, p.sharing, p.window)
    if p.gamma < 1:
        return DiscountedRidge(ridge, column("gamma"), spec, p.sharing)
    if p.prior in ESTIMATED:
        groups = groups_of(p.prior, len(params), spec, access)
        return PriorRidge(ridge, D, K, p.prior, p.prior_every, groups)
    categories = access.categories() if p.sharing == "per_category" else None
    model = Ridge(ridge, D, K, p.sharing, joint=joint, groups=categories)
    if p.prior == "given":
        gram, b = given_sums(rounds, spec, column("prior_clicks"), column("prior_misses"))
        model.refit(gram, b, np.zeros(b.shape[:2], np.int64))
    return model


def model_memory(p: LinearParams, spec: SimulatorSpec) -> int:
    """Compute the bytes per row of the models and of their spectra."""
    D, K = spec.n_features, spec.n_items
    total = 8 * SPECTRA * n_models(spec, p.sharing) * D
    if p.gamma < 1:
        return total + DiscountedRidge.memory(spec, p.sharing)
    total += Ridge.memory(spec, p.sharing)
    if p.window is not None:
        total += SlidingWindowRidge.ring_memory(spec, p.window)
    if p.prior in ESTIMATED:
        total += PriorState.memory(K, D)
    if p.prior == "given":
        total += given_memory(spec)
    if isinstance(p, PrivateLinearParams) and p.private is not None:
        total += 8 * n_models(spec, p.sharing) * (D * D + D + 6 * (D + 1) ** 2)
    return total
