"""Payloads of ../shared/data/naughty in every text that pages show: none comes alive."""

import gzip
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selectolax.lexbor import LexborHTMLParser
from tests.server.web.showroom import Stand, standing
from tests.server.web.watching import Watched, watched

from afresh.kb import KnowledgeBase
from afresh.model.charts import RunSavings
from afresh.model.fetch import Outcome
from afresh.model.filters import LinkedPage, LinkRecord
from afresh.model.overview import BlockedDeletions, BlockedPage, PassageView, Preview
from afresh.model.records import Attempt, ChangeKind, CrawlId, PageId, PageStatus, RunId, Source, SourceId
from afresh.model.reports import ChangeView, OpenedPage, PageExplanation, PageView, RunReport, SearchAnswer, SearchHit
from afresh.server.web.frame import templates
from afresh.server.web.rendered import passage, rendered, safe_address
from afresh.server.web.settings import FIELDS, SCOPES, FieldProblem
from afresh.server.web.words import moment
from afresh.urls.scope import Rules

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCHEMES = (
    *("javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "vbscript:x"),
    *("data:text/html,x", "file:///etc/passwd", " javascript:alert(1)", "\x01javascript:alert(1)"),
)
STRANGE = "iframe,object,embed,svg,math,video,audio,base,style,template,frameset,meta[http-equiv]"
NOW = datetime(2026, 5, 1, tzinfo=UTC)
FIRE = """document.querySelectorAll("main *").forEach((element) => {
  for (const name of ["mouseover", "focus", "toggle", "error"]) element.dispatchEvent(new Event(name));
})"""


@pytest.fixture(scope="module")
def payloads(shared: Path) -> list[str]:
    """Every payload."""
    packed = (shared / "data" / "naughty" / "xss_payloads.txt.gz").read_bytes()
    return [line for line in gzip.decompress(packed).decode().splitlines() if line.strip()]


def page_of(text: str) -> PageView:
    """A page that says it everywhere."""
    return PageView(
        id=PageId(1),
        url=text,
        status=PageStatus.ACTIVE,
        title=text,
        depth=0,
        language=text,
        content_hash=text,
        etag=text,
        last_modified=text,
        content_type=text,
        crawl_time=NOW,
        last_seen=NOW,
        checked_at=NOW,
        changed_at=NOW,
        missing_count=0,
        moved_to=text,
        doubt=text,
        source_id=SourceId(1),
    )


def parts(texts: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Templates with such texts in every place that comes from outside."""
    source = Source(
        id=SourceId(1), name=texts[0], version=texts[1], kind="web", url=texts[0], created_at=NOW, updated_at=NOW
    )
    links = [
        LinkRecord(
            id=1,
            source_id=SourceId(1),
            url=text,
            score=1.0,
            keywords={text: 0.5},
            comment=text,
            crawl_time=NOW,
            page_count=9,
            pages=(LinkedPage(id=PageId(1), url=text, title=text, text=text),),
        )
        for text in texts
    ]
    changes = [
        ChangeView(
            id=1,
            source=text,
            version=text,
            url=text,
            kind=ChangeKind.CHANGED,
            run=RunId(1),
            at=NOW,
            old_hash=None,
            new_hash=None,
            diff=f"@@ -1,1 +1,1 @@\n-{text}\n+{text}",
            moved_to=text,
        )
        for text in texts
    ]
    attempts = [
        Attempt(
            id=CrawlId(1),
            page_id=PageId(1),
            run_id=RunId(1),
            url=text,
            domain=text,
            scheduled_for=NOW,
            completed_at=NOW,
            outcome=Outcome.FAILED,
            error_message=text,
            reason=text,
            created_at=NOW,
            updated_at=NOW,
        )
        for text in texts
    ]
    hits = tuple(
        SearchHit(
            weak=True,
            url=text,
            title=text,
            text=f"\x02{text}\x03",
            path=(text,),
            score=1.0,
            source=text,
            version=text,
            language=text,
            checked_at=NOW,
            changed_at=NOW,
        )
        for text in texts
    )
    chunks = [PassageView(content=text, path=(text,), types=("text",)) for text in texts]
    why = PageExplanation(
        url=texts[0],
        source=texts[0],
        version=None,
        status=PageStatus.ACTIVE,
        summary=texts[2],
        page=page_of(texts[0]),
        latest=None,
        next_look=NOW,
        linked_from=(),
        attempts=1,
    )
    page = {"page": page_of(texts[0]), "why": why, "source": source, "tabs": (), "tab": "", "there": None}
    yield "changes.html", {"listed": {"items": changes[::2], "next": None}}
    yield "changes.html", {"listed": {"items": changes[1::2], "next": None}, "asked": {"view": "split"}}
    report = RunReport(
        run=RunId(1),
        source=texts[0],
        version=texts[1],
        mode="refresh",
        state="needs_confirmation",
        error=texts[2],
        notes=tuple(texts),
    )
    doomed = tuple(BlockedPage(id=PageId(1), url=text, title=text, moved_to=text) for text in texts)
    held = BlockedDeletions(pages=doomed, count=len(doomed), percent=10.0, allowed=10)
    savings = RunSavings(pages=1, fresh=1, oldest_check=None, run=report)
    run = {"run": report, "source": source, "held": held, "live": [(source, report)], "tabs": (), "tab": ""}
    run |= {"savings": savings}
    yield "run_attempts.html", {**run, "outcomes": list(Outcome), "listed": {"items": attempts, "next": None}}
    yield "run_changes.html", {**run, "listed": {"items": changes[:1], "next": None}}
    preview = Preview(
        kind="web",
        url=texts[0],
        name=texts[1],
        known=texts[2],
        plan=None,
        rules=Rules(root="https://docs.example.org/"),
        title=texts[0],
        language=texts[1],
        belong=tuple(texts[:12]),
        left_out=tuple((text, text) for text in texts[:6]),
    )
    typed = {"target": texts[0], "name": texts[1], "version": texts[2], "include": texts[0]}
    wrong = {"preview": preview, "wrong": FieldProblem(texts[0], "target"), "scopes": SCOPES, "filled": typed}
    yield "add.html", {**wrong, "typed": typed, "fields": FIELDS, "defaults": dict.fromkeys(_keys(), texts[1])}
    yield "page_attempts.html", {**page, "listed": {"items": attempts, "next": None}}
    yield "page_passages.html", {**page, "passages": chunks, "many": len(chunks)}
    yield "page_links.html", {**page, "to_it": links[:1], "listed": {"items": links, "next": None}}
    found = {
        "q": texts[0],
        "found": SearchAnswer(hits=hits, notes=tuple(texts)),
        "max_hits": 20,
        "label_of": lambda hit: hit.source,
    }
    yield ("parts/hits.html", {**found, "copies": dict(zip("abc", texts, strict=False))})
    opened = OpenedPage(
        url=texts[0],
        title=texts[0],
        source=texts[0],
        version=None,
        language=texts[0],
        status=PageStatus.ACTIVE,
        content_type=None,
        checked_at=NOW,
        changed_at=NOW,
        markdown="",
        moved_from=(texts[1],),
    )
    for some in (texts[::2], texts[1::2]):  # a whole one would be cut
        body = rendered("\n\n".join(some), "https://docs.example.org/")
        yield "page_text.html", {**page, "opened": opened, "body": body, "missing": None}


def _keys() -> list[str]:
    return [field.key for field in FIELDS]


def drawn(name: str, given: dict[str, Any]) -> str:
    """A template as the server draws it."""
    common = dict.fromkeys(("may_write", "everywhere", "logged_in"), True)
    helpers = {"ago": partial(moment, now=NOW), "with_query": lambda **_: "?"}
    given = {"asked": {}, **given}
    return templates().get_template(name).render(here="/", now=NOW, paged=False, **common, **helpers, **given)


@pytest.mark.slow
def test_F104_no_payload_becomes_an_element_an_attribute_or_a_script_address(payloads: list[str]) -> None:
    handlers = {name.lower() for text in payloads for name in re.findall(r"(?i)\bon[a-z]{3,20}(?=\s*=)", text)}
    assert {"onerror", "onload", "onfocus", "ontoggle"} <= handlers
    alive = ",".join(sorted(f"[{name}]" for name in handlers)) + ",[style],[src]:not(script):not(img)"
    for name, given in parts(payloads):
        tree = LexborHTMLParser(drawn(name, given))
        scripts = [node.attributes.get("src") or "inline" for node in tree.css("script, img")]
        assert all(src.startswith("/assets/") for src in scripts), name
        assert [node.html for node in tree.css(f"{STRANGE},{alive}")] == [], name
        leads = {re.split(r"[/?#:]", node.attributes["href"] or "")[0] for node in tree.css("[href]")}
        assert leads <= {"", "http", "https", "mailto"}, name
        assert "prompt(" in (tree.body.text() if tree.body else ""), name  # they are there, as text


def test_F104_words_that_run_backwards_turn_nothing_else_around() -> None:
    visible = 0
    for name, given in parts(["\u202eexe.txt", "مرحبا (3)", "\u2067x"]):
        tree = LexborHTMLParser(drawn(name, given))
        for node in tree.css("h1, h2 a, td.main, td.main ~ td a, .gone a, article"):
            if any(each in node.text() for each in "\u202eم\u2067"):
                assert node.css_first("bdi") or node.attributes.get("dir") == "auto", (name, node.html)
                visible += 1
    assert visible > 10


def test_F104_text_of_a_page_is_only_ever_text(payloads: list[str]) -> None:
    for hostile in (
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "java\tscript:alert(1)",
        "vbscript:x",
        "file:///etc/passwd",
    ):
        assert safe_address(hostile, "https://docs.example.org/") is None, hostile
        html = str(rendered(f"[x]({hostile}) ![x](<{hostile}>)", "https://docs.example.org/"))
        assert "href" not in html, html
    for nameless, says in (
        ("![](a.png)", "image: <a>https://docs.example.org/a.png</a>"),
        ("[](b)", "<a>https://docs.example.org/b</a>"),
        ("[` ` \u200b](b)", "<a><code> </code> \u200bhttps://docs.example.org/b</a>"),
        ("[![alt](i)](l)", "<a>image: alt</a>"),  # no link in a link
        ("[![](i)](l) [x](y)", "<a>image: </a> <a>x</a>"),
        ("![a [b](c)](d)", "image: <a>a b</a>"),
    ):
        visible = re.sub(r'( href| rel| class)="[^"]*"', "", str(rendered(nameless, "https://docs.example.org/")))
        assert re.sub(r"</?(span|p)>", "", visible) == says, nameless
    deep = str(rendered(">" * 5_000 + " x", ""))
    assert deep.count("<blockquote>") <= 31
    assert str(rendered("a <b onclick=x>", "")) == "<p>a &lt;b onclick=x&gt;</p>"
    skipping = str(rendered("## a\n\n#### b\n\n### c\n\n## d\n\n# e\n\n###### f\n", ""))
    assert "".join(re.findall(r"<h(\d)>", skipping)) == "233223"  # one deeper at most, whatever was written
    found = "# \x02One\x03\n\n[a \x02word\x03](javascript:x) `co\x02de` x\x03 <b onclick=x>"
    found += "\n\n| `c` | d |\n| e | f |"
    assert str(passage(found)) == (
        "<p><strong><mark>One</mark></strong></p>"
        "<p>a <mark>word</mark> <code>co<mark>de</mark></code><mark> x</mark> &lt;b onclick=x&gt;</p>"
        "<p><code>c</code> · d\ne · f</p>"
    )
    visible = "".join(str(passage(f"\x02{text}\x03")) for text in payloads)
    tags = LexborHTMLParser(visible).css(f"a, img, script, {STRANGE}")
    assert [node.html for node in tags] == []
    assert '<a href="https://docs.example.org/b"' in str(rendered("[b](b)", "https://docs.example.org/a"))


def hostile_site(stand: Stand, payloads: list[str], folder: Path) -> None:
    """A site and a folder that try."""
    for number, text in enumerate(payloads):
        visible = text.replace("&", "&amp;").replace("<", "&lt;")
        links = f'<a href="/p{number + 1}">{visible}</a> <a href="/p{number + 1}?x={visible}">{visible}</a>'
        stand.atlas.put(
            f"/p{number}",
            f"<title>{visible}</title><main><h1>{visible}</h1><p>{visible} words {number}</p>{links}{text}</main>",
        )
        name = text.replace("/", "∕").replace("\0", "")[:60]
        (folder / f"{name}.md").write_text(f"# {text}\n\n[{text}]({text})\n\n{text}\n", "utf-8")
    stand.atlas.put("/", '<title>Start</title><main><p>Begin here.</p><a href="/p0">first</a></main>')


def test_F104_nothing_a_site_or_a_folder_says_is_alive_in_a_browser(
    tmp_path: Path, chromium: "Browser", payloads: list[str]
) -> None:
    chosen = [text for text in payloads if "<" in text and len(text) < 200][::240][:8]
    folder = tmp_path / "files"
    folder.mkdir()

    async def fill(kb: KnowledgeBase, stand: Stand) -> None:
        hostile_site(stand, chosen, folder)
        await kb.runs.crawl(stand.atlas.url, name="hostile", policy={"keywords": {chosen[0][:40]: 1.0}})
        await kb.runs.crawl(str(folder), name="files")

    with standing(tmp_path / "store.db", fill) as stand, watched(chromium, stand.url) as seen:
        seen.page.goto("/sources/1")
        pages = seen.page.eval_on_selector_all("td.main a", "all => all.map((a) => a.getAttribute('href'))")
        assert len(pages) > len(chosen)
        for place in (
            "/",
            "/sources/1",
            "/sources/1/links",
            "/sources/2",
            "/changes",
            *pages[::4],
            pages[1] + "/links",
        ):
            look(seen, place)
        seen.page.goto("/search")
        for text in chosen[:6]:
            seen.page.fill("#q", text)
            seen.page.wait_for_selector("#hits")


def look(seen: Watched, place: str) -> None:
    """Open a page and touch everything on it."""
    answer = seen.page.goto(place)
    assert answer is not None
    assert answer.status == 200, place
    seen.page.evaluate(FIRE)
    seen.assert_clean()
