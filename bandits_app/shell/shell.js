// Called once per update with the same parent element as long as it is mounted. All texts come from Python.
const OPEN = ":popover-open, [role=dialog], [role=listbox], [data-testid=stPopoverBody], button[aria-expanded=true]";
const shells = new WeakMap();

function make(tag, options = {}, ...children) {
  const { on, ...properties } = options;
  const element = Object.assign(document.createElement(tag), properties);
  if (on) element.addEventListener("click", on);
  element.append(...children);
  return element;
}

const button = (text, on, className = "") => make("button", { type: "button", textContent: text, className, on });

const visible = (element) => element.getClientRects().length > 0;

function target(selectors) {
  return selectors.split(", ").flatMap((one) => [...document.querySelectorAll(one)]).find(visible);
}

function unmark(shell) {
  clearTimeout(shell.search);
  document.querySelectorAll("[data-bp-tour]").forEach((element) => delete element.dataset.bpTour);
}

function endTour(shell) {
  unmark(shell);
  shell.tour?.remove();
  shell.tour = null;
}

// A page that has just been opened may not have drawn the part yet; and the first card must not move it.
function mark(shell, selectors, scroll) {
  const marked = target(selectors);
  if (!marked) {
    shell.search = setTimeout(() => mark(shell, selectors, scroll), 300);
    return;
  }
  marked.dataset.bpTour = "";
  if (scroll) marked.scrollIntoView({ block: "nearest" });
}

function showStep(shell, number, focus) {
  const { steps } = shell.data;
  const { title, text, target: selectors } = steps[number];
  const last = number === steps.length - 1;
  const go = (other) => () => showStep(shell, other, true);
  const heading = make("h2", { textContent: title, id: "bp-tour-title" });
  const next = last ? button("Done", () => endTour(shell), "bp-primary") : button("Next", go(number + 1), "bp-primary");
  const card = make(
    "section",
    { className: "bp-tour", tabIndex: -1 },
    make("p", { className: "bp-count", textContent: `Tour, ${number + 1} of ${steps.length}` }),
    heading,
    make("p", { textContent: text }),
    make(
      "div",
      { className: "bp-row" },
      ...(last ? [] : [button("Skip tour", () => endTour(shell))]),
      make("span"),
      ...(number ? [button("Back", go(number - 1))] : []),
      next,
    ),
  );
  card.setAttribute("aria-labelledby", heading.id);
  card.addEventListener("keydown", (event) => {
    if (event.key === "Escape") endTour(shell);
  });
  shell.tour?.remove();
  shell.tour = card;
  shell.host.append(card);
  unmark(shell);
  mark(shell, selectors, focus);
  if (focus) next.focus({ preventScroll: true });
}

function startTour(shell) {
  shell.help.close();
  if (shell.data.home) showStep(shell, 0, true);
  else {
    shell.requested = true;
    shell.trigger("tour", true);
  }
}

function makeHelp(shell) {
  const rows = shell.data.shortcuts.flatMap(({ keys, action }) => [
    make("dt", {}, make("kbd", { textContent: keys })),
    make("dd", { textContent: action }),
  ]);
  const heading = make("h2", { textContent: "Help", id: "bp-help-title" });
  const close = button("Close", () => shell.help.close());
  const help = make(
    "dialog",
    { className: "bp-help" },
    heading,
    make("p", { textContent: "The tour explains the pages in five steps. The Glossary, under Learn, defines every term." }),
    make("div", { className: "bp-shortcuts" }, make("h3", { textContent: "Shortcuts" }), make("dl", {}, ...rows)),
    make("div", { className: "bp-row" }, close, make("span"), button("Start the tour", () => startTour(shell), "bp-primary")),
  );
  help.setAttribute("aria-labelledby", heading.id);
  help.addEventListener("click", (event) => {
    if (event.target === help) help.close(); // the backdrop
  });
  return help;
}

// The first tab stop of every page; Streamlit's own link to the main content is the second.
function makeSkipLink() {
  const find = (which) => document.querySelector(`[data-testid=stMain]${which}`);
  const target = () => find(' [data-testid="stBaseButton-primary"]:not(:disabled)') ?? find("");
  const link = button("Skip to the main button", () => target()?.focus(), "bp-skip");
  link.addEventListener("focus", () => {
    link.textContent = `Skip to ${target()?.closest("button")?.querySelector("p")?.textContent ?? "the main content"}`;
  });
  document.body.prepend(link);
  return link;
}

function makeShell(parent, data, trigger) {
  const host = make("div", { className: "bp-shell" });
  const shell = { host, data, trigger, tour: null, requested: false };
  shell.help = makeHelp(shell);
  shell.open = button("Help", () => shell.help.showModal(), "bp-open");
  shell.open.setAttribute("aria-haspopup", "dialog");
  shell.skip = makeSkipLink();
  const key = (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable=true], [role=combobox]");
    if (event.key !== "?" || typing || event.ctrlKey || event.altKey || event.metaKey) return;
    if (!shell.data.presenting && !shell.help.open) shell.help.showModal();
  };
  // Captured, so that it comes before what closes an open menu at the same key; on the document, so that it comes after
  // a slider that takes a drag back.
  const leave = (event) => {
    if (event.key !== "Escape" || !shell.data.presenting) return;
    if ([...document.querySelectorAll(OPEN)].some(visible)) return;
    document.querySelector(".st-key-present button")?.click();
  };
  addEventListener("keydown", key);
  document.addEventListener("keydown", leave, true);
  const releaseFocus = keepFocus();
  const releaseTop = startAtTop();
  shell.remove = () => {
    releaseFocus();
    releaseTop();
    removeEventListener("keydown", key);
    document.removeEventListener("keydown", leave, true);
    unmark(shell);
    shell.skip.remove();
    host.remove();
    shells.delete(parent);
  };
  host.append(shell.open, shell.help);
  parent.append(host);
  shells.set(parent, shell);
  return shell;
}

export default function ({ parentElement, data, setTriggerValue }) {
  const shell = shells.get(parentElement) ?? makeShell(parentElement, data, setTriggerValue);
  shell.data = data;
  shell.trigger = setTriggerValue;
  shell.host.hidden = data.presenting;
  // Only on request: on a first visit, a card would cover the plots.
  if (data.home && !shell.tour && shell.requested) {
    showStep(shell, 0, true);
    shell.requested = false;
  } else if (!data.home && shell.tour) endTour(shell);
  return shell.remove;
}
