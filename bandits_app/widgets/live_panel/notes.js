// Captions of a few words with the full text behind a question mark. Joined with panel.js.

// A few words, and the full note behind a question mark; without few words the note itself.
function makeNote(place) {
  const [words, mark, tip] = ["span", "button", "span"].map((tag) => document.createElement(tag));
  words.className = "bp-words";
  mark.type = "button";
  mark.className = "bp-mark";
  mark.textContent = "?";
  tip.className = "bp-tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  const show = (on) => {
    tip.hidden = !on;
    mark.setAttribute("aria-expanded", String(on));
  };
  let pinned = false; // by a click; a pointer that passes shows it for a moment
  const pin = (on) => {
    pinned = on;
    show(on);
  };
  show(false);
  mark.addEventListener("click", () => pin(!pinned));
  mark.addEventListener("mouseenter", () => show(true));
  mark.addEventListener("mouseleave", () => show(pinned));
  mark.addEventListener("blur", () => pin(false));
  mark.addEventListener("keydown", ({ key }) => key === "Escape" && pin(false));
  place.append(words, mark, tip);
  return { place, words, mark, tip };
}

function writeNote({ place, words, mark, tip }, caption, note, about) {
  words.textContent = unbroken(caption || note);
  tip.textContent = unbroken(note);
  mark.hidden = !caption || !note;
  mark.setAttribute("aria-label", `About ${about}`);
  place.classList.toggle("bp-short", Boolean(caption));
}
