"""A grid of Plotly figures that is updated in place, so that zoom and hover survive every tick."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route

from bandits.results.figures.style import AXIS

_HERE = Path(__file__).parent
_BUNDLE = Path(str(resources.files("plotly") / "package_data" / "plotly.min.js"))
_ADDRESS = "vendor/plotly.min.js"
# Another version has another address, so browsers may keep it.
_PLOTLY = f"{_ADDRESS}?v={metadata.version('plotly')}"


async def _serve(request: Request) -> FileResponse:  # noqa: ARG001
    return FileResponse(_BUNDLE, headers={"Cache-Control": "public, max-age=31536000, immutable"})


# The bundle of Plotly from the installed package. Streamlit puts `server.baseUrlPath` before its
# own routes only, and some proxies remove it: any prefix matches.
route = Route(f"/{{prefix:path}}{_ADDRESS}", _serve)


def _source(name: str) -> str:
    """Read a source without indentation and comment lines: Streamlit sends it along with every
    update.
    """
    lines = map(str.strip, (_HERE / name).read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))


_mount = st.components.v2.component(
    "bandit_live_panel",
    js="\n".join(
        map(
            _source,
            (
                "plotly_figure.js",
                "line_ends.js",
                "notes.js",
                "menu.js",
                "tried.js",
                "peek.js",
                "preview.js",
                "panel.js",
            ),
        )
    ),
    css="\n".join(map(_source, ("panel.css", "tiles.css"))),
    # Plotly writes its own style sheet into the page's head
    isolate_styles=False,
)


def draw(
    figures: Sequence[dict[str, Any]],
    *,
    key: str,
    revision: str,
    height: int = 340,
    legend: Sequence[dict[str, str]] = (),
    note: str = "",
    alt: Sequence[str] | None = None,
) -> None:
    """Draw figures in a responsive grid: two columns, or one below 700 px, in row order.

    Call it with the same ``key`` on every tick and for the finished run too: the plots are then
    updated where they are and keep zoom and hover. Figures that did not change are not redrawn.

    Parameters
    ----------
    figures : sequence of dict
        Plotly specifications ``{"data": [trace, ...], "layout": {...}}``. NumPy arrays anywhere in
        them are sent as float32, equal ones once. ``layout["title"]`` is drawn as the cell's
        heading and ``layout["meta"]["note"]``, a sentence, below it; where there is a
        ``layout["meta"]["caption"]``, these few words stand there and the note behind a question
        mark. ``layout["meta"]["ends"]`` maps names of traces to the texts at the ends of their
        lines (below a narrow plot: a legend). A trace with ``meta="reference"`` is drawn as a thin
        dashed line in the theme's text colour. A figure without points shows as a placeholder of
        its final size. ``layout["showlegend"]`` names the lines above the plot.
    key : str
        Identity of the panel on the page.
    revision : str
        What the figures show, say, a run's hash: another one resets the zoom.
    height : int
        Height of each plot in pixels at the usual type size (it grows with the type), heading and
        note not included.
    legend : sequence of dict
        Tiles above the plots, in order: ``label, color, dash, rate, spread, detail``, and a
        ``name`` where another one than the label is shown, and ``more`` that a pointer shows.
        Pressing one hides every trace whose ``legendgroup`` is its label, in all plots at once; its
        *only* hides all others.
    note : str
        A sentence above the tiles that explains their numbers.
    alt : sequence of str, optional
        One text per figure for screen readers; its title and note by default.

    Raises
    ------
    ValueError
        If ``alt`` and ``figures`` differ in length, or a plain number is NaN or infinite (in arrays
        these are gaps).
    """
    mount(pack(figures, height, legend, note, revision=revision, alt=alt), key=key)


def mount(packed: bytes, *, key: str, picked: Callable[[], None] | None = None) -> None:
    """Draw a panel made by `pack`; a panel that many sessions show is packed once.

    ``picked`` is called when a point of a figure with ``meta["pick"]`` is pressed; `picked_point`
    returns the point."""
    more: dict[str, Any] = {} if picked is None else {"on_picked_change": picked}
    _mount(key=key, data=packed, width="stretch", **more)


def picked_point(key: str) -> tuple[float, float] | None:
    """Return x and y of the point of a figure that was pressed."""
    state = st.session_state.get(key)
    point = state.get("picked") if state is not None else None
    return (float(point[0]), float(point[1])) if point else None


def pack(
    figures: Sequence[dict[str, Any]],
    height: int,
    legend: Sequence[dict[str, str]] = (),
    note: str = "",
    *,
    revision: str = "",
    alt: Sequence[str] | None = None,
    caption: str = "",
    fill: Literal["", "window", "alone"] = "",
    final: bool = True,
) -> bytes:
    """Encode a panel: header size (uint32, little-endian), JSON header, then all float32 values.

    Raw bytes rather than base64 in JSON, which is a third larger and which Streamlit would
    serialise twice. An array is ``{"f4": [first, count]}`` in the header, or ``{"f4": [first,
    count, columns]}`` if it has two dimensions. With a caption of a few words, the note is behind a
    question mark. With ``fill`` the plots share the rest of a large window, whatever ``height``;
    "alone": without the note. With ``final`` nothing more will follow, and what a released slider
    shows gives way."""
    if revision:
        for figure in figures:
            figure["layout"]["uirevision"] = revision
    if alt is None:
        alt = [f"{f['layout']['title']['text']}: {f['layout']['meta']['note']}" for f in figures]
    offsets: dict[bytes, int] = {}
    end = 0

    def encode(value: Any) -> Any:
        nonlocal end
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray):
            raise TypeError(f"a figure cannot hold a {type(value).__name__}")
        if value.dtype.kind not in "fiub":
            return (value.astype(str) if value.dtype.kind == "M" else value).tolist()
        raw = value.astype("<f4").tobytes()
        digest.update(raw)
        first = offsets.get(raw)
        if first is None:
            first = offsets[raw] = end
            end += value.size
        return {"f4": [first, value.size, *value.shape[1:2]]}

    cells = []
    for figure, text in zip(figures, alt, strict=True):
        digest = hashlib.blake2b(digest_size=8)
        body = json.dumps(figure, default=encode, allow_nan=False, separators=(",", ":"))
        digest.update(body.encode())
        cells.append(f'{{"id":"{digest.hexdigest()}","alt":{json.dumps(text)},"figure":{body}}}')
    frame = json.dumps(
        {
            "src": _PLOTLY,
            "height": int(height),
            "legend": list(legend),
            "caption": caption,
            "note": note,
            "axis": AXIS,
            "fill": fill,
            "final": final,
        }
    )
    header = f'{frame[:-1]},"cells":[{",".join(cells)}]}}'.encode()
    return b"".join((len(header).to_bytes(4, "little"), header, *offsets))


def unpack(payload: bytes) -> dict[str, Any]:
    """Decode a panel made by :func:`pack`, as the browser does.

    Tests read the figures of a page with it.
    """
    start = 4 + int.from_bytes(payload[:4], "little")
    floats = np.frombuffer(payload[start:], dtype="<f4")

    def revive(node: dict[str, Any]) -> Any:
        if "f4" not in node:
            return node
        first, count, *columns = node["f4"]
        return floats[first : first + count].reshape(-1, *columns)

    panel: dict[str, Any] = json.loads(payload[4:start], object_hook=revive)
    return panel
