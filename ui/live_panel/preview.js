// One agent with another value, over the plots, while a slider moves. Joined with panel.js.

const FAINT = 0.3; // opacity of the agent's curves where the slider was

function followPreviews(panel) {
  const show = ({ detail: { label, tile, body, seq } }) => {
    if (!panel.tiles.has(label)) return;
    if (panel.preview && panel.preview.label !== label) end();
    const { cells } = decode(body);
    panel.preview = { label, tile, seq, figures: cells.map(({ figure }) => figure) };
    drawTile(panel);
    refresh(panel);
  };
  const release = () => {
    if (panel.preview) panel.preview.released = true;
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
    for (const [name, listener] of Object.entries(heard)) document.removeEventListener(name, listener);
  };
}

function endPreview(panel) {
  panel.tiles.get(panel.preview.label)?.item.classList.remove("bp-trying");
  panel.preview = null;
  for (const cell of panel.cells) cell.fixed = null;
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
  const figure = preview?.figures[panel.cells.indexOf(cell)];
  if (!figure || preview.label === undefined || panel.hidden.has(preview.label)) return traces;
  const tried = tracesOf(panel, figure).filter(({ legendgroup }) => legendgroup === preview.label);
  if (!tried.length) return traces;
  fixAxes(cell, tried, layout);
  const before = traces.map((trace) =>
    trace.legendgroup === preview.label ? { ...trace, opacity: FAINT * (trace.opacity ?? 1), hoverinfo: "skip" } : trace,
  );
  return [...before, ...tried];
}

function fixAxes(cell, tried, layout) {
  const full = cell.plot._fullLayout;
  if (!cell.fixed && full?.xaxis) {
    const zoomed = full.xaxis.autorange !== true || full.yaxis.autorange !== true;
    cell.fixed = { x: [...full.xaxis.range], y: [...full.yaxis.range], zoomed };
  }
  if (!cell.fixed) return;
  const { x, y, zoomed } = cell.fixed;
  if (!zoomed) {
    for (const [range, axis, name] of [[x, full.xaxis, "x"], [y, full.yaxis, "y"]]) {
      const convert = axis.type === "log" ? Math.log10 : Number;
      const values = tried.flatMap((trace) => Array.from(trace[name] ?? [], convert)).filter(Number.isFinite);
      range[0] = values.reduce((low, value) => Math.min(low, value), range[0]);
      range[1] = values.reduce((high, value) => Math.max(high, value), range[1]);
    }
  }
  layout.xaxis = { ...layout.xaxis, range: [...x], autorange: false };
  layout.yaxis = { ...layout.yaxis, range: [...y], autorange: false };
}
