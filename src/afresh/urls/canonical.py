"""The canonical form of a web address, and cheap questions about addresses in that form.

`canonical` follows the WHATWG URL standard (parsing, joining, punycode, default ports, dot segments) and goes
a little further, so that one page has one address:

| beyond WHATWG                   | example                                        |
|---------------------------------|------------------------------------------------|
| fragment off                    | `/a#b` → `/a`                                  |
| empty query off                 | `/a?` → `/a`                                   |
| escapes in upper case           | `%c3` → `%C3`                                  |
| unreserved characters unescaped | `%7Euser` → `~user`                            |
| trailing dot of the host off    | `x.org.` → `x.org`                             |
| tracking parameters off         | `?utm_source=n&id=7` → `?id=7`                 |
| session ids off                 | `/a;jsessionid=9F` → `/a`, `?PHPSESSID=x` → ``  |
| refused                         | user name or password, raw control characters, |
|                                 | a host that ends in `..`, > 2,000 characters   |

What could change the page stays: order of parameters, `+`, `b=` against `b`, doubled slashes, case of the
path, `www.`, `index.html`, the trailing slash, http against https. A path or query with a stray `%` keeps
all its escapes, because unescaping next to it could make a new one (`%%37e` → `%7e`).
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ada_url import join_url, normalize_url

if TYPE_CHECKING:
    from tldextract import TLDExtract

MAX_LENGTH = 2_000
_MAX_RAW = 4 * MAX_LENGTH  # what is longer cannot become short enough, or is not worth parsing
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
_SESSION_ID = re.compile(r"[\w,-]{8,}")  # what `sid` holds, with a digit in it
# in the path: `;jsessionid=…` of servlets, `/(S(…))/` of ASP.NET
_PATH_SESSION = re.compile(
    r";(?:jsessionid|phpsessid|sessionid|sid)=[^/;]*|/\((?:[A-Z]\([^/()]+\))+\)(?=/)", re.IGNORECASE
)
_ESCAPE = re.compile(  # of an unreserved character, or not in upper case: all others stay
    "%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE]|[0-9A-Fa-f][a-f]|[a-f][0-9A-F])"
)
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # tab, LF and CR are removed by the standard
_STRIPPED = "".join(map(chr, range(0x21)))  # C0 and space, which the standard strips at both ends


def _plain_form(escape: str) -> str:
    character = chr(int(escape[1:], 16))
    unreserved = character.isascii() and (character.isalnum() or character in "-._~")
    return character if unreserved else escape.upper()


_HEX = "0123456789abcdefABCDEF"
_PLAIN = {escape: _plain_form(escape) for escape in (f"%{high}{low}" for high in _HEX for low in _HEX)}


def canonical(raw_url: str, base: str | None = None) -> str | None:
    """Return the canonical http(s) form of an address, resolved against `base`, or None if it is refused."""
    if len(raw_url) > _MAX_RAW:
        raw_url = raw_url[: raw_url.find("#") + 1] or raw_url
        if len(raw_url) > _MAX_RAW:
            return None
    if not raw_url.isprintable() and _has_control(raw_url):
        return None
    try:
        href = normalize_url(raw_url) if base is None else join_url(base, raw_url)
    except ValueError:
        return None
    return _narrowed(href) if href.startswith(_SCHEMES) else None


def _has_control(raw_url: str) -> bool:
    visible = raw_url.strip(_STRIPPED).partition("#")[0]
    return _CONTROL.search(visible) is not None


def _narrowed(href: str) -> str | None:
    href = href.partition("#")[0]
    if len(href) > _MAX_RAW:  # escapes made it longer
        return None
    slash = href.find("/", 8)
    origin, rest = href[:slash], href[slash:]
    if "@" in origin:
        return None
    if origin.endswith(".") or ".:" in origin:
        origin = _without_dot(origin)
    if "%" in rest or "?" in rest:
        rest = _plain_rest(rest)
    if ";" in rest or "/(" in rest:
        return _without_session(origin, rest)
    return _short_enough(origin + rest) if origin else None


def _short_enough(url: str) -> str | None:
    return url if len(url) <= MAX_LENGTH else None


def _without_session(origin: str, rest: str) -> str | None:
    path, mark, query = rest.partition("?")
    plain = _PATH_SESSION.sub("", path) or "/"
    if plain != path:
        return canonical(f"{origin}{plain}{mark}{query}") if origin else None  # `..;sid=%` hid dots
    return _short_enough(f"{origin}{rest}") if origin else None


def _without_dot(origin: str) -> str:
    """Take one dot off the end of the host; "" if no name is left or a second dot follows."""
    scheme, _, authority = origin.partition("://")
    host, colon, port = authority.partition(":")
    host = host.removesuffix(".")
    return f"{scheme}://{host}{colon}{port}" if host and not host.endswith(".") else ""


def _plain_rest(rest: str) -> str:
    path, _, query = rest.partition("?")
    path, query = _plain_escapes(path), _plain_query(query)
    return f"{path}?{query}" if query else path


def _plain_query(query: str) -> str:
    query = _plain_escapes(query)
    if not query:
        return query
    kept = "&".join([part for part in query.split("&") if not part or not _is_tracking(part)])
    return kept if kept == query else _plain_query(kept)  # what left may have held a stray %


def _is_tracking(parameter: str) -> bool:
    """Whether a parameter names a session or the way a reader came, not the page."""
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


# ---- questions about canonical addresses: string cuts, no second parse -----------------------


def domain_of(url: str) -> str:
    """Return host and non-default port: the key of politeness."""
    return url.split("/", 3)[2]


def origin_of(url: str) -> str:
    """Return scheme, host and non-default port, without a slash at the end."""
    return "/".join(url.split("/", 3)[:3])


def host_of(url: str) -> str:
    """Return the host without port; an IPv6 address keeps its brackets."""
    domain = url.split("/", 3)[2]
    return domain if domain.endswith("]") else domain.rpartition(":")[0] or domain


def path_components(url: str) -> int:
    """Count the non-empty parts of the path."""
    return sum(1 for part in url.partition("?")[0].split("/")[3:] if part)


def directory_of(url: str) -> str:
    """Return the address up to and with the last slash of its path."""
    path = url.partition("?")[0]
    return path[: path.rfind("/") + 1]


def trim_params(url: str, limit: int | None) -> str:
    """Keep the first `limit` query parameters, all of them if it is None (C23)."""
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
    """Return the name one registers below a public suffix; IPs, single labels and suffixes return themselves.

    Private suffixes count, so that `alice.github.io` and `bob.github.io` are two. Below an unknown top-level
    name (an intranet's) it is the last two labels, as the default rule of the public suffix list has it.
    """
    if "." not in host or host.endswith("]") or host.rpartition(".")[2].isdigit():
        return host
    found = _suffixes().extract_str(host)
    if found.suffix:
        return found.top_domain_under_public_suffix or host
    return ".".join(host.rsplit(".", 2)[-2:])


@lru_cache(maxsize=1)
def _suffixes() -> "TLDExtract":
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
