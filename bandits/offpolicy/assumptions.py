"""State what an evaluation assumes that its log does not show to hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .log import DecisionLog
from .simulated import known_experiment
from .support import Alarm
from .targets import Target
from .visits import OF_VISITS

# alarms that so few decisions carry the estimates that no interval for large samples holds
FEW = ("ess", "max_weight")
# alarms that the log may lack what the target shows
NO_SUPPORT = (*FEW, "mean_weight", "balance", "unsupported", "unsupported_segment", "deterministic")


def assumptions(
    log: DecisionLog, target: Target, names: Sequence[str], estimated: bool, flat: Sequence[str]
) -> list[Alarm]:
    """State assumptions that the log does not show to hold."""
    found = []
    if log.by_place and target.by_name:
        found.append(
            Alarm(
                "by_place",
                "Items have no names in this log: they are known by their place among the "
                "candidates, and what stands there varies; a value of one item is the value of "
                "one place.",
            )
        )
    if estimated or (log.kinds is not None and (log.kinds == "estimated").any()):
        found.append(
            Alarm(
                "estimated_propensities",
                "Propensities are estimated from the log, not recorded: estimates "
                "that use weights are biased where that model is wrong.",
            )
        )
    if log.kinds is not None and (log.kinds == "deterministic").any():
        found.append(
            Alarm(
                "deterministic",
                "Part of the log was chosen without randomness: actions that were not "
                "chosen have no support there.",
            )
        )
    if flat:
        found.append(
            Alarm(
                "no_variation",
                f"All contributions to {', '.join(flat)} are equal: the standard error is 0 "
                "and their intervals mean nothing.",
            )
        )
    if log.visits is not None and names[0] not in OF_VISITS:
        found.append(
            Alarm(
                "visits",
                "Values per decision take the states of visitors as the log has them, and what "
                "the target would have shown leads to others: PDIS and WPDIS estimate a value per "
                "visit.",
            )
        )
    if log.groups is not None:
        found.append(
            Alarm(
                "positions",
                "Each position of a slate is evaluated as a decision of its own: that is right "
                "where what an item earns does not depend on the items beside it, and wrong "
                "where users stop at the first click.",
            )
        )
    if "dm" in names and log.propensities is None:
        found.append(
            Alarm(
                "model",
                "The interval of DM leaves out the error of the predicted rewards, which cannot be "
                "measured without propensities.",
            )
        )
    if "replay" in names:
        if log.propensities is None:
            found.append(
                Alarm(
                    "replay",
                    "Replay assumes a uniformly random log; this one has no propensities to check.",
                )
            )
        elif np.ptp(log.propensities) > 1e-9 and log.available is None:
            found.append(
                Alarm(
                    "replay",
                    "Replay is right for uniformly random logs only; the propensities of this log "
                    f"vary from {log.propensities.min():.3g} to {log.propensities.max():.3g}.",
                )
            )
    return found


def adaptive(log: DecisionLog, found: Sequence[Alarm]) -> list[str]:
    """State what intervals mean on a log whose agent learned while it chose, and that weights are
    right all the same where no alarm contradicts the support of the target.
    """
    experiment = known_experiment(log)
    if experiment is None:
        return []
    # a log that does not name its agent: any of them
    chose = [i for i, name in enumerate(experiment.labels) if log.agent in ("", name)]
    if not all(experiment.agent_class(i).learns for i in chose):
        return []
    unbiased = not any(alarm.kind in NO_SUPPORT for alarm in found)
    return [
        "The agent of this log learned while it chose, so its decisions depend on earlier rewards. "
        + ("Estimates by weights stay unbiased, but normal" if unbiased else "Normal")
        + " and bootstrap intervals take decisions as independent and may hold the truth less "
        "often than they state."
    ]
