// Streamlit calls the default export once per update, with the same parent element as long as the panel is
// mounted: everything that has to outlive a tick hangs on that element.
const panels = new WeakMap();
let plotly;

// A finger has to scroll the page, so it cannot also draw zoom boxes; a tap still shows values.
const touch = matchMedia("(pointer: coarse)").matches;

function loadPlotly(src) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  // The page's own entry script tells where the app lives, behind any base path or proxy and on any page.
  const entry = document.querySelector('script[src*="static/js/"]');
  const root = entry ? entry.src.replace(/static\/js\/.*$/, "") : `${location.origin}/`;
  plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = root + src;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      plotly = undefined;
      script.remove();
      reject(new Error("plotly.min.js did not load"));
    };
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

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function merge(base, over) {
  const out = { ...base };
  for (const [name, value] of Object.entries(over ?? {})) {
    out[name] = isObject(value) && isObject(out[name]) ? merge(out[name], value) : value;
  }
  return out;
}

function colours(host) {
  const style = getComputedStyle(host);
  const rgb = style.color.match(/[\d.]+/g).slice(0, 3).join(",");
  const paper = style.getPropertyValue("--st-background-color").trim();
  return { paper, ink: (alpha) => `rgba(${rgb},${alpha})` };
}

function layoutOf(figure, width, height, host) {
  // A copy: Plotly writes the visitor's zoom into the layout that it is given.
  const { title, meta, ...own } = structuredClone(figure.layout ?? {});
  const { paper, ink } = colours(host);
  const axis = {
    automargin: false,
    color: ink(0.75),
    gridcolor: ink(0.1),
    linecolor: ink(0.25),
    zeroline: false,
    tickfont: { size: 12 },
    title: { font: { size: 12 }, standoff: 8 },
  };
  const base = {
    uirevision: "keep",
    font: { family: getComputedStyle(host).fontFamily, size: 12, color: ink(0.85) },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    // Fixed, so that the axes stay put when the numbers on them grow wider.
    margin: { l: own.yaxis?.title ? 64 : 48, r: 16, t: 10, b: own.xaxis?.title ? 44 : 28 },
    hovermode: "x unified",
    dragmode: touch ? false : "zoom",
    hoverlabel: { bgcolor: paper, bordercolor: ink(0.2), font: { size: 12, color: ink(1) }, namelength: 28 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: ink(0.45), activecolor: ink(0.9) },
    xaxis: {
      ...axis,
      showgrid: false,
      showline: true,
      ticks: "outside",
      ticklen: 4,
      hoverformat: ",.7~r",
      showspikes: true,
      spikemode: "across",
      spikesnap: "hovered data",
      spikethickness: 1,
      spikedash: "solid",
      spikecolor: ink(0.3),
    },
    yaxis: { ...axis, nticks: 6, hoverformat: ",.5~r" },
  };
  return { ...merge(base, own), width, height, showlegend: false };
}

function tracesOf(figure, host) {
  const { ink } = colours(host);
  return figure.data.map((trace) => {
    if (trace.meta === "reference") {
      return merge({ mode: "lines", line: { color: ink(0.55), width: 1.25, dash: "dash" } }, trace);
    }
    return trace.fill ? { hoverinfo: "skip", mode: "lines", showlegend: false, ...trace } : { ...trace };
  });
}

// The saved picture stands alone: it gets the title, the legend and the background that the page supplies.
function savePicture(plot, host) {
  const title = plot.previousElementSibling.querySelector(".bp-title").textContent;
  const { layout } = plot;
  const paper_bgcolor = colours(host).paper;
  const margin = { ...layout.margin, t: 56, r: 24 };
  window.Plotly.downloadImage(
    {
      data: plot.data,
      layout: { ...layout, margin, title: { text: title }, showlegend: true, paper_bgcolor },
    },
    { format: "png", width: 900, height: 500, scale: 2, filename: title || "chart" },
  );
}

function configOf(plot, host) {
  const picture = {
    name: "picture",
    title: "Save as picture",
    icon: window.Plotly.Icons.camera,
    click: () => savePicture(plot, host),
  };
  return {
    displayModeBar: touch ? false : "hover",
    modeBarButtons: [[picture, "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    displaylogo: false,
    // Without these two, Plotly offers to upload the chart to its maker's cloud.
    showSendToCloud: false,
    plotlyServerURL: "",
    responsive: false,
  };
}

const hasPoints = (figure) => figure.data?.some((trace) => (trace.y ?? trace.x ?? trace.z)?.length > 0);

function makeCell(panel) {
  const figure = document.createElement("figure");
  figure.className = "bp-cell";
  const tags = ["figcaption", "div", "div", "div"];
  const [caption, title, note, plot] = tags.map((tag) => document.createElement(tag));
  title.className = "bp-title";
  note.className = "bp-note";
  plot.className = "bp-plot";
  plot.dataset.wait = "";
  plot.setAttribute("role", "img");
  caption.append(title, note);
  figure.append(caption, plot);
  panel.grid.append(figure);
  panel.sight.observe(plot);
  return { title, note, plot, visible: false };
}

function dropCell(panel, cell) {
  panel.sight.unobserve(cell.plot);
  window.Plotly?.purge(cell.plot);
  cell.plot.parentElement.remove();
}

// What a plot looks like depends on its figure, its size and the theme, and on nothing else.
function signature(panel, cell) {
  const { paper, ink } = colours(panel.host);
  return [cell.id, cell.plot.clientWidth, panel.height, paper, ink(1)].join();
}

function draw(panel, cell) {
  cell.drawn = signature(panel, cell);
  if (!hasPoints(cell.figure)) {
    cell.plot.dataset.wait = cell.figure.layout?.annotations?.[0]?.text ?? "";
    return;
  }
  // One object for the plot's lifetime: for Plotly another click handler is another configuration, and
  // then it starts the plot anew and forgets the zoom.
  cell.config ??= configOf(cell.plot, panel.host);
  const layout = layoutOf(cell.figure, cell.plot.clientWidth, panel.height, panel.host);
  try {
    window.Plotly.react(cell.plot, tracesOf(cell.figure, panel.host), layout, cell.config);
    delete cell.plot.dataset.wait;
  } catch (error) {
    console.error(error); // one faulty figure must not keep the others from being drawn
    cell.plot.dataset.wait = "This chart could not be drawn.";
  }
}

const stale = (panel, cell) => cell.plot.clientWidth > 0 && cell.drawn !== signature(panel, cell);

async function refresh(panel) {
  if (panel.busy) return;
  panel.busy = true;
  try {
    await loadPlotly(panel.src);
    for (;;) {
      // One plot per frame keeps the page answering, and a hidden tab, which gets no frames, draws nothing.
      await new Promise(requestAnimationFrame);
      const cell = panel.cells.find((one) => one.visible && stale(panel, one));
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

function makePanel(parent) {
  const host = document.createElement("div");
  host.className = "bp-live";
  const grid = document.createElement("div");
  grid.className = "bp-grid";
  host.append(grid);
  parent.append(host);

  const panel = { host, grid, cells: [], busy: false };
  panel.sight = new IntersectionObserver(
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
    timer = setTimeout(() => refresh(panel), 80);
  });
  resize.observe(host);
  const print = () => {
    if (window.Plotly) panel.cells.filter((cell) => stale(panel, cell)).forEach((cell) => draw(panel, cell));
  };
  addEventListener("beforeprint", print);

  panel.remove = () => {
    removeEventListener("beforeprint", print);
    clearTimeout(timer);
    resize.disconnect();
    panel.cells.splice(0).forEach((cell) => dropCell(panel, cell));
    panel.sight.disconnect();
    host.remove();
    panels.delete(parent);
  };
  panels.set(parent, panel);
  return panel;
}

export default function ({ parentElement, data }) {
  const panel = panels.get(parentElement) ?? makePanel(parentElement);
  const { src, height, cells } = decode(data);
  panel.src = src;
  panel.height = height;
  while (panel.cells.length > cells.length) dropCell(panel, panel.cells.pop());
  while (panel.cells.length < cells.length) panel.cells.push(makeCell(panel));
  cells.forEach(({ id, alt, figure }, index) => {
    const cell = panel.cells[index];
    const { title, meta } = figure.layout ?? {};
    cell.title.textContent = title?.text ?? title ?? "";
    cell.note.textContent = meta?.note ?? "";
    cell.plot.setAttribute("aria-label", alt);
    cell.plot.style.height = `${height}px`;
    cell.id = id;
    cell.figure = figure;
  });
  refresh(panel);
  return panel.remove;
}
