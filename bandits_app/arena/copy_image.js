// A button that puts the plots of the page on the clipboard; where the browser forbids that, it saves them.
const made = new WeakMap();

function save(blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = "bandit-playground.png";
  link.click();
  URL.revokeObjectURL(link.href);
}

async function copy() {
  const detail = {};
  document.dispatchEvent(new CustomEvent("bandits-picture", { detail }));
  const blob = await detail.picture;
  if (!blob) return "There is no plot yet.";
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
    return "Copied: paste it into a slide or a document.";
  } catch {
    // no permission, or a page without HTTPS on another computer
    save(blob);
    return "Saved as bandit-playground.png: this browser lets the page copy no picture.";
  }
}

export default function ({ parentElement }) {
  if (made.has(parentElement)) return;
  const [button, status] = ["button", "span"].map((tag) => document.createElement(tag));
  button.type = "button";
  button.textContent = "Copy as image";
  status.setAttribute("role", "status");
  button.addEventListener("click", async () => {
    button.disabled = true;
    status.textContent = "Drawing ...";
    status.textContent = await copy();
    button.disabled = false;
  });
  parentElement.append(button, status);
  made.set(parentElement, button);
  return () => {
    button.remove();
    status.remove();
    made.delete(parentElement);
  };
}
