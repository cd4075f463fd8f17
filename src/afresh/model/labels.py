"""Labels of sources such as `react` or `react@18`, and default names made from URLs."""

import re
from collections.abc import Collection
from unicodedata import normalize

from afresh.errors import UsageError
from afresh.sources.git.address import PREFIX, parse_git
from afresh.urls.canonical import host_of
from afresh.urls.files import is_file_url, path_of

_NAME = re.compile(r"(?!.*//)[A-Za-z0-9][A-Za-z0-9._/-]{0,99}(?<!/)")
_INDEX = re.compile(r"(?:index|default)\.[a-z]+$")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def parse_label(label: str) -> tuple[str, str | None]:
    name, _, version = label.partition("@")
    return check_name(name), version or None


def label_of(name: str, version: str | None) -> str:
    return f"{name}@{version}" if version else name


def is_among(label: str, names: Collection[str]) -> bool:
    """Return whether a label is in a list of names and labels; an empty list contains all."""
    return not names or label in names or label.partition("@")[0] in names


def check_name(name: str) -> str:
    """Return the name; raise UsageError if it is not a valid name of a source."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a source: use letters, digits, dots, dashes and slashes")
    return name


def check_version(version: str | None) -> None:
    """Raise UsageError if a version is not valid in a label."""
    if version is not None and not _NAME.fullmatch(version):
        raise UsageError(f"{version!r} cannot be a version: use letters, digits, dots, dashes and slashes")


def name_for(url: str, kind: str = "web") -> str:
    """Return a short name for a URL, made of its host and path."""
    if kind == "github":
        return "/".join(url.split("/")[3:5]).partition("@")[0]
    if is_file_url(url):
        last = normalize("NFKD", path_of(url).rstrip("/").rpartition("/")[2])
        return _OTHER.sub("-", last.encode("ascii", "ignore").decode()).strip("-.")[:100] or "files"
    if url.startswith(PREFIX):
        return parse_git(url).name[:100]
    host = host_of(url).removeprefix("www.").strip("[]")
    path = url.split("://", 1)[1].partition("/")[2].partition("?")[0]
    path = _INDEX.sub("", path).strip("/")
    return _OTHER.sub("-", "-".join([host, *path.split("/")]) if path else host).strip("-.")[:100]
