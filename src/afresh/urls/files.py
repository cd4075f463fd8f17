"""Files as addresses: `file:///…`, whatever bytes their names hold, and back."""

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

from ada_url import join_url

from afresh.urls.canonical import MAX_LENGTH, canonical

SCHEME = "file://"
_SAFE = "/!$&'()*+,;=:@~"  # what a path may hold as it is, by RFC 3986
_ELSEWHERE = re.compile(r"\s*(?://|\\\\|[A-Za-z][A-Za-z0-9+.-]*:)")  # a link that says where it begins


def file_url(path: str) -> str:
    """The address of an absolute path; bytes that are no text are escaped like all others."""
    return SCHEME + quote_from_bytes(path.encode("utf-8", "surrogateescape"), safe=_SAFE)


def path_of(url: str) -> str:
    """The path of a file address, as the operating system's calls take it."""
    return unquote_to_bytes(url.removeprefix(SCHEME)).decode("utf-8", "surrogateescape")


def is_file_url(url: str) -> bool:
    """Whether an address names a file of this machine."""
    return url.startswith(SCHEME + "/")


def link_target(raw_url: str, base: str) -> str | None:
    """The address that a link leads to, None for none; files name files beside them, web pages never do."""
    url = canonical(raw_url, base)
    if url is not None or not is_file_url(base) or _ELSEWHERE.match(raw_url):
        return url
    try:
        joined = join_url(base, raw_url.partition("#")[0].partition("?")[0])
    except ValueError:
        return None
    found = file_url(path_of(joined))
    return found if len(found) <= MAX_LENGTH else None
