"""Check host, origin, rate, size and duration of requests.

A page of another site can make a browser send requests to this machine, under that site's own name (DNS
rebinding) or from its own origin (a form, an image, a script). The headers `Host`, `Origin` and
`Sec-Fetch-Site` reveal such requests, because a page cannot change them.
"""

import asyncio
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.types import Message, Receive, Scope

from afresh.config.server import AccessSettings
from afresh.server.asgi import RequestRefused, value, values
from afresh.text.json_input import count_values

MAX_FORM_FIELDS = 100
MAX_FIELD_BYTES = 65_536  # of one form field, still encoded
MAX_BODY_VALUES = 20_000  # of JSON
MAX_CALLERS = 10_000  # beyond this number, the least recently seen caller is dropped
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")
_FORWARDED = {b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"via"}


class RateLimiter:
    """Token buckets that limit the requests of each caller."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        # tokens left, and when that was counted, by caller
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Count a request of a caller; return 0, or the seconds to wait if the caller sent too many requests."""
        left, since = self._left.get(caller, (float(self._burst), 0.0))
        left = min(float(self._burst), left + max(0.0, self._clock() - since) * self._rate)
        if left < 1:
            return (1 - left) / self._rate
        self._left[caller] = (left - 1, self._clock())
        self._left.move_to_end(caller)
        if len(self._left) > MAX_CALLERS:
            self._left.popitem(last=False)
        return 0.0


def too_many(seconds: float) -> RequestRefused:
    return RequestRefused(429, "Too many requests. Wait a moment.", retry_after=str(max(1, round(seconds + 0.5))))


def caller(peer: str | None) -> str:
    """Return the key under which requests of a peer are counted; an IPv6 address counts as its /64 network."""
    try:
        address = ipaddress.ip_address(peer or "")
    except ValueError:
        return "unknown"
    if address.version == 6 and not address.is_loopback and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


async def read_body(scope: Scope, receive: Receive, settings: AccessSettings) -> bytes:
    """Return the whole body of a request; refuse one that is too large or too slow."""
    largest, seconds = settings.max_body_bytes, settings.body_seconds
    too_large = RequestRefused(413, f"The body is larger than {largest:,} bytes.")
    length = value(scope, b"content-length")
    if length is not None and length.isdigit() and int(length) > largest:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestRefused(400, "The connection closed before the end of the body.")
                body += message.get("body", b"")
                if len(body) > largest:
                    raise too_large
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise RequestRefused(408, f"The body took longer than {seconds:g} s.") from None


def media_of(scope: Scope) -> str:
    return (value(scope, b"content-type") or "").partition(";")[0].strip().lower()


def check_shape(scope: Scope, body: bytes) -> None:
    """Refuse a body that is small but expensive to parse: too many values or fields, or long fields."""
    if media_of(scope) == "application/x-www-form-urlencoded":
        fields = body.split(b"&", MAX_FORM_FIELDS)
        if len(fields) > MAX_FORM_FIELDS:
            raise RequestRefused(413, f"The form has more than {MAX_FORM_FIELDS} fields.")
        if max(map(len, fields)) > MAX_FIELD_BYTES:
            raise RequestRefused(413, f"A field of the form is larger than {MAX_FIELD_BYTES:,} bytes.")
    elif count_values(body) > MAX_BODY_VALUES:
        raise RequestRefused(413, f"The body has more than {MAX_BODY_VALUES:,} values.")


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns a body that was already read, then calls the given `receive`."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def host_of(scope: Scope) -> tuple[str, str]:
    found = values(scope, b"host")
    parsed = _HOST.fullmatch(found[0].lower()) if len(found) == 1 else None
    if parsed is None:
        raise RequestRefused(400, "The request needs exactly one valid Host header.")
    name = parsed[1].strip("[]").rstrip(".")
    return name, f"{parsed[1]}:{parsed[2]}" if parsed[2] else parsed[1]


def is_loopback(name: str) -> bool:
    """Return whether a name or an IP address is this machine, independent of DNS."""
    address = address_of(name)
    return name == "localhost" if address is None else address.is_loopback


def address_of(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def peer_of(scope: Scope) -> str | None:
    client = scope.get("client")
    return str(client[0]) if client else None


def is_local(scope: Scope) -> bool:
    """Return whether a request came from this machine and not through a proxy on it."""
    peer = peer_of(scope)
    passed_on = any(name in _FORWARDED for name, _ in scope["headers"])
    return peer is not None and is_loopback(peer) and not passed_on


def check_host(scope: Scope, allowed: Collection[str], *, addresses: bool) -> None:
    """Refuse a request whose Host is not a name of this server; with `addresses`, accept every IP address."""
    name, whole = host_of(scope)
    ours, is_address = is_loopback(name) or name in allowed or whole in allowed, address_of(name) is not None
    if not ours and not (addresses and is_address):  # DNS rebinding needs a name
        how = f'Host "{name}" is not allowed. Add it to `access.hosts`.'
        if is_address:
            how = "No tokens exist yet, so only this machine can connect. Create one with `afresh token create`."
        raise RequestRefused(421, how)


def is_own_origin(scope: Scope, allowed: Collection[str] = ()) -> bool:
    host = host_of(scope)[1]
    return (value(scope, b"origin") or "").lower() in {f"http://{host}", f"https://{host}", *allowed}


def comes_from_us(scope: Scope) -> bool:
    """Return whether a browser says that a page of this server sent the request; False if it says nothing."""
    if values(scope, b"origin"):
        return is_own_origin(scope)
    return value(scope, b"sec-fetch-site") == "same-origin"


def is_from_other_site(scope: Scope) -> bool:
    """Return whether a page of another site led the browser here; a GET must then not start any work."""
    if values(scope, b"sec-fetch-site"):
        return value(scope, b"sec-fetch-site") not in ("same-origin", "none")
    referer = urlsplit(value(scope, b"referer") or "")  # browsers before 2023 send only this
    return bool(referer.netloc) and referer.netloc.lower() != host_of(scope)[1]


def check_origin(scope: Scope, allowed: Collection[str]) -> None:
    """Refuse requests from pages of other sites, except for followed links."""
    if values(scope, b"origin"):
        if not is_own_origin(scope, allowed):
            raise RequestRefused(403, "Cross-origin request blocked. `access.origins` lists the allowed sites.")
        return
    if value(scope, b"sec-fetch-site") in (None, "same-origin", "none"):
        return
    follows = value(scope, b"sec-fetch-mode") == "navigate" and value(scope, b"sec-fetch-dest") == "document"
    if scope["method"] not in ("GET", "HEAD") or not follows:
        raise RequestRefused(403, "Cross-origin request blocked.")
