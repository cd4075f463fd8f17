"""How our documents are recognised in a store that others use as well."""

from collections.abc import Mapping

from afresh.ports.sinks import Mark, Upload
from afresh.sync.copy import display_name

_STORE, _SOURCE, _PAGE, _HASH = "afresh_store", "afresh_source", "afresh_page", "afresh_hash"
_URL = "url"
LONGEST = 512  # characters of a value


def metadata(upload: Upload) -> dict[str, str]:
    """What is written beside a document: our mark, and what a reader filters by."""
    mark = upload.mark
    told = {_STORE: mark.store, _SOURCE: mark.source, _PAGE: str(mark.page), _HASH: mark.hash}
    if len(upload.url) <= LONGEST:  # half an address would be a wrong one
        told[_URL] = upload.url
    if title := upload.title.strip():
        told["title"] = title[:LONGEST]
    if upload.language:
        told["language"] = upload.language
    return {key: sendable(value) for key, value in told.items()}


def mark_in(metadata: Mapping[str, object]) -> Mark | None:
    """The mark of a document; None for one of somebody else."""
    store, source, page, digest = (metadata.get(key) for key in (_STORE, _SOURCE, _PAGE, _HASH))
    if not (isinstance(store, str) and isinstance(source, str) and isinstance(digest, str)):
        return None
    if not (isinstance(page, str) and page.isascii() and page.isdigit()):
        return None
    return Mark(store=store, source=source, page=int(page), hash=digest)


def content(upload: Upload) -> bytes:
    """The bytes of a document: never none, as stores refuse empty files."""
    text = upload.markdown if upload.markdown.strip() else f"# {upload.title.strip() or upload.url}\n"
    return text.encode("utf-8", "replace")


def shown_name(upload: Upload) -> str:
    """The display name as a store takes it."""
    return display_name(sendable(upload.name), sendable(upload.url))


def url_in(metadata: Mapping[str, object]) -> str | None:
    """The URL of the page that a document was made of."""
    url = metadata.get(_URL)
    return url if isinstance(url, str) and url else None


def sendable(text: str) -> str:
    """The text without what is no valid UTF-8."""
    return text.encode("utf-8", "replace").decode()
