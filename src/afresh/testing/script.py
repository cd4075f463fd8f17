"""Provide a scripted site (pages, failures, gates, conditional requests), a clock and a fetcher, without sockets."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus
from threading import Condition, RLock
from urllib.parse import urljoin
from xml.sax.saxutils import escape

from afresh.dataclass import dataclass, field, replace
from afresh.model.fetch import Fetched, Gone, Request

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
Content = str | bytes | Callable[[], str]


class FrozenClock:
    """Implements `ports.Clock`: the time stands still until the test changes it."""

    def __init__(self, at: datetime = START) -> None:
        self._at = _utc(at)

    def __call__(self) -> datetime:
        return self._at

    def advance(self, seconds: float = 0.0, **more: float) -> datetime:
        """Change the time by the arguments of `timedelta`, also backwards."""
        self._at += timedelta(seconds=seconds, **more)
        return self._at

    def set(self, at: datetime) -> None:
        self._at = _utc(at)


def _utc(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no time zone: write datetime(…, tzinfo=UTC)")
    return at.astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """A page of a scripted site; if `content` is a function, it is called for each request."""

    content: Content
    media_type: str
    headers: Mapping[str, str]
    listed: bool  # whether the sitemap contains the page
    modified_at: datetime

    def body(self) -> bytes:
        content = self.content() if callable(self.content) else self.content
        return content.encode() if isinstance(content, str) else content

    def answer(self, *, etags: bool) -> Answer:
        body = self.body()
        headers = {"Content-Type": _content_type(self.media_type), "Last-Modified": http_date(self.modified_at)}
        if etags:
            headers["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        return Answer(status=200, headers={**headers, **self.headers}, body=body)


def notice(status: int, headers: Mapping[str, str] | None = None) -> Answer:
    phrase = HTTPStatus(status).phrase
    body = f"<!doctype html><title>{status} {phrase}</title><h1>{phrase}</h1>\n".encode()
    return Answer(status=status, headers={"Content-Type": "text/html", **(headers or {})}, body=body)


def unless_known(answer: Answer, if_none_match: str | None, if_modified_since: str | None) -> Answer:
    """Return the answer, or a 304 if the client has it, by the validators of its request (RFC 9110, 13.2.2)."""
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
    """Holds requests: `wait` returns when they have arrived, `release` lets them continue."""

    def __init__(self) -> None:
        self._open: Future[None] = Future()
        self._came = Condition()
        self.waiting = 0

    def wait(self, count: int = 1, *, timeout: float = 10.0) -> None:
        with self._came:
            if not self._came.wait_for(lambda: self.waiting >= count, timeout):
                raise TimeoutError(f"only {self.waiting} of {count} requests arrived at the gate within {timeout} s")

    async def arrived(self, count: int = 1, *, timeout: float = 10.0) -> None:
        """Wait until `count` requests have arrived, without blocking the event loop."""
        await asyncio.to_thread(self.wait, count, timeout=timeout)

    def release(self) -> None:
        with self._came:
            if not self._open.done():
                self._open.set_result(None)

    async def passed(self) -> None:
        """Let a request wait, on the event loop of the server, until the gate is open."""
        with self._came:
            self.waiting += 1
            self._came.notify_all()
        # Shielded, so that a client that disconnects does not open the gate for other requests.
        await asyncio.shield(asyncio.wrap_future(self._open))


@dataclass(slots=True)
class _ScriptedAnswer:
    answer: Answer
    times: int | None = None


class SiteScript:
    """A site whose pages can be edited, deleted, moved, broken, slowed and held from any thread."""

    def __init__(self, *, etags: bool = True) -> None:
        self._etags = etags
        self._lock = RLock()
        self._clock = FrozenClock()  # for Last-Modified: each change comes a minute after the last one
        self._pages: dict[str, SitePage] = {}
        self._scripted: dict[str, _ScriptedAnswer] = {}
        self._delays: dict[str, float] = {}
        self._gates: dict[str, Gate] = {}
        self._robots: str | None = None
        self._sitemap = False

    @property
    def paths(self) -> list[str]:
        """Return the paths of all pages that no scripted answer replaces."""
        with self._lock:
            return sorted(path for path in self._pages if path not in self._scripted)

    def put(
        self,
        path: str,
        html: Content,
        *,
        media_type: str = "text/html",
        headers: Mapping[str, str] | None = None,
        listed: bool = True,
    ) -> None:
        """Add or replace a page; a function `html` is called for each request."""
        with self._lock:
            self._scripted.pop(path, None)
            self._pages[path] = SitePage(
                content=html,
                media_type=media_type,
                headers=dict(headers or {}),
                listed=listed,
                modified_at=self._clock.advance(60),
            )

    def read(self, path: str) -> str:
        return self._page(path).body().decode()

    def edit(self, path: str, old: str = "", new: str = "", *, add_paragraph: str | None = None) -> None:
        """Replace text of a page, or add a paragraph of plain text to its article."""
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
        with self._lock:
            self._pages[path] = replace(self._page(path), modified_at=self._clock.advance(60))

    def delete(self, path: str) -> None:
        self.fail(path, 404)

    def gone(self, path: str) -> None:
        self.fail(path, 410)

    def move(self, path: str, to: str, *, permanent: bool = True) -> None:
        """Move a page to a new path, and redirect the old path; if the new path already has a page, keep that page."""
        with self._lock:
            if path in self._pages and to.startswith("/"):
                self._pages.setdefault(to, self._pages[path])
            self.redirect(path, to, status=301 if permanent else 302)

    def redirect(self, path: str, to: str, *, status: int = 302) -> None:
        """Redirect a path to any text, which may be invalid or cause a loop."""
        with self._lock:
            self._scripted[path] = _ScriptedAnswer(notice(status, {"Location": to}))

    def fail(
        self, path: str, status: int = 503, *, times: int | None = None, retry_after: int | str | None = None
    ) -> None:
        """Answer requests for a path with an error, the next `times` or until `restore`."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        with self._lock:
            self._scripted[path] = _ScriptedAnswer(notice(status, headers), times)

    def slow(self, path: str, seconds: float) -> None:
        with self._lock:
            self._delays[path] = seconds

    def hold(self, path: str) -> Gate:
        """Hold requests for a path until `release`."""
        with self._lock:
            return self._gates.setdefault(path, Gate())

    def release(self, path: str) -> None:
        """Answer the held requests for a path, and hold no more."""
        with self._lock:
            gate = self._gates.pop(path, None)
        if gate is not None:
            gate.release()

    def restore(self, path: str) -> None:
        with self._lock:
            self._scripted.pop(path, None)
            self._delays.pop(path, None)
        self.release(path)

    def robots(self, text: str | None) -> None:
        """Serve this text as robots.txt, with `{url}` replaced by the root URL; None: no robots.txt."""
        with self._lock:
            self._robots = text

    def sitemap(self, on: bool) -> None:
        with self._lock:
            self._sitemap = on

    def delays(self, path: str) -> tuple[Gate | None, float]:
        """Return the gate at which requests for a path wait, if any, and the seconds of delay after it."""
        with self._lock:
            return self._gates.get(path), self._delays.get(path, 0.0)

    def find(self, path: str, root: str) -> Answer:
        """Return the answer for a path with its query or, if none is scripted for this query, for the path alone."""
        with self._lock:
            for each in dict.fromkeys((path, path.partition("?")[0])):
                if scripted := self._scripted_answer(each):
                    return scripted
                if page := self._pages.get(each):
                    return page.answer(etags=self._etags)
            return self._generated(path, root) or notice(404)

    def _scripted_answer(self, path: str) -> Answer | None:
        scripted = self._scripted.get(path)
        if scripted is None:
            return None
        if scripted.times is not None:
            scripted.times -= 1
            if scripted.times <= 0:
                del self._scripted[path]
        return scripted.answer

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
            f"  <url><loc>{escape(urljoin(root, path))}</loc><lastmod>{page.modified_at.date()}</lastmod></url>\n"
            for path, page in sorted(self._pages.items())
            if page.listed and page.media_type == "text/html" and path not in self._scripted
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


class ScriptedFetcher:
    """Implements `ports.Fetcher`: returns the scripted results of a URL in turn; other URLs are `Gone`."""

    def __init__(self, answers: Mapping[str, Sequence[Fetched]] | None = None) -> None:
        self.answers: dict[str, list[Fetched]] = {url: list(each) for url, each in (answers or {}).items()}
        self.requests: list[Request] = []
        self.closed = False

    async def fetch(self, request: Request) -> Fetched:
        self.requests.append(request)
        left = self.answers.get(request.url)
        if not left:
            return Gone()
        return left.pop(0) if len(left) > 1 else left[0]

    def say(self, url: str, *answers: Fetched) -> None:
        self.answers[url] = list(answers)

    def count(self, url: str) -> int:
        return sum(1 for request in self.requests if request.url == url)

    async def close(self) -> None:
        self.closed = True
