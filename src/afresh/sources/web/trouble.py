"""Turns what the HTTP library raises into a look that failed or was refused, in one short sentence."""

import os
import ssl
from collections.abc import Iterator

from afresh.model.fetch import Failed, Outcome, Refused
from afresh.sources.web.client import aiohttp
from afresh.sources.web.guard import ELSEWHERE, SERVICE, AddressRefused
from afresh.text.redact import NOT_ALLOWED

RAISED = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
VARIABLE = "AFRESH_NETWORK__ALLOW"
_PLAIN = " (does it speak plain http?)"


def trouble(error: BaseException, host: str, connect_seconds: float) -> Failed | Refused:
    """What an exception during a request means."""
    refused = next((cause for cause in _causes(error) if isinstance(cause, AddressRefused)), None)
    if refused is not None:
        return Refused(outcome=Outcome.FAILED, reason=not_allowed(host, refused.kind))
    if isinstance(error, TimeoutError):
        late = f"no connection to {host} within {connect_seconds:g} s"
        return Failed(outcome=Outcome.TIMEOUT, reason=late)
    return Failed(outcome=Outcome.FAILED, reason=_words(error, host))


def not_allowed(host: str, kind: str) -> str:
    """The refusal for the operator: never the address behind a name, always the rule and the way out."""
    if kind.endswith(ELSEWHERE):
        return f"{NOT_ALLOWED}: {host} is {kind}"
    entry = "its address" if kind is SERVICE else f'"{host}"'
    return f"{NOT_ALLOWED}: {host} is {kind}; if it may be read, add {entry} to network.allow ({VARIABLE})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


def _words(error: BaseException, host: str) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the name {host} cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return f"the TLS certificate of {host} is not valid"
        case aiohttp.ClientConnectorError():
            return _unconnected(error, host)
        case aiohttp.ServerDisconnectedError():
            return f"{host} closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "the body broke off or was framed wrongly"
        case aiohttp.ClientResponseError():
            return f"{host} did not answer in valid HTTP"
        case aiohttp.InvalidURL():
            return "the address cannot be asked for"
    return f"the connection to {host} broke"


def _unconnected(error: aiohttp.ClientConnectorError, host: str) -> str:
    """The library's own words name the address, which is nobody's business."""
    inner = error.os_error
    if isinstance(inner, ssl.SSLError):
        spoke_tls = "ALERT" in (inner.reason or "")
        return f"no TLS connection to {host}" + ("" if spoke_tls else _PLAIN)
    if error.errno:
        return f"no connection to {host}: {os.strerror(error.errno).lower()}"
    tls = isinstance(error.ssl, ssl.SSLContext)
    return f"no TLS connection to {host}{_PLAIN}" if tls else f"no connection to {host}"
