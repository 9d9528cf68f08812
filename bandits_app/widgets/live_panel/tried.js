// The curves of a value that is tried, drawn over a plot: many times faster than by Plotly. Joined with panel.js.

const SVG = "http://www.w3.org/2000/svg";
// Plotly's dashes, in widths of the line.
const DASHES = { dot: [1, 1], dash: [3, 3], longdash: [5, 5], dashdot: [3, 1, 1, 1], longdashdot: [5, 2, 1, 2] };

function makeTried(frame) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "bp-tried");
  svg.setAttribute("aria-hidden", "true"); // the strip below the slider states what is tried
  frame.append(svg);
  return svg;
}

// A path through points in pixels, with gaps where there is no number.
function pathThrough(xs, ys, toX, toY) {
  let path = "";
  let gap = true;
  for (let i = 0; i < xs.length; i++) {
    const [x, y] = [toX(xs[i]), toY(ys[i])];
    if (Number.isFinite(x) && Number.isFinite(y)) path += `${gap ? "M" : "L"}${x.toFixed(1)},${y.toFixed(1)}`;
    gap = !(Number.isFinite(x) && Number.isFinite(y));
  }
  return path;
}

// The marks of replications that diverged.
function crossesAt(xs, ys, toX, toY, size) {
  const at = Array.from(xs, (x, i) => [toX(x), toY(ys[i])]).filter(([x, y]) => Number.isFinite(x + y));
  const [far, back] = [2 * size, -2 * size];
  return at.map(([x, y]) => `M${x - size},${y - size}l${far},${far}m0,${back}l${back},${far}`).join("");
}

function pathOf({ mode, fill, fillcolor, line, marker, x, y }, toX, toY) {
  const path = document.createElementNS(SVG, "path");
  const width = mode === "markers" ? 2 : (line?.width ?? 2);
  const d = mode === "markers" ? crossesAt(x, y, toX, toY, marker.size / 2) : pathThrough(x, y, toX, toY);
  path.setAttribute("d", fill && d ? `${d}Z` : d);
  path.setAttribute("fill", fill ? fillcolor : "none");
  path.setAttribute("stroke", fill ? "none" : (line?.color ?? marker.color));
  path.setAttribute("stroke-width", width);
  path.setAttribute("stroke-linejoin", "round");
  const dashes = mode === "lines" && DASHES[line?.dash];
  if (dashes) path.setAttribute("stroke-dasharray", dashes.map((one) => one * Math.max(width, 3)).join());
  return path;
}

// With the axes that the plot has now; without traces, nothing.
function drawTried(cell, traces) {
  const full = cell.plot._fullLayout;
  if (!traces.length || !full?.xaxis) return cell.tried.replaceChildren();
  const { xaxis, yaxis } = full;
  Object.assign(cell.tried.style, {
    left: `${xaxis._offset}px`,
    top: `${yaxis._offset}px`,
    width: `${xaxis._length}px`,
    height: `${yaxis._length}px`,
  });
  const [toX, toY] = [(value) => xaxis.c2p(value), (value) => yaxis.c2p(value)];
  cell.tried.replaceChildren(...traces.map((trace) => pathOf(trace, toX, toY)));
}
