"""By which name a request came, and from which page: what rebinding and cross-site calls cannot fake.

A page of another site can make a browser ask this machine, under that site's own name (DNS rebinding) or
from its own origin (a form, an image, a script). It can set neither `Host` nor `Origin` nor `Sec-Fetch-Site`.
"""

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from afresh.server.asgi import Refused, Scope, value, values

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")
_FORWARDED = frozenset(
    (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"via")
)


def host_of(scope: Scope) -> tuple[str, str]:
    """The name that a request was sent to, and the same with its port."""
    found = values(scope, b"host")
    parsed = _HOST.fullmatch(found[0].lower()) if len(found) == 1 else None
    if parsed is None:
        raise Refused(400, "a request names exactly one host")
    name = parsed[1].strip("[]").rstrip(".")
    return name, f"{parsed[1]}:{parsed[2]}" if parsed[2] else parsed[1]


def is_loopback(name: str) -> bool:
    """Whether a name or an address means this machine, whatever any DNS says."""
    address = _address(name)
    return name == "localhost" if address is None else address.is_loopback


def is_address(name: str) -> bool:
    """Whether a name is an address, which nobody can bind anew."""
    return _address(name) is not None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def peer_of(scope: Scope) -> str | None:
    """The address that a request came from."""
    client = scope.get("client")
    return str(client[0]) if client else None


def is_local(scope: Scope) -> bool:
    """Whether a request came from this machine and was not passed on by something on it."""
    peer = peer_of(scope)
    passed_on = any(name in _FORWARDED for name, _ in scope["headers"])
    return peer is not None and is_loopback(peer) and not passed_on


def check_host(scope: Scope, allowed: Collection[str], *, addresses: bool) -> None:
    """Refuse a request that was sent to a name which is not ours; any address is, if `addresses`."""
    name, whole = host_of(scope)
    ours = is_loopback(name) or name in allowed or whole in allowed
    if not ours and not (addresses and is_address(name)):
        how = "access.hosts lists those that are"
        if is_address(name):
            how = "as long as there are no tokens it has only loopback's; `afresh token create` makes one"
        raise Refused(421, f"{name} is no name of this server: {how}")


def comes_from_us(scope: Scope) -> bool:
    """Whether a browser says that a page of this server asks; one that says nothing does not."""
    own = {f"{scheme}://{host_of(scope)[1]}" for scheme in ("http", "https")}
    found = values(scope, b"origin")
    if found:
        return len(found) == 1 and found[0].lower() in own
    return value(scope, b"sec-fetch-site") == "same-origin"


def is_led_from_elsewhere(scope: Scope) -> bool:
    """Whether a page of another site sent a browser here: it may see, and have nothing done by a GET."""
    if value(scope, b"sec-fetch-site") is not None or values(scope, b"sec-fetch-site"):
        return value(scope, b"sec-fetch-site") not in ("same-origin", "none")
    referer = urlsplit(value(scope, b"referer") or "")  # browsers of before 2023 send nothing else
    return bool(referer.netloc) and referer.netloc.lower() != host_of(scope)[1]


def check_origin(scope: Scope, allowed: Collection[str]) -> None:
    """Refuse what a page of another site asks for; a person who follows a link is welcome."""
    found = values(scope, b"origin")
    if found:
        own = {f"{scheme}://{host_of(scope)[1]}" for scheme in ("http", "https")}
        if len(found) > 1 or found[0].lower() not in own | set(allowed):
            raise Refused(403, "pages of other sites may not ask this server: access.origins lists who may")
        return
    if value(scope, b"sec-fetch-site") in (None, "same-origin", "none"):
        return
    follows = value(scope, b"sec-fetch-mode") == "navigate" and value(scope, b"sec-fetch-dest") == "document"
    if scope["method"] not in ("GET", "HEAD") or not follows:
        raise Refused(403, "pages of other sites may not ask this server")
