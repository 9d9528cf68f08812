"""Result of a run: curves, summary, table and plots, the same in the app, in a script and on the
command line.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandits.base.errors import UserError
from bandits.results.guard_cost import fallbacks

from . import log_training, metrics, notebook
from .change.lost_clicks import lost
from .change.recovery import recovery
from .comparison import paired_tests, unpaired
from .comparison.paired_tests import Comparison
from .items import fairness
from .items.demand import demand
from .items.launches import launches
from .metric_registry import CURVES, METRICS
from .metrics import Band
from .run import Run

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class Result(Run):
    """Curves and totals of every agent of a finished or running experiment.

    Every curve of ``CURVES`` is an attribute, a dict from label to `Band`:
    ``result.ctr["LinUCB"].mid``. In a notebook a result shows as its leaderboard.

    Examples
    --------
    >>> from bandits import Experiment, run
    >>> result = run(Experiment(agents=[{"kind": "oracle"}, {"kind": "random"}], steps=1000,
    ...     replications=4))
    >>> comparison = result.compare("Oracle", "Random")
    >>> comparison.difference.low > 0, comparison.rows
    (True, 4)
    """

    def curve(self, name: str) -> dict[str, Band]:
        """Return the curves of one metric by label, without agents that have none."""
        curve = CURVES[name].curve
        found = {
            label: curve and curve(history, metrics.WINDOW)
            for label, history in self.histories.items()
        }
        return {label: band for label, band in found.items() if band is not None}

    def __getattr__(self, name: str) -> dict[str, Band]:
        if name not in CURVES:
            raise AttributeError(
                f"Result has no attribute '{name}'; its curves are {', '.join(CURVES)}"
            )
        return self.curve(name)

    def compare(self, a: str, b: str) -> Comparison:
        """Compare two agents by label on the same replications (paired), as if they were the only
        ones; the conclusions of a run correct for all its pairs: see `summary`.

        Raises
        ------
        UserError
            A log was replayed, in which nothing is paired.
        """
        if self.experiment.offers("replay"):
            raise UserError(
                "agents that replay a log count different events: nothing is paired; see summary()"
            )
        return paired_tests.compare(self.histories[a], self.histories[b])

    def summary(self) -> dict[str, Any]:
        """Return totals and comparisons as plain data; equal experiments give equal bytes."""
        agents: dict[str, dict[str, Any]] = {}
        segment_names, wanted = (
            self.experiment.simulator_class().segment_names(),
            demand(self.experiment),
        )
        for label, h in self.histories.items():
            values = {
                name: metric.value(h)
                for name, metric in METRICS.items()
                if metric.value is not None
            }
            agents[label] = {
                **{
                    name: metrics.estimate(v)._asdict()
                    for name, v in values.items()
                    if v is not None
                },
                "rows": int(h.alive.sum()),
            }
            if (
                trained := log_training.summary(
                    h, log_training.steps_before_changes(self.experiment)
                )
            ) is not None:
                agents[label]["training"] = trained
            if (found_recovery := recovery(self, label)) is not None:
                agents[label]["recovery"] = found_recovery._asdict()
            if (instead := fallbacks(h)) is not None:
                agents[label]["fallbacks"] = {
                    name: v._asdict() if isinstance(v, metrics.Estimate) else v
                    for name, v in instead._asdict().items()
                }
            if (by_segment := fairness.segments(h)) is not None:
                agents[label]["segments"] = {
                    name: {key: e._asdict() for key, e in own._asdict().items()}
                    for name, own in zip(segment_names, by_segment, strict=True)
                }
            merit = None if wanted is None else wanted.merit
            if merit is not None and (exposure := fairness.exposure(h, merit)) is not None:
                agents[label]["exposure"] = {
                    key: e._asdict() for key, e in exposure._asdict().items()
                }
            if wanted is not None and (found_launches := launches(h, wanted)):
                agents[label]["launches"] = [
                    {**one._asdict(), "share": one.share._asdict()} for one in found_launches
                ]
            if self.unchanged is not None:
                agents[label]["lost_to_change"] = lost(self, self.unchanged, label)._asdict()
        found: dict[str, Any] = plain(
            {"hash": self.experiment.hash, "agents": agents, "comparisons": self._comparisons()}
        )
        return found

    def _comparisons(self) -> list[dict[str, Any]]:
        """Return all pairs of agents, each compared alone, and corrected for all pairs as in the
        conclusions.
        """
        replay = self.experiment.offers("replay")
        compare = unpaired.compare if replay else paired_tests.compare
        family, found = paired_tests.family_of(self.experiment), []
        for a, b in itertools.combinations(self.histories, 2):
            one, two = self.histories[a], self.histories[b]
            alone, corrected = compare(one, two), compare(one, two, family=family)
            found.append(
                {
                    **alone._asdict(),
                    "paired": not replay,
                    "a": a,
                    "b": b,
                    "difference": alone.difference._asdict(),
                    "corrected": {
                        "pairs": family,
                        "difference": corrected.difference._asdict(),
                        "p_value": corrected.p_value,
                    },
                }
            )
        stepwise = paired_tests.holm([one["p_value"] for one in found])
        return [{**one, "p_value_holm": p} for one, p in zip(found, stepwise, strict=True)]

    def timing(self) -> dict[str, Any]:
        """Return the wall time of simulator, agents and recording, and of training before the first
        step.
        """
        decisions = {label: h.step * h.rows for label, h in self.histories.items()}
        agents = {
            label: {"microseconds_per_decision": 1e6 * h.seconds / max(decisions[label], 1)}
            for label, h in self.histories.items()
        }
        for label, h in self.histories.items():
            if h.training is not None:
                agents[label]["training_seconds"] = plain(h.training.seconds)
        return {"agents": agents, "seconds": sum(h.seconds for h in self.histories.values())}

    def to_frame(self) -> pd.DataFrame:
        """Return all curves in long form: columns agent, metric, step, mid, low, high.

        The spectrum is left out, because it is by rank and not by step, and so is a metric that an
        agent does not have.

        Examples
        --------
        >>> from bandits import Experiment, run
        >>> result = run(Experiment(agents=[{"kind": "random"}], steps=100, replications=2))
        >>> list(result.to_frame().columns)
        ['agent', 'metric', 'step', 'mid', 'low', 'high']
        """
        import pandas as pd

        frames = [
            pd.DataFrame(
                {
                    "agent": label,
                    "metric": name,
                    "step": b.x,
                    "mid": b.mid,
                    "low": b.low,
                    "high": b.high,
                }
            )
            for name in CURVES
            # by rank, not by step
            if name != "spectrum"
            for label, b in self.curve(name).items()
        ]
        if not frames:
            return pd.DataFrame(columns=["agent", "metric", "step", "mid", "low", "high"])
        return pd.concat(frames, ignore_index=True).astype({"step": "int64"})

    def table(self) -> pd.DataFrame:
        """Alias of `to_frame`."""
        return self.to_frame()

    def plot(self, name: str = "board", *, dark: bool = False, growth: bool = False) -> go.Figure:
        """Draw a curve of every agent as a plotly figure, in the colours of the app.

        Parameters
        ----------
        name : str
            A curve of ``CURVES`` ("ctr", "pseudo_regret", "entropy", ...), "board" for the four
            plots of the app, "shown" for the share of each category by user segment, as maps, or
            "segments" for the reward per step of each user segment over time.
        dark : bool
            Use plotly's dark template.
        growth : bool
            Draw √T and log T beside the cumulative regret, scaled to meet the leading agent's
            curve at half of its steps.

        Raises
        ------
        UserError
            There is no such curve, or no segments and categories for the maps and plots by segment.

        Examples
        --------
        >>> from bandits import Experiment, run
        >>> result = run(Experiment(agents=[{"kind": "oracle"}, {"kind": "random"}], steps=1000,
        ...     replications=4))
        >>> result.plot("pseudo_regret").layout.title.text
        'Cumulative regret'
        """
        return notebook.plot(self, name, dark=dark, growth=growth)

    def _repr_html_(self) -> str:
        return notebook.leaderboard_html(self)

    def save(self, folder: str | Path) -> None:
        """Write ``experiment.json``, ``curves.parquet``, ``summary.json`` and ``timing.json`` into
        a folder.
        """
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        (out / "experiment.json").write_text(
            self.experiment.model_dump_json(indent=2) + "\n", encoding="utf-8"
        )
        self.to_frame().to_parquet(out / "curves.parquet", index=False)
        for name, data in (("summary", self.summary()), ("timing", self.timing())):
            text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
            (out / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Convert tuples to lists and NaN to None, for JSON."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
