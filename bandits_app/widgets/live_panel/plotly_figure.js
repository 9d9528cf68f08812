// From a figure's data to what Plotly draws: colours of the theme, sizes, axes. Joined with panel.js.

// A finger has to scroll the page, so it cannot also draw zoom boxes; a tap still shows values.
const touch = matchMedia("(pointer: coarse)").matches;

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

// Plots grow with the page's type (presentation mode, browser settings).
const scale = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

function layoutOf(panel, figure, width, height, endWidth) {
  // A copy: Plotly writes the zoom into the layout that it is given.
  const { title, meta, ...own } = structuredClone(figure.layout ?? {});
  const { host } = panel;
  // A low plot gives its height to the curves.
  if (panel.filled && height < 130 * scale()) delete own.xaxis?.title;
  const { paper, ink } = colours(host);
  const size = Math.round(12 * scale());
  const scaled = (pixels) => Math.round(pixels * scale());
  const axis = {
    automargin: false,
    color: ink(0.75),
    gridcolor: ink(0.1),
    linecolor: ink(0.25),
    zeroline: false,
    tickfont: { size },
    title: { font: { size }, standoff: 8 },
    ...panel.axis,
  };
  const base = {
    uirevision: "keep",
    font: { family: getComputedStyle(host).fontFamily, size, color: ink(0.85) },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    // Fixed, so that the axes stay put when the numbers on them grow wider.
    margin: {
      l: scaled(own.yaxis?.title ? 64 : 48),
      r: Math.max(scaled(22), endWidth),
      t: 10,
      b: scaled(own.xaxis?.title ? 44 : 28),
    },
    hovermode: "x unified",
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size } },
    dragmode: touch ? false : "zoom",
    hoverlabel: { bgcolor: paper, bordercolor: ink(0.2), font: { size, color: ink(1) }, namelength: 36 },
    xaxis: {
      ...axis,
      showgrid: false,
      showline: true,
      ticks: "outside",
      ticklen: 4,
      showspikes: true,
      spikemode: "across",
      spikesnap: "hovered data",
      spikethickness: 1,
      spikedash: "solid",
      spikecolor: ink(0.3),
    },
    yaxis: { ...axis, nticks: 6 },
  };
  return { ...merge(base, own), width, height, showlegend: own.showlegend === true };
}

function tracesOf(panel, figure) {
  const { host, hidden } = panel;
  const { ink } = colours(host);
  return figure.data.map((trace) => {
    const width = (trace.line?.width ?? 2) * scale();
    const drawn = { ...trace, line: { ...trace.line, width }, visible: !hidden.has(trace.legendgroup) };
    if (trace.colorbar) {
      const { exponentformat, separatethousands } = panel.axis;
      drawn.colorbar = { exponentformat, separatethousands, ...trace.colorbar };
    }
    if (trace.meta === "reference") return merge(drawn, { line: { color: ink(0.55) } });
    return trace.fill ? { hoverinfo: "skip", mode: "lines", showlegend: false, ...drawn } : drawn;
  });
}
