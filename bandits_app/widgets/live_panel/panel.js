// Streamlit calls the default export once per update, with the same parent element as long as the panel is
// mounted: everything that has to outlive a tick hangs on that element.
const panels = new WeakMap();
let plotly;

function loadPlotly(src) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  // The address of the page's own entry script gives the root of the app, behind any base path or proxy.
  const entry = document.querySelector('script[src*="static/js/"]');
  const root = entry ? entry.src.replace(/static\/js\/.*$/, "") : `${location.origin}/`;
  plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = root + src;
    const fail = () => {
      plotly = undefined;
      script.remove();
      reject(new Error("plotly.min.js did not load"));
    };
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : fail()); // another answer, such as a page
    script.onerror = fail;
    document.head.append(script);
  });
  return plotly;
}

function decode(bytes) {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  // A copy, because a Float32Array has to begin at a multiple of four bytes.
  const floats = new Float32Array(bytes.slice(4 + size).buffer);
  return JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)), (_, value) => {
    if (!value?.f4) return value;
    const [first, count, columns] = value.f4;
    const flat = floats.subarray(first, first + count);
    if (!columns) return flat;
    const rows = { length: count / columns };
    return Array.from(rows, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
  });
}

const unbroken = (text) => text.replaceAll(" %", "\u00a0%"); // no line begins with a percent sign

// The plots of a run take the rest of the window: all are in sight at once.
const LEAST = 280; // pixels for all plots; with less the page scrolls

function fit(panel) {
  const { host } = panel;
  const scroller = host.closest('[data-testid="stMain"]');
  const top = host.getBoundingClientRect().top + (scroller?.scrollTop ?? 0);
  const room = Math.floor(innerHeight - top - 12);
  panel.filled = panel.fill && innerWidth >= 700 && room - panel.board.offsetHeight >= LEAST;
  host.classList.toggle("bp-fill", panel.filled);
  host.classList.toggle("bp-alone", panel.fill === "alone");
  host.style.height = panel.filled ? `${room}px` : "";
  panel.grid.style.gridTemplateRows = panel.filled ? `repeat(${Math.ceil(panel.cells.length / 2)}, minmax(0, 1fr))` : "";
}

// A saved picture is used without the page: it gets the title, the legend, the background, and a font that is there.
function picture(cell, host) {
  const { layout, data } = cell.plot;
  const margin = { ...layout.margin, t: 72, r: 24 };
  const title = { text: cell.title.textContent, x: 0, xref: "paper", y: 1, yref: "container", yanchor: "top", pad: { t: 14 } };
  const font = { ...layout.font, family: "Arial, sans-serif" };
  return { data, layout: { ...layout, margin, title, font, showlegend: true, paper_bgcolor: colours(host).paper } };
}

const PICTURE = { width: 900, height: 500 };

function savePicture(cell, host, format) {
  const options = { ...PICTURE, format, scale: format === "svg" ? 1 : 2, filename: cell.title.textContent || "chart" };
  window.Plotly.downloadImage(picture(cell, host), options);
}

// All plots that are drawn, two in a row, as one PNG; null without any.
async function wholePicture(panel) {
  const drawn = panel.cells.filter(({ plot }) => plot.dataset.wait === undefined);
  if (!drawn.length) return null;
  const columns = Math.min(drawn.length, 2);
  const { width, height } = PICTURE;
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: columns * width, height: Math.ceil(drawn.length / columns) * height });
  const context = canvas.getContext("2d");
  context.fillStyle = colours(panel.host).paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const [i, cell] of drawn.entries()) {
    const image = new Image();
    image.src = await window.Plotly.toImage(picture(cell, panel.host), { ...PICTURE, format: "png" });
    await image.decode();
    context.drawImage(image, (i % columns) * width, Math.floor(i / columns) * height);
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

const CONFIG = {
  displayModeBar: true, // hidden; the menu of the plot presses its buttons
  modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
  displaylogo: false,
  // Without these two, Plotly offers to upload the chart to its own cloud service.
  showSendToCloud: false,
  plotlyServerURL: "",
  responsive: false,
};

const hasPoints = (figure) => figure.data?.some((trace) => (trace.y ?? trace.x ?? trace.z)?.length > 0);

function makeCell(panel) {
  const figure = document.createElement("figure");
  figure.className = "bp-cell";
  const tags = ["figcaption", "div", "div", "div", "div", "div", "ul"];
  const [caption, title, note, frame, plot, more, lines] = tags.map((tag) => document.createElement(tag));
  title.className = "bp-title";
  note.className = "bp-note";
  plot.className = "bp-plot";
  plot.dataset.wait = "";
  plot.setAttribute("role", "group"); // not an image: points can be pressed
  more.className = "bp-corner";
  frame.className = "bp-frame";
  lines.className = "bp-lines";
  caption.append(title, note, more);
  frame.append(plot);
  figure.append(caption, frame, lines);
  panel.grid.append(figure);
  panel.observer.observe(plot);
  const over = { ends: makeEnds(frame), tried: makeTried(frame) };
  const cell = { figureElement: figure, title, note: makeNote(note), plot, lines, ...over, visible: false };
  cell.menu = makeMenu(more, plot, (format) => savePicture(cell, panel.host, format));
  return cell;
}

function dropCell(panel, cell) {
  cell.menu.close();
  panel.observer.unobserve(cell.plot);
  window.Plotly?.purge(cell.plot);
  cell.figureElement.remove();
}

// A plot is redrawn when its signature changes: figure, size, theme or hidden agents.
function signature(panel, cell) {
  const { paper, ink } = colours(panel.host);
  const { clientWidth, clientHeight } = cell.plot;
  const height = panel.filled ? clientHeight : panel.height;
  const shown = drawnPart(panel, cell);
  return [cell.id, clientWidth, height, scale(), paper, ink(1), shown, [...panel.hidden].sort()].join();
}

function draw(panel, cell) {
  cell.drawn = signature(panel, cell);
  if (!hasPoints(cell.figure)) {
    cell.plot.dataset.wait = cell.figure.layout?.annotations?.[0]?.text ?? "";
    cell.names = [];
    drawEnds(panel, cell, cell.names);
    updateMenu(cell.menu);
    return;
  }
  const [named, width] = [namesAtEnds(panel, cell), cell.plot.clientWidth];
  const names = chosenOf(named, cell.figure.layout?.yaxis, cell.plot.clientHeight);
  const endWidth = names.length ? columnOf(names, width, cell.plot.clientHeight) : 0;
  // In a low plot the tiles are the legend.
  drawLines(cell, panel.filled ? [] : endWidth ? named.filter((name) => !names.includes(name)) : named);
  const height = panel.filled ? cell.plot.clientHeight : panel.height * scale();
  const layout = layoutOf(panel, cell.figure, width, height, endWidth);
  try {
    // Always the same configuration: given another object, Plotly recreates the plot and loses the zoom.
    const traces = tracesOf(panel, cell.figure);
    window.Plotly.react(cell.plot, withPreview(panel, cell, traces, layout), layout, CONFIG);
    drawTried(cell, panel.preview && !panel.preview.rest ? triedTraces(panel, cell) : []);
    delete cell.plot.dataset.wait;
    for (const svg of cell.plot.querySelectorAll("svg.main-svg")) svg.setAttribute("aria-hidden", "true");
    cell.names = endWidth ? names : [];
    drawEnds(panel, cell, cell.names);
    if (!cell.follows) {
      cell.follows = true;
      cell.plot.on("plotly_relayout", () => {
        drawEnds(panel, cell, cell.names); // zoomed
        updateMenu(cell.menu);
      });
    }
    if (cell.figure.layout?.meta?.pick && !cell.picks) {
      cell.picks = true;
      cell.plot.on("plotly_click", ({ points: [{ x, y }] }) => panel.trigger("picked", [x, y]));
    }
  } catch (error) {
    console.error(error); // the other figures are still drawn
    cell.plot.dataset.wait = "This chart could not be drawn.";
  }
  updateMenu(cell.menu);
}

const stale = (panel, cell) => cell.plot.clientWidth > 0 && cell.drawn !== signature(panel, cell);

// In turn, so that the first plot does not starve the others while a slider moves.
function nextStale(panel) {
  const { cells, turn = 0 } = panel;
  const order = [...cells.slice(turn), ...cells.slice(0, turn)];
  const found = order.find((one) => one.visible && stale(panel, one));
  if (found) panel.turn = (cells.indexOf(found) + 1) % cells.length;
  return found;
}

async function refresh(panel) {
  if (panel.busy) return;
  panel.busy = true;
  try {
    await loadPlotly(panel.src);
    for (;;) {
      // One plot per frame keeps the page responsive; a hidden tab gets no frames and draws nothing.
      await new Promise(requestAnimationFrame);
      const cell = nextStale(panel);
      if (!cell) break;
      draw(panel, cell);
    }
  } catch (error) {
    console.error(error);
    if (!window.Plotly) {
      for (const { plot } of panel.cells) plot.dataset.wait = "The charts did not load. Reload the page.";
    }
  } finally {
    panel.busy = false;
  }
}

function makeTile(panel, label) {
  const item = document.createElement("li");
  const [tile, only] = ["button", "button"].map((tag) => document.createElement(tag));
  const [name, rate, detail] = ["b", "span", "span"].map((tag) => document.createElement(tag));
  const [swatch, text, mean, spread] = ["i", "span", "span", "small"].map((tag) => document.createElement(tag));
  tile.type = only.type = "button";
  tile.className = "bp-tile";
  only.className = "bp-only";
  rate.className = "bp-rate";
  detail.className = "bp-detail";
  name.append(swatch, text);
  rate.append(mean, spread);
  tile.append(name, rate, detail);
  item.append(tile, only);
  tile.addEventListener("click", () => {
    if (!panel.hidden.delete(label)) panel.hidden.add(label);
    applyVisibility(panel);
  });
  only.addEventListener("click", () => {
    const others = [...panel.tiles.keys()].filter((other) => other !== label);
    const alone = others.length > 0 && others.every((other) => panel.hidden.has(other));
    panel.hidden = new Set(alone ? [] : others);
    applyVisibility(panel);
  });
  return { item, tile, only, swatch, text, mean, spread, detail };
}

// The tiles are updated at once, the plots after them.
function applyVisibility(panel) {
  for (const [label, { item, tile, only }] of panel.tiles) {
    const shown = !panel.hidden.has(label);
    const alone = shown && panel.tiles.size > 1 && panel.hidden.size === panel.tiles.size - 1;
    item.classList.toggle("bp-off", !shown);
    tile.setAttribute("aria-pressed", String(shown));
    tile.title = (shown ? `Hide ${label} in all plots` : `Show ${label} again`) + (tile.dataset.more ?? "");
    only.textContent = alone ? "all" : "only";
    only.setAttribute("aria-label", alone ? "Show all agents" : `Show only ${label}`);
  }
  refresh(panel);
}

function drawLegend(panel, legend) {
  const labels = legend.map(({ label }) => label);
  for (const [label, { item }] of panel.tiles) {
    if (labels.includes(label)) continue;
    item.remove();
    panel.tiles.delete(label);
    panel.hidden.delete(label);
  }
  for (const [place, { label, name, color, dash, rate, spread, detail, more }] of legend.entries()) {
    if (!panel.tiles.has(label)) panel.tiles.set(label, makeTile(panel, label));
    const tile = panel.tiles.get(label);
    tile.item.style.setProperty("--look", color);
    tile.swatch.style.borderTopStyle = borderOf(dash);
    tile.text.textContent = name ?? label;
    tile.mean.textContent = rate;
    tile.spread.textContent = spread;
    tile.detail.textContent = detail;
    tile.tile.dataset.more = more ? `. ${more}` : "";
    // Moved only when ranks change: a moved button loses the keyboard focus.
    if (panel.board.children[place] !== tile.item) panel.board.insertBefore(tile.item, panel.board.children[place]);
  }
  panel.board.hidden = legend.length === 0;
}

function makePanel(parent) {
  const host = document.createElement("div");
  host.className = "bp-live";
  const grid = document.createElement("div");
  grid.className = "bp-grid";
  const board = document.createElement("ol");
  board.className = "bp-board";
  board.setAttribute("aria-label", "Leaderboard, best first. Select an agent to hide or show it in all plots.");
  const note = document.createElement("div");
  note.className = "bp-note bp-legend-note bp-anchor";
  host.append(note, board, grid);
  parent.append(host);

  const panel = { host, grid, board, tiles: new Map(), hidden: new Set(), cells: [], busy: false };
  panel.note = makeNote(note);
  panel.observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const cell = panel.cells.find(({ plot }) => plot === target);
        if (cell) cell.visible = isIntersecting;
      }
      refresh(panel);
    },
    { rootMargin: "200px" },
  );
  let timer;
  const resize = new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      fit(panel);
      refresh(panel);
    }, 80);
  });
  resize.observe(host);
  const page = host.closest('[data-testid="stMainBlockContainer"]');
  if (page) resize.observe(page); // what is above the panel may grow
  const refit = () => {
    fit(panel);
    refresh(panel);
  };
  addEventListener("resize", refit);
  const print = () => {
    if (window.Plotly) panel.cells.filter((cell) => stale(panel, cell)).forEach((cell) => draw(panel, cell));
  };
  addEventListener("beforeprint", print);

  // another component asks for the plots as a picture
  const asked = ({ detail }) => (detail.picture ??= wholePicture(panel));
  document.addEventListener("bandits-picture", asked);

  const unfollow = followPreviews(panel);
  panel.remove = () => {
    unfollow();
    document.removeEventListener("bandits-picture", asked);
    dropPeek(panel);
    removeEventListener("beforeprint", print);
    removeEventListener("resize", refit);
    clearTimeout(timer);
    resize.disconnect();
    panel.cells.splice(0).forEach((cell) => dropCell(panel, cell));
    panel.observer.disconnect();
    host.remove();
    panels.delete(parent);
  };
  panels.set(parent, panel);
  return panel;
}

export default function ({ parentElement, data, setTriggerValue }) {
  const panel = panels.get(parentElement) ?? makePanel(parentElement);
  panel.trigger = setTriggerValue;
  const { src, height, legend, caption, note, axis, fill, cells, final } = decode(data);
  Object.assign(panel, { src, height, axis, fill, legend });
  panel.host.dataset.final = final; // nothing more will follow
  if (panel.preview?.released) final ? endPreview(panel) : stateInstead(); // the run states its own
  writeNote(panel.note, caption, note, "the numbers of the agents");
  drawLegend(panel, legend);
  while (panel.cells.length > cells.length) dropCell(panel, panel.cells.pop());
  while (panel.cells.length < cells.length) panel.cells.push(makeCell(panel));
  cells.forEach(({ id, alt, figure }, index) => {
    const cell = panel.cells[index];
    const { title, meta } = figure.layout ?? {};
    cell.title.textContent = title?.text ?? title ?? "";
    writeNote(cell.note, meta?.caption ?? "", meta?.note ?? "", cell.title.textContent);
    cell.plot.setAttribute("aria-label", alt);
    cell.plot.style.height = `${height / 16}rem`;
    nameMenu(cell.menu, cell.title.textContent);
    cell.id = id;
    cell.figure = figure;
  });
  drawTile(panel);
  fit(panel);
  applyVisibility(panel);
  return panel.remove;
}
