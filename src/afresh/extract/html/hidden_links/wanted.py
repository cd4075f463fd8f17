"""Which hidden addresses may be pages: no parts of pages, no calls of programs, no templates."""

import re

LONGEST = 1_000

_ASSETS = frozenset(
    "js mjs cjs ts css less scss map json jsonp xml rss atom webmanifest wasm swf "  # noqa: SIM905
    "png jpg jpeg jfif gif svg svgz webp avif ico bmp tif tiff cur woff woff2 ttf otf eot "
    "mp3 mp4 m4a m4v webm ogg ogv oga wav flac avi mov mkv mpg mpeg m3u8 vtt".split()
)
# `{id}`, `/node/%`, `/:slug`, `/[[...slug]]`, `/admin/*`: made for a program to fill in
_TEMPLATE = re.compile(r"[\s{}\[\]<>*`$\"\\|^]|%(?![0-9A-Fa-f]{2})|/[:!]|\.\.\.|^/(?:Date\(|9j/)")
_CALL = re.compile(
    r"/(?:_next|_nuxt|_payload|_vercel|__\w+__|wp-json|wp-admin|wp-includes|cdn-cgi|graphql|jsonapi|ajax|oembed|rpc"
    r"|autocomplete|csrf|log-?out|sign-?out|xmlrpc\.php|api/v?\d[^/]*)(?:[/?]|$)",
    re.IGNORECASE,
)

# made for one answer: the next one would name another page
_PASSING = re.compile(
    r"[?&](?:[\w-]*token|csrf\w*|_?\w*nonce|sig|signature|form_build_id|destination)=", re.IGNORECASE
)


def leads_to_page(raw_url: str) -> bool:
    """Whether an address, as it is written, may be one of a page."""
    address = raw_url.partition("#")[0].strip()
    if not address or len(address) > LONGEST:
        return False
    if any(odd.search(address) for odd in (_TEMPLATE, _CALL, _PASSING)):
        return False
    name = address.partition("?")[0].rpartition("/")[2]
    return name.rpartition(".")[2].lower() not in _ASSETS if "." in name else True
