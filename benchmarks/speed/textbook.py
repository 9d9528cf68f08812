"""LinUCB per arm on the pet shop, against the textbook's listing."""

from __future__ import annotations

from statistics import median

import numpy as np

from bandits.base.selection import top_k
from bandits.base.types import Feedback, FloatArray, IntArray, Round
from bandits.experiments.experiment import Experiment
from bandits.experiments.race import make_lane
from benchmarks.measure import Section, interleave, ratio, stopwatch

ROWS, ALPHA = 16, 1.5
REPLAYED, LISTED, LANE, REPEATS = 5_000, 500, 20_000, 7


class TextbookLinUCB:
    """LinUCB as it is taught (Li et al., 2010, Algorithm 1): lists of A and b, one inverse per arm and step."""

    def __init__(self, n_arms: int, n_features: int, alpha: float) -> None:
        self.alpha = alpha
        self.A = [np.identity(n_features) for _ in range(n_arms)]
        self.b = [np.zeros(n_features) for _ in range(n_arms)]

    def scores(self, features: FloatArray) -> FloatArray:
        """Upper confidence bound of every arm."""
        p = np.zeros(len(self.A))
        for a in range(len(self.A)):
            x = features[a]
            A_inv = np.linalg.inv(self.A[a])
            theta = A_inv @ self.b[a]
            p[a] = theta @ x + self.alpha * np.sqrt(x @ A_inv @ x)
        return p

    def learn(self, arm: int, x: FloatArray, reward: float) -> None:
        """Take in one observation."""
        self.A[arm] += np.outer(x, x)
        self.b[arm] += reward * x


def experiment(rows: int = ROWS, steps: int = LANE) -> Experiment:
    """LinUCB alone on the pet shop."""
    return Experiment.model_validate(
        {"agents": [{"kind": "linucb", "alpha": ALPHA}], "steps": steps, "replications": rows}
    )


class ReplayBuffer:
    """A stretch of a real run, pre-made: so that scores and learn can be timed without world and choice."""

    def __init__(self, steps: int) -> None:
        lane = make_lane(experiment(), 0)
        world, agent = lane.simulator, lane.agent
        self.steps: list[tuple[Round, IntArray, Feedback]] = []
        for step in range(steps):
            round = world.round_at(step)
            slate = top_k(agent.scores(round), round.available, lane.alive, 1)
            feedback, _ = world.respond(round, slate, world.uniforms.at(step))
            agent.learn(round, slate, feedback)
            self.steps.append((round, slate, feedback))
        # what the listing sees is row 0: its features, what was shown, and the click
        self.features = [round.features[0] for round, _, _ in self.steps[:LISTED]]
        self.shown = [(int(s[0, 0]), float(f.rewards[0, 0])) for _, s, f in self.steps[:LISTED]]

    def ours(self) -> float:
        """Microseconds per decision: scores and learn alone."""
        agent = make_lane(experiment(), 0).agent

        def work() -> None:
            for round, slate, feedback in self.steps:
                agent.scores(round)
                agent.learn(round, slate, feedback)

        return 1e6 * stopwatch(work) / (len(self.steps) * ROWS)

    def listing(self) -> float:
        """Microseconds per decision of the textbook."""
        book = TextbookLinUCB(self.features[0].shape[0], self.features[0].shape[1], ALPHA)

        def work() -> None:
            for features, (arm, reward) in zip(self.features, self.shown, strict=True):
                book.scores(features)
                book.learn(arm, features[arm], reward)

        return 1e6 * stopwatch(work) / len(self.features)

    def check(self) -> float:
        """Largest difference of the two sides' scores: they must do the same work."""
        agent = make_lane(experiment(), 0).agent
        book = TextbookLinUCB(self.features[0].shape[0], self.features[0].shape[1], ALPHA)
        worst = 0.0
        for (round, slate, feedback), features, (arm, reward) in zip(
            self.steps, self.features, self.shown, strict=False
        ):
            worst = max(worst, float(np.abs(agent.scores(round)[0] - book.scores(features)).max()))
            agent.learn(round, slate, feedback)
            book.learn(arm, features[arm], reward)
        if worst > 1e-9:
            raise AssertionError(f"the two sides disagree by {worst}: the comparison is void")
        return worst


def lane() -> float:
    """Microseconds per decision of a whole lane: world, randomness, scores, choice, learning, trace."""
    moving = make_lane(experiment(), 0)
    return 1e6 * stopwatch(lambda: moving.advance(LANE)) / (LANE * ROWS)


def run() -> Section:
    """Measure."""
    replay = ReplayBuffer(REPLAYED)  # compiles, too
    difference = replay.check()
    times = interleave({"listing": replay.listing, "scores": replay.ours, "lane": lane}, REPEATS)
    alone, whole = ratio(times["listing"], times["scores"]), ratio(times["listing"], times["lane"])
    section = Section(
        "LinUCB per arm on the pet shop against the textbook's listing",
        f"K = 50, D = 9, alpha {ALPHA}, R = {ROWS}. The listing (`TextbookLinUCB`: one `np.linalg.inv` per arm and "
        f"step) replays {LISTED:,} decisions of row 0, scores and learning only; it is not charged for world, "
        f"choice or bookkeeping. Ours replays {REPLAYED:,} steps for scores + learn, and lives {LANE:,} steps for the "
        f"whole lane. Compiled before timing; sides in turn, {REPEATS} times; both sides' scores agreed to "
        f"{difference:.0e} on the {LISTED:,} decisions.",
        ("side", "µs per decision, median", "times faster than the listing, median (range)"),
    )
    names = {"listing": "textbook listing", "scores": "scores + learn", "lane": "whole lane"}
    for key, quotient in (("listing", "1"), ("scores", str(alone)), ("lane", str(whole))):
        section.rows.append((names[key], f"{median(times[key]):,.2f}", quotient))
    section.targets.append(("scores + learn at least 300 times faster", str(alone), alone.middle >= 300))
    section.targets.append(("whole lane at least 200 times faster", str(whole), whole.middle >= 200))
    return section


if __name__ == "__main__":
    print(run())
