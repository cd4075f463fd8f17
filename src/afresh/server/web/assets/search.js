// Search while typing, and navigate with the keyboard.

const form = document.getElementById("search");
const box = document.getElementById("q");
const hits = document.getElementById("hits");
let timer = 0;
let asked = new AbortController();

function address(part) {
  const fields = new URLSearchParams([...new FormData(form)].filter(([, text]) => text));
  if (part) fields.set("part", "1");
  return `/search?${fields}`;
}

async function look() {
  asked.abort();
  asked = new AbortController();
  try {
    const answer = await fetch(address(true), { signal: asked.signal, headers: { accept: "text/html" } });
    if (answer.redirected) { location.assign(address(false)); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok) { put(sentence(page.querySelector("main h1 + p")?.textContent ?? answer.statusText)); return; }
    put(...page.body.childNodes);
    history.replaceState(null, "", address(false));
  } catch (error) {
    if (error.name !== "AbortError") put(sentence("The server does not answer. Try again."));
  }
}

function sentence(text) {
  const note = document.createElement("p");
  note.className = "note bad";
  note.textContent = text;
  return note;
}

// Move the focus to the box if the focused hit disappears.
function put(...found) {
  const held = hits.contains(document.activeElement);
  hits.replaceChildren(...found);
  if (held) box.focus();
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(look, 180);
}

box.addEventListener("input", soon);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  look();
});

const links = () => [...hits.querySelectorAll(".hit h2 a")];

function move(step) {
  const all = links();
  const at = all.indexOf(document.activeElement);
  if (at + step < 0) box.focus(); else all[Math.min(at + step, all.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inside = event.target === box || hits.contains(event.target);
  if (!inside) return;
  if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp" && event.target !== box) move(-1);
  else if (event.key === "Escape") box.focus();
  else return;
  event.preventDefault();
});
