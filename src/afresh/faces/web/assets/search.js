// Search as one types, and with the keys alone.

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
    const text = await answer.text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const shown = answer.ok ? page.body : page.querySelector("main");
    hits.replaceChildren(...(shown ?? page.body).childNodes);
    history.replaceState(null, "", address(false));
  } catch (error) {
    if (error.name !== "AbortError") hits.textContent = "The server does not answer: try again.";
  }
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(look, 180);
}

form.addEventListener("input", soon);
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
