"""How much one caller may ask for: requests by a bucket that fills again, bodies by size and time."""

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from afresh.server.asgi import Message, Receive, Refused, Scope, value
from afresh.text.json_input import count_values

MAX_FORM_FIELDS = 100
MAX_FIELD_BYTES = 65_536  # of one field of a form, as it is sent
MAX_BODY_VALUES = 20_000  # of JSON
MOST_CALLERS = 10_000  # that are remembered; the one who was away for longest is forgotten


class Buckets:
    """One bucket of requests for each caller."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, since when

    def take(self, who: str) -> float:
        """Take one; the seconds until there is one again if there was none."""
        left = self._now(who)
        if left < 1:
            return (1 - left) / self._rate
        self._left[who] = (left - 1, self._clock())
        self._left.move_to_end(who)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        return 0.0

    def _now(self, who: str) -> float:
        left, since = self._left.get(who, (float(self._burst), 0.0))
        return min(float(self._burst), left + max(0.0, self._clock() - since) * self._rate)


def too_many(seconds: float) -> Refused:
    """The refusal of one request too many."""
    return Refused(429, "too many requests: wait a moment", retry_after=str(max(1, round(seconds + 0.5))))


def caller(peer: str | None) -> str:
    """Whom a peer counts as: whoever has one IPv6 address has all of its network."""
    try:
        address = ipaddress.ip_address(peer or "")
    except ValueError:
        return "unknown"
    if address.version == 6 and not address.is_loopback and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


async def body_of(scope: Scope, receive: Receive, largest: int, seconds: float) -> bytes:
    """The whole body of a request, refused where it is too large or too slow."""
    length = value(scope, b"content-length")
    if length is not None and length.isdigit() and int(length) > largest:
        raise Refused(413, f"a body has at most {largest:,} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "the caller left before the end of the body")
                body += message.get("body", b"")
                if len(body) > largest:
                    raise Refused(413, f"a body has at most {largest:,} bytes")
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise Refused(408, f"the body took longer than {seconds:g} s") from None


def gathered(scope: Scope, receive: Receive, largest: int, seconds: float) -> Receive:
    """What hands over a whole body when it is asked for, and not before."""
    body: bytes | None = None

    async def once() -> Message:
        nonlocal body
        if body is not None:
            return await receive()
        body = await body_of(scope, receive, largest, seconds)
        return {"type": "http.request", "body": body, "more_body": False}

    return once


def check_shape(scope: Scope, body: bytes) -> None:
    """Refuse a body that is small in bytes and makes much work: many values, many or endless fields."""
    media = (value(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if media == "application/x-www-form-urlencoded":
        fields = body.split(b"&", MAX_FORM_FIELDS)
        if len(fields) > MAX_FORM_FIELDS:
            raise Refused(413, f"a form has at most {MAX_FORM_FIELDS} fields")
        if max(map(len, fields)) > MAX_FIELD_BYTES:
            raise Refused(413, f"a field of a form has at most {MAX_FIELD_BYTES:,} bytes")
    elif count_values(body) > MAX_BODY_VALUES:
        raise Refused(413, f"a body has at most {MAX_BODY_VALUES:,} values")


def replayed(body: bytes, receive: Receive) -> Receive:
    """What hands over a body that was read, and then goes on."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again
