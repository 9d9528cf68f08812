// One agent with another value, over the plots, while a slider moves. Joined with panel.js.

const FAINT = 0.3; // opacity of the agent's curves where the slider was
const ROOM = 0.1; // of its length, by which an axis grows beyond the curve that would leave it

function followPreviews(panel) {
  const show = ({ detail: { label, tile, words, body, seq, rest, moved } }) => {
    if (!panel.tiles.has(label)) return;
    if (panel.preview && panel.preview.label !== label) end();
    const { cells } = decode(body);
    const hidden = panel.preview?.hidden ?? !inSight(panel);
    panel.preview = { label, tile, seq, rest, moved, hidden, figures: cells.map(({ figure }) => figure) };
    drawTile(panel);
    drawPeek(panel);
    stateInstead(`${words}. The comparison with other agents follows on release.`);
    if (!rest) drawOver(panel);
    refresh(panel);
  };
  const release = () => {
    if (!panel.preview) return;
    panel.preview.released = true;
    dropPeekSoon(panel);
  };
  const end = () => {
    if (!panel.preview) return;
    endPreview(panel);
    drawLegend(panel, panel.legend);
    refresh(panel);
  };
  const heard = { "bandits-preview": show, "bandits-preview-released": release, "bandits-preview-end": end };
  for (const [name, listener] of Object.entries(heard)) document.addEventListener(name, listener);
  return () => {
    stateInstead();
    for (const [name, listener] of Object.entries(heard)) document.removeEventListener(name, listener);
  };
}

// The conclusion above the plots is that of the run before; while it is hidden, this text stands in its place.
function stateInstead(text) {
  document.documentElement.classList.toggle("bp-previewed", text !== undefined);
  const shown = document.querySelector(".bp-instead");
  if (text === undefined) return shown?.remove();
  const instead = shown ?? document.createElement("p");
  instead.className = "bp-instead"; // not read out: the slider's own words are
  instead.textContent = unbroken(text);
  if (!shown) document.querySelector(".st-key-conclusion")?.append(instead);
}

function endPreview(panel) {
  stateInstead();
  panel.tiles.get(panel.preview.label)?.item.classList.remove("bp-trying");
  panel.preview = null;
  dropPeek(panel);
  for (const cell of panel.cells) {
    cell.fixed = null;
    drawTried(cell, []);
  }
}

// While the slider moves, the curves lie over the plots, and Plotly draws only what is below them: the other agents,
// this one faintly, and axes that have grown. At rest it draws everything: then values can be read off.
function drawOver(panel) {
  for (const cell of panel.cells) {
    const tried = triedTraces(panel, cell);
    fixAxes(cell, tried);
    drawTried(cell, tried);
    drawEnds(panel, cell, cell.names ?? [], tried);
  }
  document.dispatchEvent(new CustomEvent("bandits-preview-drawn", { detail: { seq: panel.preview.seq } }));
}

// What Plotly has drawn of the preview into a plot.
function drawnPart(panel, cell) {
  const { preview } = panel;
  if (!preview) return "";
  return preview.rest ? `rest ${preview.seq}` : `below ${preview.label} ${cell.fixed?.grown ?? ""}`;
}

function triedTraces(panel, cell) {
  const { preview } = panel;
  const figure = preview?.figures[panel.cells.indexOf(cell)];
  if (!figure || panel.hidden.has(preview.label)) return [];
  return tracesOf(panel, figure).filter(({ legendgroup }) => legendgroup === preview.label);
}

// The tile of the agent shows the value that is being tried.
function drawTile(panel) {
  const { preview } = panel;
  const tile = preview && panel.tiles.get(preview.label);
  if (!tile) return;
  tile.item.classList.add("bp-trying");
  tile.mean.textContent = preview.tile.rate;
  tile.spread.textContent = preview.tile.spread;
  tile.detail.textContent = preview.tile.detail;
}

// The traces with those of the preview; the axes stay as they are, and only grow where a curve would leave them.
function withPreview(panel, cell, traces, layout) {
  const { preview } = panel;
  const tried = triedTraces(panel, cell);
  if (!tried.length) return traces;
  fixAxes(cell, tried);
  if (cell.fixed) {
    layout.xaxis = { ...layout.xaxis, range: [...cell.fixed.x], autorange: false };
    layout.yaxis = { ...layout.yaxis, range: [...cell.fixed.y], autorange: false };
  }
  const before = traces.map((trace) =>
    trace.legendgroup === preview.label ? { ...trace, opacity: FAINT * (trace.opacity ?? 1), hoverinfo: "skip" } : trace,
  );
  return preview.rest ? [...before, ...tried] : before;
}

function fixAxes(cell, tried) {
  const full = cell.plot._fullLayout;
  if (!tried.length || !full?.xaxis) return;
  if (!cell.fixed) {
    const zoomed = full.xaxis.autorange !== true || full.yaxis.autorange !== true;
    cell.fixed = { x: [...full.xaxis.range], y: [...full.yaxis.range], zoomed, grown: 0 };
  }
  const { x, y, zoomed } = cell.fixed;
  if (zoomed) return;
  for (const [range, axis, name] of [[x, full.xaxis, "x"], [y, full.yaxis, "y"]]) {
    const convert = axis.type === "log" ? Math.log10 : Number;
    let [low, high] = [Infinity, -Infinity];
    for (const trace of tried) {
      for (const value of trace[name] ?? []) {
        const at = convert(value);
        if (!Number.isFinite(at)) continue;
        low = Math.min(low, at);
        high = Math.max(high, at);
      }
    }
    // Further than needed: the next values of a slider that moves on fit in too, and the axes are drawn less often.
    const more = ROOM * (range[1] - range[0]);
    if (low < range[0]) [range[0], cell.fixed.grown] = [low - more, cell.fixed.grown + 1];
    if (high > range[1]) [range[1], cell.fixed.grown] = [high + more, cell.fixed.grown + 1];
  }
}
