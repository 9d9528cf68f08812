"""What the tools around a run read of an agent: forms, checks, estimates of memory and time,
Diagnostics, figures.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from bandits.base.types import FloatArray, OfflineTraining, SimulatorSpec
from bandits.models.position_bias import Position

from .model_params import ESTIMATED, ForgettingParams
from .params import LearnerParams

Uncertainty = Literal["bonus", "posterior"]
Representation = Literal["features", "fourier", "network"]
# kept of a run, at most
SPECTRA = 41


class AgentFacts:
    """Facts about an agent, which it states where the defaults do not hold.

    None of them changes what it shows.

    ``params`` are those of one row, ``spec`` the sizes and capabilities of the simulator.
    """

    keywords: ClassVar[str] = ""
    """Words that find it besides title, family, summary and references: other names, and libraries
    that have it.
    """
    needs: ClassVar[frozenset[str]] = frozenset()
    """Capabilities of a simulator without which it cannot run."""
    offered_for: ClassVar[frozenset[str]] = frozenset()
    """Capabilities without which forms do not offer it, because it cannot tell the arms apart.

    It runs all the same.
    """
    learns: ClassVar[bool] = True
    """Whether it changes during a run."""
    uncertainty: ClassVar[Uncertainty | None] = None
    """What it explores with: an upper confidence bound (``bonus``), posterior draws
    (``posterior``), or neither.

    Diagnostics read it through `uncertainty_of`; override that where a parameter decides.
    """
    exploration_param: ClassVar[str | None] = None
    """The numeric parameter that sets how much it explores and nothing that it learns.

    None if there is none.

    Diagnostics compares agents that differ in it alone.
    """
    linear: ClassVar[bool] = False
    """Whether the expected reward is a linear function of what its model reads (see
    `representation`).
    """
    alone: ClassVar[bool] = True
    """Whether a row's numbers are the same bits with and without other rows.

    Otherwise they agree up to rounding.
    """
    row_by_row: ClassVar[bool] = True
    """Whether every array of its state has an axis of rows, so that one row can begin anew."""
    colour: ClassVar[str | None] = None
    """Colour of its curves, ``#RRGGBB``.

    None: the first colour that no other agent of the figure has.
    """
    dash: ClassVar[str] = "solid"
    """Line style of its curves, as plotly names it: solid, dash, longdash or dashdot (dotted: the
    previous run).
    """
    offline_training: OfflineTraining | None = None
    """What `prepare` trained on, in agents that have learned from a log."""

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:  # noqa: ARG003
        """Return the simulator capabilities that these parameters require."""
        return cls.needs

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:  # noqa: ARG003
        """List changes of parameters that need fewer capabilities or less memory, the first one to
        try first.

        Each is tried together with those before it, where an agent does not fit a simulator
        (`experiments.adaptation`)."""
        return []

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        """Name what its model reads, or None for an agent without context.

        ``features``: the candidates' features themselves. ``fourier``: random Fourier features of
        them. ``network``: the features, through a neural network."""
        return None

    @classmethod
    def generalises(cls, params: Any) -> bool:  # noqa: ARG003
        """Whether an observation of one arm changes the estimates of others."""
        return False

    @classmethod
    def forgets(cls, params: Any) -> bool:
        """Whether old observations lose their weight by design (discount factor, sliding
        window).
        """
        return isinstance(params, ForgettingParams) and params.forgets

    @classmethod
    def uncertainty_of(cls, params: Any) -> Uncertainty | None:  # noqa: ARG003
        """Return ``uncertainty``, or what these parameters choose."""
        return cls.uncertainty

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:  # noqa: ARG003
        """Eigenvalue of the design matrix before any data (the ridge), or None without such a
        matrix.
        """
        return None

    @classmethod
    def starts_with_data(cls, params: Any) -> bool:  # noqa: ARG003
        """Whether its models hold observations before the first step, so that eigenvalues exceed
        `prior_precision`.
        """
        return False

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:  # noqa: ARG003
        """Whether the spectrum has one model per arm (True) or one for all arms (False).

        None without a spectrum.
        """
        return None

    @classmethod
    def slot_treatment(cls, params: Any) -> Position | None:
        """Name how it weighs the slots of a slate; None for an agent that does not learn."""
        if isinstance(params, LearnerParams):
            return params.position
        return "examined" if cls.learns else None

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:  # noqa: ARG003
        """Compute the bytes per row before anything is allocated."""
        return 4096

    @classmethod
    def shared_memory(cls, params: Any, spec: SimulatorSpec, layouts: int) -> int:  # noqa: ARG003
        """Compute the bytes that all rows share, given the number of layouts."""
        return 0

    @classmethod
    def spectra_memory(cls, params: Any, spec: SimulatorSpec) -> int:
        """Compute the bytes per row of the spectra that a run keeps."""
        if (per_arm := cls.spans_arms(params)) is None:
            return 0
        return 8 * SPECTRA * (spec.n_items if per_arm else 1) * cls.spectrum_width(params, spec)

    @classmethod
    def spectrum_width(cls, params: Any, spec: SimulatorSpec) -> int:
        """Count the eigenvalues of a model."""
        return getattr(params, "fourier", None) or spec.n_features

    @classmethod
    def least_work(cls, params: Any, spec: SimulatorSpec, steps: int) -> float:  # noqa: ARG003
        """Compute a lower bound of the floating-point operations of one row in so many steps.

        0 if none is known.
        """
        return 0.0

    def is_trained(self) -> bool:
        """Return whether `prepare` takes no training, for example because its result is in the
        cache.
        """
        return False

    def note(self) -> str:
        """Describe in a few words a representation that the agent chose by itself.

        Empty if it chose none.
        """
        return ""

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:  # noqa: ARG002
        """Compute the eigenvalues of the design matrix on the span of the features, (R, M, m).

        None without one.
        """
        return None


class ModelFacts(AgentFacts):
    """Facts of agents with `ModelParams`, whose field ``sharing`` states which arms share
    weights.
    """

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:
        return bool(params.sharing != "shared")

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def generalises(cls, params: Any) -> bool:
        return bool(params.sharing != "per_arm" or params.prior in ESTIMATED)

    @classmethod
    def starts_with_data(cls, params: Any) -> bool:
        return bool(params.prior == "given")
