"""Open the app in this process, through the page script, and read what its pages show."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from bandits.runtime.job import Job
from bandits_app.widgets.live_panel import panel as live_panel
from tests.support import over, wait_for

ROOT = Path(__file__).parents[2]

# every visit would scan all installed packages, which takes longer than a page: once is enough
manifest_scanner.scan_component_manifests = functools.cache(
    manifest_scanner.scan_component_manifests
)


def open_page(
    page: str = "home", address: Mapping[str, str] | None = None, **state: object
) -> AppTest:
    """A new visitor on a page, or on a view of it (labs/guards).

    By a link that says ``address``, in a session that knows ``state``.
    """
    name, _, view = page.partition("/")
    at = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120).switch_page(
        f"{name}.py"
    )
    for field, text in {**(address or {}), **({"view": view} if view else {})}.items():
        at.query_params[field] = text
    for name, value in state.items():
        at.session_state[name] = value
    return at.run()


def open_menu(at: AppTest, menu: str) -> AppTest:
    """Open a menu by the word in its key: presets, sweep-presets, simulators or add."""
    draft = at.session_state["draft"]
    which = f"-{len(draft.agents)}-{sorted(draft.open_cards)}" if menu == "add" else ""
    key = f"{draft.version}-{menu}{which}"
    at.session_state[key] = True
    return at.run()


def choose_entry(at: AppTest, menu: str, entry: str) -> AppTest:
    """Open a menu and choose an entry."""
    return open_menu(at, menu).button(key=f"{menu.removesuffix('s')}-{entry}").click().run()


def ended(job: Job) -> Job:
    wait_for(lambda: not job.active, "the end of the run")
    return job


def under_way(job: Job) -> Job:
    wait_for(
        lambda: len(job.result.histories) == len(job.experiment.labels),
        "the first points",
        over(job),
    )
    return job


def status(at: AppTest) -> str:
    """Return the status of the run that is shown; the bar of a finished one has disappeared."""
    bars = at.get("progress")
    return str(
        bars[0].proto.text
        if bars
        else next(c.value for c in at.caption if c.value.startswith("Finished: "))
    )


def panels(at: AppTest) -> list[dict[str, Any]]:
    """The live panels of a page; what surrounds every page is a component too."""
    protos = [
        getattr(found.proto, "bidi_component", found.proto) for found in at.get("bidi_component")
    ]
    return [
        live_panel.unpack(proto.bytes)
        for proto in protos
        if proto.component_name.endswith("live_panel")
    ]


def panel(at: AppTest) -> dict[str, Any]:
    """The first live panel: below the plots of a run, others may show what its agents were trained
    on.
    """
    return panels(at)[0]


def board(at: AppTest) -> str:
    """The leaderboard, best first, as text."""
    return "\n".join(
        f"{t['label']}: {t['rate']}{t['spread']}, {t['detail']}" for t in panel(at)["legend"]
    )


def plots(at: AppTest) -> list[dict[str, Any]]:
    return [cell["figure"] for cell in panel(at)["cells"]]


def sentences(at: AppTest) -> list[str]:
    """The conclusions: the main one above the plots, then those below them."""
    texts = [m.value.replace("\u00a0", " ") for m in at.main.markdown]
    main = [text.strip("*") for text in texts if text.startswith("**") and text.endswith(".**")]
    return main + [line[2:] for text in texts if text.startswith("- ") for line in text.split("\n")]


def refusals(at: AppTest) -> list[str]:
    """The refusals as they read: without the escapes of markup."""
    return [e.value.replace("\\", "").replace("\u200b", "") for e in at.error]
