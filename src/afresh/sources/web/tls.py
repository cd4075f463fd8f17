"""TLS: the certificates of the system are read once, when https is first spoken."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def certificates_later() -> Iterator[None]:
    """Import aiohttp in here: it would read all certificates twice, which is a tenth of a second.

    Its own contexts then trust nobody, so whoever forgets to pass `trusted()` fails closed.
    """
    read = ssl.SSLContext.set_default_verify_paths
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ssl.SSLContext.set_default_verify_paths = read  # type: ignore[method-assign]


@cache
def trusted() -> ssl.SSLContext:
    """The context for every https request: certificates and names are checked."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
