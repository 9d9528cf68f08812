"""Results and kinds in notebooks: figures, leaderboard, tables, progress bar, cheap import,
examples of docstrings.
"""

from __future__ import annotations

import doctest
import io
import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import bandits
from bandits import Experiment, Result, UserError, agents, run, simulators
from bandits.experiments import experiment as experiments
from bandits.results import result as results
from bandits.results.figures.style import styles
from bandits.results.metric_registry import CURVES
from tests.support import experiment


@lru_cache(maxsize=2)
def finished(simulator: str = "petshop") -> Result:
    return run(
        experiment(
            {"kind": "linucb", "label": "LinUCB"},
            {"kind": "random", "label": "Random"},
            simulator={"kind": simulator},
            steps=1200,
        )
    )


@pytest.mark.parametrize("name", ["board", *(name for name in CURVES if name != "counted")])
def test_every_curve_has_a_figure_in_the_colours_of_the_app(name: str) -> None:
    visits = name in CURVES and CURVES[name].needs == "visits"
    result = finished("sessions" if visits else "petshop")
    made, looks = result.plot(name), styles(result.experiment)
    drawn = {t.name: t for t in made.data if t.showlegend}
    assert "LinUCB" in drawn
    assert drawn["LinUCB"].line.color == looks["LinUCB"].color
    assert sum(t.name == "LinUCB" for t in drawn.values()) == 1
    if name in CURVES and name not in ("spectrum",):
        assert drawn["LinUCB"].x[-1] == 1200


def test_maps_of_who_is_shown_what_are_drawn_where_there_are_segments() -> None:
    made = finished().plot("shown")
    assert [trace.name for trace in made.data] == ["Optimal choice", "LinUCB", "Random"]
    with pytest.raises(UserError, match="must have user segments and categories"):
        finished("wheel").plot("shown")


def test_an_unknown_curve_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"^plot is 'clickrate'; it must be one of board, ctr, clicks, "
    ):
        finished().plot("clickrate")


def test_a_result_displays_as_its_escaped_leaderboard(monkeypatch: pytest.MonkeyPatch) -> None:
    page = finished()._repr_html_()
    ctr = finished().summary()["agents"]["LinUCB"]["ctr"]
    assert f"{ctr['mean']:.3f} ({ctr['low']:.3f} to {ctr['high']:.3f})" in page
    assert page.index("LinUCB") < page.index("Random")
    assert "95 % CI" in page
    odd = Result(
        experiment("random", steps=10, replications=1),
        {"Random": experiment("random").empty_history()},
    )
    assert "nan" not in odd._repr_html_()
    history = finished().histories["Random"]
    label = "<b>x</b>"
    strange = Experiment.model_construct(
        **{**dict(finished().experiment), "agents": finished().experiment.agents}
    )
    monkeypatch.setattr(Experiment, "labels", property(lambda self: (label, "y")))
    assert "&lt;b&gt;x&lt;/b&gt;" in Result(strange, {label: history, "y": history})._repr_html_()


def test_the_table_is_an_alias() -> None:
    assert finished().to_frame().equals(finished().table())


def test_the_kinds_are_those_of_the_registries() -> None:
    for listed, registry in (
        (bandits.list_agents(), agents.REGISTRY),
        (bandits.list_simulators(), simulators.REGISTRY),
    ):
        assert [kind.kind for kind in listed] == list(registry)
        assert [kind.title for kind in listed] == [cls.title for cls in registry.values()]
        assert all(
            kind.summary and "\n" not in kind.summary and "]_" not in kind.summary
            for kind in listed
        )
        assert max(map(len, repr(listed).split("\n"))) <= 120
        assert listed._repr_html_().count("<tr>") == len(registry) + 1
        assert len(listed.to_frame()) == len(registry)
    families = {kind.kind: kind.family for kind in bandits.list_agents()}
    assert (families["linucb"], families["ucb1"], families["neural_ucb"]) == (
        "linear",
        "context free",
        "neural",
    )


def test_agents_are_found_by_what_one_knows_of_them() -> None:
    everything = bandits.list_agents()

    def found(query: str) -> set[str]:
        return {kind.kind for kind in everything.search(query)}

    without_context = {kind.kind for kind in everything if kind.family == "context free"}
    for query in ("no features", "without features", "No  Features", "context free"):
        assert found(query) == without_context
    assert found("trees") == {"tree_ts", "oracle_based"}
    assert found("as in VW") == found("Vowpal Wabbit") == {"epsilon_greedy", "squarecb", "bag"}
    assert found("ε") == found("epsilon") == {"epsilon_greedy", "epsilon_greedy_averages"}
    assert found("Foster 2020") == {"squarecb", "logistic_squarecb"}
    assert found("thompson neural") == {"neural_ts", "neural_linear_ts", "neural_click_ts"}
    # the words in a title
    assert {"lints", "neural_ts", "sgd_ts"} <= found("TS")
    assert "beta_ts" not in found("neural")
    assert found("quantum") == set()
    for query in ("", "   ", "as in the"):
        assert everything.search(query) == everything
    # every agent is found by its own title and kind
    assert all({k.kind} <= found(k.title) & found(k.kind) for k in everything)
    assert [kind.kind for kind in bandits.list_simulators().search("levers")] == ["levers"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_progress_bar_appears_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(stream: io.StringIO, **more: Any) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        run(experiment("random", steps=20), **more)
        return stream.getvalue()

    assert "running" in printed(Terminal())
    assert printed(Terminal(), progress=False) == ""
    assert printed(io.StringIO()) == ""
    steps: list[tuple[int, int]] = []
    assert printed(Terminal(), progress=lambda step, of: steps.append((step, of))) == ""
    assert steps[-1] == (20, 20)


@pytest.mark.slow
def test_imports_are_cheap(tmp_path: Path) -> None:
    """Neither numpy nor numba for the package itself.

    Neither pandas, scipy, torch nor plotly for an experiment.
    """
    heavy = {"pandas", "scipy.special", "torch", "plotly", "pyarrow", "sklearn"}
    for code, absent in (
        ("import bandits; bandits.__version__", {"numpy", "numba", "pydantic"}),
        ("from bandits import Experiment, run, Result", heavy),
        ("from bandits.__main__ import main; main(['list'])", heavy),
    ):
        command = f"import sys, json; {code}; print(); print(json.dumps(sorted(sys.modules)))"
        # plug-ins and stored logs of other tests may need what they like
        own = os.environ | {"BANDITS_PLUGINS": "", "BANDITS_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", command], capture_output=True, text=True, check=True, env=own
        )
        assert absent.isdisjoint(json.loads(done.stdout.splitlines()[-1])), code


@pytest.mark.parametrize("module", [bandits, experiments, results], ids=lambda m: m.__name__)
def test_examples_of_docstrings(module: Any) -> None:
    outcome = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_every_public_name_is_importable() -> None:
    for name in bandits.__all__:
        assert getattr(bandits, name) is not None
    assert set(bandits.__all__) <= set(dir(bandits))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bandits.nothing  # noqa: B018
