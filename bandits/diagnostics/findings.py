"""Apply all diagnostic rules to one agent of a run.

A verdict is a rule of thumb whose threshold is part of its sentence; it indicates where to look and
proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from bandits.agents import agent_class
from bandits.base.processes import ChildTask, Line
from bandits.experiments.experiment import Experiment, require_truth
from bandits.results.run import Run

from .finding import PENDING, STOPPED, TOO_EARLY, Finding, by_severity
from .references import (
    MIN_STEPS,
    LinearityCheck,
    OracleReference,
    PositionBias,
    has_slates,
    linearity_check,
    oracle_reference,
    position_bias_check,
)
from .regret import Plateau, plateau
from .rules import design_matrix, exploration, model, selection, uncertainty
from .siblings import better_sibling

REFERENCE_OF = {
    "premature_convergence": "oracle",
    "segment_entropy": "oracle",
    "condition_number": "linearity",
    "linearity": "linearity",
    "position_bias": "position_bias",
}
# of lost reward: no defects where little is lost
CAUSES = (
    "smallest_eigenvalue",
    "condition_number",
    "effective_dimension",
    "exploration_bonus",
    "premature_convergence",
    "predictive_r2",
    "linearity",
    "segment_coverage",
    "segment_entropy",
)
UNCERTAINTY = ("calibration", "pit_histogram")
NO_DEFECT = "not informative, because the agent loses little reward"
NO_ALARM = "no alarm, because the agent is not known to lose reward by how it explores"


def findings(
    result: Run,
    label: str,
    oracle: OracleReference | None = None,
    linearity: LinearityCheck | None = None,
    position_bias: PositionBias | None = None,
    *,
    pending: Collection[str] = (),
) -> dict[str, Finding]:
    """Diagnose one agent of a run.

    Parameters
    ----------
    result : Run
    label : str
        The agent.
    oracle, linearity, position_bias : optional
        Reference values for some of the rules, from `oracle_reference`, `linearity_check` and
        `position_bias_check`.
    pending : collection of str
        References still being computed (``oracle``, ``linearity``, ``position_bias``): rules that
        require one of them give no verdict yet.

    Returns
    -------
    dict of str to Finding
        By name of the diagnostic: exploration and regret first, then by severity.

    Raises
    ------
    UserError
        The simulator does not know the true expected rewards.
    """
    require_truth(result.experiment, "diagnostics")
    history = result.histories[label]
    index = result.experiment.labels.index(label)
    params, learns = result.experiment.agents[index], result.experiment.agent_class(index).learns
    changes = result.experiment.simulator.all_changes.values()
    changed = any(change.begins < history.step for change in changes)
    simulator = result.experiment.simulator
    own_table = not result.experiment.simulator_class().portable(simulator)
    found = {
        "exploration": exploration.exploration(
            history,
            params,
            oracle,
            better_sibling(result, label),
            learns=learns,
            changed=changed,
            own_table=own_table,
        ),
        "regret": exploration.regret(history, learns=learns),
        "smallest_eigenvalue": design_matrix.smallest_eigenvalue(history, params),
        "condition_number": design_matrix.condition_number(history, params, linearity),
        "effective_dimension": design_matrix.effective_dimension(history, params),
        "exploration_bonus": uncertainty.exploration_bonus(history, params),
        "premature_convergence": selection.premature_convergence(history, oracle, learns=learns),
        "calibration": uncertainty.calibration(history, params),
        "pit_histogram": uncertainty.pit_histogram(history, params),
        "predictive_r2": model.predictive_r2(history),
        "linearity": model.linearity(params, linearity, _plateau(result, label)),
    }
    if segments := result.experiment.simulator_class().segment_names():
        found["segment_coverage"] = selection.segment_coverage(
            history, params, segments, learns=learns
        )
        found["segment_entropy"] = selection.segment_entropy(
            history, segments, oracle, learns=learns
        )
    if position_bias is not None or ("position_bias" in pending and has_slates(result.experiment)):
        found["position_bias"] = model.position_bias(params, position_bias)
    waiting = [
        name for name, reference in REFERENCE_OF.items() if reference in pending and name in found
    ]
    found |= {name: found[name].without_verdict(PENDING) for name in waiting}
    too_early = history.step < max(MIN_STEPS, history.steps / 10)
    if too_early or not history.alive.any():
        reason = TOO_EARLY if too_early else STOPPED
        return {name: finding.without_verdict(reason) for name, finding in found.items()}
    return by_severity(_weighed(found) if history.exploration_checks else found)


def _plateau(result: Run, label: str) -> Plateau | None:
    """Test for a plateau; None where a changing simulator or an agent that forgets on purpose may
    be its cause.
    """
    params = result.experiment.agents[result.experiment.labels.index(label)]
    if result.experiment.simulator.all_changes or agent_class(params).forgets(params):
        return None
    return plateau(result.histories[label])


def reservations(found: dict[str, Finding]) -> list[str]:
    """State why verdicts were lowered, one sentence per reason with the diagnostics that it
    concerns.
    """
    reasons = dict.fromkeys(
        finding.reservation for finding in found.values() if finding.reservation
    )
    by_reason = {
        r: [f.title.split(" (")[0] for f in found.values() if f.reservation == r] for r in reasons
    }
    return [f"{', '.join(names)}: {reason}." for reason, names in by_reason.items()]


def _weighed(found: dict[str, Finding]) -> dict[str, Finding]:
    """Lower the verdicts on possible causes of lost reward where no reward is known to be lost by
    exploration.
    """
    if found["exploration"].verdict not in ("healthy", "none"):
        return found
    plateau = found["regret"].verdict == "healthy"
    weighed = dict(found)
    for name, finding in found.items():
        if name in CAUSES and plateau and finding.verdict in ("alarm", "watch"):
            weighed[name] = finding._replace(verdict="none", reservation=NO_DEFECT)
        elif name in CAUSES + UNCERTAINTY and name != "linearity" and finding.verdict == "alarm":
            weighed[name] = finding._replace(verdict="watch", reservation=NO_ALARM)
    return weighed


LINE = Line("computations of reference values", waiting=16, seconds=180.0)
REFERENCES: dict[str, Callable[[Experiment], Any]] = {
    "oracle": oracle_reference,
    "linearity": linearity_check,
    "position_bias": position_bias_check,
}


class ReferenceTask(ChildTask):
    """The reference values of an experiment, available one after the other as they are computed."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.oracle: OracleReference | None = None
        self.linearity: LinearityCheck | None = None
        self.position_bias: PositionBias | None = None
        self._received: set[str] = set()
        super().__init__(LINE, compute, experiment)

    def receive(self, message: Any) -> None:
        kind, value = message
        setattr(self, kind, value)
        self._received.add(kind)

    @property
    def references(
        self,
    ) -> tuple[OracleReference | None, LinearityCheck | None, PositionBias | None]:
        """The values received so far; None too where a reference does not exist."""
        return self.oracle, self.linearity, self.position_bias

    @property
    def pending(self) -> set[str]:
        """The references still to come: ``oracle``, ``linearity``, ``position_bias``."""
        return set(REFERENCES) - self._received if self.active else set()


def compute(experiment: Experiment, send: Callable[[Any], None]) -> None:
    """Compute one reference after the other; send its kind and its value.

    Raises
    ------
    UserError
        The simulator cannot be created (missing data, say).
    """
    for kind, reference in REFERENCES.items():
        send((kind, reference(experiment)))
