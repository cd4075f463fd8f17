"""Decide which URLs belong to a source, by host, path, globs, depth and limits.

The default scope `subpages` contains the pages of the root's site below the root's directory. http and https
of one host and port are one site. The directory depends on the root:

| root                    | directory                | because                                     |
|-------------------------|--------------------------|---------------------------------------------|
| `…/docs/`               | `…/docs/`                | the root is a directory                     |
| `…/docs/index.html`     | `…/docs/`                | a file is in its directory                  |
| `…/docs/index`          | `…/docs/`                | the same without the suffix                 |
| `…/docs`, `…/docs/v1.2` | `…/docs/`, `…/docs/v1.2/`| most servers redirect such a URL to `…/`    |

The last row is a design decision: the literal directory of `https://x.org/docs` would be all of x.org, which
users rarely want. To start at a page without suffix and include its siblings, use their directory as the root,
or the scope `hostname`.

The scope `hostname` is the same host and port (`www.x.org` is not `x.org`), and `domain` is the same registrable
domain on any port. A glob is matched against the whole URL, against path and query, and against the path alone.
`*`, like `**`, also matches slashes. The root is always in scope, also with the other scheme and with or without
its last slash, because servers redirect to such forms.

URLs are refused as crawler traps, of which a site could generate infinitely many, if they have one of these forms
(`urls/traps.py` has those that only their number gives away):

| form                                    | example                                    |
|-----------------------------------------|--------------------------------------------|
| a part of the path occurs 3 times       | `/a/a/a`, `/x/a/b/a/b/a/b`                 |
| a parameter occurs 3 times              | `?tag=1&tag=2&tag=3`                       |
| more than 12 parameters                 | `?a=1&b=2&c=3…`                            |
"""

import re
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache

from afresh.dataclass import dataclass, replace
from afresh.urls.canonical import directory_of, domain_of, host_of, path_components, registrable_domain, trim_params
from afresh.urls.globs import Glob, GlobSubject, parse_glob

ENDLESS = "looks endless: "  # the reason for refusing a trap begins with this
REPEATS = 3
MAX_PARAMS = 12
LEAST_SLASHES = 2 + REPEATS  # of a URL whose path repeats itself
_MAX_UNIT_PARTS = 5  # maximum length of a repeating sequence of path components
WHOLE_SITE = "/llms-full.txt"  # has the text of all pages, so it is only useful as a source of its own
_FILE = re.compile(r"(?:.*\.[A-Za-z][A-Za-z0-9]{1,5}|index)", re.IGNORECASE)
OTHER_SITE = (
    "another site, so nothing was read; if that is right, follow it with "
    "`afresh refresh NAME --follow-move`, or give the source that URL (PATCH /api/v1/sources/NUMBER)"
)


class CrawlScope(StrEnum):
    """Which URLs a source may include, relative to its root."""

    SUBPAGES = "subpages"
    HOSTNAME = "hostname"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings that decide which URLs belong to a source; the store enforces `max_pages`."""

    root: str
    scope: CrawlScope = CrawlScope.SUBPAGES
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int = 20  # maximum number of links from the root
    max_pages: int = 10_000
    max_params: int | None = None  # maximum number of query parameters; further ones are removed from a URL
    max_components: int = 10  # maximum number of path components
    max_per_pattern: int = 200  # maximum number of generated-looking URLs per pattern (traps.py); 0: no limit
    aside: str | None = None  # the target of a temporary redirect of the root that is out of scope
    former: tuple[str, ...] = ()  # earlier roots; known pages below them are requested to find their new URLs
    may_move: bool = False  # the root may redirect to another site

    def refusal(self, url: str, depth: int) -> str | None:
        """Return why a canonical URL is not part of the source, or None if it is."""
        edge = _edge(self)
        if url in edge.roots:
            return None
        if url.endswith(WHOLE_SITE):
            return "a file with the text of all pages"
        if not url.startswith(edge.prefixes) and not edge.shares_domain(url):
            return f"outside the scope {self.scope} of {self.root}"
        if depth > self.max_depth:
            return f"deeper than max_depth {self.max_depth}"
        slashes = url.count("/")  # an upper bound, and faster to count
        if slashes - 2 > self.max_components and path_components(url) > self.max_components:
            return f"{path_components(url)} path components, more than max_components {self.max_components}"
        if (edge.exclude or edge.include) and (refused := _glob_refusal(edge.include, edge.exclude, _subject(url))):
            return refused
        return trap_in(url) if edge.detects_traps and (slashes >= LEAST_SLASHES or "&" in url) else None

    def trim(self, url: str) -> str:
        """Return the URL under which a link is stored: with at most `max_params` parameters; for `aside`, the root."""
        trimmed = url if self.max_params is None else trim_params(url, self.max_params)
        return self.root if trimmed == self.aside else trimmed

    def was_ours(self, url: str, depth: int) -> bool:
        """Return whether a URL was part of the source before its root changed."""
        return any(replace(self, root=root, aside=None).refusal(url, depth) is None for root in self.former)

    def allows_redirect(self, asked: str, to: str) -> bool:
        """Return whether a redirect is allowed: `to` is in scope, or `asked` is the root and moves within its site.

        With `may_move`, the root may redirect to any site.
        """
        if self.refusal(to, 0) is None:
            return True
        return asked == self.root and (self.may_move or is_same_site(asked, to))


@dataclass(frozen=True, slots=True)
class Globs:
    """Include and exclude patterns for paths, which begin with a slash."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def refusal(self, path: str) -> str | None:
        return _glob_refusal(_parsed(self.include), _parsed(self.exclude), GlobSubject(path, (0, 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edge:
    """The rules of a source, prepared once for fast checks of URLs."""

    roots: frozenset[str]
    prefixes: tuple[str, ...]
    domain: str | None
    include: tuple[Glob, ...]
    exclude: tuple[Glob, ...]
    detects_traps: bool

    def shares_domain(self, url: str) -> bool:
        if self.domain is None or not url.startswith(("https://", "http://")):
            return False
        return registrable_domain(host_of(url)) == self.domain


def _subject(url: str) -> GlobSubject:
    """Return the text against which globs are matched: the URL, its path and query, and its path alone."""
    path = len(url) - len(url.split("/", 3)[3]) - 1
    return GlobSubject(url, (0, path), url.find("?", path))


def _glob_refusal(include: tuple[Glob, ...], exclude: tuple[Glob, ...], subject: GlobSubject) -> str | None:
    for glob in exclude:
        if subject.matches(glob):
            return f"excluded by {glob.text}"
    wanted = not include or any(subject.matches(glob) for glob in include)
    return None if wanted else "matches no include pattern"


@lru_cache(maxsize=64)
def _edge(rules: Rules) -> _Edge:
    roots = (rules.root,) if rules.aside is None else (rules.root, rules.aside)
    return _Edge(
        roots=frozenset(form for root in (*roots, rules.trim(rules.root)) for form in _root_forms(root)),
        prefixes=_both_schemes(tuple(start for root in roots for start in _prefixes(root, rules.scope))),
        domain=registrable_domain(host_of(rules.root)) if rules.scope is CrawlScope.DOMAIN else None,
        include=_parsed(rules.include),
        exclude=_parsed(rules.exclude),
        detects_traps=rules.max_per_pattern > 0 and trap_in(rules.root) is None,
    )


def trap_in(url: str) -> str | None:
    """Return why a canonical URL looks like a crawler trap, or None."""
    path, _, query = url.partition("?")
    if path.count("/") >= LEAST_SLASHES:
        parts = path.split("/")[3:]
        if len(parts) - len(set(parts)) >= REPEATS - 1 and (unit := _repeated(parts)):
            return f"{ENDLESS}the path repeats /{unit}"
    names = [part.partition("=")[0] for part in query.split("&") if part] if "&" in query else []
    if len(names) > MAX_PARAMS:
        return f"{ENDLESS}{len(names)} parameters"
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    return f"{ENDLESS}the parameter {name} occurs {times} times" if times >= REPEATS else None


def _repeated(parts: list[str]) -> str | None:
    for size in range(1, min(_MAX_UNIT_PARTS, len(parts) // REPEATS) + 1):
        same = 0  # number of consecutive components that are equal to the one `size` before them
        for at in range(size, len(parts)):
            same = same + 1 if parts[at] == parts[at - size] and parts[at] else 0
            if same == size * (REPEATS - 1):
                return "/".join(parts[at - size + 1 : at + 1])
    return None


def _prefixes(root: str, scope: CrawlScope) -> tuple[str, ...]:
    """Return the beginnings of URLs in scope, without the scheme."""
    if scope is not CrawlScope.SUBPAGES:
        return (f"{domain_of(root)}/",)
    path = root.partition("?")[0].partition("://")[2]
    home = home_of(path)
    return (home,) if home == directory_of(path) else (home, f"{path}?")


def is_same_site(one: str, other: str) -> bool:
    """Return whether two URLs have the same registrable domain and port; all default ports count as equal."""
    if registrable_domain(host_of(one)) != registrable_domain(host_of(other)):
        return False
    port, other_port = (domain_of(url).removeprefix(host_of(url)) for url in (one, other))
    return port == other_port


def home_of(root: str) -> str:
    """Return the directory of a root, with a final slash (see the table at the top of this file)."""
    path = root.partition("?")[0]
    directory = directory_of(path)
    if path == directory or _FILE.fullmatch(path.removeprefix(directory)):
        return directory
    return f"{path}/"


def _root_forms(root: str) -> tuple[str, ...]:
    """Return the root as servers often redirect to it: with both schemes, with and without a final slash."""
    path, mark, query = root.partition("://")[2].partition("?")
    other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
    return _both_schemes((f"{path}{mark}{query}", f"{other}{mark}{query}"))


def _both_schemes(rests: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{scheme}://{rest}" for rest in rests for scheme in ("https", "http"))


def address_filter(glob: str) -> Callable[[str], bool]:
    """Return a function that says whether a URL matches a glob; a glob without wildcards is a prefix."""
    whole = glob if re.search(r"[*?\[]", glob) else f"{glob}*"
    anywhere = whole.startswith(("/", "*")) or "://" in whole
    parsed = parse_glob(whole if anywhere else f"/{whole}")
    return lambda url: _subject(url).matches(parsed)


@lru_cache(maxsize=64)
def _parsed(globs: tuple[str, ...]) -> tuple[Glob, ...]:
    return tuple(map(parse_glob, globs))
