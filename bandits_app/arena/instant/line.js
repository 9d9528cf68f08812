// The connection to the server: a websocket, or requests where none can be opened. Joined with slider.js.
const RETRY = 5000; // milliseconds until a lost connection is opened again
const OPENING = 10_000; // ... until one that does not open is given up
const FULL = 1013; // the code with which a server closes that has too many connections
const BUSY = 100; // ... until a server that answers others is asked again

// The entry script of the page gives the root of the app, behind any base path or proxy.
function address(path) {
  const entry = document.querySelector('script[src*="static/js/"]');
  return new URL((entry ? entry.src.replace(/static\/js\/.*$/, "") : `${location.origin}/`) + path);
}

// One question is being answered, and of those that wait only the newest is sent.
function makeLine(path, hear) {
  let socket = null;
  let plain = false; // some proxies let Streamlit's websocket through and no other one
  let asked = null; // what is being answered
  let next = null;
  let lost = 0;
  let seq = 0;
  const send = () => {
    if (!next || asked || !(plain || socket?.readyState === WebSocket.OPEN)) return;
    [asked, next] = [next, null];
    const text = JSON.stringify({ ...asked.question, seq: ++seq });
    if (plain) post(text);
    else socket.send(text);
  };
  const received = (data) => {
    const answered = asked;
    asked = null;
    send(); // the next is computed while this one is drawn
    const bytes = new Uint8Array(data);
    const size = new DataView(data).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
    if (answered) hear(answered.about, header, bytes.subarray(4 + size));
  };
  const failed = () => {
    const waiting = asked ?? next;
    [asked, next] = [null, null];
    if (waiting) hear(waiting.about, { error: "No preview: the connection to the server failed. Release to run." });
  };
  const post = async (text) => {
    let answer, data;
    try {
      answer = await fetch(address(path), { method: "POST", body: text });
      data = await answer.arrayBuffer();
    } catch {
      return failed();
    }
    if (answer.ok) return received(data); // what fails from here on is not the connection
    if (answer.status !== 503) return failed();
    next ??= asked;
    asked = null;
    setTimeout(send, BUSY);
  };
  const open = () => {
    if (socket || plain || performance.now() < lost) return;
    const root = address(path);
    root.protocol = root.protocol === "https:" ? "wss:" : "ws:";
    const opening = new WebSocket(root);
    const patience = setTimeout(() => opening.close(), OPENING);
    let opened = false;
    socket = opening;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      clearTimeout(patience);
      opened = true;
      send();
    };
    socket.onclose = ({ code }) => {
      clearTimeout(patience);
      socket = null;
      const full = code === FULL;
      if (full && !asked && !next) return; // a silent connection gave way: the next question opens another
      if (!opened || full) {
        plain = true;
        next ??= asked;
        asked = null;
        return send();
      }
      lost = performance.now() + RETRY;
      failed();
    };
    socket.onmessage = ({ data }) => received(data);
  };
  return {
    ask: (question, about) => {
      next = { question, about };
      open();
      send();
    },
    close: () => {
      next = null;
      socket?.close();
    },
  };
}
