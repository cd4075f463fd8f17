"""Places on the network as `network.allow` names them: a block of addresses, an address or a host name."""

import re

from afresh.config.spec import WrongValue, operator_only, shown

EXPECTED = (
    "expected an address block, an address or a host name, as 10.0.0.0/8, 127.0.0.1:8000, docs.internal"
)
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"({_LABEL}\.)*(?!\d+$){_LABEL}")  # no name ends in a number: that is a mistyped address
_WITH_PORT = re.compile(r"(?P<host>[^\s:/\[\]]+|\[[0-9a-f:.]+\]):(?P<port>[0-9]{1,5})")


@operator_only
def network_place(typed: str) -> str:
    """One entry in its usual spelling, or WrongValue."""
    entry = typed.strip().lower()
    if with_port := _WITH_PORT.fullmatch(entry):
        return _at_port(typed, with_port["host"], int(with_port["port"]))
    return _block(entry) or _name(entry) or _refuse(typed)


def _at_port(typed: str, host: str, port: int) -> str:
    if not 1 <= port <= 65_535:
        raise WrongValue(f"expected a port from 1 to 65535, got {shown(typed)}")
    bare = host.strip("[]")
    spelled = host if _block(bare) else "" if bare != host else _name(host)
    return f"{spelled}:{port}" if spelled else _refuse(typed)


def _block(entry: str) -> str:
    import ipaddress

    try:
        bare = entry[1:-1] if entry.startswith("[") and entry.endswith("]") else entry
        return str(ipaddress.ip_network(bare, strict=False))
    except ValueError:
        return ""


def _name(entry: str) -> str:
    name = entry.rstrip(".")
    return name if len(name) <= 253 and _NAME.fullmatch(name) else ""


def _refuse(typed: str) -> str:
    raise WrongValue(f"{EXPECTED}; got {shown(typed)}")
