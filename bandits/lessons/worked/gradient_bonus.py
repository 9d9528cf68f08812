"""The bonus of NeuralUCB computed in three ways, and the vectorised listing of chapter 3, printed
and corrected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bandits.base.params import Params, param
from bandits.base.types import FloatArray

from .base import Table, Values, WorkedExample

FEATURES, HIDDEN, CANDIDATES, MOST = 3, 8, 6, 200


class Weights(NamedTuple):
    """A network with one hidden layer: ``first (H, D)``, ``bias (H,)``, ``last (H,)``, ``shift
    ()``.
    """

    first: FloatArray
    bias: FloatArray
    last: FloatArray
    shift: FloatArray


class GradientBonusParams(Params):
    """What has been observed, and the ridge."""

    observations: int = param(
        40,
        title="Observations",
        symbol="t",
        ge=0,
        le=MOST,
        basic=True,
        help="Candidates that have been shown. Larger values make bonuses smaller.",
    )
    ridge: float = param(
        1.0,
        title="Ridge",
        symbol=r"\lambda",
        ge=0.01,
        le=100,
        log=True,
        basic=True,
        help=(
            "Prior precision of the weights. Larger values make bonuses smaller; usually 0.1 to 10."
        ),
    )


class GradientBonus(WorkedExample):
    """One bonus, three computations: with a matrix of all weights, with one of all observations,
    with a diagonal.
    """

    Params = GradientBonusParams
    title = "One bonus, three computations"
    formula = r"\sqrt{\operatorname{diag}(J A^{-1} J^\top)},\quad A=\lambda I+\sum g\,g^\top"
    known = ("weights", "candidates", "observations", "ridge")
    slow = ("printed_runs", "corrected_difference")

    @classmethod
    def network(cls) -> Weights:
        """Return the weights of the network of the example."""
        g = np.random.default_rng(3)
        first = g.standard_normal((HIDDEN, FEATURES)) / np.sqrt(FEATURES)
        return Weights(
            first, np.zeros(HIDDEN), g.standard_normal(HIDDEN) / np.sqrt(HIDDEN), np.zeros(())
        )

    @classmethod
    def data(cls, params: Any) -> tuple[FloatArray, FloatArray]:
        """Return the features of the candidates (K, D) and of what has been shown (t, D)."""
        g = np.random.default_rng(4)
        candidates, shown = (
            g.standard_normal((CANDIDATES, FEATURES)),
            g.standard_normal((MOST, FEATURES)),
        )
        return candidates, shown[: params.observations]

    @classmethod
    def bonuses(cls, params: Any) -> dict[str, FloatArray]:
        """Compute the bonus of each candidate by each method, three of float64 (K,)."""
        candidates, shown = cls.data(params)
        J, G = gradients(cls.network(), candidates), gradients(cls.network(), shown)
        return {
            "exact": by_weights(J, G, params.ridge),
            "dual": by_observations(J, G, params.ridge),
            "diagonal": by_diagonal(J, G, params.ridge),
        }

    @classmethod
    def values(cls, params: Any) -> Values:
        """Compare the methods."""
        found, weights, (candidates, _) = cls.bonuses(params), cls.network(), cls.data(params)
        return {
            "weights": float(gradients(weights, candidates).shape[1]),
            "candidates": float(CANDIDATES),
            "observations": float(params.observations),
            "ridge": params.ridge,
            "passes": float(CANDIDATES),
            "exact": float(found["exact"][0]),
            "diagonal": float(found["diagonal"][0]),
            "dual_difference": float(np.abs(found["dual"] - found["exact"]).max()),
            "diagonal_ratio": float((found["diagonal"] / found["exact"]).mean()),
            "least_ratio": float((found["diagonal"] / found["exact"]).min()),
        }

    @classmethod
    def slow_values(cls, params: Any) -> Values:
        """Run both listings, in torch."""
        weights, (candidates, _) = cls.network(), cls.data(params)
        difference = np.abs(
            vectorised_gradients(weights, candidates) - gradients(weights, candidates)
        )
        return {
            "printed_runs": float(printed_error(weights, candidates) == ""),
            "corrected_difference": float(difference.max()),
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show the bonus of every candidate by every method, and what the listings do."""
        found, weights, (candidates, _) = cls.bonuses(params), cls.network(), cls.data(params)
        rows = tuple(
            (f"{k + 1}", *(f"{found[way][k]:.4f}" for way in found)) for k in range(CANDIDATES)
        )
        bonus = Table(
            "Bonuses",
            ("candidate", "matrix of weights", "of observations", "diagonal"),
            rows,
            (1, 2, 3),
        )
        listings = (
            (
                "as printed: autograd.grad of detached weights within vmap",
                printed_error(weights, candidates) or "runs",
            ),
            ("corrected: vmap of torch.func.grad", "runs, with the gradients above"),
        )
        return [bonus, Table("The vectorised listing", ("listing", "what happens"), listings, (1,))]


def gradients(weights: Weights, x: FloatArray) -> FloatArray:
    """Compute the gradient of the output by all weights for inputs (n, D): float64 (n, p)."""
    before = x @ weights.first.T + weights.bias
    # (n, H): of the output by what enters a unit
    slope = np.where(before > 0, weights.last, 0.0)
    by_first = slope[:, :, None] * x[:, None, :]
    return np.concatenate(
        [
            by_first.reshape(len(x), slope.shape[1] * x.shape[1]),
            slope,
            np.maximum(before, 0.0),
            np.ones((len(x), 1)),
        ],
        axis=1,
    )


def by_weights(J: FloatArray, G: FloatArray, ridge: float) -> FloatArray:
    """Compute the bonuses (K,) of gradients (K, p) after gradients (t, p), with the matrix A (p,
    p).
    """
    A = ridge * np.eye(J.shape[1]) + G.T @ G
    return np.asarray(np.sqrt(np.einsum("kp,pk->k", J, np.linalg.solve(A, J.T))))


def by_observations(J: FloatArray, G: FloatArray, ridge: float) -> FloatArray:
    """Compute the same bonuses with a matrix of all observations (t, t): the dual form."""
    k = G @ J.T  # (t, K)
    explained = np.einsum("tk,tk->k", k, np.linalg.solve(ridge * np.eye(len(G)) + G @ G.T, k))
    return np.asarray(np.sqrt(((J * J).sum(axis=1) - explained) / ridge))


def by_diagonal(J: FloatArray, G: FloatArray, ridge: float) -> FloatArray:
    """Compute bonuses from the diagonal of A alone."""
    return np.asarray(np.sqrt((J * J / (ridge + (G * G).sum(axis=0))).sum(axis=1)))


def vectorised_gradients(weights: Weights, x: FloatArray) -> FloatArray:
    """Compute the gradients (n, p) as the corrected listing does: vmap of a function that torch
    differentiates.
    """
    import torch

    tensors = tuple(torch.from_numpy(np.array(part)) for part in weights)
    per_input = torch.func.vmap(torch.func.grad(_output), in_dims=(None, 0))(
        tensors, torch.from_numpy(x)
    )
    return np.concatenate([part.reshape(len(x), -1).numpy() for part in per_input], axis=1)


def printed_error(weights: Weights, x: FloatArray) -> str:
    """Run the structure of the printed listing.

    Returns the first line of the error, empty if it runs.
    """
    import torch

    # without gradients, as `detach` leaves them
    tensors = tuple(torch.from_numpy(np.array(part)) for part in weights)
    try:
        torch.func.vmap(lambda one: torch.autograd.grad(_output(tensors, one), tensors))(
            torch.from_numpy(x)
        )
    except RuntimeError as error:
        return str(error).split("\n")[0].split(". ")[0]
    return ""


def _output(tensors: Any, x: Any) -> Any:
    """Evaluate the network for one input (D,) in torch."""
    first, bias, last, shift = tensors
    return (first @ x + bias).relu() @ last + shift
