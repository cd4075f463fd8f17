"""What belongs to a source: host, path, globs, depth and caps.

`subpages`, the default, is the root's site below the root's directory. http and https of one host and port
are one site. The directory is what a reader of the root means by it:

| root                    | directory                | because                                     |
|-------------------------|--------------------------|---------------------------------------------|
| `…/docs/`               | `…/docs/`                | it is one                                   |
| `…/docs/index.html`     | `…/docs/`                | a file stands in its directory              |
| `…/docs/index`          | `…/docs/`                | the same with the suffix left out           |
| `…/docs`, `…/docs/v1.2` | `…/docs/`, `…/docs/v1.2/`| no file: most servers send it on to `…/`    |

The last row is a choice: taking the directory of `https://x.org/docs` literally would crawl the whole of
x.org, which nobody who typed it wants. Who starts at a page without suffix and wants its neighbours too
names their directory or the scope `hostname`.

`hostname` is the same host and port (`www.x.org` is not `x.org`), `domain` the same registrable domain on any
port. A glob is tried on the whole address, on path and query, and on the path alone; `*`, like `**`, crosses
slashes. The root belongs whatever the rules say, also in the forms a redirect gives it: the other scheme,
with or without its last slash.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from afresh.urls.canonical import (
    directory_of,
    domain_of,
    host_of,
    path_components,
    registrable_domain,
    trim_params,
)
from afresh.urls.globs import Glob, Subject, parse_glob
from afresh.urls.traps import trap_in

WHOLE_SITE = "/llms-full.txt"  # every page at once: useful as a source of its own, not beside its pages
_FILE = re.compile(r"(?:.*\.[A-Za-z][A-Za-z0-9]{1,5}|index)", re.IGNORECASE)


class Scope(StrEnum):
    """How far from its root a source reaches."""

    SUBPAGES = "subpages"
    HOSTNAME = "hostname"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What belongs to a source, as its user wrote it; `max_pages` is counted by the store, not here."""

    root: str
    scope: Scope = Scope.SUBPAGES
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int = 20
    max_pages: int = 10_000
    max_params: int | None = None
    max_components: int = 10
    max_per_pattern: int = 200  # pages that may look endless, per pattern (traps.py); 0: no limit
    aside: str | None = None  # where the root leads for now, outside its own scope
    former: tuple[str, ...] = ()  # roots before it moved: pages below them are asked where they are now
    may_move: bool = False  # the root may lead to another site

    def refusal(self, url: str, depth: int) -> str | None:
        """Say in a few words why a canonical address is not part of the source, or None if it is."""
        edge = _edge(self)
        if url in edge.roots:
            return None
        if url.endswith(WHOLE_SITE):
            return "the text of all pages in one file"
        if not url.startswith(edge.prefixes) and not edge.shares_domain(url):
            return f"outside the scope {self.scope} of {self.root}"
        if depth > self.max_depth:
            return f"deeper than max_depth {self.max_depth}"
        # slashes bound the components from above and are cheaper to count
        if url.count("/") - 2 > self.max_components and path_components(url) > self.max_components:
            return f"{path_components(url)} path components, more than max_components {self.max_components}"
        if (edge.exclude or edge.include) and (refused := edge.glob_refusal(url)):
            return refused
        return trap_in(url) if edge.tells_traps else None

    def trim(self, url: str) -> str:
        """Leave off the query parameters beyond `max_params` (C23); where the root leads is the root."""
        trimmed = trim_params(url, self.max_params)
        return self.root if trimmed == self.aside else trimmed

    def was_ours(self, url: str, depth: int) -> bool:
        """Tell whether a URL was part of the source before its root moved."""
        return any(replace(self, root=root, aside=None).refusal(url, depth) is None for root in self.former)

    def may_lead(self, asked: str, to: str) -> bool:
        """Tell whether a redirect of a page may lead to a URL: within the scope, that of the root further."""
        if self.refusal(to, 0) is None:
            return True
        return asked == self.root and (self.may_move or is_same_site(asked, to))


OTHER_SITE = (
    "another site, so nothing was read; if that is right, follow it with "
    "`afresh refresh NAME --follow-move`, or give the source that URL (PATCH /api/v1/sources/NUMBER)"
)


@dataclass(frozen=True, slots=True)
class Globs:
    """Patterns of what is wanted and what is not, for paths that begin with a slash."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def refusal(self, path: str) -> str | None:
        """Why a path is not wanted, or None if it is."""
        subject = Subject(path, (0, 1))
        if excluded := _first_match(_parsed(self.exclude), subject):
            return f"excluded by {excluded}"
        if self.include and not _first_match(_parsed(self.include), subject):
            return "matches no include pattern"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edge:
    """Rules made ready for many questions."""

    roots: frozenset[str]
    prefixes: tuple[str, ...]
    domain: str | None
    include: tuple[Glob, ...]
    exclude: tuple[Glob, ...]
    tells_traps: bool

    def shares_domain(self, url: str) -> bool:
        if self.domain is None or not url.startswith(("https://", "http://")):
            return False
        return registrable_domain(host_of(url)) == self.domain

    def glob_refusal(self, url: str) -> str | None:
        subject = _subject(url)
        if excluded := _first_match(self.exclude, subject):
            return f"excluded by {excluded}"
        if self.include and not _first_match(self.include, subject):
            return "matches no include pattern"
        return None


def _subject(url: str) -> Subject:
    """What a glob is tried on: the address, its path and query, its path."""
    path = len(url) - len(url.split("/", 3)[3]) - 1
    return Subject(url, (0, path), url.find("?", path))


def _first_match(globs: tuple[Glob, ...], subject: Subject) -> str | None:
    return next((glob.text for glob in globs if subject.matches(glob)), None)


@lru_cache(maxsize=64)
def _edge(rules: Rules) -> _Edge:
    roots = (rules.root,) if rules.aside is None else (rules.root, rules.aside)
    return _Edge(
        roots=frozenset(form for root in (*roots, rules.trim(rules.root)) for form in _root_forms(root)),
        prefixes=_both_schemes(tuple(start for root in roots for start in _prefixes(root, rules.scope))),
        domain=registrable_domain(host_of(rules.root)) if rules.scope is Scope.DOMAIN else None,
        include=_parsed(rules.include),
        exclude=_parsed(rules.exclude),
        tells_traps=rules.max_per_pattern > 0 and trap_in(rules.root) is None,
    )


def _prefixes(root: str, scope: Scope) -> tuple[str, ...]:
    """What an address that belongs begins with, scheme left out."""
    if scope is not Scope.SUBPAGES:
        return (f"{domain_of(root)}/",)
    path = root.partition("?")[0].partition("://")[2]
    home = home_of(path)
    return (home,) if home == directory_of(path) else (home, f"{path}?")


def is_same_site(one: str, other: str) -> bool:
    """Tell whether two URLs have one registrable domain, and one port unless both have the usual one."""
    if registrable_domain(host_of(one)) != registrable_domain(host_of(other)):
        return False
    return _port_of(one) == _port_of(other)


def _port_of(url: str) -> str:
    """The port that a URL names, "" for the usual one of its scheme."""
    return domain_of(url).removeprefix(host_of(url))


def home_of(root: str) -> str:
    """The directory that a reader of a root means by it, with a slash at the end."""
    path = root.partition("?")[0]
    directory = directory_of(path)
    if path == directory or _FILE.fullmatch(path.removeprefix(directory)):
        return directory
    return f"{path}/"


def _root_forms(root: str) -> tuple[str, ...]:
    """The root as redirects often change it: the other scheme, with or without the last slash."""
    path, mark, query = root.partition("://")[2].partition("?")
    other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
    return _both_schemes((f"{path}{mark}{query}", f"{other}{mark}{query}"))


def _both_schemes(rests: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{scheme}://{rest}" for rest in rests for scheme in ("https", "http"))


def address_filter(glob: str) -> Callable[[str], bool]:
    """Whether an address matches a glob, tried as those of a source are; without a star it is a beginning."""
    whole = glob if re.search(r"[*?\[]", glob) else f"{glob}*"
    anywhere = whole.startswith(("/", "*")) or "://" in whole
    parsed = parse_glob(whole if anywhere else f"/{whole}")
    return lambda url: _subject(url).matches(parsed)


@lru_cache(maxsize=64)
def _parsed(globs: tuple[str, ...]) -> tuple[Glob, ...]:
    return tuple(map(parse_glob, globs))
