"""Convert file paths to `file:///…` URLs and back; file names may contain any bytes."""

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

from afresh.urls.canonical import MAX_LENGTH, canonical, join_url

SCHEME = "file://"
_SAFE = "/!$&'()*+,;=:@~"  # characters that RFC 3986 allows in a path without escaping
_ELSEWHERE = re.compile(r"\s*(?://|\\\\|[A-Za-z][A-Za-z0-9+.-]*:)")  # the start of a link with a scheme or host


def file_url(path: str) -> str:
    """Return the URL of an absolute path; percent-encode bytes that are not valid UTF-8."""
    return SCHEME + quote_from_bytes(path.encode("utf-8", "surrogateescape"), safe=_SAFE)


def path_of(url: str) -> str:
    """Return the path in a file URL, as the operating system writes it."""
    return unquote_to_bytes(url.removeprefix(SCHEME)).decode("utf-8", "surrogateescape")


def is_file_url(url: str) -> bool:
    return url.startswith(SCHEME + "/")


def link_target(raw_url: str, base: str) -> str | None:
    """Return the canonical target of a link; None if it is invalid, or a web page links to a file."""
    url = canonical(raw_url, base)
    if url is not None or not is_file_url(base) or _ELSEWHERE.match(raw_url):
        return url
    try:
        joined = join_url(base, raw_url.partition("#")[0].partition("?")[0])
    except ValueError:
        return None
    found = file_url(path_of(joined))
    return found if len(found) <= MAX_LENGTH else None
