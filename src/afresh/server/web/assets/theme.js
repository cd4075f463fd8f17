// Runs before the page is drawn, so that it does not flash in the wrong colours.
{
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* no storage: use the system colours */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
