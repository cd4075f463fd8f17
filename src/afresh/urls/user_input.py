"""What a person types as an address."""

import re

from afresh.errors import UsageError
from afresh.urls.canonical import canonical

_LOCAL = re.compile(r"localhost(:\d+)?$|[\d.]+(:\d+)?$|\[")  # hosts that rarely speak https


def typed_address(raw_url: str) -> str:
    """The canonical form of what a person typed, or what to type instead."""
    text = raw_url.strip()
    host = text.split("/")[0]
    url = canonical(text) if "://" in text else None
    if "://" not in text and ("." in host or _LOCAL.match(host)):
        scheme = "http" if _LOCAL.match(host) else "https"
        url = canonical(f"{scheme}://{text}")
    if url is None and "@" in text:
        raise UsageError(f"{raw_url!r} holds a user name or password; leave it out, it is never sent")
    if url is None:
        raise UsageError(f"{raw_url!r} is not a web address; it should look like https://docs.example.org/")
    return url
