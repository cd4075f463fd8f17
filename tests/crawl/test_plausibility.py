"""The laws of doubt: what is held keeps everything, and nobody is doubted without a reason."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import NOON, empty_pages, held_pages, law, policies, reads, times

from afresh.crawl.decide import decide, is_stale, request_for
from afresh.crawl.plausibility import CRASHES, MIN_LOOKALIKES, Suspicion, SuspicionAction, suspicion_of
from afresh.crawl.visit import FetchSummary, _extract
from afresh.errors import ParserUnavailable
from afresh.model.fetch import (
    Body,
    ContentSignals,
    Document,
    Failed,
    NotModified,
    Outcome,
    ReadDocument,
    Refused,
    Validators,
)
from afresh.model.records import ContentAction, LinkAction, Page, PageId, PageStatus, Policy, RunId, SourceId
from afresh.sources.web.render_check import RENDERED
from afresh.text.error_messages import is_error_message
from afresh.text.normalize import EMPTY_HASH

TEXT = "A guide to harbours, piers and the ships that lie there. " * 80
KNOWN = Page(
    id=PageId(1),
    source_id=SourceId(1),
    url="https://docs.test/a",
    status=PageStatus.ACTIVE,
    content_hash="old",
    validators=Validators(etag='"v1"'),
    last_scraped=NOON,
)
NEW = replace(KNOWN, status=PageStatus.PENDING, content_hash=None, validators=Validators())
RUN = RunId(7)
signs = st.builds(
    ContentSignals,
    run=st.integers(1, 3),
    likeness=st.none() | st.floats(0, 1),
    length=st.none() | st.integers(0, 100_000),
    lookalikes=st.integers(0, 5),
    others_checked=st.booleans(),
    like_missing=st.booleans(),
)


def document(text: str = TEXT, title: str = "Harbours", content_hash: str = "new") -> Document:
    error = is_error_message(title, text)
    return Document(title=title, markdown=text, content_hash=content_hash, links_hash="l", is_error=error)


def reported(page: Page = KNOWN, doc: Document | None = None, **seen: object) -> Suspicion | None:
    return suspicion_of(page, doc or document(), ContentSignals(**{"run": RUN, **seen}), Policy())  # type: ignore[arg-type]


@law
@given(held_pages, reads, signs, policies, times)
def test_F39_F40_F42_content_that_is_held_changes_nothing_but_the_flag(
    page: Page, read: ReadDocument, around: ContentSignals, policy: Policy, now: datetime
) -> None:
    read = replace(read, signs=around)
    doubt = suspicion_of(page, read.document, around, policy)
    decision = decide(page, read, policy, now)
    if doubt is None or doubt.action is SuspicionAction.FLAG:
        assert not decision.doubtful
        return
    assert (decision.content, decision.follow, decision.doubtful) == (ContentAction.KEEP, LinkAction.STORED, True)
    after = decision.page
    assert after.doubt == doubt.text
    fields = {"failures", "checked_at", "crashes", "doubt", "doubt_hash", "doubt_run"}
    assert all(getattr(after, name) == getattr(page, name) for name in Page.__slots__ if name not in fields)


@law
@given(held_pages | empty_pages, reads, signs, policies)
def test_whoever_trusts_doubts_nothing_and_the_same_content_is_never_doubted(
    page: Page, read: ReadDocument, around: ContentSignals, policy: Policy
) -> None:
    assert suspicion_of(page, read.document, around, replace(policy, doubts=False)) is None
    same = replace(page, content_hash=read.document.content_hash)
    assert suspicion_of(same, read.document, around, policy) is None


@law
@given(held_pages, reads, times)
def test_an_ordinary_edit_is_never_doubted(page: Page, read: ReadDocument, now: datetime) -> None:
    """P7: likeness of a fifth and more, nothing like it elsewhere, not much shorter: simply believed."""
    around = ContentSignals(run=3, likeness=0.2, length=len(read.document.markdown))
    assert not decide(page, replace(read, signs=around), Policy(), now).doubtful


def test_F39_what_the_site_says_for_missing_addresses_is_no_content() -> None:
    for page in (NEW, KNOWN):
        doubt = reported(page, like_missing=True, likeness=0.1)
        assert doubt is not None
        assert doubt.action is SuspicionAction.HOLD
        assert "do not exist" in doubt.text


def test_F39_a_home_page_that_stands_in_for_missing_ones_may_still_change() -> None:
    assert reported(KNOWN, like_missing=True, likeness=0.7) is None


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Just a moment...", "Enable JavaScript and cookies to continue"),
        ("Attention Required! | Cloudflare", "Please complete the security check"),
        ("x", "Verifying you are human. This may take a few seconds."),
    ],
)
@pytest.mark.parametrize("page", [NEW, KNOWN])
def test_F40_a_challenge_is_held_for_new_and_known_pages(page: Page, title: str, text: str) -> None:
    doubt = reported(page, document(text, title), likeness=0.0)
    assert doubt is not None
    assert doubt.action is SuspicionAction.HOLD


def test_F40_a_login_page_in_place_of_content_is_held_and_a_login_page_of_its_own_is_a_page() -> None:
    login = document("Please sign in to continue. User name Password", "Sign in")
    doubt = reported(KNOWN, login, likeness=0.02)
    assert doubt is not None
    assert doubt.action is SuspicionAction.HOLD
    assert reported(NEW, login) is None
    assert reported(KNOWN, login, likeness=0.9) is None


def test_a_long_page_about_challenges_and_passwords_is_a_page() -> None:
    guide = document("How to sign in with a password; just a moment... verify you are human. " + TEXT)
    assert reported(NEW, guide) is None
    assert reported(KNOWN, guide, likeness=0.4) is None


def test_F40_one_page_at_many_addresses_is_held_and_a_rewritten_one_is_believed_in_the_end() -> None:
    first = reported(likeness=0.05, length=len(TEXT))
    assert first is not None
    assert first.action is SuspicionAction.WAIT
    assert reported(likeness=0.05, length=len(TEXT), others_checked=True) is None
    wall = reported(likeness=0.05, lookalikes=MIN_LOOKALIKES, others_checked=True)
    assert wall is not None
    assert wall.action is SuspicionAction.HOLD


def test_F42_an_emptied_page_is_believed_only_when_another_run_sees_the_same() -> None:
    blank = document(" \n", content_hash="blank")
    doubt = reported(KNOWN, blank, likeness=0.0, length=500)
    assert doubt is not None
    assert doubt.action is SuspicionAction.HOLD
    held = decide(KNOWN, _read(blank, likeness=0.0, length=500), Policy(), NOON).page
    again = reported(held, blank, likeness=0.0, length=500)
    assert again is not None
    assert again.action is SuspicionAction.HOLD
    later = {"likeness": 0.0, "length": 500, "run": RUN + 1}
    second = [
        reported(held, blank, **later, **more)
        for more in ({}, {"others_checked": True}, {"others_checked": True, "lookalikes": 2})
    ]
    assert [doubt and doubt.action for doubt in second] == [
        SuspicionAction.WAIT,
        SuspicionAction.FLAG,
        SuspicionAction.HOLD,
    ]


def test_F43_a_page_that_shrinks_is_taken_and_flagged_until_it_changes_or_is_trusted() -> None:
    stub = document("Harbours are closed for now.", content_hash="stub")
    decision = decide(KNOWN, _read(stub, likeness=0.5, length=len(TEXT)), Policy(), NOON)
    assert (decision.content, decision.page.content_hash) == (ContentAction.REPLACE, "stub")
    flagged = decision.page
    assert flagged.doubt == f"it shrank from {len(TEXT):,} to 28 characters"
    for look in (NotModified(), _read(stub)):
        assert decide(flagged, look, Policy(), NOON).page.doubt == flagged.doubt
        assert decide(flagged, look, Policy(doubts=False), NOON).page.doubt is None
    assert decide(flagged, _read(document(), length=len(TEXT)), Policy(), NOON).page.doubt is None


ERRORS = (
    *("Page not found", "404 Not Found", "Not Found", "404", "Error 404", "404 - Page not found"),
    *("Docs – 404", "Page not found | Docs", "Oops! That page can’t be found.", "This page could not be found."),
    "The requested URL was not found",
    *("503 … Service temporarily unavailable", "503 Service Unavailable", "HTTP 502: Bad Gateway", "Bad gateway"),
    *("Internal Server Error", "500 Internal Server Error", "504 Gateway Time-out", "Access denied", "403 Forbidden"),
    *("Error 401 (Unauthorized)", "Under maintenance", "Down for maintenance", "We'll be back soon!"),
    *("Something went wrong", "An error occurred", "Error: Page not found", "This page does not exist"),
    *("Seite nicht gefunden", "Fehler 404", "Interner Serverfehler", "Zugriff verweigert", "Wartungsarbeiten"),
    *("Die Seite wurde nicht gefunden", "Dienst vorübergehend nicht verfügbar", "Diese Seite existiert nicht mehr"),
    *("Page introuvable", "Page non trouvée", "Erreur 404", "Accès refusé", "Erreur interne du serveur"),
    *("Site en maintenance", "Cette page n'existe pas", "Service temporairement indisponible"),
    *("Página no encontrada", "Error interno del servidor", "Acceso denegado", "Sitio en mantenimiento"),
    *("La página no existe", "Servicio no disponible", "Pagina non trovata", "Errore interno del server"),
    *("Accesso negato", "Sito in manutenzione", "Servizio temporaneamente non disponibile"),
    *("Página não encontrada", "Erro interno do servidor", "Acesso negado", "Site em manutenção"),
    *("Pagina niet gevonden", "Interne serverfout", "Toegang geweigerd", "Website in onderhoud"),
)
ARTICLES = (
    *("HTTP 404 errors explained", "Access denied: what to do", "Maintenance", "Maintenance mode", "Error", "500"),
    *("Not found: how to handle missing keys", "Errors", "Forbidden", "Error handling", "Server", "How to find a page"),
    *("Under maintenance windows", "Service", "Fehlerbehandlung", "Wartung", "Entretien", "Mantenimiento", "Gone"),
)


@pytest.mark.parametrize("title", ERRORS)
@pytest.mark.parametrize("place", ["title", "heading"])
def test_F39_an_error_message_is_held_for_new_and_known_pages(title: str, place: str) -> None:
    text = f"# {title}\n\nPlease try again, or go to the start page. " + "We are sorry for that. " * 10
    short = document(text, title) if place == "title" else document(text, "My company")
    for page, likeness in ((NEW, None), (KNOWN, 0.02), (KNOWN, 0.4), (replace(KNOWN, title="Harbours"), None)):
        doubt = reported(page, short, likeness=likeness, length=len(TEXT))
        assert doubt is not None
        assert (doubt.action, doubt.text) == (SuspicionAction.HOLD, "it is an error message, not the page")
    linked = suspicion_of(NEW, short, ContentSignals(run=RUN), Policy(holds=False))
    assert linked is not None
    assert linked.action is SuspicionAction.FLAG


@pytest.mark.parametrize("title", ERRORS)
def test_a_page_about_an_error_is_a_page(title: str) -> None:
    """It is long, had such a title before, or has almost the same text as before."""
    titled = replace(KNOWN, title=title)
    guide, short = document(f"# {title}\n\n{TEXT}", title), document(f"# {title}\n\nTry again.", title)
    assert reported(NEW, guide) is None
    assert reported(KNOWN, guide, likeness=0.4, length=len(TEXT)) is None
    assert reported(titled, short, likeness=0.3, length=60) is None
    assert reported(KNOWN, short, likeness=0.9, length=60) is None


@pytest.mark.parametrize("title", ARTICLES)
def test_an_article_whose_title_only_contains_an_error_is_a_page(title: str) -> None:
    short = document(f"# {title}\n\nSee the guide.", title)
    assert reported(NEW, short) is None
    assert reported(KNOWN, short, likeness=0.4, length=60) is None


def test_an_error_message_may_be_longer_where_a_page_had_content() -> None:
    long = document("# Page not found\n\n" + "The page that you look for has left. " * 40, "Page not found")
    assert reported(NEW, long) is None
    assert reported(KNOWN, long, likeness=0.02, length=len(TEXT)) is not None


@law
@given(held_pages | empty_pages, st.sampled_from(ERRORS), signs, policies, times)
def test_F39_an_error_message_never_replaces_a_text(
    page: Page, title: str, around: ContentSignals, policy: Policy, now: datetime
) -> None:
    around, policy = replace(around, likeness=0.1), replace(policy, doubts=True, holds=True)
    page = replace(page, title="Harbours", refused_hash=None)
    read = replace(_read(document(f"# {title}\n\nTry again.", title, "error")), signs=around)
    decision = decide(page, read, policy, now)
    assert (decision.content, decision.doubtful) == (ContentAction.KEEP, True)
    kept = page.content_hash is not None
    assert decision.follow is (LinkAction.STORED if kept else LinkAction.NONE)
    trusted = decide(page, read, replace(policy, doubts=False), now)
    assert (trusted.content, trusted.doubtful) == (ContentAction.REPLACE, False)


@pytest.mark.parametrize("text", ["", "\n", "Docs", "Please sign in to continue."])
@pytest.mark.parametrize("likeness", [0.0, None, 0.6])
def test_U1_F122_a_login_form_is_a_wall_however_often_it_is_seen(text: str, likeness: float | None) -> None:
    wall = replace(document(text, "Docs", "wall"), login=True)
    page = KNOWN
    for run in range(7, 12):
        read = _read(wall, likeness=likeness, length=len(TEXT), run=run, others_checked=True)
        decision = decide(page, read, Policy(), NOON)
        assert (decision.content, decision.doubtful) == (ContentAction.KEEP, True)
        assert "login" in (decision.page.doubt or "")
        page = decision.page
    assert page.content_hash == "old"


def test_F183_a_login_is_held_whatever_it_says_and_a_page_with_a_login_beside_its_text_is_flagged() -> None:
    wall = replace(document("ログインしてください。" * 80), login=True, asks_password=True)
    doubt = reported(KNOWN, wall, likeness=0.05, length=300, others_checked=True)
    assert doubt is not None
    assert doubt.action is SuspicionAction.HOLD
    guide = replace(document("How ferries are run, in a hundred words. " * 5), asks_password=True)
    doubt = reported(KNOWN, guide, likeness=0.05, length=300, others_checked=True)
    assert doubt is not None
    assert doubt.action is SuspicionAction.FLAG
    for page in (wall, guide):
        assert reported(KNOWN, page, likeness=0.5, length=300, others_checked=True) is None
        assert reported(NEW, page) is None


@pytest.mark.parametrize(("likeness", "is_kept"), [(0.05, True), (0.6, False)])
def test_F184_trust_takes_another_page_and_keeps_the_former_text(likeness: float, is_kept: bool) -> None:
    flagged = replace(KNOWN, doubt="it shrank")
    for page, kept in ((KNOWN, is_kept), (flagged, False)):  # what is on record of a flagged page is the wall
        seen = _read(document(), likeness=likeness, length=len(TEXT))
        decision = decide(page, seen, Policy(doubts=False), NOON)
        assert (decision.content, decision.page.doubt) == (ContentAction.REPLACE, None)
        assert decision.keeps_former is kept


def test_U1_F123_an_emptied_page_that_was_believed_stays_flagged() -> None:
    empty = document("", "", content_hash=EMPTY_HASH)
    first = decide(KNOWN, _read(empty, likeness=0.0, length=500), Policy(), NOON)
    second = decide(first.page, _read(empty, likeness=0.0, length=500, run=8, others_checked=True), Policy(), NOON)
    assert (second.content, second.page.content_hash) == (ContentAction.REPLACE, EMPTY_HASH)
    flagged = second.page
    assert flagged.doubt == "it lost all its text: 500 characters"
    for look in (NotModified(), _read(empty)):
        assert decide(flagged, look, Policy(), NOON).page.doubt == flagged.doubt
    wall = decide(flagged, _read(document("Just a moment...", "x", "w"), likeness=0.0), Policy(), NOON).page
    assert wall.doubt_hash == "w"
    assert decide(wall, NotModified(), Policy(), NOON).page.doubt == "it has no text"


def test_U4_F124_a_new_page_without_text_is_taken_and_flagged() -> None:
    empty = document(" ", "", content_hash=EMPTY_HASH)
    decision = decide(NEW, _read(empty), Policy(), NOON)
    assert (decision.content, decision.doubtful) == (ContentAction.REPLACE, False)
    assert decision.page.doubt == "it has no text"
    assert decide(decision.page, NotModified(), Policy(), NOON).page.doubt == "it has no text"
    login = decide(NEW, _read(replace(empty, login=True)), Policy(), NOON)
    assert login.page.doubt == "it has no text, only a login form"
    assert decide(NEW, _read(replace(empty, leads_on=True)), Policy(), NOON).page.doubt is None
    assert decide(NEW, replace(_read(empty), proven=True), Policy(), NOON).page.doubt is None


async def _is_skipped(page: Page, body_hash: str) -> bool:
    """Whether a body is refused without a call of the parser, which does not start here."""
    tools: Any = SimpleNamespace(policy=Policy(), parsers=SimpleNamespace(call=_unavailable), extract=None)
    arrived = FetchSummary(claim=SimpleNamespace(page=page), body_hash=body_hash)  # type: ignore[arg-type]
    return isinstance(await _extract(arrived, Body(url=page.url, data=b"", media_type="text/html"), tools), Refused)


async def _unavailable(*arguments: object) -> None:
    raise ParserUnavailable("no parser here")


def test_F27_three_crashes_quarantine_a_body_and_another_body_is_tried_again() -> None:
    page = KNOWN
    for number in range(1, CRASHES + 1):
        assert not asyncio.run(_is_skipped(page, "body"))
        crash = Failed(outcome=Outcome.FAILED, reason="the parser crashed", crash_hash="body")
        decision = decide(page, crash, Policy(retries=10), NOON)
        page = decision.page
        assert (page.crashes, decision.content) == (number, ContentAction.KEEP)
        assert (decision.retry, decision.doubtful) == (number < CRASHES, number >= CRASHES)
    assert page.doubt == "parsing it crashed 3 times"
    assert asyncio.run(_is_skipped(page, "body"))
    assert not asyncio.run(_is_skipped(page, "another body"))
    cured = decide(page, _read(document(), likeness=0.9), Policy(), NOON).page
    assert (cured.crashes, cured.doubt) == (0, None)


@law
@given(held_pages, times, st.floats(1, 1e7))
def test_F45_a_304_is_not_believed_for_ever(page: Page, now: datetime, reread: float) -> None:
    policy = Policy(recipe=page.recipe or "", reread_seconds=reread)
    assert page.last_scraped is not None
    old = replace(page, last_scraped=now - timedelta(seconds=reread * 1.3))
    young = replace(page, last_scraped=now - timedelta(seconds=reread * 0.7))
    assert is_stale(old, policy, now)
    assert request_for(old, policy, now).validators is None
    assert not is_stale(young, policy, now)
    assert not is_stale(old, replace(policy, reread_seconds=0.0), now)


def test_F45_pages_read_together_do_not_all_get_stale_in_one_run() -> None:
    policy, now = Policy(reread_seconds=1000.0), NOON + timedelta(seconds=1000)
    stale = sum(is_stale(replace(KNOWN, id=PageId(number)), policy, now) for number in range(1000))
    assert 400 < stale < 600


def _read(doc: Document, **seen: object) -> ReadDocument:
    around = ContentSignals(**{"run": RUN, **seen})  # type: ignore[arg-type]
    return ReadDocument(document=doc, validators=Validators(), media_type="text/html", signs=around)


@pytest.mark.parametrize("left", ["", "Menu"])
def test_F42_what_a_browser_showed_is_never_believed_to_be_empty(left: str) -> None:
    displayed = replace(KNOWN, content_type=RENDERED, doubt_hash="new", doubt_run=RunId(6))
    doubt = reported(displayed, document(left), length=len(TEXT), others_checked=True)
    assert doubt is not None
    assert doubt.action is SuspicionAction.HOLD
    assert "browser" in doubt.text
    assert reported(displayed, document("The hall is closed until May."), length=100, others_checked=True) is None
