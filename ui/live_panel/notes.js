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
  show(false);
  mark.addEventListener("click", () => show(tip.hidden));
  mark.addEventListener("mouseenter", () => show(true));
  mark.addEventListener("mouseleave", () => document.activeElement !== mark && show(false));
  mark.addEventListener("blur", () => show(false));
  mark.addEventListener("keydown", ({ key }) => key === "Escape" && show(false));
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
