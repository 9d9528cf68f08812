"""The document of the artwork simulator: its verdicts follow from the numbers, which are sums of
single decisions.
"""

from __future__ import annotations

import numpy as np

from bandits import read
from bandits.experiments.lockstep import make_lane
from benchmarks.reproduction import artwork
from benchmarks.reproduction.artwork import AGENTS, PICTURE, SHARED, TITLE, Earned, Outcomes

NOISE = np.random.default_rng(0).normal(size=16)


def outcomes(*, popular: float = 0.27, slow: int = 30, late: float = 0.01) -> Outcomes:
    takes = dict(zip(AGENTS, (0.4, 0.36, 0.34, 0.33, popular, 0.23, 0.2), strict=True))
    found = {}
    for name, take in takes.items():
        value = np.full((50, 16), take) + 0.0001 * NOISE
        if name in (TITLE, PICTURE):
            value[: slow if name == TITLE else 30] = 0.2
        gain = np.array([[0.08], [0.05], [0.03], [late]]) if name == SHARED else np.zeros((4, 1))
        found[name] = Earned(
            take + 0.001 * NOISE,
            take + 0.001 * NOISE,
            value,
            gain + 0.001 * NOISE * (name == SHARED),
        )
    return found


def verdicts(found: Outcomes) -> list[str]:
    return [line.split("**")[1] for line in artwork.verdicts(found)]


def test_verdicts_follow_from_the_numbers() -> None:
    assert verdicts(outcomes()) == ["Confirmed"] * 5
    assert verdicts(outcomes(popular=0.2)) == ["Not confirmed", *["Confirmed"] * 4]
    assert verdicts(outcomes(slow=0))[1] == "Not confirmed"
    assert verdicts(outcomes(slow=50))[1] == "Not confirmed"  # never
    assert verdicts(outcomes(late=0.09))[2] == "Not confirmed"
    needed = artwork.factor(outcomes(slow=30), TITLE)
    assert needed is not None
    # reached in the 31st thousand, by the shared model in the first
    assert round(needed.mean) == 31
    assert "| LinUCB per picture | 0.330 (" in artwork.document(outcomes())


def test_the_side_that_is_ahead_after_many_impressions_is_named() -> None:
    titles = [artwork.late(outcomes(late=gain), TITLE) for gain in (0.01, 0.0, -0.0012)]
    shared, none, apart = (
        text.removeprefix("after 800 impressions of a title, ") for text in titles
    )
    assert shared.startswith("one shared model still earns 0.0097 (")
    assert none.startswith("one shared model and models per title are not shown to differ")
    assert apart.startswith("models per title earn 0.001")
    assert "-0" not in apart
    assert apart in artwork.document(outcomes(late=-0.0012))


def test_expected_clicks_are_counted_by_the_impressions_of_the_title_before() -> None:
    simulator = {
        "kind": "artwork",
        "n_titles": 12,
        "n_pictures": [2, 4],
        "n_users": 50,
        "n_retrieved": 4,
    }
    e = read(
        {"simulator": simulator, "agents": [{"kind": "default"}], "steps": 2000, "replications": 2}
    )
    found, lane = artwork.earned(e), make_lane(e, 0)
    trace = lane.advance(2000)
    first, values = lane.simulator.catalogue(1).title_of, []  # type: ignore[attr-defined]
    seen: dict[int, int] = {}
    for item, worth in zip(trace.items[:, 1, 0], trace.value[:, 1], strict=True):
        title = int(first[item])
        if 50 <= seen.get(title, 0) < 200:
            values.append(worth)
        seen[title] = seen.get(title, 0) + 1
    np.testing.assert_allclose(found.by_impression[1, 1], np.mean(values))
    np.testing.assert_allclose(found.takes, trace.rewards.mean(axis=0))
    np.testing.assert_allclose(found.value[:, 1], trace.value[:, 1].reshape(2, 1000).mean(axis=1))
