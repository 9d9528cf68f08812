"""One title of the artwork simulator: who is shown which of its pictures and why, and what that
earns.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np

from bandits.agents.context_free.base import ContextFreeAgent
from bandits.agents.context_free.baselines import Default, Random
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
from bandits.base.selection import top_k
from bandits.base.types import FloatArray, IntArray, Round
from bandits.experiments.experiment import Experiment
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.results.decision import Why, ask, position, record, replay_to
from bandits.results.decision_report import decision
from bandits.results.figures.parts import axis, drawing, points, ring
from bandits.results.figures.style import RATE, Spec, Style
from bandits.simulators.artwork import Artwork
from bandits.simulators.artwork_titles import ATTRIBUTES, GENRES

# users over whom a title is averaged, at most
VISITORS = 200
# the reason of most choices
HIGHEST = "highest estimate"
# the replication that is replayed
ROW = 0


class Visit(NamedTuple):
    """What one visitor is shown.

    Attributes
    ----------
    cluster : str
        Taste cluster of the visitor, who is the most typical one of it.
    user : int
    picture : int
        Place among the pictures of the title, from 1; 1 is the default picture.
    content : str
        What is on it.
    truth, default, best : float
        True click probabilities: of the picture shown, of the default picture and of the best one.
    best_picture : int
        Place of the best one.
    estimate : float
        Mean that the agent estimates; NaN where it has none.
    why : str
        What decided.
    likes : str
        True taste of the visitor for what is on the picture.
    """

    cluster: str
    user: int
    picture: int
    content: str
    truth: float
    default: float
    best: float
    best_picture: int
    estimate: float
    why: str
    likes: str


class TitleValue(NamedTuple):
    """Expected take fraction of a title, over the visitors who may be shown it.

    Attributes
    ----------
    visitors : int
    impressions : int
        Times that the title was shown in the replication.
    agent, default, popular, best : float
        Of the agent's choices (see `title_value`), the default picture, the picture that is best
        for all together, and the best for each.
    """

    visitors: int
    impressions: int
    agent: float
    default: float
    popular: float
    best: float


class Replay(NamedTuple):
    """One replication of one agent at the end of its run.

    Attributes
    ----------
    lane : Lane
    impressions : int64 (n_titles,)
    personal : bool
        Whether the agent looks at the visitor.
    by_cluster : bool
        Whether it knows of the visitor the taste cluster alone.
    lock : Lock
        Held while the lane is used: sessions share it.
    """

    lane: Lane
    impressions: IntArray
    personal: bool
    by_cluster: bool
    lock: Lock

    @property
    def simulator(self) -> Artwork:
        """The simulator."""
        assert isinstance(self.lane.simulator, Artwork)
        return self.lane.simulator


def replay(experiment: Experiment, label: str, steps: int) -> Replay:
    """Compute the first replication of one agent again, up to a step.

    Raises
    ------
    UserError
        It would take too long, or the agent diverged.
    """
    index = position(experiment, label)
    lane = make_lane(experiment, index, rows=[ROW] if experiment.agent_class(index).alone else None)
    lane.agent.prepare()
    replay_to(lane, ROW, steps, label)
    simulator = lane.simulator
    assert isinstance(simulator, Artwork)
    impressions = np.zeros(len(simulator.catalogue(ROW).sizes), np.int64)
    for step in range(steps):
        impressions[simulator.shown_titles(step)[ROW]] += 1
    cls = experiment.agent_class(index)
    without_features = issubclass(cls, ContextFreeAgent | Default | Random)
    segments = "segments" in cls.requires(experiment.agents[index])
    return Replay(
        lane, impressions, segments or not without_features, segments and without_features, Lock()
    )


def titles(experiment: Experiment) -> dict[int, str]:
    """Name the titles that are there at the end of a run by number and genres, those that visitors
    like most first.
    """
    simulator = Artwork(experiment.simulator, Streams(experiment.seed, [ROW]))
    catalogue, there = simulator.catalogue(ROW), simulator.titles_at(experiment.steps - 1)
    liked = catalogue.interest.mean(axis=0)[there]
    names = {}
    for title in there[np.argsort(-liked, kind="stable")].tolist():
        main, second = np.argsort(-catalogue.genres[title], kind="stable")[:2]
        names[title] = f"Title {title + 1}: {GENRES[main]}, {GENRES[second]}"
    return names


def visits(played: Replay, title: int) -> list[Visit]:
    """Show the pictures of a title to the most typical visitor of each taste cluster: one draw of
    the agent.
    """
    with played.lock:
        return _visits(played, title)


def _visits(played: Replay, title: int) -> list[Visit]:
    catalogue, found = played.simulator.catalogue(ROW), []
    for g, cluster in enumerate(GENRES):
        own = np.flatnonzero(catalogue.clusters == g)
        if not len(own):
            continue
        tastes = catalogue.tastes[own]
        user = int(own[np.square(tastes - tastes.mean(axis=0)).sum(axis=1).argmin()])
        round, p, shown, parts = _decide(played, user, title)
        first = int(round.items[ROW, 0])
        best = int(np.where(round.available[ROW], p, -np.inf).argmax())
        mean = float("nan") if parts.mean is None else float(parts.mean[ROW, shown])
        if parts.logit and np.isfinite(mean):
            mean = float(1 / (1 + np.exp(-mean)))
        found.append(
            Visit(
                cluster=cluster,
                user=user,
                picture=shown + 1,
                content=catalogue.describe(first + shown),
                truth=float(p[shown]),
                default=float(p[0]),
                best=float(p[best]),
                best_picture=best + 1,
                estimate=mean,
                why=reason(played, round, shown, parts),
                likes=_likes(played, round, shown),
            )
        )
    return found


def reason(played: Replay, round: Round, shown: int, parts: Explanation) -> str:
    """Say what decided on a picture: a guard, chance, the highest estimate or exploration."""
    if parts.guard is not None and parts.guard[ROW]:
        return str(parts.guard[ROW])
    if parts.randomised is not None and parts.randomised[ROW]:
        return "a random draw"
    if played.by_cluster:
        return "the winner of the visitor's taste cluster"
    if parts.mean is not None:
        mean = np.where(round.available[ROW], parts.mean[ROW], -np.inf)
        if mean[shown] < np.nanmax(mean):
            return "explored: another picture has a higher estimate"
    if not played.personal:
        drawn = played.lane.agent.uncertainty == "posterior"
        return (
            "highest estimate, the same for all visitors"
            if drawn
            else "the same picture for all visitors"
        )
    return HIGHEST


def _likes(played: Replay, round: Round, shown: int) -> str:
    """List what is on a picture by the visitor's true taste for it: thriller (1.2), face (−0.3)."""
    simulator, catalogue = played.simulator, played.simulator.catalogue(ROW)
    n = simulator.spec.n_features - 2
    taste, there = (
        catalogue.tastes[round.users[ROW], :n],
        catalogue.attributes[round.items[ROW, shown], :n],
    )
    order = [i for i in np.argsort(-taste * there, kind="stable") if there[i]]
    return ", ".join(
        f"{ATTRIBUTES[i]} ({np.round(taste[i], 1) + 0.0:.1f})".replace("-", "−") for i in order
    )


def explanation(played: Replay, title: int, visit: Visit, label: str) -> Why:
    """Ask the agent for the scores of all pictures of a title for one visitor, as *Why this arm?*
    does.
    """
    with played.lock:
        round, _, shown, _ = _decide(played, visit.user, title, explain=False)
        asked = ask(played.lane, round, ROW, played.lane.step + 1)
    first, catalogue = int(round.items[ROW, 0]), played.simulator.catalogue(ROW)
    n = int(catalogue.sizes[title])
    K = round.items.shape[1]
    names = [
        f"picture {k + 1} ({catalogue.describe(first + k)})" if k < n else "" for k in range(K)
    ]
    return record(
        played.lane, asked, label, names, [shown], step=played.lane.step + 1, replication=ROW
    )


def explanation_figure(why: Why, style: Style) -> Spec:
    """Draw the estimates and scores of all pictures of a title for one visitor beside the truth."""
    short = tuple(c._replace(name=c.name.removeprefix("picture ")) for c in why.candidates)
    spec = decision(why._replace(candidates=short), style, most=len(short))
    spec["layout"]["title"]["text"] = f"{why.visitor.capitalize()}: what {why.label} estimates"
    return spec


def contrast(found: list[Visit]) -> list[str]:
    """Choose two visitors who are shown different pictures, if there are any: their clusters."""
    first, *others = found
    different = [visit for visit in others if visit.picture != first.picture]
    return [visit.cluster for visit in (first, *(different or others)[:1])]


def title_value(played: Replay, title: int) -> TitleValue:
    """Average the expected take fraction over visitors to whom the title is retrieved, or over all
    if to none.

    That of an agent whose choice probabilities are known is their mean; that of other agents is
    that of one draw."""
    with played.lock:
        return _title_value(played, title)


def _title_value(played: Replay, title: int) -> TitleValue:
    simulator, agent = played.simulator, played.lane.agent
    likely = simulator.retrieved_for(played.lane.step - 1, title, ROW)
    users = likely if len(likely) else np.arange(len(simulator.catalogue(ROW).tastes))
    users = users[np.linspace(0, len(users) - 1, min(len(users), VISITORS)).astype(np.int64)]
    chosen, table = [], []
    for user in users.tolist():
        round, p, shown, _ = _decide(played, user, title, explain=False)
        table.append(np.where(round.available[ROW], p, -np.inf))
        if agent.propensity == "monte_carlo":
            chosen.append(float(p[shown]))
        else:
            chosen.append(
                float(agent.probabilities(round)[ROW] @ np.where(round.available[ROW], p, 0))
            )
    every = np.stack(table)
    return TitleValue(
        visitors=len(users),
        impressions=int(played.impressions[title]),
        agent=float(np.mean(chosen)),
        default=float(every[:, 0].mean()),
        popular=float(every.mean(axis=0).max()),
        best=float(every.max(axis=1).mean()),
    )


def _decide(
    played: Replay, user: int, title: int, *, explain: bool = True
) -> tuple[Round, FloatArray, int, Explanation]:
    """Let the agent choose a picture of a title for a user: the round, the truth (K,), the choice,
    its explanation.
    """
    lane, R = played.lane, played.lane.rows
    round = played.simulator.round_of(lane.step, np.full(R, user), np.full(R, title))
    scores = lane.agent.scores(round)
    alive, ties = np.ones(R, np.bool_), played.simulator.streams.ties
    shown = int(top_k(scores, round.available, alive, 1, ties, round.step)[ROW, 0])
    parts = lane.agent.explain(round) if explain else Explanation("score", scores)
    return round, played.simulator.probabilities(round)[ROW], shown, parts


def heatmap(played: Replay, title: int, shown: list[Visit]) -> Spec:
    """Draw the true click probability of every picture for every cluster's visitor, with marks on
    what is shown.
    """
    note = (
        "True click probability, for the most typical visitor of each taste cluster. Filled "
        "circle: what the agent shows. Ring: the best picture. Pictures are numbered within the "
        "title; 1 is the default."
    )
    plot: Spec = {"title": "Pictures and visitors", "note": note}
    y: Spec = {
        "autorange": "reversed",
        "type": "category",
        "dtick": 1,
        "showgrid": False,
        "automargin": True,
    }
    if not shown:
        return drawing([], **plot, x=axis("picture", showgrid=False), y=y, empty="No visitors.")
    rows = []
    for visit in shown:
        with played.lock:
            round, p, _, _ = _decide(played, visit.user, title, explain=False)
        rows.append(np.where(round.available[ROW], p, np.nan))
    z = np.stack(rows)
    z = z[:, : int(played.simulator.catalogue(ROW).sizes[title])]
    n, clusters = z.shape[1], [visit.cluster for visit in shown]
    cells = {
        **{
            "type": "heatmap",
            "x": np.arange(1.0, n + 1),
            "y": clusters,
            "z": z,
            "xgap": 1,
            "ygap": 1,
        },
        **{"colorscale": "Cividis", "colorbar": {"thickness": 10, "tickformat": ".2f"}},
        "hovertemplate": f"%{{y}}, picture %{{x}}: %{{z:{RATE}}}<extra></extra>",
    }
    best, own = [float(v.best_picture) for v in shown], [float(v.picture) for v in shown]
    chosen = points("shown", own, clusters, "#FFFFFF", 9, hoverinfo="skip")
    chosen["marker"]["line"] = {"width": 1.5, "color": "#000000"}
    # A dark ring below the white one is seen on bright cells
    rings = [
        ring("best", best, clusters, color, 15, edge=edge)
        for color, edge in (("#000000", 4), ("#FFFFFF", 2))
    ]
    ticks = {
        "range": [0.5, n + 0.5],
        "tick0": 1,
        "dtick": 1,
        "tickfont": {"size": 12 if n <= 10 else 9},
    }
    return drawing([cells, *rings, chosen], **plot, x=axis("picture", showgrid=False, **ticks), y=y)
