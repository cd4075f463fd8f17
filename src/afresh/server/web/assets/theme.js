// Runs before the page is drawn, so that it never flashes in the wrong colours.
{
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* no place to keep it: as the system */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
