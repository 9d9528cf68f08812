// The menu of a plot: zoom and saving, in the line of the title. Joined with panel.js.

// What a menu can do, and the hidden button of Plotly that does it: only those keep the zoom while a run goes on.
const ACTIONS = [
  ["Zoom in", '[data-val="in"]'],
  ["Zoom out", '[data-val="out"]'],
  ["Reset zoom", '[data-val="reset"]'],
  ...(touch ? [] : [["Drag to zoom", '[data-val="zoom"]', "zoom"], ["Drag to pan", '[data-val="pan"]', "pan"]]),
];

function makeMenu(place, plot, save) {
  const [mark, list] = ["button", "div"].map((tag) => document.createElement(tag));
  mark.type = "button";
  mark.className = "bp-mark bp-more";
  mark.textContent = "⋮";
  list.className = "bp-menu";
  list.tabIndex = -1; // Safari focuses no button that is clicked: the list then keeps the focus inside
  const outside = ({ target }) => place.contains(target) || show(false);
  const show = (on) => {
    list.hidden = !on;
    mark.setAttribute("aria-expanded", String(on));
    if (on) document.addEventListener("pointerdown", outside, true);
    else document.removeEventListener("pointerdown", outside, true);
  };
  const item = (text, act) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", act);
    list.append(button);
    return button;
  };
  const modes = [];
  for (const [text, selector, mode] of ACTIONS) {
    const button = item(text, () => plot.querySelector(`.modebar-btn${selector}`)?.click());
    if (mode) modes.push([button, mode]);
  }
  const saved = (format) => () => {
    show(false);
    mark.focus();
    save(format);
  };
  const saves = ["png", "svg"].map((format) => [item(`Save as ${format.toUpperCase()}`, saved(format)), format]);
  show(false);
  mark.addEventListener("click", () => {
    mark.focus();
    show(list.hidden);
  });
  place.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !place.contains(relatedTarget)) show(false);
  });
  place.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || list.hidden) return;
    show(false);
    mark.focus();
  });
  place.append(mark, list);
  const menu = { mark, list, plot, modes, saves, close: () => show(false) };
  updateMenu(menu);
  return menu;
}

// Nothing can be zoomed or saved before the plot is drawn; one of the two ways to drag is active.
function updateMenu({ list, plot, modes }) {
  for (const button of list.children) button.disabled = plot.dataset.wait !== undefined;
  for (const [button, mode] of modes) button.setAttribute("aria-pressed", String(plot._fullLayout?.dragmode === mode));
}

function nameMenu({ mark, saves }, title) {
  mark.setAttribute("aria-label", `Menu of ${title}`);
  for (const [button, format] of saves) button.setAttribute("aria-label", `Save ${title} as ${format.toUpperCase()}`);
}
