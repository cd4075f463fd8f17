"""Gemini File Search on loopback: stores, documents, uploads and operations, as the official SDK asks."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from tests.fakes.api import CountedApi
from tests.fakes.faults import Script
from tests.fakes.gemini_hosted import Hosted, HostedDocument, HostedOperation, HostedStore, Wrong, invalid, missing
from tests.fakes.gemini_upload import Uploads
from tests.fakes.wire import Reply, sent

from afresh.ports import Clock
from afresh.testing.script import Answer, FrozenClock
from afresh.testing.site import RecordedRequest

KEY = "a-key-of-gemini"
_PATH = re.compile(
    r"/(?P<upload>upload/)?(?P<version>v1|v1beta)/(?P<name>fileSearchStores(?:/[^/:]+)?)"
    r"(?P<rest>/documents(?:/[^/:]+)?|/(?:upload/)?operations/[^/:]+)?(?::(?P<verb>\w+))?"
)
_MOST, _USUAL = 20, 10  # documents in one answer


class GeminiServer(CountedApi):
    """Serves from a thread of its own; `hosted` is what it holds, `script` the trouble it makes.

    Documents go through their states in the time of `clock`, which stands still unless it is moved.
    `kinds` counts requests: stores.list, stores.create, stores.get, stores.delete, documents.list,
    documents.get, documents.delete, upload.start, upload.bytes, import, operations.get, other.
    """

    def __init__(self, clock: Clock | None = None, *, keys: Iterable[str] = (KEY,)) -> None:
        super().__init__()
        self.clock = clock or FrozenClock()
        self.hosted = Hosted(self.clock)
        self.uploads = Uploads(self.hosted, self._keep)
        self.script = Script()
        self.keys = set(keys)
        self.mute_operations = False  # operations never say that they are done, as Google's sometimes do not
        self.shy = False  # what is not there is a 403 that says it may not exist
        self.bend: bytes | None = None  # what all requests for a resource are answered with, as a good answer
        self.upload_base_url: str | None = None  # where uploads are sent to; here if None
        self._view_keys: dict[str, set[str]] = {}  # path → digests of the keys that were shown there

    @property
    def base_url(self) -> str:
        """What the `base_url` of the sink has to be."""
        return self.origin

    @property
    def documents(self) -> list[HostedDocument]:
        """Every document it holds, in the order they came."""
        return sorted(self.hosted.documents(), key=lambda each: each.number)

    def store(self, display_name: str) -> HostedStore:
        """The store that is called so."""
        return next(each for each in self.hosted.stores.values() if each.display_name == display_name)

    def saw(self, key: str) -> bool:
        """Whether any request carried this key."""
        mark = _digest(key)
        return any(mark in view for view in self._view_keys.values())

    async def _respond(self, asked: RecordedRequest) -> Reply:
        found = _PATH.fullmatch(asked.path.partition("?")[0])
        kind = _kind(asked, found)
        self.kinds[kind] += 1
        fault = self.script.take(kind)
        answer = None if fault and not fault.done else self._answer(kind, found, asked)
        self._note(asked, fault.status if fault else answer.status if answer else None)
        return fault.reply() if fault else sent(answer or Answer(status=500))

    def _note(self, asked: RecordedRequest, status: int | None) -> None:
        """Keep a request, the key only as a digest."""
        head = dict(asked.headers)
        if key := head.get("x-goog-api-key"):
            head["x-goog-api-key"] = "***"
            self._view_keys.setdefault(asked.path, set()).add(_digest(key))
        reply = RecordedRequest(
            method=asked.method, path=asked.path, status=status, headers=head, body=asked.body, at=asked.at
        )
        self.requests.add(reply)

    def _answer(self, kind: str, found: re.Match[str] | None, asked: RecordedRequest) -> Answer:
        try:
            if kind == "upload.bytes":  # the address is the secret
                return self.uploads.go_on(asked)
            self._check_key(asked.headers.get("x-goog-api-key"))
            if found is None:
                raise missing(asked.path)
            if kind == "upload.start":
                to = self.upload_base_url or self.base_url
                return self.uploads.begin(self.hosted.store(found["name"]), asked, to)
            if self.bend is not None:
                return Answer(status=200, headers={"Content-Type": "application/json"}, body=self.bend)
            return _reply(200, self._resource(kind, found, asked))
        except Wrong as wrong:
            return _reply(wrong.code, {"error": self._view(wrong).body})

    def _view(self, wrong: Wrong) -> Wrong:
        hint = "You do not have permission to access the resource or it may not exist."
        return Wrong(403, "PERMISSION_DENIED", hint) if self.shy and wrong.code == 404 else wrong

    def _check_key(self, key: str | None) -> None:
        if not key:
            raise Wrong(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")
        if key not in self.keys:
            reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            message = "API key not valid. Please pass a valid API key."
            raise Wrong(400, "INVALID_ARGUMENT", message, [reason])

    def _resource(self, kind: str, found: re.Match[str], asked: RecordedRequest) -> Mapping[str, Any]:
        """What a request for a resource is answered with."""
        name, query = found["name"] + (found["rest"] or ""), parse_qs(asked.path.partition("?")[2])
        now = self.clock()
        match kind:
            case "stores.create":
                return self.hosted.make_store(json.loads(asked.body or b"{}").get("displayName", "")).reply(now)
            case "stores.list":
                return self._page("fileSearchStores", self.hosted.stores.values(), query)
            case "stores.get":
                return self.hosted.store(name).reply(now)
            case "stores.delete":
                return self._delete_store(self.hosted.store(name), query)
            case "documents.list":
                return self._page("documents", self.hosted.store(found["name"]).documents.values(), query)
            case "documents.get":
                return self.hosted.document(name).reply(now)
            case "documents.delete":
                return self._delete_document(self.hosted.document(name), query)
            case "import":
                return self._import(self.hosted.store(name), json.loads(asked.body))
            case "operations.get" if name in self.hosted.operations:
                return self._operation(self.hosted.operations[name])
        raise missing(name)

    def _page(
        self, field: str, held: Iterable[HostedStore | HostedDocument], query: Mapping[str, list[str]]
    ) -> Mapping[str, Any]:
        """Some of a list, and where the next ones are; deletions in between hide nothing."""
        size = min(int(query.get("pageSize", ["0"])[0]) or _USUAL, _MOST)
        token = query.get("pageToken", ["after-0"])[0]
        if not re.fullmatch(r"after-\d+", token):
            raise invalid("Invalid page token.")
        left = sorted((each for each in held if each.number > int(token[6:])), key=lambda each: each.number)
        view = left[:size]
        body: dict[str, Any] = {field: [each.reply(self.clock()) for each in view]} if view else {}
        return {**body, "nextPageToken": f"after-{view[-1].number}"} if len(left) > size else body

    def _delete_store(self, store: HostedStore, query: Mapping[str, list[str]]) -> Mapping[str, Any]:
        if store.documents and not _forced(query):
            raise Wrong(400, "FAILED_PRECONDITION", "Cannot delete non-empty FileSearchStore")
        del self.hosted.stores[store.name]
        return {}

    def _delete_document(self, document: HostedDocument, query: Mapping[str, list[str]]) -> Mapping[str, Any]:
        if not _forced(query):
            raise Wrong(400, "FAILED_PRECONDITION", "Cannot delete non-empty Document")
        del self.hosted.store(document.name.partition("/documents/")[0]).documents[document.name]
        return {}

    def _import(self, store: HostedStore, body: Mapping[str, Any]) -> Mapping[str, Any]:
        file = body.get("fileName", "")
        if file not in self.hosted.files:
            raise missing(file)
        mime_type, data = self.hosted.files[file]
        meta = {"displayName": file, "mimeType": mime_type, **body}
        return {"name": self.hosted.begin(store, self.hosted.add(store, meta, data), "ImportFile").name}

    def _keep(self, store: HostedStore, meta: Mapping[str, Any], data: bytes) -> Mapping[str, Any]:
        document = self.hosted.add(store, meta, data)
        return {"name": self.hosted.begin(store, document, "UploadToFileSearchStore").name}

    def _operation(self, operation: HostedOperation) -> Mapping[str, Any]:
        if self.mute_operations or self.clock() < operation.done_at:
            return {"name": operation.name}
        if operation.error is not None:
            return {"name": operation.name, "done": True, "error": operation.error}
        kind = f"type.googleapis.com/google.ai.generativelanguage.v1main.{operation.kind}Response"
        made = {"@type": kind, "parent": operation.store, "documentName": operation.document}
        return {"name": operation.name, "done": True, "response": made}


def _kind(asked: RecordedRequest, found: re.Match[str] | None) -> str:
    if found is None:
        return "other"
    if found["verb"] == "uploadToFileSearchStore" and found["upload"]:
        return "upload.bytes" if "upload_id=" in asked.path else "upload.start"
    if found["verb"]:
        return "import" if found["verb"] == "importFile" else "other"
    rest = found["rest"] or ""
    if "operations/" in rest:
        return "operations.get"
    whole = "/" not in found["name"] if not rest else rest == "/documents"
    does = {"GET": "list" if whole else "get", "POST": "create", "DELETE": "delete"}.get(asked.method, "other")
    return f"{'documents' if rest else 'stores'}.{does}"


def _forced(query: Mapping[str, list[str]]) -> bool:
    return query.get("force", ["false"])[0].lower() == "true"


def _reply(status: int, body: Mapping[str, Any]) -> Answer:
    head = {"Content-Type": "application/json; charset=UTF-8"}
    return Answer(status=status, headers=head, body=json.dumps(body).encode())


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
