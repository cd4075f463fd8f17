"""Parse the GitHub repository that a user typed, and build the URLs of its files and its wiki.

| typed                                              | means                                              |
|----------------------------------------------------|----------------------------------------------------|
| `owner/repo`, `https://github.com/owner/repo`      | the default branch, and the wiki                   |
| `owner/repo@ref`                                   | a branch, a tag or a commit                        |
| `https://github.com/owner/repo/tree/ref/path`      | a folder of it, or one file (`/blob/` is the same) |
| `https://github.com/owner/repo/wiki`               | only the wiki                                      |

A branch may have slashes in its name, so the refs `a`, `a/b` and `a/b/c` are tried in turn for `tree/a/b/c`.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

from afresh.dataclass import dataclass, replace
from afresh.urls.canonical import MAX_LENGTH, canonical

PUBLIC_WEB = "https://github.com"
_OWNER = r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}"
_REPO = r"(?!\.{1,2}(?:$|[/@]))[A-Za-z0-9._-]{1,100}"
_SHORT = re.compile(rf"(?P<owner>{_OWNER})/(?P<repo>{_REPO})(?:@(?P<ref>[^@\s]+))?")
_LONG = re.compile(rf"(?P<owner>{_OWNER})/(?P<repo>{_REPO})(?:@(?P<ref>[^@\s]+)|/(?P<rest>.*))?/?")
_NO_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[/.-]|[/.]$|\.lock$")  # git check-ref-format
_SAFE = "-._~!$&'*+,=:@"  # characters not escaped in a path segment; `;` and `(` could look like a session id
_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")
_MAX_PATH_CHARS = 1_024
_MAX_REF_PARTS = 6  # longer branch names have to be typed as `owner/repo@ref`
_NO_OWNERS = frozenset({
    "about", "apps", "collections", "contact", "customer-stories", "enterprise", "events", "explore", "features",
    "issues", "localhost", "login", "logout", "marketplace", "new", "notifications", "organizations", "orgs",
    "pricing", "pulls", "readme", "search", "security", "sessions", "settings", "signup", "site", "sponsors",
    "stars", "team", "topics", "trending", "users",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubAddress:
    web: str  # URL of the server, without a slash at the end
    owner: str
    repo: str
    ref: str | None = None  # None: the default branch
    rest: tuple[str, ...] = ()  # ref and path: only the server knows where the ref ends
    wiki_only: bool = False

    @property
    def name(self) -> str:
        return f"{self.owner}/{self.repo}"

    @property
    def has_wiki(self) -> bool:
        """Return whether the source includes the wiki: not with a ref or a folder, as the wiki has no versions."""
        return self.ref is None and not self.rest

    @property
    def url(self) -> str:
        """Return the canonical URL of the source; `github_address` parses it back."""
        base = f"{self.web}/{self.name}"
        if self.ref is not None:
            return f"{base}@{quoted(self.ref)}" if "/" in self.ref else f"{base}/tree/{quoted(self.ref)}"
        if self.rest:
            return f"{base}/tree/{quoted('/'.join(self.rest))}"
        return f"{base}/wiki" if self.wiki_only else base

    def readings(self) -> list[tuple[str, str]]:
        """Return the possible pairs of ref and path, in the order in which to try them."""
        if not self.rest:
            return [(self.ref or "HEAD", "")]
        most = min(len(self.rest), _MAX_REF_PARTS)
        cuts = (("/".join(self.rest[:at]), "/".join(self.rest[at:])) for at in range(1, most + 1))
        return [(ref, path) for ref, path in cuts if is_ref(ref)]


def github_address(text: str, web_urls: Sequence[str]) -> GithubAddress | None:
    """Return the repository that a text names, if any; `owner/repo` is on the first server of `web_urls`."""
    text = text.strip()
    if "://" not in text and not text.lower().startswith(("github.com/", "www.github.com/")):
        found = _SHORT.fullmatch(text)
        return _of(found, web_urls[0]) if found else None
    typed = text if "://" in text else f"https://{text}"
    for web in web_urls:
        below = _below(typed, web)
        found = _LONG.fullmatch(below) if below else None
        if found:
            return _of(found, web.rstrip("/"))
    return None


def _below(typed: str, web: str) -> str | None:
    """Return the part of a URL after the server's URL, without query and fragment; None for another server."""
    scheme, _, rest = re.split(r"[?#]", typed, maxsplit=1)[0].partition("://")
    if scheme.lower() not in ("http", "https"):
        return None
    place = web.partition("://")[2].rstrip("/").lower()
    for host in (place, f"www.{place}"):
        if rest.lower().startswith(f"{host}/"):
            return rest[len(host) + 1 :].rstrip("/")
    return None


def _of(found: re.Match[str], web: str) -> GithubAddress | None:
    named = found.groupdict()
    owner, repo = named["owner"], named["repo"]
    repo = repo.removesuffix(".git") or repo
    if owner.lower() in _NO_OWNERS:
        return None
    plain = GithubAddress(web=web, owner=owner, repo=repo)
    if named["ref"] is not None:
        ref = unquote(named["ref"])
        return replace(plain, ref=ref) if is_ref(ref) else None
    kind, _, below = (named.get("rest") or "").strip("/").partition("/")
    parts = tuple(unquote(part) for part in below.split("/") if part)
    if not kind:
        return plain
    if kind == "wiki":
        return replace(plain, wiki_only=True)
    if kind not in ("tree", "blob") or not parts or not is_ref(parts[0]):
        return None
    return replace(plain, ref=parts[0]) if len(parts) == 1 else replace(plain, rest=parts)


def is_ref(name: str) -> bool:
    return 0 < len(name) <= 255 and name.isprintable() and not _NO_REF.search(name)


def odd_path(path: str) -> str | None:
    if not path or len(path) > _MAX_PATH_CHARS:
        return "empty path" if not path else "path that is too long"
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        return "path that leads out of the repository"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "name that is not UTF-8"
    return None


def blob_start(web: str, name: str, branch: str) -> str:
    return f"{web}/{name}/blob/{quoted(branch)}/"


def blob_url(start: str, path: str) -> str | None:
    """Return the page URL of a file; None if it would be too long."""
    if _PLAIN.fullmatch(path) and len(start) + len(path) <= MAX_LENGTH:
        return start + path
    url = start + quoted(path)
    return url if canonical(url) == url else None


def wiki_root(web: str, name: str) -> str:
    return f"{web}/{name}/wiki"


def odd_wiki_page(url: str, root: str) -> str | None:
    if url.lower() == root.lower():
        return None
    if not url.lower().startswith(f"{root.lower()}/"):
        return "outside the wiki"
    page = url[len(root) + 1 :]
    if "?" in page or "/" in page or page.startswith("_") or not page:
        return "a tool of the wiki (such as its history), not a page"
    return None


def quoted(path: str) -> str:
    return quote(path, safe=_SAFE + "/")
