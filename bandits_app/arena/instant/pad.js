// A pad for two parameters at once: its background fills with what has been tried. Joined with slider.js.
const COLUMNS = 16;
const ROWS = 12;

function makePad(key, x, y, { begin, ask, release, rest }) {
  const xs = positionsOf(x.input, COLUMNS);
  const ys = positionsOf(y.input, ROWS);
  const pad = element("div", "bi-pad");
  const field = element("div", "bi-field");
  const cross = element("i", "bi-cross");
  const names = element("div", "bi-names", `→ ${x.title}, ↑ ${y.title}`);
  field.tabIndex = 0;
  field.setAttribute("role", "application");
  field.setAttribute("aria-label", `${x.title} and ${y.title} of ${x.label}. Arrow keys try values, Enter runs them.`);
  field.style.aspectRatio = `${xs.length} / ${ys.length}`;
  field.append(cross);
  pad.append(field, names);

  const nearest = (all, value) => all.reduce((a, b, i) => (Math.abs(b - value) < Math.abs(all[a] - value) ? i : a), 0);
  const start = `${x.input.value},${y.input.value}`;
  let cell = [nearest(xs, Number(x.input.value)), nearest(ys, Number(y.input.value))];
  const positionAt = ([i, j]) => `${xs[i]},${ys[j]}`;
  const valuesOf = (position) => {
    const [a, b] = position.split(",").map(Number);
    return [x.valueAt(a), y.valueAt(b)];
  };

  const subject = {
    pad: true,
    key,
    label: x.label,
    title: `${x.title} and ${y.title}`,
    tried: new Map(),
    paramsAt: (position) => {
      const [a, b] = valuesOf(position);
      return { [x.name]: a, [y.name]: b };
    },
    valuesAt: (position) => {
      const [a, b] = valuesOf(position);
      return { [x.key]: a, [y.key]: b };
    },
    draw: () => {
      const rates = [...subject.tried.values()].map(({ rate }) => rate);
      const [low, high] = [Math.min(...rates), Math.max(...rates)];
      for (const old of field.querySelectorAll(".bi-cell")) old.remove();
      for (const [position, { rate }] of subject.tried) {
        const [a, b] = position.split(",").map(Number);
        const dot = element("i", rate === high ? "bi-cell bi-best" : "bi-cell");
        place(dot, [nearest(xs, a), nearest(ys, b)]);
        dot.style.background = shade(high > low ? (rate - low) / (high - low) : 1);
        field.prepend(dot);
      }
    },
  };

  function place(node, [i, j]) {
    node.style.left = `${(100 * i) / xs.length}%`;
    node.style.bottom = `${(100 * j) / ys.length}%`;
    node.style.width = `${100 / xs.length}%`;
    node.style.height = `${100 / ys.length}%`;
  }

  let resting;
  const moveTo = (next) => {
    const [i, j] = [Math.min(Math.max(next[0], 0), xs.length - 1), Math.min(Math.max(next[1], 0), ys.length - 1)];
    cell = [i, j];
    place(cross, cell);
    begin(subject, start);
    ask(subject, positionAt(cell));
    clearTimeout(resting);
    resting = setTimeout(() => ask(subject, positionAt(cell), { rest: true }), rest);
  };
  const cellOf = ({ clientX, clientY }) => {
    const box = field.getBoundingClientRect();
    const [across, up] = [(clientX - box.left) / box.width, (box.bottom - clientY) / box.height];
    return [Math.floor(across * xs.length), Math.floor(up * ys.length)];
  };
  const done = () => {
    clearTimeout(resting);
    release(subject, positionAt(cell));
  };
  field.addEventListener("pointerdown", (event) => {
    field.setPointerCapture(event.pointerId);
    moveTo(cellOf(event));
  });
  field.addEventListener("pointermove", (event) => {
    const next = cellOf(event);
    if (field.hasPointerCapture(event.pointerId) && String(next) !== String(cell)) moveTo(next);
  });
  field.addEventListener("pointerup", done);
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") done();
    else if (event.key in steps) moveTo(cell.map((at, axis) => at + steps[event.key][axis]));
    else return;
    event.preventDefault();
  });
  place(cross, cell);
  const positions = ys.flatMap((_, j) => xs.map((__, i) => positionAt([i, j])));
  return { element: pad, subject, positions, here: () => start };
}
