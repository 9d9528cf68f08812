"""The conclusion on every agent, and the table of all verdicts, coloured by severity."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from bandits.diagnostics import Conclusion, Finding, Verdict, conclude
from bandits.diagnostics.conclusion import SEVERITY, by_severity
from bandits.diagnostics.figures import MARKS
from bandits_app.widgets.text import escape_markdown, glued, safe_cell

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

DIAGNOSTIC = "Diagnostic / agent"  # no agent's name has a slash
_COLOURS: dict[Verdict, str] = {"alarm": "red", "watch": "orange", "none": "gray", "healthy": "green"}
_FILL = {  # legible on light and dark; the sign in front has the same meaning
    MARKS["alarm"]: "background-color: rgba(255, 75, 75, 0.28)",
    MARKS["watch"]: "background-color: rgba(255, 170, 0, 0.24)",
    MARKS["healthy"]: "background-color: rgba(33, 195, 84, 0.16)",
}
NOT_INFORMATIVE = f"{MARKS['none']} not informative"


class Verdicts(NamedTuple):
    """The findings and the conclusion on every agent at one moment, agents by severity."""

    findings: dict[str, dict[str, Finding]]
    conclusions: dict[str, Conclusion]


def verdicts(found: dict[str, dict[str, Finding]]) -> Verdicts:
    """Conclude for every agent, and order the agents by severity."""
    conclusions = {label: conclude(findings) for label, findings in found.items()}
    order = sorted(
        conclusions, key=lambda label: (conclusions[label].verdict == "none", SEVERITY[conclusions[label].verdict])
    )
    return Verdicts({label: found[label] for label in order}, {label: conclusions[label] for label in order})


def show_card(conclusions: dict[str, Conclusion]) -> None:
    """Draw the conclusion on each agent, the most severe first."""
    with st.container(border=True):
        st.markdown("**Conclusion**")
        for label, (verdict, direction, text) in conclusions.items():
            mark = f":{_COLOURS[verdict]}[**{MARKS[verdict]}**]"
            exploration = f" – {direction} exploration" if direction.startswith("too") else ""
            sentences = escape_markdown(glued(text))
            st.markdown(f"{mark} **{escape_markdown(label)}{exploration}.** {sentences}")


def table(found: dict[str, dict[str, Finding]]) -> Styler:
    """Return the table of all verdicts: one row per diagnostic, the most severe first, one column per agent."""
    import pandas as pd

    worst: dict[str, Finding] = {}
    for findings in found.values():
        for name, finding in findings.items():
            if name not in worst or SEVERITY[finding.verdict] < SEVERITY[worst[name].verdict]:
                worst[name] = finding
    names = list(by_severity(worst))
    # without "(PIT histogram)": on a telephone the first column leaves little room
    columns = {DIAGNOSTIC: [worst[name].title.split(" (")[0] for name in names]}
    for label, findings in found.items():
        columns[safe_cell(label)] = [_cell(findings[name]) for name in names]
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame.style.map(lambda cell: _FILL.get(str(cell)[:1], ""), subset=list(frame.columns[1:]))


def _cell(finding: Finding) -> str:
    """Return the sign and the verdict in words; for exploration, the direction."""
    if finding.verdict == "none":
        return NOT_INFORMATIVE
    return f"{MARKS[finding.verdict]} {finding.direction or finding.verdict}"
