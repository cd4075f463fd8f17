"""A page of the browser that notes all that must not happen."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
LISTEN = """
window.__broken = [];
document.addEventListener("securitypolicyviolation", (e) => {
  __broken.push(`${e.violatedDirective} ${e.blockedURI}`);
});
"""
RUN = """async (rules) => {
  const found = await axe.run({ resultTypes: ["violations"], ...(rules ? { runOnly: rules } : {}) });
  return found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
}"""
GLUED = r"""[...document.querySelectorAll("a, span, b")].filter((each) => {
  const before = each.previousSibling;
  return before?.nodeType === 1 && /\w$/.test(before.textContent) && /^\w/.test(each.textContent)
    && [before, each].every((one) => getComputedStyle(one).display === "inline")
    && !/flex|grid/.test(getComputedStyle(each.parentElement).display);
}).map((each) => each.parentElement.textContent.trim().slice(0, 120))"""
LOADED = """["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
  .reduce((sum, each) => sum + each.encodedBodySize, 0)"""


class Watched:
    """One page, and what went wrong on it."""

    def __init__(self, page: "Page", url: str) -> None:
        self.page = page
        self.url = url
        self.wrong: list[str] = []
        page.add_init_script(LISTEN)
        page.on("console", lambda text: self._note(text.type == "error", f"console: {text.text}"))
        page.on("pageerror", lambda error: self._note(True, f"script: {error}"))
        page.on("request", self._asked)
        page.on("dialog", self._spoken)
        self.answers: list[bool] = []  # what is said to the next questions

    def _note(self, is_wrong: bool, what: str) -> None:
        if is_wrong and "status of 4" not in what:
            self.wrong.append(what)

    def _asked(self, request: "Request") -> None:
        self._note(not request.url.startswith((self.url, "data:", "blob:")), f"asked elsewhere: {request.url}")

    def _spoken(self, dialog: "Dialog") -> None:
        if not self.answers:
            self.wrong.append(f"dialog: {dialog.message}")
            dialog.dismiss()
        elif self.answers.pop(0):
            dialog.accept()
        else:
            dialog.dismiss()

    def loaded(self) -> int:
        """Bytes of the page and all it is made of, as they were sent."""
        return int(self.page.evaluate(LOADED))

    def glued(self) -> list[str]:
        """Texts in which two elements run together as one word."""
        return list[str](self.page.evaluate(GLUED))

    def flaws(self, *rules: str) -> list[str]:
        """What axe finds."""
        if not self.page.evaluate("Boolean(window.axe)"):
            self.page.evaluate(AXE)
        found: list[str] = self.page.evaluate(RUN, list(rules) or None)
        return found

    def breaches(self) -> list[str]:
        """What happened that must not, breaches of the policy among it."""
        return self.wrong + list[str](self.page.evaluate("window.__broken ?? []"))

    def assert_clean(self) -> None:
        """Nothing happened that must not."""
        assert self.breaches() == [], self.page.url


@contextmanager
def watched(browser: "Browser", url: str, **options: Any) -> Iterator[Watched]:
    """A page in a context of its own."""
    context = browser.new_context(base_url=url, **options)
    context.set_default_timeout(10_000)
    try:
        seen = Watched(context.new_page(), url)
        yield seen
        seen.assert_clean()
    finally:
        context.close()
