// The first plot in small, in sight while a slider moves: on a phone the sidebar hides the plots. Joined with panel.js.

const LINGER = 2500; // milliseconds after the release
const [WIDE, HIGH] = [320, 110]; // of its coordinates

// Whether the first plot is on the screen, and nothing lies over it.
function inSight({ cells, host }) {
  const box = cells[0]?.plot.getBoundingClientRect();
  if (!box?.width) return true; // there is nothing to show
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  return host.contains(document.elementFromPoint(x, y));
}

function makePeek(panel) {
  const [place, words, low, high] = ["div", "div", "span", "span"].map((tag) => document.createElement(tag));
  const svg = document.createElementNS(SVG, "svg");
  place.className = "bp-peek";
  place.setAttribute("aria-hidden", "true"); // the strip below the slider states what is tried
  svg.setAttribute("viewBox", `0 0 ${WIDE} ${HIGH}`);
  svg.setAttribute("preserveAspectRatio", "none");
  place.append(words, svg, high, low);
  const { paper, ink } = colours(panel.host);
  Object.assign(place.style, { background: paper, color: ink(1), fontFamily: getComputedStyle(panel.host).fontFamily });
  document.body.append(place); // above the sidebar
  return { place, words, svg, low, high, x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
}

// Away from the slider that is moved.
function placePeek({ place }, moved) {
  const height = place.offsetHeight;
  place.classList.toggle("bp-below", moved !== undefined && moved < height + 24);
}

function drawPeek(panel) {
  const { preview, cells } = panel;
  const figure = cells[0]?.figure;
  if (!figure || !preview.hidden) return;
  panel.peek ??= makePeek(panel);
  const { peek } = panel;
  const { label, tile } = preview;
  const tried = triedTraces(panel, cells[0]);
  const others = tracesOf(panel, figure).filter((one) => one.visible && !one.fill && one.mode === "lines");
  const log = figure.layout?.xaxis?.type === "log";
  const flat = { x: log ? Math.log10 : Number, y: Number };
  for (const axis of ["x", "y"]) {
    for (const value of [...others, ...tried].flatMap((trace) => Array.from(trace[axis], flat[axis]))) {
      if (!Number.isFinite(value)) continue;
      peek[axis] = [Math.min(peek[axis][0], value), Math.max(peek[axis][1], value)];
    }
  }
  const share = ([first, last], value) => (value - first) / (last - first || 1);
  const toX = (value) => WIDE * share(peek.x, flat.x(value));
  const toY = (value) => HIGH * (1 - share(peek.y, value));
  const faint = others.map((trace) => pathOf(trace, toX, toY));
  for (const path of faint) path.setAttribute("opacity", FAINT);
  peek.svg.replaceChildren(...faint, ...tried.map((trace) => pathOf(trace, toX, toY)));
  const name = document.createElement("b");
  name.textContent = cells[0].title.textContent;
  peek.words.replaceChildren(name, ` ${label} ${tile.rate}${tile.spread} · ${tile.detail}`);
  [peek.low.textContent, peek.high.textContent] = peek.y.map((value) => value.toPrecision(2));
  placePeek(peek, preview.moved);
}

function dropPeek(panel) {
  clearTimeout(panel.peek?.timer);
  panel.peek?.place.remove();
  panel.peek = null;
}

const dropPeekSoon = (panel) => {
  if (panel.peek) panel.peek.timer = setTimeout(() => dropPeek(panel), LINGER);
};
