"""Settings of who may ask the server, and how much."""

import re
from dataclasses import dataclass

from afresh.config.spec import WrongValue, flag, number, operator_only, shown, texts, whole

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")
_PATH = re.compile(r"(?!\.{1,2}(?:/|$))[\w.~-]+(?:/(?!\.{1,2}(?:/|$))[\w.~-]+)*")
_ORIGIN = re.compile(r"https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")


@operator_only
def host_name(text: str) -> str:
    """A host as requests name it."""
    if not _HOST.fullmatch(text.lower()):
        raise WrongValue(f"expected a host such as docs.example.org, got {shown(text)}")
    return text.lower()


@operator_only
def origin(text: str) -> str:
    """A site as browsers name it."""
    if not _ORIGIN.fullmatch(text.lower()):
        raise WrongValue(f"expected a site such as https://docs.example.org, got {shown(text)}")
    return text.lower()


@operator_only
def repository_place(text: str) -> str:
    """A host of repositories, or an owner or a repository on it."""
    host, slash, path = text.strip().rstrip("/").partition("/")
    if not _HOST.fullmatch(host.lower()) or (slash and not _PATH.fullmatch(path)):
        raise WrongValue(f"expected a host or an owner such as github.com/acme, got {shown(text)}")
    return f"{host.lower()}{slash}{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Who may ask the server, by which name, and how much of it."""

    hosts: tuple[str, ...] = texts(
        "names that the server is called by, besides those of this machine; whoever comes by another one is "
        "sent away, as a page that turns its own name against this server is",
        form=host_name,
    )
    origins: tuple[str, ...] = texts(
        "other sites whose pages may ask from within a browser, as `https://docs.example.org`", form=origin
    )
    credentials_for: tuple[str, ...] = texts(
        "repositories that callers of the server and agents may have read with your keys (`github.token`, "
        "`gh`, `git.token`, `git.credential_helper`, ssh): hosts, owners or repositories, as `git.internal` "
        "or `github.com/acme`; others that they add are read as everybody may ([access.md](access.md))",
        form=repository_place,
    )
    loopback_open: bool = flag(False, "ask for no token on this machine itself, although there are tokens")
    requests_per_second: float = number(
        50.0, "requests of one token, or one unknown peer, that are answered in the long run", 0.01, 100_000
    )
    burst: int = whole(500, "how many of them may come at once", 1, 1_000_000)
    max_body_bytes: int = whole(1_048_576, "the largest body of a request", 1_024, 1_073_741_824)
    header_seconds: float = number(10.0, "the longest the head of a request may take", 0.1, 3_600)
    body_seconds: float = number(30.0, "the longest the body of a request may take", 0.1, 3_600)
    connections_per_peer: int = whole(
        250,
        "connections of one peer at a time, an IPv6 peer being its /64; of this machine itself, where a "
        "reverse proxy may be, only those count that have not asked for anything",
        1,
        1_000_000,
    )
    max_connections: int = whole(1_000, "connections at a time; more are told to come later", 1, 1_000_000)
