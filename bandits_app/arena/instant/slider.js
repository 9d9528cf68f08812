// Follows Streamlit's own sliders while they move, asks the server over a websocket, and hands the answers to the panel.
// Streamlit calls the default export at every update, with the same parent element as long as it is mounted.
const REST = 250; // milliseconds without a move until the whole run is asked for
const RELEASED = 500; // ... until a value that the keyboard has chosen is run
const OVERDUE = 20_000; // ... until a page that has not answered is not waited for any more
const SWEEP = 48; // values that the play mark tries at most
// Streamlit sets its theme's colours on the component alone; the strips stand elsewhere on the page.
const THEME = ["--st-text-color", "--st-primary-color", "--st-border-color", "--st-font"];
const followers = new WeakMap();

const tell = (kind, detail) => document.dispatchEvent(new CustomEvent(`bandits-${kind}`, { detail }));

function makeFollower(parent) {
  const follower = { data: null, trigger: () => {}, strips: new Map(), sliders: new Map(), shown: null, playing: null };

  const followed = new Set(); // the keys of all sliders that have been followed
  const line = (path) => (follower.line ??= makeLine(path, heard));

  // What has been tried of a slider is kept while everything but its own value stays as it was.
  const sliderOf = (key) => {
    const given = follower.data.sliders[key];
    const known = follower.sliders.get(key);
    if (known?.frame === given.frame) return Object.assign(known, given);
    const made = { ...given, key, tried: new Map() };
    made.valueAt = (position) => (made.options ? made.options[position] : position);
    made.paramsAt = (position) => ({ [made.name]: made.valueAt(position) });
    made.valuesAt = (position) => ({ [key]: made.valueAt(position) });
    made.draw = () => drawTrack(follower.strips.get(key), made, inputOf(follower.strips.get(key).strip.parentElement));
    follower.sliders.set(key, made);
    return made;
  };

  const ask = (slider, position, { rest = false, kept = false, params = slider.paramsAt(position) } = {}) => {
    const { view, path } = follower.data;
    line(path).ask({ ...slider.origin, params, rest, kept, view }, { slider, position, params, rest });
  };

  // A slow agent: the stored run that is nearest on the track, or the run that is shown.
  const askKept = (slider, position, input) => {
    const onTrack = new Set(keptPositions(slider, input));
    const values = slider.kept.filter((value) => onTrack.has(positionOf(slider, value)));
    const gap = (value) => Math.abs(positionOf(slider, value) - position);
    const nearest = [slider.valueAt(slider.start), ...values].reduce((a, b) => (gap(b) < gap(a) ? b : a));
    if (nearest === slider.asked) return;
    slider.asked = nearest;
    if (values.includes(nearest)) {
      return ask(slider, positionOf(slider, nearest), { kept: true, params: { [slider.name]: nearest } });
    }
    tell("preview-end");
    say(slider, values.length ? "The run that is shown is the nearest one." : slider.note);
  };

  const say = (slider, words = "") => {
    const text = follower.strips.get(slider.key)?.text;
    if (!text) return;
    text.textContent = text.title = words; // a wide window shows one line of it, and the rest on focus
    if (text.scrollWidth > text.clientWidth) text.tabIndex = 0;
    else text.removeAttribute("tabindex");
  };

  function heard({ slider, position, params, rest }, header, body) {
    const shown = follower.strips.get(slider.key);
    if (header.error) return say(slider, header.error);
    if (slider.slow && params[slider.name] !== slider.asked) return; // it has moved on, or was released
    const trying = follower.shown === slider; // otherwise taken back meanwhile
    const moved = shown?.strip.parentElement?.getBoundingClientRect().top; // of the slider, in the window
    const values = Object.entries(params).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
    const at = slider.slow ? "" : `, ${values.join(", ")}`; // the sentence about a stored run names its value
    const words = `${slider.origin.label}${at}: ${header.sentence}`;
    const { tile, seq } = header;
    if (trying) tell("preview", { label: slider.origin.label, tile, words, body, seq, rest, moved });
    if (!rest && shown && header.rate !== null) {
      const value = Object.values(params).join(" and ");
      slider.tried.set(position, { rate: header.rate, value, budget: header.budget });
      slider.draw();
    }
    if (!shown || !trying) return;
    const { size } = slider.tried; // 0 where the answer at rest is the first one
    const many = size > 2 && !slider.slow ? ` · Best of ${size} values: ${best(slider).value}` : "";
    shown.text.setAttribute("aria-live", rest ? "polite" : "off"); // read out when the slider rests
    say(slider, `${header.sentence}${many}`.replaceAll(" %", "\u00a0%"));
  }

  // -- a slider that is moved ----------------------------------------------------------------------------------------

  let resting, releasing;
  const begin = (slider, position) => {
    if (follower.shown === slider) return;
    if (follower.shown) tell("preview-end");
    follower.shown = slider;
    // As they are where the slider was, whatever the page draws meanwhile.
    slider.origin = { experiment: follower.data.experiment, label: slider.label };
    slider.start = position;
    if (!slider.slow) return;
    slider.asked = slider.valueAt(position);
    const { text } = follower.strips.get(slider.key);
    text.style.minHeight = `${text.offsetHeight}px`; // what stands below it stays
  };

  const moved = (key, input, before) => {
    const slider = sliderOf(key);
    taken = null;
    stopPlaying();
    begin(slider, before);
    const position = Number(input.value);
    clearTimeout(resting);
    clearTimeout(releasing);
    if (slider.slow) askKept(slider, position, input);
    else {
      ask(slider, position);
      resting = setTimeout(() => ask(slider, position, { rest: true }), REST);
    }
    if (!input.closest("[data-dragging]")) releasing = setTimeout(() => release(slider, position), RELEASED);
  };

  const release = (slider, position) => {
    if (follower.shown !== slider) return;
    clearTimeout(resting);
    if (position === slider.start) return takeBack(slider);
    follower.shown = null;
    if (slider.slow) giveWay(slider); // a stored run has another value
    else {
      tell("preview-released");
      say(slider, slider.note); // the run's own sentence follows
    }
    follower.trigger(slider.pad ? "chosen" : "released", slider.valuesAt(position));
  };

  const takeBack = (slider) => {
    clearTimeout(resting);
    clearTimeout(releasing);
    follower.shown = null;
    giveWay(slider);
  };

  const giveWay = (slider) => {
    slider.asked = undefined;
    tell("preview-end");
    say(slider, slider.note);
  };

  // -- a slider that is moved while the page draws another value of it ---------------------------------------------
  // It is not followed then, and its last value is run once the page holds it and the slider rests.

  let late = null; // its key, when it was moved last, and what waits for its rest
  const movedLate = (key) => {
    clearTimeout(late?.timer);
    late = { key, at: performance.now(), timer: setTimeout(runLate, RELEASED) };
  };
  const runLate = () => {
    const input = inputAt(late.key);
    if (follower.shown || !input) return;
    if (input.closest("[data-dragging]")) return movedLate(late.key);
    if (!follower.data.moved.includes(late.key)) return; // the page will answer
    follower.trigger("released", { [late.key]: Number(input.value) });
    late = null;
  };
  const answered = () => {
    if (!late) return;
    const input = inputAt(late.key);
    const slider = late.key in follower.data.sliders && sliderOf(late.key);
    const hasRun = slider && input && Math.abs(slider.valueAt(Number(input.value)) - slider.value) <= 1e-9;
    if (hasRun || performance.now() - late.at > OVERDUE) {
      clearTimeout(late.timer);
      late = null;
    } else if (follower.data.moved.includes(late.key)) {
      clearTimeout(late.timer);
      late.timer = setTimeout(runLate, RELEASED);
    }
  };

  // -- the play mark -------------------------------------------------------------------------------------------------

  const stopPlaying = () => {
    if (!follower.playing) return;
    clearInterval(follower.playing.timer);
    const { slider, mark } = follower.playing;
    follower.playing = null;
    nameMark(mark, slider, false);
  };

  const play = (key) => {
    if (!(key in follower.data.sliders)) return; // the page draws another value
    const wasPlaying = follower.playing?.slider.key === key;
    const shown = follower.strips.get(key);
    const input = shown && inputOf(shown.strip.parentElement);
    if (follower.playing) takeBack(follower.playing.slider);
    stopPlaying();
    if (wasPlaying || !input) return;
    const slider = shown.pad?.subject ?? sliderOf(key);
    const positions = shown.pad ? shown.pad.positions : positionsOf(input, SWEEP);
    begin(slider, shown.pad ? shown.pad.here() : Number(input.value));
    let at = 0;
    const timer = setInterval(() => {
      if (!slider.tried.has(positions[at - 1]) && at > 0 && ++slider.waits < 40) return; // each value is drawn
      slider.waits = 0;
      if (at === positions.length) {
        stopPlaying();
        takeBack(slider);
        const found = best(slider);
        say(slider, `Best of ${slider.tried.size} values: ${found.value} (${found.rate.toFixed(3)} in ${found.budget})`);
      } else ask(slider, positions[at++]);
    }, 60);
    slider.waits = 0;
    follower.playing = { slider, timer, mark: shown.mark };
    nameMark(shown.mark, slider, true);
  };

  const nameMark = (mark, slider, playing) => {
    mark.textContent = playing ? "■ stop" : "▶ try all";
    mark.setAttribute("aria-label", playing ? "Stop" : `Try all values of ${slider.title} of ${slider.label} one by one`);
    mark.title = playing ? "Stop" : "Try all values one by one";
  };

  // -- the page ------------------------------------------------------------------------------------------------------

  const keyOf = (node) => {
    const place = node.closest?.('[class*="st-key-"]');
    const name = place && [...place.classList].find((one) => one.startsWith("st-key-"));
    return name?.slice("st-key-".length);
  };

  let dressing = false;
  const dressSoon = () => {
    if (dressing) return;
    dressing = true;
    requestAnimationFrame(() => {
      dressing = false;
      dress();
    });
  };

  // Two parameters of an agent at once, on the strip of the first.
  const partnerOf = (key) => {
    const { sliders } = follower.data;
    const [first, second] = Object.keys(sliders).filter(
      (one) => sliders[one].label === sliders[key].label && !sliders[one].slow && inputAt(one),
    );
    return key === first ? second : undefined;
  };

  const togglePad = (key) => {
    if (!(key in follower.data.sliders)) return;
    const shown = follower.strips.get(key);
    if (follower.shown?.pad) takeBack(follower.shown);
    if (shown.pad) {
      shown.pad.element.remove();
      shown.pad = null;
    } else {
      const [x, y] = [key, partnerOf(key)].map((one) => ({ ...sliderOf(one), input: inputAt(one) }));
      shown.pad = makePad(key, x, y, { begin, ask, release, rest: REST });
      shown.text.before(shown.pad.element); // the sentence below it may grow
    }
    shown.both.setAttribute("aria-expanded", String(Boolean(shown.pad)));
  };

  const inputAt = (key) => {
    const place = document.querySelector(`.st-key-${CSS.escape(key)}`);
    return place && inputOf(place);
  };

  // Streamlit draws an agent's card anew when its line changes: its sliders get their strips again.
  const dress = () => {
    const theme = getComputedStyle(parent);
    for (const key of Object.keys(follower.data?.sliders ?? {})) {
      const input = inputAt(key);
      if (!input) continue;
      const place = input.closest(`.st-key-${CSS.escape(key)}`);
      const slider = sliderOf(key);
      let shown = follower.strips.get(key);
      const about = JSON.stringify([slider.note, slider.kept]);
      if (!shown?.strip.isConnected || shown.about !== about) {
        shown?.strip.remove();
        shown = { ...makeStrip(place, () => play(key), () => togglePad(key)), about };
        follower.strips.set(key, shown);
        shown.mark.hidden = Boolean(slider.slow);
        shown.strip.classList.toggle("bi-slow", Boolean(slider.slow));
        shown.strip.hidden = Boolean(slider.slow && !slider.note); // the first slider of its agent states why
        say(slider, slider.note);
        nameMark(shown.mark, slider, false);
        drawTrack(shown, slider, input);
      }
      for (const name of THEME) shown.strip.style.setProperty(name, theme.getPropertyValue(name));
      const partner = partnerOf(key); // it may be drawn later
      shown.both.hidden = !partner;
      if (partner) {
        shown.both.title = `Try both, ${slider.title} and ${sliderOf(partner).title}, together`;
        shown.both.setAttribute("aria-label", `${shown.both.title}, of ${slider.label}`);
      }
    }
  };

  const changes = new MutationObserver((records) => {
    for (const { type, attributeName, target, oldValue } of records) {
      if (type === "childList") continue;
      const key = keyOf(target);
      const active = target === document.activeElement || target.closest?.("[data-dragging]");
      if (!key || !follower.data) continue;
      const changed = attributeName === "value" && active && target.value !== oldValue;
      const ended = attributeName === "data-dragging" && !target.hasAttribute("data-dragging");
      if (!(key in follower.data.sliders)) {
        if ((changed || ended) && followed.has(key)) movedLate(key);
        continue;
      }
      if (changed) moved(key, target, Number(oldValue));
      if (ended) {
        const input = inputOf(target);
        if (input && follower.shown?.key === key) release(follower.shown, Number(input.value));
        else if (taken?.key === key) setTimeout(takeBackAgain, RELEASED, taken);
        else movedLate(key); // a drag so quick that its values were seen after its end
      }
    }
    const ours = ({ target }) => target.closest?.(".bp-live, .bi-strip");
    if (records.some((record) => record.type === "childList" && !ours(record))) dressSoon();
  });
  changes.observe(document.body, {
    subtree: true,
    childList: true,
    attributes: true,
    attributeFilter: ["value", "data-dragging"],
    attributeOldValue: true,
  });

  // Escape takes a drag back: the page draws its sliders anew where they were. The window comes before the
  // document, where the shell leaves a presentation at the same key.
  const escape = (event) => {
    if (event.key !== "Escape" || !follower.shown) return;
    event.stopPropagation();
    stopPlaying();
    taken = { key: follower.shown.key, start: follower.shown.start, moved: follower.shown.valuesAt(follower.shown.start) };
    takeBack(follower.shown);
    follower.trigger("taken_back", taken.moved);
  };
  // Where the pointer is released before the page has answered, the slider keeps what was taken back.
  let taken = null;
  const takeBackAgain = (before) => {
    const input = inputAt(before.key);
    if (taken === before && input && Number(input.value) !== before.start) follower.trigger("taken_back", before.moved);
    taken = null;
  };
  addEventListener("keydown", escape, true);

  follower.receive = (data) => {
    if (data.refused && !follower.shown) tell("preview-end"); // what was released was not run
    // What is being moved stays as it is until its release, also where the page already holds the new value.
    if (follower.shown && inputAt(follower.shown.key)) return;
    follower.shown = null;
    follower.data = data;
    for (const key of Object.keys(data.sliders)) followed.add(key);
    answered();
    for (const [key, { strip, pad }] of follower.strips) {
      if (key in data.sliders || (data.moved.includes(key) && !pad)) continue; // soon followed again
      strip.remove();
      follower.strips.delete(key);
      follower.sliders.delete(key);
    }
    dress();
  };
  follower.remove = () => {
    stopPlaying();
    clearTimeout(late?.timer);
    changes.disconnect();
    removeEventListener("keydown", escape, true);
    follower.line?.close();
    for (const { strip } of follower.strips.values()) strip.remove();
    followers.delete(parent);
  };
  followers.set(parent, follower);
  return follower;
}

export default function ({ parentElement, data, setTriggerValue }) {
  const follower = followers.get(parentElement) ?? makeFollower(parentElement);
  follower.trigger = setTriggerValue;
  follower.receive(data);
  return follower.remove;
}
