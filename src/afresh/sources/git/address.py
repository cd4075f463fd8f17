"""Git repositories as people type them, and their one canonical form.

| typed                                           | canonical                                       |
|-------------------------------------------------|-------------------------------------------------|
| `git+https://Host/team/repo.git@v1#docs/en`     | `git+https://host/team/repo.git@v1#docs/en`     |
| `git+https://github.com/o/r`                    | `git+https://github.com/o/r.git`                |
| `git@host:team/repo.git`                        | `git+ssh://git@host/team/repo.git`              |
| `ana@host:repo.git` (below her home folder)     | `git+ssh://ana@host/~/repo.git`                 |
| `ssh://git@host:2222/repo.git@main`             | `git+ssh://git@host:2222/repo.git@main`         |
| `git+file:///srv/repo.git`                      | `git+file:///srv/repo.git`                      |

What follows the first `@` of the path is a branch, a tag or a whole commit id; what follows `#` is the folder
of the repository that is read. An `@` or `#` of the path itself is written `%40` or `%23`.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

from afresh.errors import UsageError
from afresh.text.redact import MASK
from afresh.urls.canonical import MAX_LENGTH, canonical

PREFIX = "git+"
HOW_TO_SIGN_IN = "git.credential_helper, git.token or GIT_ASKPASS tell git who you are"
ANONYMOUS = (
    "the operator's keys are used only for what `afresh crawl` added and for what "
    "access.credentials_for names"
)
_EXPECTED = "write it as git+https://host/repo.git, git@host:repo.git or git+file:///path"
_SCHEMES = ("https", "http", "ssh", "file")
_PORTS = {"https": 443, "http": 80, "ssh": 22}
_FORGES = frozenset({"github.com", "gitlab.com", "codeberg.org", "bitbucket.org"})
_LONG = re.compile(r"(?:git\+(?P<plus>[a-z]+)|(?P<plain>ssh))://(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SHORT = re.compile(
    r"(?P<user>[A-Za-z0-9._-]+)@(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):(?P<path>(?!//).+)"
)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_HOST = re.compile(r"[a-z0-9_][a-z0-9._-]*|\[[0-9a-f:.]+\]")
_PLACE = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|\.lock(?:/|$)|[./]$|^[-./]|^@$")
_PATH_SAFE = "/!$&'()*+,;=:~"
_LONGEST_REF = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAddress:
    """Where a repository is, which state of it is meant, and which folder of it."""

    scheme: str  # https, http, ssh or file
    host: str = ""
    port: int | None = None  # None: the usual one of the scheme
    user: str | None = None  # of ssh, never with a password
    path: str  # escaped, beginning with a slash
    ref: str | None = None  # a branch, a tag or a commit id; None: what HEAD names
    folder: bytes = b""  # without slashes at its ends

    @property
    def url(self) -> str:
        """The canonical address of the source; `parse_git` reads it back."""
        ref = "" if self.ref is None else "@" + quote(self.ref, safe="/@")
        folder = "#" + quote_from_bytes(self.folder, safe=_PATH_SAFE + "@") if self.folder else ""
        return f"{PREFIX}{self.remote}{ref}{folder}"

    @property
    def remote(self) -> str:
        """The address that git itself is given."""
        return f"{self.scheme}://{self._authority}{self.path}"

    @property
    def connects_to(self) -> tuple[str, int] | None:
        """The host without brackets and the port; None for a repository of this machine."""
        return None if self.scheme == "file" else (self.host.strip("[]"), self.port or _PORTS[self.scheme])

    @property
    def name(self) -> str:
        """What people call the repository."""
        parts = [part for part in self.path.split("/") if part not in ("", ".git")]
        return re.sub(r"[^A-Za-z0-9._-]+", "-", parts[-1].removesuffix(".git")).strip("-.") or "git"

    @property
    def is_pinned(self) -> bool:
        """Whether the address names one commit, which never changes."""
        return self.ref is not None and _COMMIT.fullmatch(self.ref) is not None

    @property
    def _authority(self) -> str:
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.host}{f':{self.port}' if self.port else ''}"


def is_git(text: str) -> bool:
    """Whether what was typed means a git repository, well-formed or not."""
    typed = text.strip()
    return bool(_LONG.match(typed)) or bool(_SHORT.fullmatch(typed))


def parse_git(text: str) -> GitAddress:
    """The repository that an address means; UsageError says what is wrong with it."""
    typed = text.strip()
    if not typed.isprintable() or len(typed) > MAX_LENGTH:
        raise UsageError(f"this is no address of a git repository: {_EXPECTED}")
    whole, _, folder = typed.partition("#")
    if short := _SHORT.fullmatch(whole):
        return _short(short["user"], short["host"], short["path"], folder)
    found = _LONG.fullmatch(whole)
    scheme = (found["plus"] or found["plain"]).lower() if found else ""
    if found is None or scheme not in _SCHEMES:
        raise UsageError(f"{_shown(typed)} is no address of a git repository that is read: {_EXPECTED}")
    authority, slash, rest = found["rest"].partition("/")
    path, ref = _split(slash + rest, typed)
    user, host, port = _authority(scheme, authority, typed)
    return _made(scheme, user, host, port, path, ref, folder, typed)


def at_path(path: bytes, ref: str | None = None, folder: bytes = b"") -> GitAddress:
    """The repository in a folder of this machine, named by its absolute path."""
    made = GitAddress(scheme="file", path=quote_from_bytes(path, safe=_PATH_SAFE), ref=ref, folder=folder)
    return parse_git(made.url)


def _short(user: str, host: str, rest: str, folder: str) -> GitAddress:
    path, ref = _split(rest, f"{user}@{host}:{rest}")
    if not path.startswith("/"):  # below the home folder of the user, which forges do not have
        path = f"/{path}" if user == "git" or path.startswith("~") else f"/~/{path}"
    typed = f"{user}@{host}:{rest}"
    _, name, port = _authority("ssh", f"{user}@{host}", typed)
    return _made("ssh", user, name, port, path, ref, folder, typed)


def _split(path: str, typed: str) -> tuple[str, str | None]:
    path, mark, ref = path.partition("@")
    if not mark:
        return path, None
    name = _text(ref, typed)
    if not name or len(name) > _LONGEST_REF or _BAD_REF.search(name) or not name.isprintable():
        raise UsageError(f"{name[:80]!r} cannot be the name of a branch or a tag, nor a commit id")
    if _COMMIT.fullmatch(name.lower()):
        name = name.lower()
    return path, None if name == "HEAD" else name


def _authority(scheme: str, authority: str, typed: str) -> tuple[str | None, str, int | None]:
    user, at, place = authority.rpartition("@")
    if at and (scheme != "ssh" or not _USER.fullmatch(user)):
        raise UsageError(f"{_shown(typed)} holds a user name or a password; leave it out: {HOW_TO_SIGN_IN}")
    if scheme == "file":
        if place not in ("", "localhost"):
            raise UsageError(
                f"{_shown(typed)}: a repository of this machine has three slashes, git+file:///path"
            )
        return None, "", None
    found = _PLACE.fullmatch(place)
    url = canonical(f"https://{found['host']}/") if found and found["host"] else None
    host = (url or "").removeprefix("https://").removesuffix("/")
    port = int(found["port"]) if found and found["port"] else None
    if not _HOST.fullmatch(host) or not 0 < (port or 1) < 65_536:
        raise UsageError(f"{_shown(typed)} names no host: {_EXPECTED}")
    return user or None, host, None if port == _PORTS[scheme] else port


def _made(
    scheme: str,
    user: str | None,
    host: str,
    port: int | None,
    path: str,
    ref: str | None,
    folder: str,
    typed: str,
) -> GitAddress:
    if "?" in path or not path.strip("/"):
        raise UsageError(f"{_shown(typed)} names no repository: {_EXPECTED}")
    plain = quote_from_bytes(unquote_to_bytes(path), safe=_PATH_SAFE).rstrip("/")
    if "%00" in plain or any(part in (".", "..") for part in plain.split("/")):
        raise UsageError(f"{_shown(typed)}: write the path of the repository without . and ..")
    if host in _FORGES and not plain.endswith(".git"):
        plain += ".git"
    return GitAddress(
        scheme=scheme, user=user, host=host, port=port, path=plain, ref=ref, folder=_folder(folder, typed)
    )


def _folder(escaped: str, typed: str) -> bytes:
    folder = unquote_to_bytes(escaped).strip(b"/")
    if b"\0" in folder or any(part in (b".", b"..", b".git") for part in folder.split(b"/")):
        raise UsageError(f"{_shown(typed)}: after # stands a folder of the repository, such as docs/en")
    return folder


def _text(escaped: str, typed: str) -> str:
    try:
        return unquote_to_bytes(escaped).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{_shown(typed)}: the name of a branch or a tag is UTF-8 text") from None


def _shown(typed: str) -> str:
    """What was typed, without what stands before an `@` of the host."""
    return repr(re.sub(r"(://)[^/]*@", rf"\1{MASK}@", typed)[:200])
