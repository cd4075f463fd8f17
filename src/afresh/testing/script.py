"""The script of a site: pages, troubles, gates, and answers to conditional requests; no sockets here."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus
from threading import Condition, RLock
from urllib.parse import urljoin
from xml.sax.saxutils import escape

from afresh.testing.clock import FrozenClock

Content = str | bytes | Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, its headers and a body."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """What stands at a path: the content may be made anew for each request."""

    content: Content
    media_type: str
    headers: Mapping[str, str]
    listed: bool  # in the sitemap
    modified_at: datetime

    def body(self) -> bytes:
        """The content as it is sent now."""
        content = self.content() if callable(self.content) else self.content
        return content.encode() if isinstance(content, str) else content

    def answer(self, *, etags: bool) -> Answer:
        """The page as a 200 with its validators."""
        body = self.body()
        headers = {
            "Content-Type": _content_type(self.media_type),
            "Last-Modified": http_date(self.modified_at),
        }
        if etags:
            headers["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        return Answer(status=200, headers={**headers, **self.headers}, body=body)


def notice(status: int, headers: Mapping[str, str] | None = None) -> Answer:
    """A small page that just names a status."""
    phrase = HTTPStatus(status).phrase
    body = f"<!doctype html><title>{status} {phrase}</title><h1>{phrase}</h1>\n".encode()
    return Answer(status=status, headers={"Content-Type": "text/html", **(headers or {})}, body=body)


def unless_known(answer: Answer, if_none_match: str | None, if_modified_since: str | None) -> Answer:
    """The answer, or a 304 where the validators of the request still hold (RFC 9110, 13.2.2)."""
    if answer.status != HTTPStatus.OK:
        return answer
    if if_none_match is not None:
        known = _matches(if_none_match, answer.headers.get("ETag"))
    else:
        known = _unmodified(if_modified_since, answer.headers.get("Last-Modified"))
    if not known:
        return answer
    kept = {name: value for name, value in answer.headers.items() if name != "Content-Type"}
    return replace(answer, status=HTTPStatus.NOT_MODIFIED, headers=kept, body=b"")


def http_date(at: datetime) -> str:
    """A time as HTTP writes it."""
    return format_datetime(at.astimezone(UTC), usegmt=True)


def _matches(if_none_match: str, etag: str | None) -> bool:
    if etag is None:
        return False
    asked = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
    return "*" in asked or etag.removeprefix("W/") in asked


def _unmodified(since: str | None, modified: str | None) -> bool:
    if not since or not modified:
        return False
    try:
        return parsedate_to_datetime(modified) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):
        return False


def _content_type(media_type: str) -> str:
    textual = media_type.startswith("text/") and "charset" not in media_type
    return f"{media_type}; charset=utf-8" if textual else media_type


class Gate:
    """Holds requests back; `wait` tells when they have come, `release` lets them through for good."""

    def __init__(self) -> None:
        self._open: Future[None] = Future()
        self._came = Condition()
        self._count = 0

    @property
    def waiting(self) -> int:
        """How many requests have come to the gate so far."""
        return self._count

    def wait(self, count: int = 1, *, timeout: float = 10.0) -> None:
        """Block until that many requests have come, or raise TimeoutError."""
        with self._came:
            if not self._came.wait_for(lambda: self._count >= count, timeout):
                raise TimeoutError(f"{self._count} of {count} requests came to the gate in {timeout} s")

    async def arrived(self, count: int = 1, *, timeout: float = 10.0) -> None:
        """The same for async code: the event loop goes on meanwhile."""
        await asyncio.to_thread(self.wait, count, timeout=timeout)

    def release(self) -> None:
        """Open the gate; doing it twice is harmless."""
        with self._came:
            if not self._open.done():
                self._open.set_result(None)

    async def passed(self) -> None:
        """Wait, on the server's loop, until the gate is open."""
        with self._came:
            self._count += 1
            self._came.notify_all()
        # Shielded, so that one client that hangs up does not open the gate for the others.
        await asyncio.shield(asyncio.wrap_future(self._open))


@dataclass(slots=True)
class _Trouble:
    """A scripted answer that stands before the page, for a number of requests or until it is lifted."""

    answer: Answer
    times: int | None = None


class SiteScript:
    """Pages that can be edited, deleted, moved, broken, slowed and held, from any thread.

    Times in Last-Modified are made up: each change is a minute later than the one before, so that
    two changes within one second can still be told apart.
    """

    def __init__(self, *, etags: bool = True) -> None:
        self._etags = etags
        self._lock = RLock()
        self._clock = FrozenClock()
        self._pages: dict[str, SitePage] = {}
        self._troubles: dict[str, _Trouble] = {}
        self._delays: dict[str, float] = {}
        self._gates: dict[str, Gate] = {}
        self._robots: str | None = None
        self._sitemap = False

    @property
    def paths(self) -> list[str]:
        """The paths that answer with a page of their own, in order."""
        with self._lock:
            return sorted(path for path in self._pages if path not in self._troubles)

    def put(
        self,
        path: str,
        html: Content,
        *,
        media_type: str = "text/html",
        headers: Mapping[str, str] | None = None,
        listed: bool = True,
    ) -> None:
        """Place a page, new or in the place of the old one; a callable makes its content for each request."""
        with self._lock:
            self._troubles.pop(path, None)
            self._pages[path] = SitePage(
                content=html,
                media_type=media_type,
                headers=dict(headers or {}),
                listed=listed,
                modified_at=self._clock.advance(60),
            )

    def read(self, path: str) -> str:
        """The content of a page as it would be sent now."""
        return self._page(path).body().decode()

    def edit(self, path: str, old: str = "", new: str = "", *, add_paragraph: str | None = None) -> None:
        """Replace a text of a page, or add a paragraph (plain text) at the end of its article."""
        with self._lock:
            html = self.read(path)
            if add_paragraph is not None:
                html = _with_paragraph(html, add_paragraph)
            elif not old or old not in html:
                raise ValueError(f"the page {path} does not contain {old!r}")
            else:
                html = html.replace(old, new)
            self._pages[path] = replace(self._page(path), content=html, modified_at=self._clock.advance(60))

    def touch(self, path: str) -> None:
        """Make a page look modified (Last-Modified) although its content is the same."""
        with self._lock:
            self._pages[path] = replace(self._page(path), modified_at=self._clock.advance(60))

    def delete(self, path: str) -> None:
        """Answer 404 from now on."""
        self.fail(path, 404)

    def gone(self, path: str) -> None:
        """Answer 410 from now on."""
        self.fail(path, 410)

    def move(self, path: str, to: str, *, permanent: bool = True) -> None:
        """Give a page a new path, unless there is one already, and redirect the old path there."""
        with self._lock:
            if path in self._pages and to.startswith("/"):
                self._pages.setdefault(to, self._pages[path])
            self.redirect(path, to, status=301 if permanent else 302)

    def redirect(self, path: str, to: str, *, status: int = 302) -> None:
        """Answer with a redirect and nothing else; `to` may be anything, even a loop."""
        with self._lock:
            self._troubles[path] = _Trouble(notice(status, {"Location": to}))

    def fail(
        self,
        path: str,
        status: int = 503,
        *,
        times: int | None = None,
        retry_after: int | str | None = None,
    ) -> None:
        """Answer with an error, for a number of requests or until `restore`."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        with self._lock:
            self._troubles[path] = _Trouble(notice(status, headers), times)

    def slow(self, path: str, seconds: float) -> None:
        """Let every answer of a path take that long."""
        with self._lock:
            self._delays[path] = seconds

    def hold(self, path: str) -> Gate:
        """Let requests for a path wait until `release`; the gate tells when they have come."""
        with self._lock:
            return self._gates.setdefault(path, Gate())

    def release(self, path: str) -> None:
        """Answer the requests that wait for a path, and hold none any more."""
        with self._lock:
            gate = self._gates.pop(path, None)
        if gate is not None:
            gate.release()

    def restore(self, path: str) -> None:
        """Take back every trouble of a path: deleted, gone, moved, failing, slow and held."""
        with self._lock:
            self._troubles.pop(path, None)
            self._delays.pop(path, None)
        self.release(path)

    def robots(self, text: str | None) -> None:
        """Serve this robots.txt ({url} stands for the root), or none."""
        with self._lock:
            self._robots = text

    def sitemap(self, on: bool) -> None:
        """Serve a sitemap.xml of the listed pages, or none."""
        with self._lock:
            self._sitemap = on

    # ---- what a request finds ---------------------------------------------------------------

    def delays(self, path: str) -> tuple[Gate | None, float]:
        """What an answer has to wait for: a gate, and then some seconds."""
        with self._lock:
            return self._gates.get(path), self._delays.get(path, 0.0)

    def find(self, path: str, root: str) -> Answer:
        """What stands at a path (with its query, or else without)."""
        with self._lock:
            for each in dict.fromkeys((path, path.partition("?")[0])):
                if trouble := self._trouble(each):
                    return trouble
                if page := self._pages.get(each):
                    return page.answer(etags=self._etags)
            return self._generated(path, root) or notice(404)

    def _trouble(self, path: str) -> Answer | None:
        trouble = self._troubles.get(path)
        if trouble is None:
            return None
        if trouble.times is not None:
            trouble.times -= 1
            if trouble.times <= 0:
                del self._troubles[path]
        return trouble.answer

    def _generated(self, path: str, root: str) -> Answer | None:
        if path == "/robots.txt" and self._robots is not None:
            text = self._robots.replace("{url}", root)
            return Answer(status=200, headers={"Content-Type": "text/plain"}, body=text.encode())
        if path == "/sitemap.xml" and self._sitemap:
            xml = self._sitemap_xml(root).encode()
            return Answer(status=200, headers={"Content-Type": "application/xml"}, body=xml)
        return None

    def _sitemap_xml(self, root: str) -> str:
        entries = "".join(
            f"  <url><loc>{escape(urljoin(root, path))}</loc>"
            f"<lastmod>{page.modified_at.date()}</lastmod></url>\n"
            for path, page in sorted(self._pages.items())
            if page.listed and page.media_type == "text/html" and path not in self._troubles
        )
        head = '<?xml version="1.0" encoding="UTF-8"?>\n'
        return f'{head}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'

    def _page(self, path: str) -> SitePage:
        with self._lock:
            if path not in self._pages:
                raise KeyError(f"no page at {path}; there are {', '.join(sorted(self._pages)) or 'none'}")
            return self._pages[path]


def _with_paragraph(html: str, text: str) -> str:
    for end in ("</article>", "</main>", "</body>"):
        before, found, after = html.rpartition(end)
        if found:
            return f"{before}<p>{escape(text)}</p>\n{found}{after}"
    return f"{html}\n<p>{escape(text)}</p>\n"
