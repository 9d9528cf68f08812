// What stands below a slider. Joined with slider.js.
const inputOf = (place) => place.querySelector('input[type="range"]');
const element = (tag, name, text = "") => {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  return made;
};

// What a slider's strip shows: a play mark, the track of the values that were tried, and a sentence.
function makeStrip(place, play, openPad) {
  const strip = element("div", "bi-strip");
  const mark = element("button", "bi-play");
  const both = element("button", "bi-play bi-both", "⊞ both");
  const track = element("div", "bi-track");
  const text = element("span", "bi-text");
  mark.type = both.type = "button";
  track.setAttribute("aria-hidden", "true"); // the sentence names the best value
  text.setAttribute("role", "status");
  mark.addEventListener("click", play);
  both.addEventListener("click", openPad);
  strip.append(track, mark, both, text);
  place.append(strip);
  return { strip, mark, both, track, text };
}

// Blue to yellow, equally bright to every eye: from the lowest to the highest rate that was tried.
const SHADES = ["#35608d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];
const shade = (share) => SHADES[Math.min(SHADES.length - 1, Math.floor(share * SHADES.length))];

function drawTrack({ track }, slider, input) {
  if (!input) return;
  const tried = [...new Map([...keptPositions(slider, input).map((at) => [at, {}]), ...slider.tried])];
  const rates = [...slider.tried.values()].map(({ rate }) => rate);
  const [low, high] = [Math.min(...rates), Math.max(...rates)];
  const [first, last] = [Number(input.min), Number(input.max)];
  track.replaceChildren(
    ...tried.map(([position, { rate }]) => {
      const dot = element("i", rate === undefined ? "bi-kept" : rate === high ? "bi-best" : "");
      dot.style.left = `${(100 * (position - first)) / (last - first || 1)}%`;
      if (rate !== undefined) dot.style.background = shade(high > low ? (rate - low) / (high - low) : 1);
      return dot;
    }),
  );
}

// Where a value stands on a slider, also one between its values.
function positionOf({ options }, value) {
  if (!options) return value;
  const next = options.findIndex((one) => one >= value);
  if (next < 0) return options.length; // beyond its end
  const [below, above] = [options[next - 1] ?? value, options[next]];
  return above === value ? next : next - (above - value) / (above - below);
}

// Where the stored runs of a slow agent stand on a slider, of those on its track.
function keptPositions(slider, { min, max }) {
  const found = (slider.kept ?? []).map((value) => positionOf(slider, value));
  return found.filter((at) => at >= Number(min) && at <= Number(max));
}

// At most so many positions of a slider, evenly spaced, with the first one.
function positionsOf(input, most) {
  const [first, last, grid] = [Number(input.min), Number(input.max), Number(input.step) || 1];
  const step = grid * Math.max(1, Math.ceil((last - first) / grid / most));
  const found = [];
  for (let i = 0; first + i * step <= last + 1e-9; i++) found.push(Number((first + i * step).toPrecision(10)));
  return found;
}

const best = (slider) => [...slider.tried.values()].reduce((a, b) => (b.rate > a.rate ? b : a));
