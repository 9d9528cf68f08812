// The page around the engine: runs in slices, so that the curves are drawn meanwhile.
"use strict";

const WINDOW = 1000;
const POINTS = 200;
const byId = (id) => document.getElementById(id);
const pause = () => new Promise((resolve) => setTimeout(resolve));

// Sums of a lane on a grid of steps, one array per replication
function sums(lane) {
  const [R, every] = [lane.rows.length, Math.max(1, Math.floor(lane.steps / POINTS))];
  const grid = [0];
  const found = { earned: [], lost: [], counts: [] };
  const [K, last] = [lane.rows[0].world.arms, lane.step];
  const now = { earned: new Float64Array(R), lost: new Float64Array(R), counts: new Float64Array(R * K) };
  const keep = () => Object.keys(now).forEach((name) => found[name].push(now[name].slice()));
  keep();
  for (let step = 0; step < last; step++) {
    for (let r = 0; r < R; r++) {
      const at = step * R + r;
      now.earned[r] += lane.rewards[at];
      now.lost[r] += lane.best[at] - lane.value[at];
      now.counts[r * K + lane.items[at]] += 1;
    }
    if ((step + 1) % every === 0 || step + 1 === last) {
      grid.push(step + 1);
      keep();
    }
  }
  return { grid, R, K, ...found };
}

// Mean over the replications and the ends of its 95 % confidence interval
function band(values, factor) {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const spread = values.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(values.length - 1, 1);
  return [mean, factor * Math.sqrt(spread)];
}

const CURVES = {
  ctr: (s, i, j, r) => (s.earned[i][r] - s.earned[j][r]) / (s.grid[i] - s.grid[j]),
  pseudo_regret: (s, i, _, r) => s.lost[i][r],
  lead: (s, i, _, r, other) => s.earned[i][r] - other.earned[i][r],
  entropy: (s, i, j, r) => {
    const n = s.grid[i] - s.grid[j];
    let total = 0;
    for (let k = r * s.K; k < (r + 1) * s.K; k++) {
      const p = (s.counts[i][k] - s.counts[j][k]) / n;
      if (p > 0) total -= p * Math.log(p);
    }
    return total / Math.log(Math.min(s.K, WINDOW));
  },
};

function curve(name, s, factor, other, until = Infinity) {
  const out = { x: [], y: [], low: [], high: [] };
  for (let i = 1, j = 0; i < s.grid.length && s.grid[i] <= until; i++) {
    while (s.grid[j + 1] <= s.grid[i] - WINDOW) j++;
    const values = Array.from({ length: s.R }, (_, r) => CURVES[name](s, i, j, r, other));
    const [mean, half] = band(values, factor);
    out.x.push(s.grid[i]);
    out.y.push(mean);
    out.low.push(mean - half);
    out.high.push(mean + half);
  }
  return out;
}

const titleOf = (name, experiment) =>
  ({
    ctr: experiment.rate,
    pseudo_regret: "Cumulative regret",
    entropy: "Selection entropy",
    lead: `Lead in ${experiment.noun}`,
  })[name];

function faded(colour) {
  const parts = colour.slice(1).match(/../g).map((part) => parseInt(part, 16));
  return `rgba(${parts.join()},.18)`;
}

function drawPlot(place, name, experiment, drawn, { until, marked } = {}) {
  const style = getComputedStyle(document.body);
  const traces = drawn.flatMap(({ agent, sums: s, other }) => {
    const { x, y, low, high } = curve(name, s, experiment.factor, other, until);
    const common = { x, legendgroup: agent.label, mode: "lines" };
    const line = { color: agent.colour, width: 2, dash: agent.dash };
    const edge = { ...common, showlegend: false, hoverinfo: "skip", line: { width: 0 } };
    return [
      { ...edge, y: low },
      { ...edge, y: high, fill: "tonexty", fillcolor: faded(agent.colour) },
      { ...common, y, name: agent.label, line },
    ];
  });
  const axis = { gridcolor: "rgba(128,128,128,.2)", zeroline: false, separatethousands: true };
  const level = (y) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: "#D55E00", dash: "dash" } });
  const layout = {
    title: { text: titleOf(name, experiment), font: { size: 15 } },
    margin: { l: 56, r: 12, t: 36, b: 36 },
    height: 320,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: style.color, family: style.fontFamily },
    hovermode: "x unified",
    legend: { orientation: "h", y: -0.28 },
    xaxis: { ...axis, title: { text: "step" }, range: [0, Math.min(until ?? Infinity, experiment.steps)] },
    yaxis: { ...axis, rangemode: name === "entropy" ? "tozero" : "normal" },
    shapes: marked === undefined ? [] : [level(marked)],
    uirevision: "keep",
  };
  return Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true });
}

// Runs some agents to the end; `tick` is called after each slice
async function advance(lanes, steps, tick) {
  const slice = Math.max(1, Math.ceil(steps / 10));
  while (lanes.some((lane) => lane.step < steps)) {
    for (const lane of lanes) {
      lane.advance(slice);
      await pause();
    }
    await tick();
  }
}

const total = (lane) => {
  const R = lane.rows.length;
  const earned = new Float64Array(R);
  lane.rewards.forEach((reward, at) => (earned[at % R] += reward));
  return Array.from(earned);
};

function status(lanes, experiment) {
  const step = Math.min(...lanes.map((lane) => lane.step));
  const done = step === experiment.steps;
  byId("status").textContent = `${done ? "Finished" : "Step"}: ${step.toLocaleString("en")} of ${experiment.steps.toLocaleString("en")} steps`;
}

// Presets

function showPresets() {
  const [choice, place] = [byId("preset"), byId("board")];
  place.className = "grid";
  const plots = ["ctr", "pseudo_regret", "entropy"].map((name) => {
    const element = document.createElement("div");
    element.className = "plot";
    place.append(element);
    return [name, element];
  });
  const table = document.createElement("table");
  place.append(table);
  let [experiment, lanes, turn] = [null, [], 0];

  const draw = () => {
    const drawn = lanes.map((lane, i) => ({ agent: experiment.agents[i], sums: sums(lane) }));
    status(lanes, experiment);
    const rows = drawn.map(({ agent, sums: s }) => {
      const last = s.grid.length - 1;
      const [rate, half] = band(Array.from(s.earned[last], (value) => value / s.grid[last]), experiment.factor);
      return [agent.label, `${rate.toFixed(3)} ± ${half.toFixed(3)}`, rate];
    });
    rows.sort((a, b) => b[2] - a[2]);
    table.replaceChildren(...[["Agent", `${experiment.rate} (95 % CI)`], ...rows].map(([label, rate], i) => {
      const row = document.createElement("tr");
      for (const text of [label, rate]) {
        row.append(Object.assign(document.createElement(i ? "td" : "th"), { textContent: text }));
      }
      return row;
    }));
    return Promise.all(plots.map(([name, element]) => drawPlot(element, name, experiment, drawn)));
  };
  const start = async (agents = experiment.agents.map((_, i) => i)) => {
    const own = ++turn;
    lanes = experiment.agents.map((agent, i) => (agents.includes(i) ? new Bandits.Lane(experiment, agent) : lanes[i]));
    await advance(lanes, experiment.steps, async () => {
      // another run has begun
      if (own !== turn) throw new Error("superseded");
      await draw();
    }).catch((error) => {
      if (error.message !== "superseded") throw error;
    });
  };
  const load = () => {
    const found = EXPERIMENTS[choice.value];
    experiment = structuredClone(found.experiment);
    byId("about").textContent = found.about;
    byId("sliders").replaceChildren(...experiment.agents.flatMap((agent, i) => {
      if (!agent.slider) return [];
      const { name, title, low, high } = agent.slider;
      const label = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { type: "range", min: low, max: high, step: (high - low) / 200 });
      input.value = agent[name];
      input.id = `slider-${i}`;
      label.htmlFor = input.id;
      const value = document.createElement("output");
      const show = () => (value.textContent = Number(input.value).toPrecision(3));
      value.textContent = agent[name];
      input.addEventListener("input", show);
      input.addEventListener("change", () => {
        agent[name] = Number(input.value);
        start(lanes.length ? [i] : undefined);
      });
      const words = document.createElement("span");
      words.innerHTML = title;
      words.prepend(`${agent.label}: `);
      words.append(" ", value);
      label.append(words, input);
      return [label];
    }));
    lanes = [];
    return start();
  };
  choice.addEventListener("change", load);
  byId("run").addEventListener("click", () => start());
  load();
}

// The lesson

function showLesson() {
  const { experiment } = EXPERIMENTS.lesson;
  document.body.classList.add("waiting");
  for (const input of document.querySelectorAll("[data-predict]")) {
    input.addEventListener("input", () => (input.nextElementSibling.textContent = input.value));
  }
  const run = byId("run");
  run.addEventListener("click", async () => {
    run.disabled = true;
    const lanes = experiment.agents.map((agent) => new Bandits.Lane(experiment, agent));
    await advance(lanes, experiment.steps, () => status(lanes, experiment));
    document.body.classList.remove("waiting");
    const all = new Map(lanes.map((lane, i) => [experiment.agents[i].label, { agent: experiment.agents[i], sums: sums(lane), lane }]));
    for (const place of document.querySelectorAll("[data-see]")) {
      const { plots, agents, until, predictions } = JSON.parse(place.dataset.see);
      const chosen = [...all.values()].filter(({ agent }) => !agents.length || agents.includes(agent.label));
      const marked = predictions.map((id) => document.querySelector(`[data-predict="${id}"]`)?.value).find(Boolean);
      for (const name of plots) {
        const element = document.createElement("div");
        element.className = "plot";
        place.append(element);
        // a lead is that of the first agent over the second
        const lead = name === "lead" ? [{ ...all.get(agents[0]), other: all.get(agents[1]).sums }] : chosen;
        await drawPlot(element, name, experiment, lead, { until: until ?? undefined, marked: name === "ctr" && marked ? Number(marked) : undefined });
      }
    }
    document.querySelectorAll("[data-try]").forEach((place) => offerTry(place, experiment));
  });
}

function offerTry(place, experiment) {
  const task = JSON.parse(place.dataset.try);
  const agent = structuredClone(experiment.agents.find(({ label }) => label === task.agent));
  const [label, input, value, button, answer] = ["label", "input", "output", "button", "output"].map((tag) => document.createElement(tag));
  Object.assign(input, { type: "range", min: task.low, max: task.high, step: task.step });
  input.value = task.start;
  value.textContent = input.value;
  button.textContent = "Run";
  input.addEventListener("input", () => (value.textContent = input.value));
  label.append(`${task.parameter} `, input, " ", value, " ");
  button.addEventListener("click", async () => {
    button.disabled = true;
    agent[task.parameter] = Number(input.value);
    const lane = new Bandits.Lane(experiment, agent);
    await advance([lane], experiment.steps, () => {});
    const earned = total(lane);
    const rate = earned.reduce((a, b) => a + b, 0) / earned.length / experiment.steps;
    answer.textContent = ` ${rate.toFixed(4)}: ${rate > task.target ? "reached." : "not yet."}`;
    button.disabled = false;
  });
  place.append(label, button, answer);
}

if (document.body.dataset.kind === "lesson") showLesson();
else showPresets();
