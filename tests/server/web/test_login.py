"""Logging in with a token: what each kind of token sees, and what a page of another site cannot do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.server.web.showroom import Stand, standing
from tests.server.web.watching import watched

from afresh.access.permissions import TokenScope
from afresh.kb import KnowledgeBase

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TOKENS: dict[str, str] = {}


async def two_sources(kb: KnowledgeBase, stand: Stand) -> None:
    """One that a token is bound to, one that it is not, and a token of each kind."""
    await kb.sources.add(stand.site.url, name="harbor", version=None, settings={})
    await kb.sources.add(stand.atlas.url, name="secret", version=None, settings={})
    for name, scope, sources in (
        ("write", TokenScope.WRITE, []),
        ("read", TokenScope.READ, []),
        ("bound", TokenScope.READ, ["harbor"]),
    ):
        TOKENS[name] = (await kb.tokens.create(scope, sources=sources)).token


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A server that asks for a token."""
    with standing(tmp_path_factory.mktemp("locked") / "store.db", two_sources) as made:
        yield made


def test_a_login_lets_in_as_far_as_its_token_and_ends(locked: Stand, chromium: "Browser") -> None:
    for kind, sees in (("write", 2), ("read", 2), ("bound", 1)):
        with watched(chromium, locked.url) as seen:
            page = seen.page
            page.goto("/changes?view=split")
            expect(page).to_have_url(f"{locked.url}/login?to=/changes%3Fview%3Dsplit")
            if kind == "write":
                page.fill("#token", "afresh_wrong")
                page.keyboard.press("Enter")
                expect(page.get_by_role("alert")).to_contain_text("unknown, expired or revoked")
            page.fill("#token", TOKENS[kind])
            page.keyboard.press("Enter")
            expect(page).to_have_url(f"{locked.url}/changes?view=split")
            [cookie] = page.context.cookies()
            assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
            assert TOKENS[kind] not in cookie["value"]

            page.goto("/")
            expect(page.locator(".card")).to_have_count(sees)
            expect(page.get_by_role("button", name="Refresh")).to_have_count(2 if kind == "write" else 0)
            visible = page.evaluate("fetch('/sources/2').then((answer) => answer.status)")
            assert visible == (404 if kind == "bound" else 200)
            done = page.evaluate("fetch('/runs/99/cancel', {method: 'POST'}).then((a) => a.status)")
            assert done == (404 if kind == "write" else 403)

            expect(page.get_by_role("link", name="API")).to_have_count(0 if kind == "bound" else 1)
            if kind == "bound":  # its login ends while the page is open
                page.context.clear_cookies()
                page.evaluate("dispatchEvent(new Event('pagehide'))")
                page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
                expect(page).to_have_url(f"{locked.url}/login?to=/")
                page.context.add_cookies([cookie])  # type: ignore[list-item]
                page.goto("/")

            page.click("text=Log out")
            expect(page).to_have_url(f"{locked.url}/login")
            page.context.add_cookies(
                [{"name": cookie["name"], "value": cookie["value"], "url": locked.url}]  # by a thief
            )
            page.goto("/")
            expect(page).to_have_url(f"{locked.url}/login?to=/")


def test_another_page_can_use_no_login(locked: Stand, chromium: "Browser") -> None:
    with watched(chromium, locked.url) as seen:
        seen.page.goto("/login?to=//evil.example/")
        seen.page.fill("#token", TOKENS["write"])
        seen.page.keyboard.press("Enter")
        expect(seen.page).to_have_url(f"{locked.url}/")  # not where a stranger wants
        cookie = seen.page.context.cookies()[0]
    ask = chromium.new_context().request
    value = f"{cookie['name']}={cookie['value']}"
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {},  # a browser always says where a form comes from
    ):
        for path in ("/sources/1/refresh", "/api/v1/runs"):
            answer = ask.post(locked.url + path, headers={"cookie": value, **headers}, max_redirects=0)
            assert answer.status == 403, (path, headers)
