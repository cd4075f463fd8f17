"""Which pages of a folder can be reached by links, told from the files alone."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser

START = "index.html"
_ORIGIN = "http://corpus.invalid/"


def reachable(root: Path, start: str = START) -> tuple[str, ...]:
    """The pages below root that links lead to from the start page, as sorted relative paths."""
    seen, waiting = {start}, deque([start])
    while waiting:
        page = waiting.popleft()
        for target in _targets(page, (root / page).read_bytes()):
            if target not in seen and (root / target).is_file():
                seen.add(target)
                waiting.append(target)
    return tuple(sorted(seen))


def _targets(page: str, html: bytes) -> Iterator[str]:
    for anchor in LexborHTMLParser(html).css("a[href]"):
        url, _ = urldefrag(urljoin(_ORIGIN + page, (anchor.attributes["href"] or "").strip()))
        if not url.startswith(_ORIGIN) or urlsplit(url).query:
            continue
        path = unquote(urlsplit(url).path).removeprefix("/")
        path += START if path in {"", "."} or path.endswith("/") else ""
        if path.endswith(".html") and ".." not in path.split("/"):
            yield path
