"""The addresses of the files of a repository: those that people can open where its host is known."""

from dataclasses import dataclass
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

from afresh.sources.git.address import PREFIX, GitAddress
from afresh.sources.git.tree import RefKind
from afresh.urls.canonical import MAX_LENGTH, canonical

_SAFE = "/!$&'()*+,=:@~"


@dataclass(frozen=True, slots=True)
class GitPages:
    """Files of a repository as addresses, and back: whatever bytes their names hold."""

    prefix: str  # up to and with the slash before the path

    def url(self, path: bytes) -> str | None:
        """The address of a file; None if it would be longer than any address may be."""
        if not self.prefix.startswith("https://"):
            url = self.prefix + quote_from_bytes(path, safe=_SAFE)
            return url if len(url) <= MAX_LENGTH else None
        for safe in (_SAFE, "/"):  # all is escaped where a name looks like a session id, say
            url = self.prefix + quote_from_bytes(path, safe=safe)
            if canonical(url) == url:
                return url
        return None

    def path(self, url: str) -> bytes | None:
        """The path that an address names; None if it is no file of this state of the repository."""
        return unquote_to_bytes(url[len(self.prefix) :]) if url.startswith(self.prefix) else None


def pages_of(address: GitAddress, kind: RefKind, branch: str | None = None) -> GitPages:
    """How files are addressed; without a ref by `HEAD`, so that a default branch may change its name."""
    name = address.ref or "HEAD"
    shown = _forge(address, kind, name.removeprefix("refs/heads/").removeprefix("refs/tags/"), branch)
    if shown is not None and canonical(f"{shown}x") == f"{shown}x":
        return GitPages(shown)
    return GitPages(f"{PREFIX}{address.remote}@{quote(name, safe='')}/")


def plain_page(url: str) -> str | None:
    """The canonical spelling of a file's address of the form `git+…@ref/path`; None for other addresses."""
    start = url.find("/", url.find("://") + 3)
    if not url.startswith(PREFIX) or "://" not in url or start < 0:
        return None
    repository, at, rest = url[start:].partition("@")
    ref, slash, path = rest.partition("/")
    if not (at and slash and path):
        return None
    name = quote(unquote_to_bytes(ref), safe="")
    return f"{url[:start]}{repository}@{name}/{quote_from_bytes(unquote_to_bytes(path), safe=_SAFE)}"


def _forge(address: GitAddress, kind: RefKind, name: str, branch: str | None) -> str | None:
    """How the web pages of a known host begin."""
    path = address.path.removesuffix(".git")
    depth = path.count("/")
    host = address.host if address.scheme == "ssh" or not address.port else f"{address.host}:{address.port}"
    if address.scheme not in ("https", "ssh") or path.endswith(".wiki") or depth < 2:
        return None
    ref = quote(name, safe="/")
    if host == "github.com" and depth == 2:
        return f"https://{host}{path}/blob/{ref}/"
    if host == "bitbucket.org" and depth == 2:
        return f"https://{host}{path}/src/{ref}/"
    if address.host == "gitlab.com" or address.host.startswith("gitlab."):
        return f"https://{host}{path}/-/blob/{ref}/"
    if address.host == "codeberg.org" or address.host.startswith(("gitea.", "forgejo.")):
        return _gitea(f"https://{host}{path}", kind, ref, branch)
    return None


def _gitea(repository: str, kind: RefKind, ref: str, branch: str | None) -> str | None:
    if kind is not RefKind.HEAD:
        return f"{repository}/src/{kind.value}/{ref}/"
    return f"{repository}/src/branch/{quote(branch, safe='/')}/" if branch else None
