// The focus while pages are drawn anew. Joined with shell.js.

const GRACE = 2000; // milliseconds in which a widget that was drawn anew gets its focus back

// An expander whose label changes is drawn anew with all that is in it, and the focus is lost: it returns to the same
// part of the widget with the same key.
function keepFocus() {
  let kept = null;
  const remember = ({ target }) => {
    const place = target.closest('[class*="st-key-"]');
    const key = place && [...place.classList].find((name) => name.startsWith("st-key-"));
    const at = key ? [...place.querySelectorAll(target.tagName)].indexOf(target) : -1;
    kept = at < 0 ? null : { element: target, selector: `.${CSS.escape(key)} ${target.tagName}`, at, lost: 0 };
  };
  const restore = () => {
    if (!kept || kept.element.isConnected) return;
    kept.lost ||= performance.now();
    const unwanted = document.activeElement !== document.body || performance.now() > kept.lost + GRACE;
    const again = unwanted ? null : document.querySelectorAll(kept.selector)[kept.at];
    if (unwanted) kept = null;
    else again?.focus({ preventScroll: true });
  };
  // A press anywhere ends the wait for a lost widget; what the press focuses is remembered next, as by keyboard.
  const forget = () => {
    kept = null;
  };
  const observer = new MutationObserver(restore);
  observer.observe(document.body, { childList: true, subtree: true });
  document.addEventListener("focusin", remember);
  document.addEventListener("pointerdown", forget);
  return () => {
    observer.disconnect();
    document.removeEventListener("focusin", remember);
    document.removeEventListener("pointerdown", forget);
  };
}

// Another step of a lesson, and another view of a page, begin at their top.
const BEGINNINGS = [
  ".st-key-lesson-head [data-testid=stProgress]",
  "[class*=st-key-views-] [aria-checked=true]",
];

function startAtTop() {
  const last = new Map();
  const look = () => {
    for (const selector of BEGINNINGS) {
      const now = document.querySelector(selector)?.textContent;
      if (!now) continue;
      const before = last.get(selector) ?? now;
      if (now !== before) document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
      last.set(selector, now);
    }
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { childList: true, subtree: true, characterData: true });
  return () => observer.disconnect();
}
