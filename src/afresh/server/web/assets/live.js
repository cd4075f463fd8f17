// Show current runs: one stream per page, closed while the page is hidden.

const panel = document.querySelector("[data-live]");
const ALL = "[data-fresh][id]";
const FOLLOW = 4_000;  // ms between updates of the summary below the numbers
const LOST = 6_000;  // ms after which a broken stream means that the server is away
let stream = null, following = 0, lost = 0;

const going = () => [...panel.querySelectorAll("[data-going]")].map((run) => run.dataset.going);

const runs = (part) => [...part.querySelectorAll("article")];
const keys = (part) => [...runs(part).map((run) => run.dataset.key), part.querySelector("[data-more]")?.textContent].join();

function swap(html) {
  const newer = document.createElement("template");
  newer.innerHTML = html;
  found();
  if (keys(panel) !== keys(newer.content)) { replace(newer.content); return; }
  const [shown, next] = [runs(panel), runs(newer.content)];
  shown.forEach((run, at) => count(run, next[at]));
  if (shown.length) follow();
}

// Replace only the numbers, so that buttons keep the focus.
function count(run, newer) {
  const counted = newer.querySelector(".counted");
  if (counted) run.querySelector(".counted").replaceWith(counted);
}

function follow() {
  if (!document.querySelector("[data-moves]")) return;
  following ||= setTimeout(() => { following = 0; freshen("[data-moves][id]").catch(() => {}); }, FOLLOW);
}

// Keep the keyboard focus: on the same control in the newer part, or at its beginning.
function keepPlace(older, put) {
  const held = older.contains(document.activeElement) ? document.activeElement : null;
  const does = (element) => element.id || element.getAttribute("href") || element.form?.getAttribute("action") || element.name;
  put();
  if (!held) return;
  let newer = [...document.querySelectorAll(`#${older.id} :is(a, button, input, select)`)].find((each) => does(each) === does(held));
  if (newer && held.matches("input, select")) {  // keep what was typed or selected
    newer.replaceWith(held);
    newer = held;
  }
  (newer ?? document.getElementById("main")).focus({ preventScroll: true });
}

function replace(content) {
  const before = going();
  keepPlace(panel, () => panel.replaceChildren(content));
  if (before.some((run) => !going().includes(run))) {
    document.getElementById("toast").textContent = "A run has ended";  // for screen readers
  }
  freshen().catch(() => {});
}

// Return whether text is selected there, which an update would lose.
function marked(parts) {
  const chosen = getSelection();
  return !chosen.isCollapsed && Boolean(chosen.anchorNode.parentElement?.closest(parts));
}

async function freshen(parts = ALL) {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (answer.redirected || answer.status === 404) { location.reload(); return; }  // the login ended, or it was removed
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (parts !== ALL && (!going().length || marked(parts))) return;
  for (const part of document.querySelectorAll(parts)) {
    const newer = page.getElementById(part.id);
    if (newer) keepPlace(part, () => part.replaceWith(newer));
  }
}

function open() {
  stream = new EventSource(panel.dataset.live);
  stream.addEventListener("runs", (event) => swap(JSON.parse(event.data)));
  stream.addEventListener("open", found);
  stream.addEventListener("error", broken);
}

function found() {
  clearTimeout(lost);
  lost = 0;
  panel.classList.remove("lost");
}

// Streams end regularly, and the browser reconnects. After a refusal it gives up: then the page may say why,
// or the store or the server may be back later.
function broken() {
  lost ||= setTimeout(() => panel.classList.add("lost"), LOST);
  if (stream?.readyState !== EventSource.CLOSED) return;
  stream = null;
  freshen().catch(() => {});
  setTimeout(() => { if (!document.hidden && !stream) open(); }, 20_000);
}

function close() {
  stream?.close();
  stream = null;
  found();
}

if (panel) {
  open();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : stream ?? open()));
  window.addEventListener("pagehide", close);
}
