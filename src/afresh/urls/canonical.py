"""Convert web URLs to their canonical form, and read parts of canonical URLs quickly.

`canonical` follows the WHATWG URL standard (parsing, joining, punycode, default ports, dot segments) and goes
further, so that one page has one URL:

| beyond WHATWG                   | example                                        |
|---------------------------------|------------------------------------------------|
| no fragment                     | `/a#b` → `/a`                                  |
| no empty query                  | `/a?` → `/a`                                   |
| escapes in upper case           | `%c3` → `%C3`                                  |
| unreserved characters unescaped | `%7Euser` → `~user`                            |
| no trailing dot of the host     | `x.org.` → `x.org`                             |
| no tracking parameters          | `?utm_source=n&id=7` → `?id=7`                 |
| no session ids                  | `/a;jsessionid=9F` → `/a`, `?PHPSESSID=x` → ``  |
| not accepted                    | user name or password, raw control characters, |
|                                 | a host that ends in `..`, > 2,000 characters   |

Differences that could select another page are kept: the order of parameters, `+`, `b=` or `b`, doubled slashes,
the case of the path, `www.`, `index.html`, the trailing slash, http or https. A path or query with a stray `%`
keeps all its escapes, because unescaping next to it could create a new escape (`%%37e` → `%7e`).
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache

from afresh.errors import UsageError

try:
    from ada_url import join_url, normalize_url
except ImportError:  # no wheel: the same URLs (`tests/urls/test_whatwg.py`), fifty times slower
    from pywhatwgurl import URL

    def normalize_url(s: str) -> str:
        return URL(s).href

    def join_url(base_url: str, s: str) -> str:
        return URL(s, base_url).href


__all__ = ["join_url", "normalize_url"]  # import them from here, not from a parser

MAX_LENGTH = 2_000
_MAX_RAW = 4 * MAX_LENGTH  # longer URLs are refused without parsing
_SCHEMES = ("http://", "https://")

_TRACKING = frozenset({
    "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "_ga", "_gl", "_gac", "fbclid", "igshid",
    "igsh", "msclkid", "yclid", "ysclid", "_openstat", "twclid", "ttclid", "li_fat_id", "ref_src",
    "ref_url", "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp",
    "hsctatracking", "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id", "wickedid", "epik",
    "jsessionid", "phpsessid", "sessionid", "session_id", "sessid", "cfid", "cftoken",
})  # fmt: skip
_TRACKING_PREFIXES = ("utm_", "hsa_", "mtm_", "pk_")
_ASP_SESSION = re.compile("aspsessionid[a-z]*")
_SESSION_ID = re.compile(r"[\w,-]{8,}")  # a value of the parameter `sid` that is a session id if it has a digit
# Session ids in the path: `;jsessionid=…` of servlets, `/(S(…))/` of ASP.NET.
_PATH_SESSION = re.compile(
    r";(?:jsessionid|phpsessid|sessionid|sid)=[^/;]*|/\((?:[A-Z]\([^/()]+\))+\)(?=/)", re.IGNORECASE
)
_ESCAPE = re.compile(  # an escape of an unreserved character, or one that is not in upper case
    "%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE]|[0-9A-Fa-f][a-f]|[a-f][0-9A-F])"
)
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # without tab, LF and CR, which the URL standard removes
_STRIPPED = "".join(map(chr, range(0x21)))  # C0 controls and space, which the URL standard strips at both ends
_LOCAL = re.compile(r"localhost(:\d+)?$|[\d.]+(:\d+)?$|\[")  # hosts that rarely use https


def _plain_form(escape: str) -> str:
    character = chr(int(escape[1:], 16))
    unreserved = character.isascii() and (character.isalnum() or character in "-._~")
    return character if unreserved else escape.upper()


_HEX = "0123456789abcdefABCDEF"
_PLAIN = {escape: _plain_form(escape) for escape in (f"%{high}{low}" for high in _HEX for low in _HEX)}


def canonical(raw_url: str, base: str | None = None) -> str | None:
    """Return the canonical form of an http(s) URL, resolved against `base`; None if it is not accepted."""
    if len(raw_url) > _MAX_RAW:
        raw_url = raw_url[: raw_url.find("#") + 1] or raw_url
        if len(raw_url) > _MAX_RAW:
            return None
    if not raw_url.isprintable() and _CONTROL.search(raw_url.strip(_STRIPPED).partition("#")[0]):
        return None
    try:
        href = normalize_url(raw_url) if base is None else join_url(base, raw_url)
    except ValueError:
        return None
    return _narrowed(href) if href.startswith(_SCHEMES) else None


def _narrowed(href: str) -> str | None:
    href = href.partition("#")[0]
    if len(href) > _MAX_RAW:  # escaping has made the URL longer
        return None
    slash = href.find("/", 8)
    origin, rest = href[:slash], href[slash:]
    if "@" in origin:
        return None
    if origin.endswith(".") or ".:" in origin:
        scheme, _, authority = origin.partition("://")
        host, colon, port = authority.partition(":")
        host = host.removesuffix(".")
        if not host or host.endswith("."):
            return None
        origin = f"{scheme}://{host}{colon}{port}"
    if "%" in rest or "?" in rest:
        path, _, query = rest.partition("?")
        path, query = _plain_escapes(path), _plain_query(query)
        rest = f"{path}?{query}" if query else path
    if ";" in rest or "/(" in rest:
        path, mark, query = rest.partition("?")
        plain = _PATH_SESSION.sub("", path) or "/"
        if plain != path:
            return canonical(f"{origin}{plain}{mark}{query}")  # again, because a session id may have hidden `..`
    url = origin + rest
    return url if len(url) <= MAX_LENGTH else None


def _plain_query(query: str) -> str:
    query = _plain_escapes(query)
    if not query:
        return query
    kept = "&".join([part for part in query.split("&") if not part or not _is_tracking(part)])
    return kept if kept == query else _plain_query(kept)  # again, because a removed parameter may have had a stray %


def _is_tracking(parameter: str) -> bool:
    name, _, value = parameter.lower().partition("=")
    if name in _TRACKING or name.startswith(_TRACKING_PREFIXES):
        return True
    if name == "sid":
        return _SESSION_ID.fullmatch(value) is not None and any(map(str.isdigit, value))
    return name.startswith("aspsessionid") and _ASP_SESSION.fullmatch(name) is not None


def _plain_escapes(text: str) -> str:
    if "%" not in text or _STRAY_PERCENT.search(text):
        return text
    return _ESCAPE.sub(lambda found: _PLAIN[found[0]], text)


def domain_of(url: str) -> str:
    """Return the host of a URL, with its port unless it is the default one."""
    return url.split("/", 3)[2]


def origin_of(url: str) -> str:
    """Return the scheme and host of a URL, with its port unless it is the default one, without a final slash."""
    return "/".join(url.split("/", 3)[:3])


def host_of(url: str) -> str:
    """Return the host of a URL without the port; an IPv6 address keeps its brackets."""
    domain = url.split("/", 3)[2]
    return domain if domain.endswith("]") else domain.rpartition(":")[0] or domain


def path_components(url: str) -> int:
    return sum(1 for part in url.partition("?")[0].split("/")[3:] if part)


def directory_of(url: str) -> str:
    """Return a URL up to the last slash of its path, including the slash."""
    path = url.partition("?")[0]
    return path[: path.rfind("/") + 1]


def trim_params(url: str, limit: int | None) -> str:
    """Return a URL without query parameters beyond the first `limit`; None keeps all of them."""
    if limit is None or "?" not in url:
        return url
    path, _, query = url.partition("?")
    parts = query.split("&")
    if len(parts) <= limit:
        return url
    kept = "&".join([part for part in parts if part][:limit])
    return f"{path}?{kept}" if kept else path


@lru_cache(maxsize=4096)
def registrable_domain(host: str) -> str:
    """Return the registrable domain of a host; IP addresses, single labels and public suffixes are unchanged.

    Private suffixes count, so `alice.github.io` and `bob.github.io` are different domains. Below an unknown
    top-level domain (as in an intranet) the domain has two labels, by the default rule of the public suffix list.
    """
    if "." not in host or host.endswith("]") or host.rpartition(".")[2].isdigit():
        return host
    return _private_suffix()(host) or host


@cache
def _private_suffix() -> Callable[[str], str | None]:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList().privatesuffix


def typed_address(raw_url: str) -> str:
    """Return the canonical form of a URL that a user typed; if it is invalid, raise UsageError with an example."""
    text = raw_url.strip()
    host = text.split("/")[0]
    url = canonical(text) if "://" in text else None
    if "://" not in text and ("." in host or _LOCAL.match(host)):
        scheme = "http" if _LOCAL.match(host) else "https"
        url = canonical(f"{scheme}://{text}")
    if url is None and "@" in text:
        raise UsageError(f"{raw_url!r} contains a user name or password; remove it, because it is never sent")
    if url is None:
        raise UsageError(f"{raw_url!r} is not a web URL: write it like https://docs.example.org/")
    return url
