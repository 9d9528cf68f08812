// Names at the ends of lines, or a legend below a plot that is too narrow for them. Joined with panel.js.

// The lines that have a name at their end: label, colour, dash and values.
function namesAtEnds(panel, cell) {
  const ends = cell.figure.layout?.meta?.ends ?? {};
  const { ink } = colours(panel.host);
  return cell.figure.data
    .filter((trace) => !trace.fill && trace.name in ends && !panel.hidden.has(trace.legendgroup))
    .map((trace) => ({
      name: trace.name,
      label: ends[trace.name],
      meta: trace.meta,
      color: trace.meta === "reference" ? ink(0.55) : trace.line.color,
      dash: trace.line.dash,
      x: trace.x,
      y: trace.y,
    }));
}

const LINE = 13; // height of a name in pixels at the usual type size
const LEADER = 14; // from the plot to the names

// How many names fit beside a plot; half of the first and of the last stand out of it.
const rowsOf = (height) => 1 + Math.floor((height - 54 * scale()) / (LINE * scale()));

// The names that fit beside a plot: if not all, those of lines that end inside it, without the previous run, and then
// without references.
function chosenOf(names, axis, height) {
  const most = rowsOf(height);
  if (names.length <= most) return names;
  // Plotly's ranges of a logarithmic axis are exponents
  const [low, high] = axis?.type === "log" ? (axis.range ?? []).map((at) => 10 ** at) : (axis?.range ?? []);
  const ends = ({ y }) => y.findLast(Number.isFinite);
  let kept = high > low ? names.filter((name) => !(ends(name) < low || ends(name) > high)) : names;
  for (const less of ["before", "reference"]) {
    if (kept.length > most) kept = kept.filter(({ meta }) => meta !== less);
  }
  return kept;
}

// The width of the column of names beside a plot; 0 where a legend below the plot leaves it more room.
function columnOf(names, width, height) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${11 * scale()}px ${getComputedStyle(document.body).fontFamily}`;
  const longest = Math.max(...names.map(({ label }) => context.measureText(label).width));
  const fits = width >= 340 * scale() && names.length <= rowsOf(height);
  return fits ? Math.ceil(Math.min(longest + 4, 0.3 * width) + LEADER * scale()) : 0;
}

// The positions nearest to the wanted ones (ascending) at which neighbours are a line apart, within the plot.
function spread(wanted, gap, height) {
  const blocks = [];
  for (const [i, y] of wanted.entries()) {
    blocks.push({ sum: y - i * gap, size: 1 });
    for (;;) {
      const [above, below] = blocks.slice(-2);
      if (!below || above.sum / above.size <= below.sum / below.size) break;
      blocks.splice(-2, 2, { sum: above.sum + below.sum, size: above.size + below.size });
    }
  }
  const last = Math.max(height - (wanted.length - 1) * gap, 0);
  const starts = blocks.flatMap(({ sum, size }) => Array(size).fill(Math.min(Math.max(sum / size, 0), last)));
  return starts.map((start, i) => start + i * gap);
}

function makeEnds(frame) {
  const leaders = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const column = document.createElement("div");
  leaders.setAttribute("class", "bp-leaders");
  column.className = "bp-ends";
  leaders.setAttribute("aria-hidden", "true");
  column.setAttribute("aria-hidden", "true"); // the picture has a text, and the tiles have the names
  frame.append(leaders, column);
  return { leaders, column };
}

// Writes each name beside the last visible point of its line, or of the one that is tried instead, and joins the two.
function drawEnds(panel, cell, names, tried = triedTraces(panel, cell)) {
  const { leaders, column } = cell.ends;
  const full = cell.plot._fullLayout;
  if (!names.length || !full?.xaxis) {
    leaders.replaceChildren();
    column.replaceChildren();
    return;
  }
  const { xaxis, yaxis } = full;
  const found = [];
  for (const drawn of names) {
    const now = drawn.meta !== "reference" && tried.find(({ fill, name }) => !fill && name === drawn.name);
    const name = now ? { ...drawn, x: now.x, y: now.y } : drawn;
    for (let i = name.x.length - 1; i >= 0; i--) {
      const [x, y] = [xaxis.c2p(name.x[i]), yaxis.c2p(name.y[i])];
      if (!Number.isFinite(y) || x < -1 || x > xaxis._length + 1) continue;
      if (y >= -1 && y <= yaxis._length + 1) found.push({ ...name, px: x, py: y });
      break;
    }
  }
  found.sort((one, other) => one.py - other.py);
  const gap = LINE * scale();
  const places = spread(found.map(({ py }) => py), gap, yaxis._length);
  const edge = xaxis._offset + xaxis._length;
  leaders.replaceChildren(
    ...found.map(({ px, py, color }, i) => {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
      const [x, y] = [xaxis._offset + px, yaxis._offset + py];
      const end = yaxis._offset + places[i];
      const points = [[x, y], [edge + 3, y], [edge + (LEADER - 5) * scale(), end], [edge + (LEADER - 2) * scale(), end]];
      line.setAttribute("points", points.map((point) => point.join()).join(" "));
      line.setAttribute("stroke", color);
      if (edge - x > 2 * LEADER * scale()) line.setAttribute("stroke-dasharray", "1 6"); // not taken for the curve
      return line;
    }),
  );
  column.replaceChildren(
    ...found.map(({ label }, i) => {
      const text = document.createElement("span");
      text.textContent = text.title = label;
      text.style.left = `${edge + LEADER * scale()}px`;
      text.style.top = `${yaxis._offset + places[i]}px`;
      return text;
    }),
  );
}

// The legend below a plot that is too narrow for names at the ends.
function drawLines(cell, names) {
  cell.lines.replaceChildren(
    ...names.map(({ label, color, dash }) => {
      const item = document.createElement("li");
      const swatch = document.createElement("i");
      swatch.style.borderTop = `0.15rem ${borderOf(dash)} ${color}`;
      item.append(swatch, label);
      return item;
    }),
  );
  cell.lines.hidden = names.length === 0;
}

const borderOf = (dash) => (dash === "solid" ? "solid" : dash === "dot" ? "dotted" : "dashed");
