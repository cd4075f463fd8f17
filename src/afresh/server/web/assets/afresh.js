// What every page does: colours, keys, questions before something is deleted, and what is said aloud.

const root = document.documentElement;

export function say(text) {
  const said = document.getElementById("said");
  said.textContent = text;
  said.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("shown"), 2500);
}

function nextTheme() {
  const order = [undefined, "light", "dark"];
  const next = order[(order.indexOf(root.dataset.theme) + 1) % order.length];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  try {
    if (next) localStorage.setItem("theme", next); else localStorage.removeItem("theme");
  } catch { /* for this page only */ }
  say(next ? `Colours: ${next}` : "Colours: as the system");
}

document.getElementById("theme")?.addEventListener("click", nextTheme);

const types = (element) => element.closest("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || types(event.target)) return;
  const box = document.getElementById("q") || document.getElementById("find");
  if (!box) return;
  event.preventDefault();
  box.focus();
  box.select();
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.sure;
  if (question && !window.confirm(question)) event.preventDefault();
});

// What one came for is in sight on a narrow screen: the tab that is open, and the newest part of a picture.
const current = document.querySelector(".tabs [aria-current]");
if (current) {  // the strip alone moves, never the page
  const strip = current.closest(".tabs"), at = current.getBoundingClientRect(), within = strip.getBoundingClientRect();
  strip.scrollLeft += at.left + at.width / 2 - within.left - within.width / 2;
}
for (const picture of document.querySelectorAll(".picture[tabindex]")) picture.scrollLeft = picture.scrollWidth;

async function words(button) {
  if (!button.dataset.copyUrl) return button.dataset.copy;
  const answer = await fetch(button.dataset.copyUrl, { headers: { accept: "application/json" } }).catch(() => null);
  if (!answer) throw new Error("The server does not answer: try again");
  if (answer.status === 401) throw new Error("Your login has ended: load this page again");
  if (!answer.ok) throw new Error(`The server does not give the text (${answer.status})`);
  return (await answer.json()).markdown;
}

async function copy(button) {
  if (!navigator.clipboard) { say("Browsers copy only from https, or from this machine itself"); return; }
  let wrong = "The browser does not let this page copy";
  const noted = (error) => { wrong = error.message; throw error; };
  const text = words(button).then((said) => new Blob([said], { type: "text/plain" }), noted);
  text.catch(() => {});  // where the browser refuses before it waits for the text
  try {
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": text })]);
    say("Copied");
  } catch {
    say(wrong);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-url]");
  if (button) copy(button);
});
