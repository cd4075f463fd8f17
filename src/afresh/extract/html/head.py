"""Read the head of a page: title, language, base URL, generator, robots rules."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.dataclass import dataclass, field
from afresh.text.language import normalise_tag
from afresh.urls.canonical import canonical, host_of

MAX_TITLE_CHARS = 500
MAX_ONWARD = 50
ONWARD = frozenset(
    {"next", "prev", "previous", "up", "first", "last", "start", "home", "contents", "toc", "index"}
    | {"chapter", "section", "subsection", "appendix", "glossary"}
)

_SEPARATOR = re.compile(r"\s+[-–—|·•:»«/~]+\s+|\s*[|·»«]\s*|:\s+")
_LIST = re.compile(r"[\s,;]+")
_REFRESH = re.compile(r"(?<=[;,\s])url\s*=\s*[\"']?([^\"']+)", re.IGNORECASE)


@dataclass(slots=True)
class Head:
    title: str = ""
    base: str | None = None
    language: str | None = None
    generator: str = ""
    site_name: str = ""
    canonical: str = ""  # URL of rel=canonical, as written
    markdown: str = ""  # URL of the same page as Markdown, as written
    refresh: str = ""  # target of a meta refresh, as written
    onward: list[tuple[str, str]] = field(default_factory=list)  # URL (as written) and title of related pages
    index: bool = True
    follow: bool = True


def read_head(tree: LexborHTMLParser, url: str) -> Head:
    head = Head()
    if tree.root is not None:
        attributes = tree.root.attributes
        head.language = normalise_tag(attributes.get("lang") or attributes.get("xml:lang"))
    for node in tree.head.iter() if tree.head is not None else ():
        _read_node(head, node, url)
    return head


def _read_node(head: Head, node: LexborNode, url: str) -> None:
    match node.tag:
        case "title" if not head.title:
            head.title = one_line(node.text())
        case "base" if head.base is None:
            head.base = canonical(node.attributes.get("href") or "", url)
        case "meta":
            _read_meta(head, node.attributes)
        case "link":
            _read_link(head, node.attributes)
        case "script" if head.generator != "sphinx":
            if "documentation_options.js" in (node.attributes.get("src") or ""):
                head.generator = "sphinx"


def _read_link(head: Head, attributes: dict[str, str | None]) -> None:
    rel, href = (attributes.get("rel") or "").lower().split(), (attributes.get("href") or "").strip()
    if "canonical" in rel:
        head.canonical = head.canonical or href
    elif "alternate" in rel and (attributes.get("type") or "").lower().startswith("text/markdown"):
        head.markdown = head.markdown or href
    elif href and not ONWARD.isdisjoint(rel) and len(head.onward) < MAX_ONWARD:
        head.onward.append((href, one_line(attributes.get("title") or "")[:MAX_TITLE_CHARS]))


def foreign_canonical(raw_url: str, base: str, url: str) -> str | None:
    """Return the URL of rel=canonical if it is on another host than the page `url`, else None; it is only a hint."""
    named = canonical(raw_url, base) if raw_url else None
    return named if named is not None and host_of(named) != host_of(url) else None


def _read_meta(head: Head, attributes: dict[str, str | None]) -> None:
    name = (attributes.get("name") or attributes.get("property") or "").lower()
    content = attributes.get("content") or ""
    if name == "generator":
        head.generator = head.generator or content.lower()
    elif (attributes.get("http-equiv") or "").lower() == "refresh":
        sent = _REFRESH.search(content)
        head.refresh = head.refresh or (sent[1].partition("#")[0].strip() if sent else "")
    elif name == "og:site_name":
        head.site_name = one_line(content)
    elif name in ("robots", "afresh"):
        index, follow = robots_rules(content)
        head.index, head.follow = head.index and index, head.follow and follow


def robots_rules(content: str) -> tuple[bool, bool]:
    words = set(_LIST.split(content.lower()))
    return not words & {"noindex", "none"}, not words & {"nofollow", "none"}


def one_line(text: str) -> str:
    return " ".join(text.split())


def choose_title(title: str, heading: str, site_name: str = "") -> str:
    """Return a title without the name of the site, if `heading` or `site_name` shows which part is the name."""
    chosen = title or heading
    for separator in _SEPARATOR.finditer(title):
        first, last = title[: separator.start()], title[separator.end() :]
        if heading and heading in (first, last):
            chosen = heading
            break
        if site_name and site_name in (first, last):
            chosen = last if site_name == first else first
    return chosen[:MAX_TITLE_CHARS].strip()
