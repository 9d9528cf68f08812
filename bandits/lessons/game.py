"""Play an experiment by hand, and have its agents play it with the same random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import number
from bandits.base.randomness import Stream, Streams
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.lane import build_lane
from bandits.results.figures.parts import axis, drawing, hover, line, points, ring
from bandits.results.figures.style import COUNT, REFERENCE, STEP, Spec, styles

# of each agent, all with the same random numbers of the simulator
GAMES = 200
# levers have the keys 1 to 9 and 0
MOST_LEVERS, MOST_PULLS = 10, 100
YOU = "you"
# of one's own curve and dot
COLOUR = "#CC79A7"
# of the simulator; those of the agents differ from game to game
_SHARED = ("world", "clicks", "layout", "log")


class OneWorld(Streams):
    """Streams whose rows all have the simulator's numbers of replication 0, and their own for the
    agent.
    """

    def generator(
        self, stream: Stream, *, row: int = 0, part: int = 0, block: int = 0
    ) -> np.random.Generator:
        """Return a new generator at the start of one block of one stream."""
        shared = stream in _SHARED
        return super().generator(stream, row=0 if shared else row, part=part, block=block)


class Played(NamedTuple):
    """G games of T pulls on the same levers.

    Attributes
    ----------
    rewards : float64 (G, T)
    best : bool (G, T)
        Pulls of the lever that is best at that step.
    """

    rewards: FloatArray
    best: BoolArray


class Score(NamedTuple):
    """What is known of one game by hand: pulls of the best lever, and points."""

    best: int
    points: float


class Typical(NamedTuple):
    """The median of the games of an agent, and the range that holds 95 % of them."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{number(self.middle)} ({number(self.low)} to {number(self.high)})"


def _typical(values: FloatArray) -> Typical:
    return Typical(*(float(v) for v in np.quantile(values, (0.5, 0.025, 0.975), method="nearest")))


class Game:
    """T pulls of K levers. Every reward is drawn ahead; a pull shows one of them.

    Parameters
    ----------
    experiment : Experiment
        Its seed determines the levers and all rewards.

    Attributes
    ----------
    rewards, means : float64 (T, K)
        Reward of every lever at every step, and its expectation.
    segments : int64 (T,)
        Kind of visitor at every step.

    Raises
    ------
    UserError
        The experiment cannot be played by hand.
    """

    def __init__(self, experiment: Experiment) -> None:
        check(experiment)
        self.experiment = experiment
        K, T = self.levers, experiment.steps
        simulator = experiment.simulator_class()(
            experiment.simulator, OneWorld(experiment.seed, range(K))
        )
        each = np.arange(K)[:, None]
        self.rewards, self.means = np.empty((2, T, K))
        self.segments: IntArray = np.zeros(T, np.int64)
        for step in range(T):
            round = simulator.round_at(step)
            feedback, truth = simulator.respond(round, each, simulator.uniforms.at(step))
            self.rewards[step], self.means[step] = feedback.rewards[:, 0], truth.value
            self.segments[step] = round.segments[0]

    @property
    def levers(self) -> int:
        """The number of levers, K."""
        return self.experiment.simulator_class().describe(self.experiment.simulator).n_items

    @property
    def pulls(self) -> int:
        """The number of pulls of a game, T."""
        return self.experiment.steps

    @property
    def visitors(self) -> list[str]:
        """The kinds of visitors that come; empty where they do not differ."""
        names = self.experiment.simulator_class().segment_names()
        return [names[s] for s in np.unique(self.segments)] if names else []

    def visitor(self, step: int) -> str:
        """Return the kind of the visitor of a step; "" where they do not differ."""
        names = self.experiment.simulator_class().segment_names()
        return names[self.segments[step]] if names else ""

    def by_hand(self, choices: Sequence[int]) -> Played:
        """Play the first pulls: one game of as many steps as there are choices.

        Parameters
        ----------
        choices : sequence of int
            Levers from 0, at most T.
        """
        t, chosen = np.arange(len(choices)), np.array(choices, np.int64)
        means = self.means[t, chosen]
        best = means == self.means[: len(choices)].max(axis=1)
        return Played(self.rewards[t, chosen][None], best[None])

    def score(self, choices: Sequence[int]) -> Score:
        """Count what a game by hand has reached."""
        played = self.by_hand(choices)
        return Score(int(played.best.sum()), float(played.rewards.sum()))

    def known(self, choices: Sequence[int], segment: int | None = None) -> list[list[bool]]:
        """Return what each lever gave so far, a point or nothing, in order of its pulls.

        Parameters
        ----------
        segment : int, optional
            Only pulls for visitors of this kind.
        """
        found: list[list[bool]] = [[] for _ in range(self.levers)]
        for t, lever in enumerate(choices):
            if segment is None or self.segments[t] == segment:
                found[lever].append(bool(self.rewards[t, lever]))
        return found

    @cached_property
    def agents(self) -> dict[str, Played]:
        """The games of the agents by label, each with the same levers and random numbers as the
        game by hand.
        """
        e, found = self.experiment, {}
        for i, label in enumerate(e.labels):
            streams = OneWorld(e.seed, range(GAMES))
            lane = build_lane(
                e.agent_class(i),
                [e.agents[i]] * GAMES,
                e.simulator_class()(e.simulator, streams),
            )
            # so few steps need no compilation
            lane.use_compiled = False
            trace = lane.advance(e.steps)
            found[label] = Played(trace.rewards.T, (trace.value == trace.best_value).T)
        return found

    def best_pulls(self, label: str) -> Typical:
        """Return how often an agent pulls the best lever."""
        return _typical(self.agents[label].best.sum(axis=1))

    def points(self, label: str) -> Typical:
        """Return how many points an agent earns."""
        return _typical(self.agents[label].rewards.sum(axis=1))

    def verdict(self, choices: Sequence[int]) -> str:
        """Compare a game by hand with the last agent, in one sentence."""
        best, label = self.score(choices).best, self.experiment.labels[-1]
        times = "once" if best == 1 else f"{best} times"
        return (
            f"You pulled the best lever {times} of {self.pulls}; {label} would have "
            f"{self.best_pulls(label)}."
        )

    def table(self, choices: Sequence[int]) -> list[dict[str, str]]:
        """Compare a game by hand with all agents, a row each."""
        best, earned = self.score(choices)
        rows = [("You", number(best), number(earned))]
        rows += [
            (label, str(self.best_pulls(label)), str(self.points(label)))
            for label in self.experiment.labels
        ]
        names = ("player", "pulls of the best lever", "points")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def curves(self, choices: Sequence[int]) -> Spec:
        """Draw the points of a game by hand beside the mean of each agent."""
        looks, x = styles(self.experiment), np.arange(self.pulls + 1)
        data = [
            line(label, x, _from_zero(played.rewards), looks[label].color, looks[label].dash)
            for label, played in self.agents.items()
        ]
        mine = _from_zero(self.by_hand(choices).rewards)
        data.append(line(YOU, x[: len(mine)], mine, COLOUR, width=3.5))
        return drawing(
            data,
            "Points so far",
            f"You, and the mean of {GAMES} games of each agent, with the same levers and the same "
            "random numbers: the same lever gives the same reward at the same pull.",
            x=axis("pulls", hoverformat=STEP),
            y=axis("points", hoverformat=COUNT),
            legend=True,
        )

    def all_players(self, scores: Sequence[Score], mine: Score | None = None) -> Spec:
        """Draw a dot for each game by hand on these levers, and a cross for each agent.

        Players with the same result share a dot, whose area shows their number.
        """
        looks, counts = styles(self.experiment), dict[Score, int]()
        for score in scores:
            counts[score] = counts.get(score, 0) + 1
        x, y = (np.array([s[i] for s in counts], np.float64) for i in (0, 1))
        sizes = 9 * np.sqrt(list(counts.values()))
        words = ["1 player" if n == 1 else f"{n} players" for n in counts.values()]
        text = hover(words, "%{x} best pulls, %{y} points: %{text}")
        data = [points("players", x, y, REFERENCE, sizes, opacity=0.7, **text)] if counts else []
        if mine is not None:
            data.append(ring(YOU, [mine.best], [mine.points], COLOUR, 20, edge=3))
        for label in self.agents:
            middle = [self.best_pulls(label).middle], [self.points(label).middle]
            data.append(points(label, *middle, looks[label].color, 14, "x"))
        n = len(scores)
        return drawing(
            data,
            "All players with these levers",
            f"{n} {'result' if n == 1 else 'results'}: a dot is a player, a large dot several; "
            "a cross is the median game of an agent.",
            x=axis("pulls of the best lever", hoverformat=STEP, range=[-1, self.pulls + 1]),
            y=axis("points", hoverformat=STEP, rangemode="tozero"),
            legend=True,
        )


def check(experiment: Experiment) -> None:
    """Check that an experiment can be played by hand.

    Raises
    ------
    UserError
    """
    spec = experiment.simulator_class().describe(experiment.simulator)
    if not {"truth", "binary"} <= spec.capabilities or "visits" in spec.capabilities:
        raise UserError("a game needs a simulator with known rewards of 0 and 1 and no visits")
    if spec.slate != 1 or spec.n_items != spec.n_candidates or spec.n_items > MOST_LEVERS:
        raise UserError(
            f"a game shows all products, one is chosen; it has {spec.n_items} products and at most "
            f"{MOST_LEVERS} are possible"
        )
    if experiment.steps > MOST_PULLS:
        raise UserError(f"a game has {experiment.steps} pulls; at most {MOST_PULLS} are possible")


def of(experiment: Experiment) -> Game:
    """Return the game of an experiment, from memory if it was played recently.

    Raises
    ------
    UserError
    """
    return _of(experiment.model_dump_json())


@lru_cache(maxsize=64)
def _of(text: str) -> Game:
    return Game(read(text))


def _from_zero(rewards: FloatArray) -> FloatArray:
    """Return the mean cumulative reward of G games, from 0 before the first pull, float64 (T +
    1,).
    """
    return np.asarray(np.concatenate([[0.0], rewards.mean(axis=0).cumsum()]))
