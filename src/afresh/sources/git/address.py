"""Parse the git repository that a user typed, and write it in one canonical form.

| typed                                           | canonical                                       |
|-------------------------------------------------|-------------------------------------------------|
| `git+https://Host/team/repo.git@v1#docs/en`     | `git+https://host/team/repo.git@v1#docs/en`     |
| `git+https://github.com/o/r`                    | `git+https://github.com/o/r.git`                |
| `git@host:team/repo.git`                        | `git+ssh://git@host/team/repo.git`              |
| `ana@host:repo.git` (below the home folder)     | `git+ssh://ana@host/~/repo.git`                 |
| `ssh://git@host:2222/repo.git@main`             | `git+ssh://git@host:2222/repo.git@main`         |
| `git+file:///srv/repo.git`                      | `git+file:///srv/repo.git`                      |

The text after the first `@` of the path is a branch, a tag or a full commit id; the text after `#` is the
folder of the repository that is read. An `@` or `#` in the path itself is written as `%40` or `%23`.
"""

import hashlib
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

from afresh.dataclass import dataclass
from afresh.errors import SourceError, UsageError
from afresh.text.redact import MASK
from afresh.urls.canonical import MAX_LENGTH, canonical

PREFIX = "git+"
HOW_TO_SIGN_IN = "set git.credential_helper, git.token or GIT_ASKPASS to give git your credentials"
ANONYMOUS = "the operator's keys are used only for sources added with `afresh crawl` or named in access.credentials_for"
_EXPECTED = "write it as git+https://host/repo.git, git@host:repo.git or git+file:///path"
_SCHEMES = ("https", "http", "ssh", "file")
_PORTS = {"https": 443, "http": 80, "ssh": 22}
_FORGES = frozenset({"github.com", "gitlab.com", "codeberg.org", "bitbucket.org"})
_LONG = re.compile(r"(?:git\+(?P<plus>[a-z]+)|(?P<plain>ssh))://(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SHORT = re.compile(r"(?P<user>[A-Za-z0-9._-]+)@(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):(?P<path>(?!//).+)")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_HOST = re.compile(r"[a-z0-9_][a-z0-9._-]*|\[[0-9a-f:.]+\]")
_PLACE = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|\.lock(?:/|$)|[./]$|^[-./]|^@$")
_PATH_SAFE = "/!$&'()*+,;=:~"
_MAX_REF_CHARS = 250
FILES = frozenset({b"100644", b"100755", b"100664"})
_UNREAD = {b"120000": "symbolic links", b"160000": "submodules"}
_ODD_PARTS = frozenset({b"", b".", b"..", b".git"})
_SHORT_ID = re.compile(r"[0-9a-fA-F]{4,39}")
_SAFE = "/!$&'()*+,=:@~"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAddress:
    """A repository, the ref that is read (branch, tag or commit), and the folder to which reading is limited."""

    scheme: str  # https, http, ssh or file
    host: str = ""
    port: int | None = None  # None: the default port of the scheme
    user: str | None = None  # only for ssh; a password is never stored
    path: str  # percent-encoded, with a slash at its start
    ref: str | None = None  # a branch, a tag or a commit id; None: HEAD
    folder: bytes = b""  # without slashes at its start and end

    @property
    def url(self) -> str:
        """Return the canonical URL of the source; `parse_git` parses it back."""
        ref = "" if self.ref is None else "@" + quote(self.ref, safe="/@")
        folder = "#" + quote_from_bytes(self.folder, safe=_PATH_SAFE + "@") if self.folder else ""
        return f"{PREFIX}{self.remote}{ref}{folder}"

    @property
    def remote(self) -> str:
        user, port = f"{self.user}@" if self.user else "", f":{self.port}" if self.port else ""
        return f"{self.scheme}://{user}{self.host}{port}{self.path}"

    @property
    def connects_to(self) -> tuple[str, int] | None:
        """Return the host (IPv6 without brackets) and the port of the server; None for a local repository."""
        return None if self.scheme == "file" else (self.host.strip("[]"), self.port or _PORTS[self.scheme])

    @property
    def name(self) -> str:
        parts = [part for part in self.path.split("/") if part not in ("", ".git")]
        return re.sub(r"[^A-Za-z0-9._-]+", "-", parts[-1].removesuffix(".git")).strip("-.") or "git"

    @property
    def commit(self) -> str | None:
        return self.ref if self.ref is not None and _COMMIT.fullmatch(self.ref) else None


def is_git(text: str) -> bool:
    """Return whether a typed text looks like a git URL, even if it has mistakes."""
    typed = text.strip()
    return bool(_LONG.match(typed)) or bool(_SHORT.fullmatch(typed))


def parse_git(text: str) -> GitAddress:
    """Parse the URL of a repository; raise UsageError if it has a mistake."""
    typed = text.strip()
    if not typed.isprintable() or len(typed) > MAX_LENGTH:
        raise UsageError(f"this is not the URL of a git repository: {_EXPECTED}")
    whole, _, folder = typed.partition("#")
    if short := _SHORT.fullmatch(whole):
        scheme, authority, typed = "ssh", f"{short['user']}@{short['host']}", whole
        path, ref = _split(short["path"], typed)
        if not path.startswith("/"):  # relative to the user's home folder, which hosting services do not have
            path = f"/{path}" if short["user"] == "git" or path.startswith("~") else f"/~/{path}"
    else:
        found = _LONG.fullmatch(whole)
        scheme = (found["plus"] or found["plain"]).lower() if found else ""
        if found is None or scheme not in _SCHEMES:
            raise UsageError(f"{_mask_user(typed)} is not the URL of a supported git repository: {_EXPECTED}")
        authority, slash, rest = found["rest"].partition("/")
        path, ref = _split(slash + rest, typed)
    user, host, port = _authority(scheme, authority, typed)
    if "?" in path or not path.strip("/"):
        raise UsageError(f"{_mask_user(typed)} names no repository: {_EXPECTED}")
    plain = quote_from_bytes(unquote_to_bytes(path), safe=_PATH_SAFE).rstrip("/")
    if "%00" in plain or any(part in (".", "..") for part in plain.split("/")):
        raise UsageError(f"{_mask_user(typed)}: the path of the repository must not contain . or ..")
    if host in _FORGES and not plain.endswith(".git"):
        plain += ".git"
    inside = unquote_to_bytes(folder).strip(b"/")
    if b"\0" in inside or any(part in (b".", b"..", b".git") for part in inside.split(b"/")):
        raise UsageError(f"{_mask_user(typed)}: after # write a folder of the repository, such as docs/en")
    return GitAddress(scheme=scheme, user=user, host=host, port=port, path=plain, ref=ref, folder=inside)


def at_path(path: bytes, ref: str | None = None, folder: bytes = b"") -> GitAddress:
    address = GitAddress(scheme="file", path=quote_from_bytes(path, safe=_PATH_SAFE), ref=ref, folder=folder)
    return parse_git(address.url)


def _split(path: str, typed: str) -> tuple[str, str | None]:
    path, mark, ref = path.partition("@")
    if not mark:
        return path, None
    try:
        name = unquote_to_bytes(ref).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{_mask_user(typed)}: the name of the branch or tag is not valid UTF-8") from None
    if not name or len(name) > _MAX_REF_CHARS or _BAD_REF.search(name) or not name.isprintable():
        raise UsageError(f"{name[:80]!r} is not a valid branch, tag or commit id")
    if _COMMIT.fullmatch(name.lower()):
        name = name.lower()
    return path, None if name == "HEAD" else name


def _authority(scheme: str, authority: str, typed: str) -> tuple[str | None, str, int | None]:
    user, at, place = authority.rpartition("@")
    if at and (scheme != "ssh" or not _USER.fullmatch(user)):
        raise UsageError(f"{_mask_user(typed)} contains a user name or password; remove it and {HOW_TO_SIGN_IN}")
    if scheme == "file":
        if place not in ("", "localhost"):
            raise UsageError(f"{_mask_user(typed)}: write a local repository with three slashes, git+file:///path")
        return None, "", None
    found = _PLACE.fullmatch(place)
    url = canonical(f"https://{found['host']}/") if found and found["host"] else None
    host = (url or "").removeprefix("https://").removesuffix("/")
    port = int(found["port"]) if found and found["port"] else None
    if not _HOST.fullmatch(host) or not 0 < (port or 1) < 65_536:
        raise UsageError(f"{_mask_user(typed)} names no host: {_EXPECTED}")
    return user or None, host, None if port == _PORTS[scheme] else port


def _mask_user(typed: str) -> str:
    """Return the typed URL without the user name and password before its host."""
    return repr(re.sub(r"(://)[^/]*@", rf"\1{MASK}@", typed)[:200])


class RefKind(StrEnum):
    HEAD = "HEAD"  # no name was given
    BRANCH = "branch"
    TAG = "tag"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitState:
    commit: str
    kind: RefKind
    branch: str | None = None  # the default branch, to which HEAD points
    is_ambiguous: bool = False  # a tag has the same name as the branch that is read


class GitFile(NamedTuple):
    path: bytes
    blob: str
    unread: str | None  # the kind of an entry that is not read, such as a submodule or symbolic link


def patterns_for(ref: str | None) -> tuple[str, ...]:
    """Return the patterns for `git ls-remote` that find the commit of a ref."""
    if ref is None:
        return ("HEAD",)
    return tuple(pattern for name, _ in _meanings(ref) for pattern in (name, f"{name}^{{}}"))


def _meanings(ref: str) -> list[tuple[str, RefKind]]:
    if ref.startswith("refs/"):
        return [(ref, RefKind.TAG if ref.startswith("refs/tags/") else RefKind.BRANCH)]
    return [(f"refs/heads/{ref}", RefKind.BRANCH), (f"refs/tags/{ref}", RefKind.TAG)]


def state_of(refs: bytes, ref: str | None) -> GitState:
    """Find the commit of `ref` in the output of `git ls-remote --symref`; branches take precedence over tags."""
    known, branch = _refs(refs)
    if ref is None:
        if "HEAD" not in known:
            raise SourceError("the repository has no commits, or its HEAD names a missing branch: add @branch")
        return GitState(commit=known["HEAD"], kind=RefKind.HEAD, branch=branch)
    if found := [(name, kind) for name, kind in _meanings(ref) if name in known]:
        name, kind = found[0]
        return GitState(commit=known.get(f"{name}^{{}}") or known[name], kind=kind, is_ambiguous=len(found) > 1)
    hint = ": write a commit with its full id" if _SHORT_ID.fullmatch(ref) else ""
    raise SourceError(f"the repository has no branch or tag {ref}{hint}")


def _refs(answer: bytes) -> tuple[dict[str, str], str | None]:
    known: dict[str, str] = {}
    branch = None
    for line in answer.decode("utf-8", "replace").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: "):
            branch = value.removeprefix("ref: ").removeprefix("refs/heads/") if name == "HEAD" else branch
        elif name:
            known.setdefault(name, value)
    return known, branch


def files_of(listing: bytes) -> Iterator[GitFile]:
    """Parse the output of `git ls-tree -r -z`."""
    for line in listing.split(b"\0"):
        about, _, path = line.partition(b"\t")
        mode, _, rest = about.partition(b" ")
        if not path:
            continue
        unread = None if _ODD_PARTS.isdisjoint(path.split(b"/")) else "odd names"
        if mode not in FILES:
            unread = _UNREAD.get(mode, "entries of an unknown kind")
        yield GitFile(path, rest.rpartition(b" ")[2].decode("ascii", "replace"), unread)


def blob_id(data: bytes, like: str) -> str:
    """Return git's id of a file content, by the hash function (SHA-1 or SHA-256) of the id `like`."""
    kind = hashlib.sha256 if len(like) == 64 else hashlib.sha1  # as git defines it, not for security
    made = kind(b"blob %d\0" % len(data), usedforsecurity=False)
    made.update(data)
    return made.hexdigest()


def is_lfs_pointer(data: bytes) -> bool:
    return len(data) <= 1_024 and data.startswith(b"version https://git-lfs.github.com/spec/")


@dataclass(frozen=True, slots=True)
class GitPages:
    """Converts between the files of a repository and their URLs; names may contain any bytes."""

    prefix: str  # the part of each URL before the path, with its slash

    def url(self, path: bytes) -> str | None:
        if not self.prefix.startswith("https://"):
            url = self.prefix + quote_from_bytes(path, safe=_SAFE)
            return url if len(url) <= MAX_LENGTH else None
        for safe in (_SAFE, "/"):  # escape all characters if the name would not survive as it is, such as a session id
            url = self.prefix + quote_from_bytes(path, safe=safe)
            if canonical(url) == url:
                return url
        return None

    def path(self, url: str) -> bytes | None:
        return unquote_to_bytes(url[len(self.prefix) :]) if url.startswith(self.prefix) else None


def pages_of(address: GitAddress, kind: RefKind, branch: str | None = None) -> GitPages:
    """Return the converter for file URLs; without a ref, they contain `HEAD` and survive a rename of the branch."""
    name = address.ref or "HEAD"
    start = _forge_start(address, kind, name.removeprefix("refs/heads/").removeprefix("refs/tags/"), branch)
    if start is not None and canonical(f"{start}x") == f"{start}x":
        return GitPages(start)
    return GitPages(f"{PREFIX}{address.remote}@{quote(name, safe='')}/")


def plain_page(url: str) -> str | None:
    """Return the canonical form of a file URL such as `git+https://host/repo.git@ref/path`; None for other URLs."""
    start = url.find("/", url.find("://") + 3)
    if not url.startswith(PREFIX) or "://" not in url or start < 0:
        return None
    repository, at, rest = url[start:].partition("@")
    ref, slash, path = rest.partition("/")
    if not (at and slash and path):
        return None
    name = quote(unquote_to_bytes(ref), safe="")
    return f"{url[:start]}{repository}@{name}/{quote_from_bytes(unquote_to_bytes(path), safe=_SAFE)}"


def _forge_start(address: GitAddress, kind: RefKind, name: str, branch: str | None) -> str | None:
    """Return the start of the web URLs of files on a known hosting service; None for other hosts."""
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
        if kind is not RefKind.HEAD:
            return f"https://{host}{path}/src/{kind.value}/{ref}/"
        return f"https://{host}{path}/src/branch/{quote(branch, safe='/')}/" if branch else None
    return None
