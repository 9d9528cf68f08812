"""The document of new items: its verdicts follow from the numbers, and its main statements hold on
a smaller scale.
"""

from __future__ import annotations

import numpy as np
import pytest

from bandits.base.types import FloatArray
from bandits.results.items.fairness import SegmentFairness
from bandits.results.items.launches import Launched
from bandits.results.metrics import Estimate
from benchmarks.reproduction import flops, new_items, rare_persona
from benchmarks.reproduction.new_items import DOCUMENT, FINDERS, ORDER, Found, Outcomes

NOISE = np.random.default_rng(0).normal(size=16)


def outcomes(
    *, prior: float = 0.7, shared: float = 0.64, floor: int | None = 900, popular: float = 0.0
) -> Outcomes:
    rates = dict(zip(ORDER, (0.92, 0.86, 0.8, prior, 0.65, 0.6, 0.46, shared), strict=True))
    order: dict[str, FloatArray] = {
        name: np.stack([rate + 0.001 * NOISE] * 2) for name, rate in rates.items()
    }
    hit = {}
    for name in FINDERS:
        for guarded in (False, True):
            steps = (floor, floor, floor) if guarded else (1200, 1100, 1300)
            launched = Launched(10_000, 1, Estimate(0.2, 0.1, 0.3), 0.25, *steps, 1.0)
            late = np.full(16, popular) if name == "Popularity" else np.full(16, 0.2)
            hit[name, guarded] = Found(9000 + NOISE, 4000 + NOISE, launched, late)
    return Outcomes(order, hit)


def verdicts(found: Outcomes) -> list[str]:
    return [line.split("**")[1] for line in new_items.verdicts(found)]


def test_verdicts_follow_from_the_numbers() -> None:
    assert verdicts(outcomes()) == ["Confirmed"] * 6
    assert verdicts(outcomes(prior=0.59))[:2] == ["Not confirmed"] * 2
    assert verdicts(outcomes(shared=0.5))[2] == "Not confirmed"
    assert verdicts(outcomes(floor=None))[4] == "Not confirmed"
    assert verdicts(outcomes(popular=0.2))[5] == "Not confirmed"
    assert (
        "| LinUCB hybrid | 1,200 (1,100 to 1,300) | 900 (900 to 900) | 0.200"
        in new_items.document(outcomes())
    )


def test_what_a_floor_gives_a_rare_persona_follows_from_the_numbers() -> None:
    same = [SegmentFairness(*[Estimate(0.5, 0.4, 0.6)] * 6)] * 4
    plain = rare_persona.Served(same, np.full((16, 4), 0.5) + 0.001 * NOISE[:, None])
    floor = rare_persona.Served(
        same, plain.ctr + np.array([-0.1, 0, 0, 0.2]) + 0.001 * NOISE[::-1, None]
    )
    found = {(name, guard): plain for name in rare_persona.AGENTS for guard in (False, True)}
    text = rare_persona.document({**found, ("LinTS per arm", True): floor})
    assert "- **LinTS per arm**: with the floor, the rare persona gains (0.2" in text
    assert "the most frequent one pays (-0.1" in text
    assert "- **LinUCB per arm**: with the floor, the rare persona shows no change (0.000" in text


def test_what_flops_cost_optimism_is_the_paired_difference() -> None:
    text = flops.document({flops.OPTIMIST: 3 + NOISE, flops.SAMPLER: 2 + NOISE})
    assert (
        "LinUCB per arm loses more clicks per flop compared with LinTS per arm: 1.0 (1.0 to 1.0)."
        in text
    )
    assert "| LinUCB per arm minus LinTS per arm | 1.0 (1.0 to 1.0) |" in text
    text = flops.document({flops.OPTIMIST: 2 + NOISE, flops.SAMPLER: 2 - NOISE})
    assert "loses about as many clicks" in text


def test_the_document_is_that_of_today() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert all(f"| {name} | " in text for name in (*ORDER, *FINDERS))


@pytest.mark.slow
def test_what_the_document_states_holds_on_a_smaller_scale() -> None:
    found = new_items.found_hit(FINDERS["Popularity"], 8)
    assert (found.late < 0.01).mean() > 0.5
    assert found.launched.steps_to_fair_share is None
