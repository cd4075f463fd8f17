"""What a Gemini File Search server holds: stores, their documents, files and operations. No sockets here."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from afresh.ports import Clock

Fate = tuple[tuple[float, str], ...]  # seconds after the upload → the state from then on
AT_ONCE: Fate = ((0, "ACTIVE"),)
NEVER: Fate = ((0, "PENDING"),)
FAILS: Fate = ((0, "FAILED"),)


def after(seconds: float, *, failing: float | None = None) -> Fate:
    """A document that is ACTIVE after a while; between `failing` and then it says FAILED."""
    ill = () if failing is None else ((failing, "FAILED"),)
    return ((0, "PENDING"), *ill, (seconds, "ACTIVE"))


class Wrong(Exception):
    """A request that is answered with an error of Google's form."""

    def __init__(self, code: int, status: str, message: str, details: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.body: dict[str, Any] = {"code": code, "message": message, "status": status}
        if details:
            self.body["details"] = list(details)


def invalid(message: str) -> Wrong:
    """A request that makes no sense."""
    return Wrong(400, "INVALID_ARGUMENT", message)


def missing(name: str) -> Wrong:
    """Something that is not there."""
    return Wrong(404, "NOT_FOUND", f"{name} not found.")


@dataclass(kw_only=True)
class HostedDocument:
    """One document of a store."""

    number: int
    name: str
    display_name: str
    mime_type: str
    data: bytes
    metadata: list[dict[str, Any]]
    created_at: datetime
    fate: Fate
    chunking: Any = None

    @property
    def text(self) -> str:
        """Its content."""
        return self.data.decode()

    @property
    def values(self) -> dict[str, Any]:
        """Its metadata by key."""
        return {each["key"]: each.get("stringValue", each.get("numericValue")) for each in self.metadata}

    def state(self, now: datetime) -> str:
        """PENDING, ACTIVE or FAILED, as its fate has it at this time."""
        age = (now - self.created_at).total_seconds()
        return [state for seconds, state in self.fate if seconds <= age][-1]

    def reply(self, now: datetime) -> dict[str, Any]:
        """The resource as the API shows it."""
        view = {
            "name": self.name,
            "displayName": self.display_name,
            "customMetadata": self.metadata,
            "createTime": stamp(self.created_at),
            "updateTime": stamp(self.created_at),
            "state": f"STATE_{self.state(now)}",
            "sizeBytes": str(len(self.data)),
            "mimeType": self.mime_type,
        }
        return {key: value for key, value in view.items() if value not in ("", [])}


@dataclass(kw_only=True)
class HostedStore:
    """One file search store."""

    number: int
    name: str
    display_name: str
    created_at: datetime
    documents: dict[str, HostedDocument] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all its documents."""
        return sum(len(each.data) for each in self.documents.values())

    def reply(self, now: datetime) -> dict[str, Any]:
        """The resource as the API shows it; numbers of documents as texts, none where there is none."""
        states = [each.state(now) for each in self.documents.values()]
        counts = {f"{state.lower()}DocumentsCount": str(states.count(state)) for state in set(states)}
        view = {"name": self.name, "displayName": self.display_name, "createTime": stamp(self.created_at)}
        return {**view, "updateTime": view["createTime"], **counts, "sizeBytes": str(self.size)}


@dataclass(kw_only=True)
class HostedOperation:
    """The making of one document."""

    name: str
    store: str
    document: str
    kind: str  # UploadToFileSearchStore or ImportFile
    done_at: datetime
    error: dict[str, Any] | None = None


class Hosted:
    """All that a server holds, with the rules of the API for adding to it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.stores: dict[str, HostedStore] = {}
        self.files: dict[str, tuple[str, bytes]] = {}  # name → media type and content
        self.operations: dict[str, HostedOperation] = {}
        self.storage_limit = 1_000_000_000  # bytes of all stores, as in the free tier
        self.fates: list[Fate] = []  # of the next documents
        self.fate = AT_ONCE  # of all others
        self.operation_seconds = 0.0
        self.foreign_operations = False  # whether the ids of operations are others than those of documents
        self.operation_error: dict[str, Any] | None = None  # what the next operation ends with
        self._numbers = count(1)

    def make_store(self, display_name: str = "") -> HostedStore:
        """A new, empty store."""
        if len(display_name) > 512:
            raise invalid("display_name must be no more than 512 characters.")
        number = next(self._numbers)
        name = f"fileSearchStores/{_slug(display_name, number)}"
        store = HostedStore(number=number, name=name, display_name=display_name, created_at=self.clock())
        self.stores[name] = store
        return store

    def store(self, name: str) -> HostedStore:
        """The store of this name."""
        if name not in self.stores:
            raise missing(name)
        return self.stores[name]

    def document(self, name: str) -> HostedDocument:
        """The document of this name."""
        store = self.store(name.partition("/documents/")[0])
        if name not in store.documents:
            raise missing(name)
        return store.documents[name]

    def add(self, store: HostedStore, meta: Mapping[str, Any], data: bytes) -> HostedDocument:
        """A new document, as an upload makes it."""
        self.check(meta, len(data))
        number = next(self._numbers)
        title = meta.get("displayName", "")
        document = HostedDocument(
            number=number,
            name=f"{store.name}/documents/{_slug(title, number)}",
            display_name=title,
            mime_type=meta.get("mimeType", "text/plain"),
            data=data,
            metadata=[_camel(each) for each in meta.get("customMetadata", [])],
            created_at=self.clock(),
            fate=self.fates.pop(0) if self.fates else self.fate,
            chunking=meta.get("chunkingConfig"),
        )
        store.documents[document.name] = document
        return document

    def check(self, meta: Mapping[str, Any], size: int) -> None:
        """What the API takes, and what there is room for."""
        if len(meta.get("displayName", "")) > 512:
            raise invalid("display_name must be no more than 512 characters.")
        if len(meta.get("customMetadata", [])) > 20:
            raise invalid("A document can have a maximum of 20 custom metadata.")
        if sum(each.size for each in self.stores.values()) + size > self.storage_limit:
            limit = f"Corpus has reached the storage limit of {self.storage_limit} bytes."
            raise Wrong(429, "RESOURCE_EXHAUSTED", limit)

    def begin(self, store: HostedStore, document: HostedDocument, kind: str) -> HostedOperation:
        """The operation that a new document is answered with."""
        folder = "upload/operations" if kind == "UploadToFileSearchStore" else "operations"
        error, self.operation_error = self.operation_error, None
        if error is not None:
            del store.documents[document.name]
        operation = HostedOperation(
            name=f"{store.name}/{folder}/{self._operation_id(document)}",
            store=store.name,
            document=document.name,
            kind=kind,
            done_at=datetime.fromtimestamp(self.clock().timestamp() + self.operation_seconds, UTC),
            error=error,
        )
        self.operations[operation.name] = operation
        return operation

    def _operation_id(self, document: HostedDocument) -> str:
        return f"op-{document.number}" if self.foreign_operations else document.name.rpartition("/")[2]

    def documents(self) -> Iterator[HostedDocument]:
        """Every document of every store."""
        for store in self.stores.values():
            yield from store.documents.values()


def stamp(at: datetime) -> str:
    """A time as Google writes it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _slug(title: str, number: int) -> str:
    """The id of a resource: what its name begins with and twelve more characters."""
    words = re.sub(r"[^a-z0-9]+", "", title.lower())[:27]
    return f"{words}-{number:012d}" if words else f"{number:012d}"


def _camel(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """One value of metadata as it is shown: the SDK sends inner keys in snake_case."""
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), key): value for key, value in metadata.items()}
