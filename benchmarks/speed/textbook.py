"""Time LinUCB per arm on the pet shop against a textbook implementation."""

from __future__ import annotations

from statistics import median

import numpy as np

from bandits.base.selection import top_k
from bandits.base.types import Feedback, FloatArray, IntArray, Round
from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import make_lane
from benchmarks.measure import Section, interleave, ratio, stamp, stopwatch

ROWS, ALPHA = 16, 1.5
REPLAYED, LISTED, LANE, REPEATS = 5_000, 500, 20_000, 7


class TextbookLinUCB:
    """LinUCB as in Algorithm 1 of Li et al. (2010): lists of A and b, one inverse per arm
    and step.
    """

    def __init__(self, n_arms: int, n_features: int, alpha: float) -> None:
        self.alpha = alpha
        self.A = [np.identity(n_features) for _ in range(n_arms)]
        self.b = [np.zeros(n_features) for _ in range(n_arms)]

    def scores(self, features: FloatArray) -> FloatArray:
        """Compute the upper confidence bound of every arm."""
        p = np.zeros(len(self.A))
        for a in range(len(self.A)):
            x = features[a]
            A_inv = np.linalg.inv(self.A[a])
            theta = A_inv @ self.b[a]
            p[a] = theta @ x + self.alpha * np.sqrt(x @ A_inv @ x)
        return p

    def learn(self, arm: int, x: FloatArray, reward: float) -> None:
        """Update one arm by an observation."""
        self.A[arm] += np.outer(x, x)
        self.b[arm] += reward * x


def experiment(rows: int = ROWS, steps: int = LANE) -> Experiment:
    """Return an experiment of LinUCB alone on the pet shop."""
    return Experiment.model_validate(
        {"agents": [{"kind": "linucb", "alpha": ALPHA}], "steps": steps, "replications": rows}
    )


class ReplayBuffer:
    """Steps of a run, recorded so that scores and learn can be timed without simulator and
    choice.
    """

    def __init__(self, steps: int) -> None:
        lane = make_lane(experiment(), 0)
        simulator, agent = lane.simulator, lane.agent
        self.steps: list[tuple[Round, IntArray, Feedback]] = []
        for step in range(steps):
            round = simulator.round_at(step)
            ties = simulator.streams.ties
            slate = top_k(agent.scores(round), round.available, lane.alive, 1, ties, step)
            feedback, _ = simulator.respond(round, slate, simulator.uniforms.at(step))
            agent.learn(round, slate, feedback)
            self.steps.append((round, slate, feedback))
        # the textbook replays row 0: features, arm shown, click
        self.features = [round.features[0] for round, _, _ in self.steps[:LISTED]]
        self.shown = [(int(s[0, 0]), float(f.rewards[0, 0])) for _, s, f in self.steps[:LISTED]]

    def ours(self) -> float:
        """Measure microseconds per decision for scores and learn alone."""
        agent = make_lane(experiment(), 0).agent

        def work() -> None:
            for round, slate, feedback in self.steps:
                agent.scores(round)
                agent.learn(round, slate, feedback)

        return 1e6 * stopwatch(work) / (len(self.steps) * ROWS)

    def listing(self) -> float:
        """Measure microseconds per decision of the textbook implementation."""
        book = TextbookLinUCB(self.features[0].shape[0], self.features[0].shape[1], ALPHA)

        def work() -> None:
            for features, (arm, reward) in zip(self.features, self.shown, strict=True):
                book.scores(features)
                book.learn(arm, features[arm], reward)

        return 1e6 * stopwatch(work) / len(self.features)

    def check(self) -> float:
        """Compute the largest difference between the scores of the two sides, which must do the
        same work.
        """
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
    """Measure microseconds per decision of a whole lane: simulator, random numbers, scores, choice,
    learning, trace.
    """
    moving = make_lane(experiment(), 0)
    return 1e6 * stopwatch(lambda: moving.advance(LANE)) / (LANE * ROWS)


def run() -> Section:
    """Measure."""
    replay = ReplayBuffer(REPLAYED)  # compiles, too
    difference = replay.check()
    times = interleave({"listing": replay.listing, "scores": replay.ours, "lane": lane}, REPEATS)
    alone, whole = ratio(times["listing"], times["scores"]), ratio(times["listing"], times["lane"])
    section = Section(
        "LinUCB per arm on the pet shop against a textbook implementation",
        f"K = 50, D = 9, alpha {ALPHA}, R = {ROWS}. The textbook implementation "
        f"(`TextbookLinUCB`: one `np.linalg.inv` per arm and step) replays {LISTED:,} decisions "
        "of row 0, scores and learning only; simulator, choice and bookkeeping are not counted. "
        f"Ours replays {REPLAYED:,} steps for scores + learn, and runs {LANE:,} steps for the "
        f"whole lane. Compiled before timing; the sides take turns, {REPEATS} times; their scores "
        f"agreed to {difference:.0e} on the {LISTED:,} decisions.",
        ("side", "µs per decision, median", "times faster than the textbook, median (range)"),
        code=stamp(run),
    )
    names = {"listing": "textbook", "scores": "scores + learn", "lane": "whole lane"}
    for key, quotient in (("listing", "1"), ("scores", str(alone)), ("lane", str(whole))):
        section.rows.append((names[key], f"{median(times[key]):,.2f}", quotient))
    section.targets.append(
        ("scores + learn at least 300 times faster", str(alone), alone.middle >= 300)
    )
    section.targets.append(
        ("whole lane at least 200 times faster", str(whole), whole.middle >= 200)
    )
    return section


if __name__ == "__main__":
    print(run())
