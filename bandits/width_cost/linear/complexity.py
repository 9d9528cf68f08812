"""State the memory and the growth of the time of three implementations of LinUCB.

K arms with one model each, d features.
"""

from __future__ import annotations

from bandits.width_cost.complexity import MethodComplexity

LINEAR_METHODS: dict[str, MethodComplexity] = {
    "inverse": MethodComplexity(
        "Inverse at each step", True,
        "NumPy inverts the matrix A = λI + Σxx′ of every arm at every decision, as the pseudocode of LinUCB states it "
        "(Li et al., 2010, Algorithm 1). The update adds xx′ to the matrix of the chosen arm.",
        r"K\,d^3",
        lambda s: 16 * s.K * s.d**2 + 8 * s.K * s.d,
        lambda s: (1, s.K * s.d**2, s.K * s.d**3),
        lambda s: (1, s.d**2),
        {"p": 3, "t": 0, "K": 1},
    ),
    "rank_one": MethodComplexity(
        "Sherman–Morrison", True,
        "NumPy stores A⁻¹ of every arm. The update subtracts A⁻¹xx′A⁻¹/(1 + x′A⁻¹x) from that of the chosen arm, so "
        "that nothing is inverted.",
        r"K\,d^2",
        lambda s: 8 * s.K * s.d**2 + 8 * s.K * s.d,
        lambda s: (1, s.K * s.d, s.K * s.d**2),
        lambda s: (1, s.d**2),
        {"p": 2, "t": 0, "K": 1},
    ),
    "compiled": MethodComplexity(
        "Compiled", True,
        "The same formula in loops compiled by Numba, which the agents of this app use. They also store A and "
        "compute A⁻¹ afresh every 4,096 updates of an arm, against rounding errors.",
        r"K\,d^2",
        lambda s: 16 * s.K * s.d**2 + 16 * s.K * s.d + 8 * s.K,
        lambda s: (1, s.K * s.d, s.K * s.d**2),
        lambda s: (1, s.d**2),
        {"p": 2, "t": 0, "K": 1},
    ),
}  # fmt: skip
