// The menu of a plot: zoom and saving, in the line of the title. Joined with panel.js.

// What a menu can do, and the hidden button of Plotly that does it: only those keep the zoom while a run goes on.
const ACTIONS = [
  ["Zoom in", '[data-val="in"]'],
  ["Zoom out", '[data-val="out"]'],
  ["Reset zoom", '[data-val="reset"]'],
  ...(touch ? [] : [["Drag to zoom", '[data-val="zoom"]'], ["Drag to pan", '[data-val="pan"]']]),
];

function makeMenu(place, press, save) {
  const [mark, list] = ["button", "div"].map((tag) => document.createElement(tag));
  mark.type = "button";
  mark.className = "bp-mark bp-more";
  mark.textContent = "⋮";
  list.className = "bp-menu";
  const show = (on) => {
    list.hidden = !on;
    mark.setAttribute("aria-expanded", String(on));
  };
  const item = (text, act) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", act);
    list.append(button);
    return button;
  };
  for (const [text, selector] of ACTIONS) item(text, () => press(`.modebar-btn${selector}`));
  const saved = (format) => () => {
    show(false);
    mark.focus();
    save(format);
  };
  const saves = ["png", "svg"].map((format) => [item(`Save as ${format.toUpperCase()}`, saved(format)), format]);
  show(false);
  mark.addEventListener("click", () => show(list.hidden));
  place.addEventListener("focusout", ({ relatedTarget }) => place.contains(relatedTarget) || show(false));
  place.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || list.hidden) return;
    show(false);
    mark.focus();
  });
  place.append(mark, list);
  return { mark, saves };
}

function nameMenu({ mark, saves }, title) {
  mark.setAttribute("aria-label", `Menu of ${title}`);
  for (const [button, format] of saves) button.setAttribute("aria-label", `Save ${title} as ${format.toUpperCase()}`);
}
