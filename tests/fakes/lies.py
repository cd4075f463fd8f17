"""Scripts of HostileSite that are good HTTP and bad content: lies, walls, emptied pages, traps."""

import re
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from http import HTTPStatus
from typing import Literal

from tests.fakes.hostile import Script
from tests.fakes.wire import Reply

from afresh.testing.script import Answer, notice
from afresh.testing.site import RecordedRequest

Wall = Literal["login", "challenge", "consent"]
_WALLS: Mapping[str, tuple[str, str]] = {
    "login": (
        "Sign in",
        '<p>Please sign in to continue.</p><form action="/login" method="post">'
        '<label>User name <input name="user"></label>'
        '<label>Password <input type="password" name="password"></label><button>Sign in</button></form>',
    ),
    "challenge": (
        "Just a moment...",
        "<p>Checking your browser before you can go on. This takes a few seconds.</p>"
        '<noscript>Please enable JavaScript and cookies to continue.</noscript><div id="challenge"></div>',
    ),
    "consent": (
        "Before you continue",
        "<p>We and our partners use cookies and other data. Please choose what you allow.</p>"
        "<button>Accept all</button><button>Reject all</button>",
    ),
}
_EMPTY = {
    "none": b"",
    "blanks": b" \r\n\t" * 50,
    "shell": b'<!doctype html><html><head><title></title></head><body><div id="app"></div></body></html>',
}


def ok(title: str, body: str, **headers: str) -> Answer:
    """A page of a heading and some markup."""
    html = (
        f"<!doctype html><html lang=en><head><title>{escape(title)}</title></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Answer(status=200, headers={"Content-Type": "text/html", **named}, body=html.encode())


# ---- validators -----------------------------------------------------------------------------------


def same_etag(etag: str = '"one"') -> Script:
    """Always the page in full, always under one ETag, whatever it holds."""
    return lambda asked, own: replace(own, headers={**_unvalidated(own), "ETag": etag})


def always_304(etag: str = '"one"') -> Script:
    """The page for those who ask plainly; 304 for all who ask conditionally, whatever has changed."""

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        headers = {**_unvalidated(own), "ETag": etag}
        if asked.conditional:
            return Answer(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag})
        return replace(own, headers=headers)

    return script


def new_etags() -> Script:
    """Always the page in full, under another ETag each time."""
    return lambda asked, own: replace(own, headers={**_unvalidated(own), "ETag": f'"v{asked.visit}"'})


def _unvalidated(own: Answer) -> dict[str, str]:
    return {name: value for name, value in own.headers.items() if name not in ("ETag", "Last-Modified")}


# ---- statuses and redirects -----------------------------------------------------------------------


def in_turn(*scripts: Script | None) -> Script:
    """One script per visit, over and over; None is the site's own answer."""

    def script(asked: RecordedRequest, own: Answer) -> Reply | Answer:
        turn = scripts[(asked.visit - 1) % len(scripts)]
        if turn is None:
            return own
        return turn if isinstance(turn, bytes) else turn(asked, own)

    return script


def status(code: int, **headers: str) -> Script:
    """A bare status, whoever asks."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return lambda asked, own: notice(code, named)


def flap(code: int = 404) -> Script:
    """The page and a status by turns, the page first."""
    return in_turn(None, status(code))


def busy(code: int = 503, retry_after: str = "1") -> Script:
    """Come back later."""
    return status(code, retry_after=retry_after)


def hop(to: str, code: int = 302) -> Script:
    """A redirect to anything: itself, a loop, another host, a file."""
    return lambda asked, own: notice(code, {"Location": to})


def chain(prefix: str, code: int = 302) -> Script:
    """/hop/1 leads to /hop/2 and so on, without end."""

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        number = int(asked.path.removeprefix(prefix) or 0)
        return notice(code, {"Location": f"{prefix}{number + 1}"})

    return script


def to_login(code: int = 302, login: str = "/login") -> Script:
    """Every path leads to the login page."""

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        if asked.path.partition("?")[0] == login:
            return ok(*_WALLS["login"])
        return notice(code, {"Location": f"{login}?next={asked.path}"})

    return script


# ---- content --------------------------------------------------------------------------------------


def wall(kind: Wall = "login", *, naming_path: bool = True) -> Script:
    """A login, challenge or consent page with status 200, which differs only in the path it names."""
    title, body = _WALLS[kind]

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        note = f'<input type="hidden" name="next" value="{escape(asked.path)}">' if naming_path else ""
        return ok(title, body + note)

    return script


def soft_404(naming_path: bool = True) -> Script:
    """`Page not found`, with status 200."""

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        what = f" <code>{escape(asked.path)}</code>" if naming_path else ""
        text = f"<p>Sorry, the page{what} you are looking for does not exist or was moved.</p>"
        return ok("Page not found", text + '<p>Go back to the <a href="/">start page</a>.</p>')

    return script


def emptied(kind: Literal["none", "blanks", "shell"] = "none") -> Script:
    """A 200 without content: no byte, only blanks, or markup without text."""
    body = _EMPTY[kind]
    return lambda asked, own: Answer(status=200, headers={"Content-Type": "text/html"}, body=body)


def shrunken(share: float = 0.05) -> Script:
    """The site's own page with only the first part of the text of its paragraphs."""

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        def cut(found: re.Match[bytes]) -> bytes:
            return b"<p>" + found[1][: max(1, int(len(found[1]) * share))] + b"</p>"

        body = re.sub(rb"<p>(.*?)</p>", cut, own.body, flags=re.DOTALL)
        return Answer(status=own.status, headers=_unvalidated(own), body=body)

    return script


# ---- traps ----------------------------------------------------------------------------------------


def calendar(prefix: str) -> Script:
    """A month per page, each of which leads to the next and the one before, for ever."""

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        year, _, month = asked.path.removeprefix(prefix).partition("/")
        here = int(year or 2026) * 12 + int(month or 1) - 1
        near = [f"{prefix}{each // 12}/{each % 12 + 1}" for each in (here - 1, here + 1)]
        return ok(f"Events {here // 12}-{here % 12 + 1}", _links(near))

    return script


def pager(path: str, parameter: str = "page") -> Script:
    """Lists without a last page."""

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        number = int(asked.path.partition(f"{parameter}=")[2] or 1)
        return ok(f"List {number}", _links([f"{path}?{parameter}={number + 1}"]))

    return script


def sessions(path: str, parameter: str = "sid") -> Script:
    """The same page under a new session id with every visit."""

    def script(asked: RecordedRequest, own: Answer) -> Answer:
        seed = sum(map(ord, asked.path)) * 7919 + asked.visit
        links = [f"{path}?{parameter}={(seed + n) * 2654435761 % 2**64:016x}" for n in range(5)]
        return ok("Welcome back", _links(links))

    return script


def deeper(prefix: str) -> Script:
    """A relative link that makes the path longer with every step: /a/a/a/…"""
    name = prefix.strip("/").rpartition("/")[2]
    return lambda asked, own: ok(f"Depth {asked.path.count('/')}", _links([f"{name}/"]))


def _links(targets: list[str]) -> str:
    items = "".join(f'<li><a href="{escape(each)}">{escape(each)}</a></li>' for each in targets)
    return f"<p>Nothing to see here but the way on.</p><ul>{items}</ul>"
