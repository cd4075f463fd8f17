// Used by every page: colours, shortcuts, confirmations and messages.

const root = document.documentElement;

export function say(text) {
  const toast = document.getElementById("toast");
  toast.textContent = text;
  toast.classList.add("visible");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => toast.classList.remove("visible"), 2500);
}

function nextTheme() {
  const order = [undefined, "light", "dark"];
  const next = order[(order.indexOf(root.dataset.theme) + 1) % order.length];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  try {
    if (next) localStorage.setItem("theme", next); else localStorage.removeItem("theme");
  } catch { /* only for this page */ }
  say(next ? `Colours: ${next}` : "Colours: system");
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

// Scroll to the open tab and to the newest part of a chart on a narrow screen.
const current = document.querySelector(".tabs [aria-current]");
if (current) {  // only the strip scrolls, not the page
  const strip = current.closest(".tabs"), at = current.getBoundingClientRect(), within = strip.getBoundingClientRect();
  strip.scrollLeft += at.left + at.width / 2 - within.left - within.width / 2;
}
for (const picture of document.querySelectorAll(".picture[tabindex]")) picture.scrollLeft = picture.scrollWidth;

async function words(button) {
  if (!button.dataset.copyUrl) return button.dataset.copy;
  const answer = await fetch(button.dataset.copyUrl, { headers: { accept: "application/json" } }).catch(() => null);
  if (!answer) throw new Error("The server does not answer. Try again.");
  if (answer.status === 401) throw new Error("Your login has expired. Reload this page.");
  if (!answer.ok) throw new Error(`The server did not send the text (${answer.status})`);
  return (await answer.json()).markdown;
}

async function copy(button) {
  if (!navigator.clipboard) { say("Copying needs https or localhost"); return; }
  let wrong = "The browser does not allow copying";
  const noted = (error) => { wrong = error.message; throw error; };
  const text = words(button).then((content) => new Blob([content], { type: "text/plain" }), noted);
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
