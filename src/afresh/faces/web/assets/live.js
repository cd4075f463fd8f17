// What runs now: one stream for the page, closed while nobody looks at it.

const panel = document.querySelector("[data-live]");
let stream = null;

function swap(html) {
  const focused = panel.contains(document.activeElement) ? document.activeElement.id : "";
  panel.innerHTML = html;
  if (focused) document.getElementById(focused)?.focus();
}

async function freshen() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-fresh][id]")) {
    const newer = page.getElementById(part.id);
    if (newer) part.replaceWith(newer);
  }
}

function open() {
  stream = new EventSource(panel.dataset.live);
  stream.addEventListener("runs", (event) => swap(JSON.parse(event.data)));
  stream.addEventListener("over", () => {
    document.getElementById("said").textContent = "A run has ended";  // heard, not seen
    freshen().catch(() => {});
  });
}

function close() {
  stream?.close();
  stream = null;
}

if (panel) {
  open();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : stream ?? open()));
  window.addEventListener("pagehide", close);
}
