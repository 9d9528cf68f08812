// The connection to the server. Joined with slider.js.
const RETRY = 5000; // milliseconds until a lost connection is opened again

// The entry script of the page gives the root of the app, behind any base path or proxy.
function address(path) {
  const entry = document.querySelector('script[src*="static/js/"]');
  const root = new URL(entry ? entry.src.replace(/static\/js\/.*$/, "") : `${location.origin}/`);
  root.protocol = root.protocol === "https:" ? "wss:" : "ws:";
  return root.href + path;
}

// One connection; one question is being answered, and of those that wait only the newest is sent.
function makeLine(path, hear) {
  let socket = null;
  let asked = null; // what is being answered
  let next = null;
  let lost = 0;
  let seq = 0;
  const send = () => {
    if (!next || asked || socket?.readyState !== WebSocket.OPEN) return;
    [asked, next] = [next, null];
    socket.send(JSON.stringify({ ...asked.question, seq: ++seq }));
  };
  const open = () => {
    if (socket || performance.now() < lost) return;
    socket = new WebSocket(address(path));
    socket.binaryType = "arraybuffer";
    socket.onopen = send;
    socket.onclose = () => {
      const waiting = asked ?? next;
      [socket, asked, next] = [null, null, null];
      lost = performance.now() + RETRY;
      if (waiting) hear(waiting.about, { error: "No preview: the connection to the server failed. Release to run." });
    };
    socket.onmessage = ({ data }) => {
      const answered = asked;
      asked = null;
      send(); // the next is computed while this one is drawn
      const bytes = new Uint8Array(data);
      const size = new DataView(data).getUint32(0, true);
      const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
      if (answered) hear(answered.about, header, bytes.subarray(4 + size));
    };
  };
  return {
    ask: (question, about) => {
      next = { question, about };
      open();
      send();
    },
    close: () => socket?.close(),
  };
}
