"""Find links that a reader can follow although they are not in anchor elements.

Each kind of hidden link has its own finder. A finder first checks whether the page may contain such links,
so that other pages take almost no time. Hidden links come after the visible ones and do not replace them.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from html import unescape
from itertools import islice, starmap
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.errors import ExtractError
from afresh.extract.decode import parse_json_text, storable
from afresh.extract.html.head import Head, one_line
from afresh.extract.html.main_content import around
from afresh.extract.links import MAX_LINK_TEXT_CHARS
from afresh.urls.canonical import domain_of

MAX_SCRIPTS = 200  # scripts that are read, per page
MAX_NODES = 60  # nodes that are read for the text of one element

_TAG = re.compile(r"<[^<>]{0,500}>")


class HiddenLink(NamedTuple):
    raw_url: str
    text: str = ""


class Script(NamedTuple):
    attributes: dict[str, str | None]
    node: LexborNode
    type: str  # in lower case


class LinkPage(NamedTuple):
    rare: Collection[str]  # the tags in `html.RARE` that the page has
    tree: LexborHTMLParser
    head: Head
    host: str  # of the page, with its port
    scripts: tuple[Script, ...]
    visible: Mapping[str, tuple[str, bool]]  # visible links: raw URL → text, and whether to follow the link


def scripts_of(tree: LexborHTMLParser) -> tuple[Script, ...]:
    pairs = [(node.attributes, node) for node in tree.tags("script")[:MAX_SCRIPTS]]
    return tuple([Script(found, node, (found.get("type") or "").strip().lower()) for found, node in pairs])


def _plain_text(text: str) -> str:
    """Return a text from data as one line without markup, cut at `MAX_LINK_TEXT_CHARS`."""
    text = text[: 4 * MAX_LINK_TEXT_CHARS]
    if "&" in text or "<" in text:
        text = unescape(_TAG.sub(" ", text))
    return one_line(storable(text))[:MAX_LINK_TEXT_CHARS].rstrip()


def _text_of(node: LexborNode) -> str:
    """Return the visible text of an element's first nodes, else its label, title or value attribute."""
    pieces, length, waiting, seen = [], 0, [node.first_child], 0
    while waiting and seen < MAX_NODES and length < MAX_LINK_TEXT_CHARS:
        here = waiting.pop()
        if here is None:
            continue
        seen += 1
        waiting.append(here.next)
        if here.tag == "-text":
            piece = one_line(here.text_content or "")
            pieces.append(piece)
            length += len(piece)
        elif here.tag not in ("script", "style", "template"):
            waiting.append(here.first_child)
    text = one_line(" ".join(pieces))
    if not text:
        text = one_line(next(filter(None, map(node.attributes.get, ("aria-label", "title", "value"))), ""))
    return text[:MAX_LINK_TEXT_CHARS].rstrip()


MAX_URL_CHARS = 1_000

_ASSETS = frozenset(
    "js mjs cjs ts css less scss map json jsonp xml rss atom webmanifest wasm swf "  # noqa: SIM905
    "png jpg jpeg jfif gif svg svgz webp avif ico bmp tif tiff cur woff woff2 ttf otf eot "
    "mp3 mp4 m4a m4v webm ogg ogv oga wav flac avi mov mkv mpg mpeg m3u8 vtt".split()
)
# URL templates: `{id}`, `/node/%`, `/:slug`, `/[[...slug]]`, `/admin/*`
_TEMPLATE = re.compile(r"[\s{}\[\]<>*`$\"\\|^]|%(?![0-9A-Fa-f]{2})|/[:!]|\.\.\.|^/(?:Date\(|9j/)")
_CALL = re.compile(
    r"/(?:_next|_nuxt|_payload|_vercel|__\w+__|wp-json|wp-admin|wp-includes|cdn-cgi|graphql|jsonapi|ajax|oembed|rpc"
    r"|autocomplete|csrf|log-?out|sign-?out|xmlrpc\.php|api/v?\d[^/]*)(?:[/?]|$)",
    re.IGNORECASE,
)

# URLs that are valid for one response only: the next response contains another token
_PASSING = re.compile(r"[?&](?:[\w-]*token|csrf\w*|_?\w*nonce|sig|signature|form_build_id|destination)=", re.IGNORECASE)


def leads_to_page(raw_url: str) -> bool:
    address = raw_url.partition("#")[0].strip()
    if not 0 < len(address) <= MAX_URL_CHARS or any(odd.search(address) for odd in (_TEMPLATE, _CALL, _PASSING)):
        return False
    _, dot, ending = address.partition("?")[0].rpartition("/")[2].rpartition(".")
    return not dot or ending.lower() not in _ASSETS


MAX_SCRIPT_CHARS = 1_000_000  # total size of scripts of one kind; further scripts of a page are skipped
MAX_VALUES = 20_000  # values that are read, per script
MAX_DEPTH = 20
MAX_KIND_CHARS = 100

# Names of fields that describe their object, best first; in lower case, without dashes and underscores.
_RANKS = {name: rank for rank, name in enumerate((
    "linktitle", "linktext", "title", "label", "text", "heading", "headline", "name", "displayname", "caption",
    "anchor", "linklabel", "menutitle", "navtitle", "shorttitle", "arialabel", "alt", "description", "summary",
    "teaser", "tooltip",
))}  # fmt: skip


class DataLink(NamedTuple):
    """A value in parsed data that may be a URL, with the name of its field and a text that describes it."""

    value: Any
    field: str = ""  # in lower case, without `_` and `-`
    text: str = ""
    kind: str = ""  # `@type` of the object that contains the field
    depth: int = 0  # number of objects and lists around the value


def _parse_scripts(scripts: Iterable[Script]) -> Iterator[Any]:
    for text in _script_texts(scripts):
        with suppress(ExtractError):
            yield parse_json_text(text)


def _script_texts(scripts: Iterable[Script]) -> Iterator[str]:
    room = MAX_SCRIPT_CHARS
    for script in scripts:
        text = script.node.text()
        room -= len(text)
        if room < 0:
            return
        yield text


def _urls_in(data: Any) -> Iterator[DataLink]:
    waiting, left = [DataLink(data)], MAX_VALUES
    while waiting and left:
        here = waiting.pop()
        left -= 1
        if isinstance(here.value, str):
            if _is_url(here.value):
                yield here
        elif isinstance(here.value, dict | list) and here.depth < MAX_DEPTH:
            waiting += reversed(list(_inside(here.value, here, left)))


def _links_in(parsed: Iterable[Any], is_link: Callable[[DataLink], bool]) -> Iterator[HiddenLink]:
    return (HiddenLink(each.value, each.text) for data in parsed for each in _urls_in(data) if is_link(each))


def _is_url(text: str) -> bool:
    return text.startswith(("/", "http://", "https://")) and text != "/"


def _plain_name(field: str) -> str:
    return field.lower().replace("_", "").replace("-", "")


def _inside(held: dict[str, Any] | list[Any], place: DataLink, most: int) -> Iterator[DataLink]:
    """Yield the first `most` members of the object or list `held`, the value of `place`, each with a descriptive text.

    A string gets the text of its object `held`, or that of `place` if `held` is a list or has no text (`link: {url}`).
    """
    fields: Iterable[tuple[str, Any]]
    if isinstance(held, dict):
        own, kind, fields = _text_beside(held), f"{held.get('@type', '')}"[:MAX_KIND_CHARS], held.items()
    else:
        own, kind, fields = "", place.kind, ((place.field, each) for each in held)
    for name, value in islice(fields, most):
        if isinstance(value, str | list | dict):
            text = (own or place.text) if isinstance(value, str) else own
            yield DataLink(value, _plain_name(name), text, kind, place.depth + 1)


def _text_beside(held: dict[str, Any]) -> str:
    """Return the text of an object's most descriptive field; "" if it has none."""
    best, chosen = len(_RANKS), ""
    for name, value in held.items():
        if isinstance(value, str) and value and not _is_url(value):
            rank = _RANKS.get(_plain_name(name), best)
            if rank < best and (text := _plain_text(value)):
                best, chosen = rank, text
    return chosen


MAX_ELEMENTS = 2_000
MAX_HANDLER_CHARS = 2_000
LINK_ATTRIBUTES = "[onclick], [data-href], [data-url]"

_SENT_TO = re.compile(
    r"(?:\blocation(?:\.href)?\s*=(?!=)\s*|\blocation\.(?:assign|replace)\(\s*|\bwindow\.open\(\s*)"
    r"(?:'([^'+]+)'|\"([^\"+]+)\")\s*+[,;)}]?\s*+(?!\+)"
)
_SHARED = re.compile(r"share|tweet|twitter|facebook|fb-|addthis|disqus|linkedin|pinterest")
_ADDRESS = ("/", "http://", "https://", "./", "../", "?")


def in_attributes(page: LinkPage) -> Iterator[HiddenLink]:
    """Yield the link targets in click handlers and data attributes, with the visible text of their elements."""
    for node in islice(page.tree.css(LINK_ATTRIBUTES) if page.rare else (), MAX_ELEMENTS):
        attributes = node.attributes
        script = attributes.get("onclick") or ""
        sent = _SENT_TO.search(script) if len(script) <= MAX_HANDLER_CHARS else None
        raw_url = (sent[1] or sent[2]).strip() if sent else ""
        raw_url = raw_url or _address(attributes.get("data-href"))
        if not raw_url and not _SHARED.search((attributes.get("class") or "").lower()):
            raw_url = _address(attributes.get("data-url"))
        if raw_url and (text := _text_of(node)):
            yield HiddenLink(raw_url, text)
    for node in islice(page.tree.tags("button") if "button" in page.rare else (), MAX_ELEMENTS):
        raw_url = _address(node.attributes.get("formaction"))
        if raw_url and _uses_get(node):
            yield HiddenLink(raw_url, _text_of(node))


def _address(value: str | None) -> str:
    value = (value or "").strip()
    return value if value.startswith(_ADDRESS) or value.partition("?")[0].endswith((".html", ".htm")) else ""


def _uses_get(node: LexborNode) -> bool:
    method = node.attributes.get("formmethod")
    if method is None:
        method = next((each.attributes.get("method") for each in around(node) if each.tag == "form"), None)
    return (method or "get").lower() == "get"


MAX_OPTIONS = 2_000  # options that are read, per page

_JUMPS = re.compile(r"jump|goto|go-to|quick|navig|redirect|location|open\(|href")
_JUMP_ADDRESS = ("/", "http://", "https://", "./", "../")


def in_jump_menus(page: LinkPage) -> Iterator[HiddenLink]:
    """Yield the URLs in the options of select menus whose attributes mark them as navigation."""
    left = MAX_OPTIONS
    for menu in page.tree.tags("select") if "select" in page.rare else ():
        attributes = menu.attributes
        named = " ".join(attributes.get(name) or "" for name in ("onchange", "class", "id", "name"))
        for option in menu.css("option[value]") if _JUMPS.search(named.lower()[:1_000]) else ():
            left -= 1
            if left < 0:
                return
            value = option.attributes.get("value") or ""
            raw_url = value.rpartition("::")[2].strip()  # Drupal's ctools module writes `key::url`
            if raw_url.startswith(_JUMP_ADDRESS) and raw_url != "/":
                yield HiddenLink(raw_url, _text_of(option))


_PROGRAMS = ("", "text/javascript", "application/javascript")
_DECODER = json.JSONDecoder()
_OLD_FORM = re.compile(r"Drupal\.settings\s*(?:,|=(?!=))\s*(?=\{)")  # jQuery.extend(Drupal.settings, {…});
# Paths of Drupal's own pages, which have no content.
_SYSTEM = re.compile(
    r"/(?:core|modules|themes|profiles|libraries|misc|admin|batch|contextual|quickedit|history|big_pipe|system"
    r"|views|session|entity_embed|editor|media/oembed)(?:/|$)|/sites/[^/]+/(?:modules|themes|libraries|files/(?:css|js|styles))/"
    r"|/(?:statistics|update|cron|install|xmlrpc)\.php|/user/(?:login|logout|register|password)|/api(?:/|$)"
)
_NO_DRUPAL_LINK = re.compile(
    r"^(?:src|js|css|api|action|prefix|suffix)$"
    r"|src$|image|img|icon|logo|thumb|avatar|poster|asset|font|ajax|endpoint|callback|template|theme|librar|manifest"
    r"|track|beacon|cdn|proxy|socket|schema|basepath|baseurl|pathprefix|currentpath|currentquery|formaction|destination"
)


def in_drupal_settings(page: LinkPage) -> Iterator[HiddenLink]:
    """Yield the URLs in Drupal's settings; those on other hosts only if they have a descriptive text."""
    new = (s for s in page.scripts if s.attributes.get("data-drupal-selector") == "drupal-settings-json")
    settings = (*_parse_scripts(new), *_old_settings(page.scripts))
    return _links_in(settings, lambda value: _is_drupal_link(value, page.host))


def _old_settings(scripts: Iterable[Script]) -> Iterator[Any]:
    """Yield the settings in scripts of Drupal 7 and older, which pass them to `jQuery.extend`."""
    programs = (each for each in scripts if each.type in _PROGRAMS and "src" not in each.attributes)
    for text in _script_texts(programs):
        found = _OLD_FORM.search(text) if "Drupal.settings" in text else None
        if found is not None:
            with suppress(ValueError, RecursionError):
                yield _DECODER.raw_decode(text, found.end())[0]


def _is_drupal_link(value: DataLink, host: str) -> bool:
    if _NO_DRUPAL_LINK.search(value.field):
        return False
    address, path = value.value, value.value
    if address.startswith("//"):
        named = address[2:].partition("/")[0]
    elif address.startswith("/"):
        named = host
    else:
        named, path = domain_of(address + "/"), "/" + "".join(address.split("/", 3)[3:])
    return bool(value.text) if named != host else _SYSTEM.match(path) is None


NUXT = "__NUXT_DATA__"

_LINK = re.compile(r"(?:url|uri|href|link|path|pathname|route|permalink|slug|location)$|^(?:to|page|target)$")
_NO_LINK = re.compile(r"image|img|icon|logo|thumb|avatar|poster|asset|font|api|endpoint|base|edit|source|repo|feed")


def in_hydration_data(page: LinkPage) -> Iterator[HiddenLink]:
    """Yield the URLs in JSON that scripts read, if they have a descriptive text and a field name usual for links."""
    # Scripts such as `__NEXT_DATA__`, without Drupal's settings, which have their own finder.
    scripts = [s for s in page.scripts if s.type == "application/json" and "data-drupal-selector" not in s.attributes]
    yield from _links_in(_parse_scripts(each for each in scripts if each.attributes.get("id") != NUXT), _is_link)
    for data in _parse_scripts(each for each in scripts if each.attributes.get("id") == NUXT):
        yield from _in_nuxt(data)


def _is_link(value: DataLink) -> bool:
    field = value.field
    return bool(value.text) and _LINK.search(field) is not None and _NO_LINK.search(field) is None


def _in_nuxt(data: Any) -> Iterator[HiddenLink]:
    """Yield the links in Nuxt data, in which one list contains all values and objects refer to them by index."""
    values = data if isinstance(data, list) else []
    places = range(len(values))
    for held in values:
        if isinstance(held, dict):
            named = [(name, at) for name, at in held.items() if type(at) is int and at in places]
            texts = {name: values[at] for name, at in named if isinstance(values[at], str)}
            if any(map(_is_url, texts.values())):
                beside = _text_beside(texts)
                found = (value for value in _urls_in(texts) if _is_link(value._replace(text=beside)))
                yield from (HiddenLink(value.value, beside) for value in found)


_LINKS = frozenset((
    "url", "@id", "sameas", "item", "mainentityofpage", "relatedlink", "significantlink", "haspart", "ispartof",
))  # fmt: skip
_NO_PAGE = re.compile(r"Image|Video|Audio|Media|Action|EntryPoint|DataDownload")


def in_json_ld(page: LinkPage) -> Iterator[HiddenLink]:
    """Yield the URLs in JSON-LD fields such as `url`, `@id` and `sameAs`, except media and URLs with fragments."""
    scripts = (each for each in page.scripts if each.type == "application/ld+json")
    return _links_in(_parse_scripts(scripts), _is_json_ld_link)


def _is_json_ld_link(value: DataLink) -> bool:
    return value.field in _LINKS and not _NO_PAGE.search(value.kind) and "#" not in value.value


def in_head(page: LinkPage) -> Iterable[HiddenLink]:
    """Return the related pages that the head names, such as `<link rel=next>`."""
    return starmap(HiddenLink, page.head.onward)


# Finders in order of priority, for pages with more links than the limit. The text of elements may be hidden.
_Finders = tuple[Callable[[LinkPage], Iterable[HiddenLink]], ...]
ELEMENT_FINDERS: _Finders = (in_attributes, in_jump_menus)
DATA_FINDERS: _Finders = (in_head, in_drupal_settings, in_hydration_data, in_json_ld)


def hidden_links(page: LinkPage, *, of_elements: bool) -> Iterator[HiddenLink]:
    """Yield hidden links, either of elements or of data, unless a visible link with text has the same URL."""
    for find in ELEMENT_FINDERS if of_elements else DATA_FINDERS:
        for found in find(page):
            if not page.visible.get(found.raw_url, ("", True))[0] and leads_to_page(found.raw_url):
                yield found
