"""Define what all HTTP clients share: TLS and error messages."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from afresh.model.fetch import Failed, Outcome, Refused
from afresh.sources.web.guard import ELSEWHERE, SERVICE, AddressRefused
from afresh.text.redact import NOT_ALLOWED


@contextmanager
def certificates_later() -> Iterator[None]:
    """Prevent aiohttp from loading all certificates when it is imported in this context, which saves 0.1 seconds.

    The TLS contexts that aiohttp creates then trust no certificate, so requests must use `trusted()`.
    """
    read = ssl.SSLContext.set_default_verify_paths
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ssl.SSLContext.set_default_verify_paths = read  # type: ignore[method-assign]


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context for all https requests, which verifies certificates and host names."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


with certificates_later():
    import aiohttp
    from aiohttp.abc import AbstractResolver
    from aiohttp.http import HttpProcessingError

__all__ = ["AbstractResolver", "HttpProcessingError", "aiohttp"]  # import them from here, not from aiohttp


class NotHttp(aiohttp.ClientError):
    """Raised if a response is not valid HTTP."""


RAISED = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
VARIABLE = "AFRESH_NETWORK__ALLOW"
_PLAIN = " (does the host only support http?)"


def request_failure(error: BaseException, host: str, connect_seconds: float) -> Failed | Refused:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressRefused):
            return Refused(reason=not_allowed(host, cause.kind))
        cause = cause.__cause__
    if isinstance(error, TimeoutError):
        late = f"no connection to {host} within {connect_seconds:g} s"
        return Failed(outcome=Outcome.TIMEOUT, reason=late)
    return Failed(reason=_words(error, host))


def not_allowed(host: str, kind: str) -> str:
    """Return why a host is blocked and how to allow it, without revealing the IP address of a name."""
    if kind.endswith(ELSEWHERE):
        return f"{NOT_ALLOWED}: {host} is {kind}"
    entry = "its address" if kind is SERVICE else f'"{host}"'
    return f"{NOT_ALLOWED}: {host} is {kind}; to allow it, add {entry} to network.allow ({VARIABLE})"


def _words(error: BaseException, host: str) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the name {host} cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return f"the TLS certificate of {host} is not valid"
        case aiohttp.ClientConnectorError():
            return _unconnected(error, host)
        case aiohttp.ServerDisconnectedError():
            return f"{host} closed the connection without a response"
        case aiohttp.ClientPayloadError():
            return "the body ended early or is malformed"
        case NotHttp():
            return f"{host} did not answer with valid HTTP"
        case aiohttp.InvalidURL():
            return "the URL is not valid"
    return f"the connection to {host} was lost"


def _unconnected(error: aiohttp.ClientConnectorError, host: str) -> str:
    """Describe a failed connection, without aiohttp's message, which contains the IP address."""
    inner = error.os_error
    if isinstance(inner, ssl.SSLError):
        spoke_tls = "ALERT" in (inner.reason or "")
        return f"no TLS connection to {host}" + ("" if spoke_tls else _PLAIN)
    if error.errno:
        return f"no connection to {host}: {os.strerror(error.errno).lower()}"
    tls = isinstance(error.ssl, ssl.SSLContext)
    return f"no TLS connection to {host}{_PLAIN}" if tls else f"no connection to {host}"
