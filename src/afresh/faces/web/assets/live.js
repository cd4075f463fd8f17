// What runs now: one stream for the page, closed while nobody looks at it.

const panel = document.querySelector("[data-live]");
let stream = null;

const going = () => [...panel.querySelectorAll("[data-going]")].map((run) => run.dataset.going);

const runs = (part) => [...part.querySelectorAll("article")];

function swap(html) {
  const newer = document.createElement("template");
  newer.innerHTML = html;
  const [shown, next] = [runs(panel), runs(newer.content)];
  const same = shown.length === next.length && shown.every((run, at) => run.dataset.key === next[at].dataset.key);
  if (same) shown.forEach((run, at) => count(run, next[at])); else replace(newer.content);
}

// Numbers alone move, so that nobody loses the button under the hand.
function count(run, newer) {
  const counted = newer.querySelector(".counted");
  if (counted) run.querySelector(".counted").replaceWith(counted);
}

// Whoever works with keys stays where they are: on what does the same in the newer part, or at its beginning.
function keepPlace(older, put) {
  const held = older.contains(document.activeElement) ? document.activeElement : null;
  const does = (element) => element.id || element.getAttribute("href") || element.form?.getAttribute("action") || element.name;
  put();
  if (!held) return;
  let newer = [...document.querySelectorAll(`#${older.id} :is(a, button, input)`)].find((each) => does(each) === does(held));
  if (newer && held.matches("input")) {  // with what was typed so far
    newer.replaceWith(held);
    newer = held;
  }
  (newer ?? document.getElementById("main")).focus({ preventScroll: true });
}

function replace(content) {
  const before = going();
  keepPlace(panel, () => panel.replaceChildren(content));
  const now = going();
  if (before.some((run) => !now.includes(run))) ended();
}

function ended() {
  document.getElementById("said").textContent = "A run has ended";  // heard, not seen
  freshen().catch(() => {});
}

async function freshen() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (answer.redirected || answer.status === 404) { location.reload(); return; }  // the login ended, or it was removed
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-fresh][id]")) {
    const newer = page.getElementById(part.id);
    if (newer) keepPlace(part, () => part.replaceWith(newer));
  }
}

function open() {
  stream = new EventSource(panel.dataset.live);
  stream.addEventListener("runs", (event) => swap(JSON.parse(event.data)));
  stream.addEventListener("error", again);
}

// After a refusal a browser gives up: the page itself may say why, or the store or the server be back later.
function again() {
  if (stream?.readyState !== EventSource.CLOSED) return;
  stream = null;
  freshen().catch(() => {});
  setTimeout(() => { if (!document.hidden && !stream) open(); }, 20_000);
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
