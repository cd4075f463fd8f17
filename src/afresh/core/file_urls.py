"""Files as addresses: `file:///…`, whatever bytes their names hold, and back."""

from urllib.parse import quote_from_bytes, unquote_to_bytes

SCHEME = "file://"
_SAFE = "/!$&'()*+,;=:@~"  # what a path may hold as it is, by RFC 3986


def file_url(path: str) -> str:
    """The address of an absolute path; bytes that are no text are escaped like all others."""
    return SCHEME + quote_from_bytes(path.encode("utf-8", "surrogateescape"), safe=_SAFE)


def path_of(url: str) -> str:
    """The path of a file address, as the operating system's calls take it."""
    return unquote_to_bytes(url.removeprefix(SCHEME)).decode("utf-8", "surrogateescape")


def is_file_url(url: str) -> bool:
    """Whether an address names a file of this machine."""
    return url.startswith(SCHEME + "/")
