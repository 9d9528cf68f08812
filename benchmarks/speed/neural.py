"""Time neural agents: exact NeuralUCB against naive implementations, 16 rows against one.

python -m benchmarks.speed.neural --write
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from bandits import read
from bandits.agents import REGISTRY
from bandits.agents.neural.base import NeuralAgent
from bandits.base.randomness import Streams
from bandits.experiments.lockstep import make_lane
from bandits.models.neural.dual_covariance import DualCovariance
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP, count_weights
from benchmarks.measure import Section, interleave, keep, machine, ratio, stamp, stopwatch

WIDTHS = (9, 128, 64, 1)
CANDIDATES, PAST = 50, 500
# of every lane that is timed
STEPS = 400


def _module(net: BatchedMLP) -> Any:
    import torch

    layers: list[Any] = []
    for weight, bias in net.layers:
        linear = torch.nn.Linear(weight.shape[2], weight.shape[1])
        linear.weight.data, linear.bias.data = weight[0].clone(), bias[0].clone()
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def exact(
    widths: tuple[int, ...] = WIDTHS, candidates: int = CANDIDATES, past: int = PAST
) -> Section:
    """Time one decision of exact NeuralUCB with its update, by three methods."""
    import torch

    torch.set_num_threads(1)
    net = BatchedMLP(initial_weights(Streams(1, (0,)), widths, part=1), widths)
    module, p = _module(net), count_weights(widths)
    rng = np.random.default_rng(0)
    draw = lambda n: torch.tensor(rng.standard_normal((n, widths[0])), dtype=torch.float32)  # noqa: E731
    dual, rows = DualCovariance(np.ones(1)), torch.zeros((1, 1), dtype=torch.long)
    A, G = torch.eye(p), []
    for _ in range(past):
        factors = net.factors(net.forward(draw(1)[None]))
        dual.add(factors, torch.ones(1))
        G.append(factors.dense()[0, 0])
    gradients = torch.stack(G)
    A += gradients.t() @ gradients
    inverse = torch.linalg.inv(A)
    x = draw(candidates)
    weights = dict(module.named_parameters())

    def single(weights: dict[str, Any], x: Any) -> Any:
        return torch.func.functional_call(module, weights, (x,))[0]

    jacobian = torch.func.vmap(torch.func.grad(single), in_dims=(None, 0))
    bonuses: dict[str, Any] = {}

    def textbook() -> None:
        gradients = []
        # one backward pass per candidate
        for k in range(candidates):
            module.zero_grad()
            module(x[k]).backward()
            gradients.append(torch.cat([w.grad.flatten() for w in module.parameters()]))
        g = torch.stack(gradients)
        bonuses["textbook"] = ((g @ torch.linalg.inv(A)) * g).sum(1).sqrt()
        A.addr_(g[0], g[0])
        # undone, so that every repetition is the same
        A.addr_(g[0], g[0], alpha=-1)

    def vectorised() -> None:
        g = torch.cat([v.detach().flatten(1) for v in jacobian(weights, x).values()], dim=1)
        bonuses["vectorised"] = ((g @ inverse) * g).sum(1).sqrt()
        v = inverse @ g[0]
        inverse.addr_(v, v, alpha=-float(1 / (1 + g[0] @ v)))
        inverse.addr_(v, v, alpha=float(1 / (1 + g[0] @ v)))

    def ours() -> None:
        factors = net.factors(net.forward(x[None]))
        bonuses["dual"] = dual.squared_widths(factors)[0].sqrt()
        dual.add(factors.take(rows, rows), torch.ones(1))
        dual.factor.size -= 1  # undone

    ours()
    sides = {
        "vectorised": lambda: stopwatch(vectorised),
        "dual": lambda: stopwatch(lambda: [ours() for _ in range(20)]),
    }
    times = interleave(sides, 5)
    slow = stopwatch(textbook)
    dual_s = [t / 20 for t in times["dual"]]
    apart = max(
        float((bonuses[n].double() / bonuses["dual"] - 1).abs().max())
        for n in ("textbook", "vectorised")
    )
    held = sum(a.nbytes for a in dual.state_dict().values() if isinstance(a, np.ndarray))
    matrix = 4 * p * p
    over_book, over_vector = slow / median(dual_s), ratio(times["vectorised"], dual_s)
    section = Section(
        "Neural: exact NeuralUCB",
        f"{machine()}.\n\nNetwork {'-'.join(map(str, widths))}, p = {p:,}; {candidates} "
        f"candidates, {past} observations before; one decision (all bonuses) and one update, "
        "processor time on one thread. Textbook: one backward pass per candidate and one p x p "
        "inverse, timed once. Vectorised: torch.func Jacobian and a rank-one update of the "
        f"inverse, 5 times in turn with ours. Bonuses agree to {apart:.0e} (those two use "
        "float32).",
        ("method", "ms per decision and update", "MB held"),
        [
            ("textbook", f"{1000 * slow:,.0f}", f"{2 * matrix / 1e6:,.0f}"),
            (
                "vectorised Jacobian",
                f"{1000 * median(times['vectorised']):,.0f}",
                f"{matrix / 1e6:,.0f}",
            ),
            ("factored dual (ours)", f"{1000 * median(dual_s):,.2f}", f"{held / 1e6:,.1f}"),
        ],
        code=stamp(exact),
    )
    section.targets += [
        ("at least 3,000 times faster than the textbook", f"{over_book:,.0f}", over_book >= 3000),
        (
            "at least 50 times faster than the vectorised Jacobian",
            str(over_vector),
            over_vector.middle >= 50,
        ),
        ("under a tenth of its memory", f"{held / matrix:.3f}", held < matrix / 10),
    ]
    return section


def rows() -> Section:
    """Time sixteen rows of each neural agent against one."""
    section = Section(
        "Neural agents: 16 rows against one",
        f"{machine()}.\n\n{STEPS} steps in the pet shop with the default parameters of each "
        "agent, 16 rows and one row in turn, 3 times, processor time on one thread.",
        ("agent", "1 row, µs per step", "16 rows, µs per step", "ratio"),
        code=stamp(rows),
    )
    for kind, cls in REGISTRY.items():
        if not issubclass(cls, NeuralAgent):
            continue

        def lane(n: int, kind: str = kind) -> float:
            built = make_lane(
                read({"agents": [{"kind": kind}], "steps": 1000, "replications": n}), 0
            )
            built.advance(100)
            return stopwatch(lambda: built.advance(STEPS))

        times = interleave({"one": lambda: lane(1), "many": lambda: lane(16)}, 3)
        found = ratio(times["many"], times["one"])
        one, many = (1e6 * median(times[name]) / STEPS for name in ("one", "many"))
        section.rows.append((kind, f"{one:,.0f}", f"{many:,.0f}", str(found)))
        section.targets.append(
            (f"{kind}: at most 4 times one row's time", str(found), found.middle <= 4)
        )
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.neural", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    write = parser.parse_args(arguments).write
    began = time.monotonic()
    with threadpool_limits(1):
        for part in (exact, rows):
            section = part()
            print(section, flush=True)
            if write:
                keep(section)
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
