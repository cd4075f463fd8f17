"""OpenAI's files and vector stores on loopback, with trouble on demand."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from itertools import count
from typing import Any
from urllib.parse import parse_qs

from tests.fakes.api import CountedApi
from tests.fakes.faults import Script
from tests.fakes.gemini_hosted import AT_ONCE, Fate
from tests.fakes.wire import Reply, sent

from afresh.ports import Clock
from afresh.testing.script import Answer, FrozenClock
from afresh.testing.site import RecordedRequest

KEY = "a-key-of-openai"
_PATH = re.compile(r"/v1/(?P<what>files|vector_stores)(?:/(?P<id>[^/]+))?(?P<in>/files)?(?:/(?P<file>[^/]+))?")
_STATUS = {"PENDING": "in_progress", "ACTIVE": "completed", "FAILED": "failed"}


@dataclass(kw_only=True)
class HostedFile:
    """A file, in no store as long as `store` is None."""

    number: int
    id: str
    name: str
    data: bytes
    store: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    placed_at: float = 0.0
    fate: Fate = AT_ONCE

    @property
    def text(self) -> str:
        """Its content."""
        return self.data.decode()


class _Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}


class VectorStoreServer(CountedApi):
    """Serves from a thread of its own; `files` is what it holds, `script` the trouble it makes.

    Files go through their states in the time of `clock`. `kinds` counts requests by method and by what they
    ask for: `POST files`, `GET vector_stores`, `DELETE vector_stores/files` and so on.
    """

    def __init__(self, clock: Clock | None = None, *, keys: Iterable[str] = (KEY,)) -> None:
        super().__init__()
        self.clock = clock or FrozenClock()
        self.stores: dict[str, dict[str, Any]] = {}
        self.files: dict[str, HostedFile] = {}
        self.fates: list[Fate] = []  # of the next files that get a place
        self.fate = AT_ONCE  # of all others
        self.storage_limit = 1_000_000_000
        self.keys = set(keys)
        self.script = Script()
        self.bend: bytes | None = None  # what all requests are answered with, as a good answer
        self._view_keys: set[str] = set()
        self._numbers = count(1)

    @property
    def base_url(self) -> str:
        """What the `base_url` of the sink has to be."""
        return f"{self.origin}/v1"

    @property
    def documents(self) -> list[HostedFile]:
        """Every file that has a place in a store, in the order they came."""
        return sorted((each for each in self.files.values() if each.store), key=lambda each: each.number)

    def saw(self, key: str) -> bool:
        """Whether any request carried this key."""
        return _digest(key) in self._view_keys

    def make_store(self, name: str) -> str:
        """A new, empty store; its id."""
        number = next(self._numbers)
        made = {"id": f"vs_{number:06d}", "number": number, "name": name, "status": "completed"}
        self.stores[str(made["id"])] = made
        return str(made["id"])

    def add(self, store: str, name: str, data: bytes, attributes: Mapping[str, Any] | None = None) -> HostedFile:
        """A file in a store, as an upload and its placing make it."""
        file = self._make_file(name, data)
        self._place(file, store, dict(attributes or {}))
        return file

    async def _respond(self, asked: RecordedRequest) -> Reply:
        found = _PATH.fullmatch(asked.path.partition("?")[0])
        kind = f"{asked.method} {found['what']}{found['in'] or ''}" if found else "other"
        self.kinds[kind] += 1
        fault = self.script.take(kind)
        answer = None if fault and not fault.done else self._answer(found, asked)
        head = dict(asked.headers)
        if key := head.pop("authorization", None):
            self._view_keys.add(_digest(key.removeprefix("Bearer ")))
        status = fault.status if fault else answer.status if answer else None
        self.requests.add(
            RecordedRequest(method=asked.method, path=asked.path, status=status, headers=head, body=asked.body)
        )
        return fault.reply() if fault else sent(answer or Answer(status=500))

    def _answer(self, found: re.Match[str] | None, asked: RecordedRequest) -> Answer:
        if self.bend is not None:
            return Answer(status=200, headers={"Content-Type": "application/json"}, body=self.bend)
        try:
            return _reply(200, self._body(found, asked))
        except _Refusal as refusal:
            return _reply(refusal.status, {"error": refusal.error})

    def _body(self, found: re.Match[str] | None, asked: RecordedRequest) -> Mapping[str, Any]:
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.keys:
            raise _Refusal(401, "Incorrect API key provided.", "invalid_api_key")
        if found is None:
            raise _Refusal(404, f"Invalid URL ({asked.method} {asked.path})")
        return self._files(found["id"], asked) if found["what"] == "files" else self._stores(found, asked)

    def _files(self, file: str | None, asked: RecordedRequest) -> Mapping[str, Any]:
        if asked.method == "POST" and file is None:
            name, data = _file_in(asked)
            if sum(len(each.data) for each in self.files.values()) + len(data) > self.storage_limit:
                raise _Refusal(429, "You exceeded your current quota.", "insufficient_quota")
            return _file(self._make_file(name, data))
        if file is None:
            return self._page([_file(each) for each in self.files.values()], asked)
        held = self._held(file)
        if asked.method == "DELETE":  # its place goes with it
            del self.files[held.id]
            return {"id": held.id, "object": "file", "deleted": True}
        return _file(held)

    def _stores(self, found: re.Match[str], asked: RecordedRequest) -> Mapping[str, Any]:
        if found["id"] is None:
            if asked.method == "POST":
                return self._store(self.make_store(json.loads(asked.body).get("name", "")))
            return self._page([self._store(each) for each in self.stores], asked)
        if found["id"] not in self.stores:
            raise _Refusal(404, f"No vector store found with id '{found['id']}'.")
        if found["in"]:
            return self._places(found["id"], found["file"], asked)
        if asked.method == "DELETE":
            del self.stores[found["id"]]
            for each in self.files.values():
                each.store = None if each.store == found["id"] else each.store
            return {"id": found["id"], "object": "vector_store.deleted", "deleted": True}
        return self._store(found["id"])

    def _places(self, store: str, file: str | None, asked: RecordedRequest) -> Mapping[str, Any]:
        if file is None and asked.method == "POST":
            body = json.loads(asked.body)
            held = self._held(body["file_id"])
            self._place(held, store, body.get("attributes") or {})
            return self._placed(held)
        if file is None:
            return self._page([self._placed(each) for each in self.documents if each.store == store], asked)
        held = self._held(file)
        if held.store != store:
            raise _Refusal(404, f"No file found with id '{file}' in vector store '{store}'.")
        if asked.method == "DELETE":
            held.store = None
            return {"id": file, "object": "vector_store.file.deleted", "deleted": True}
        return self._placed(held)

    def _page(self, held: list[dict[str, Any]], asked: RecordedRequest) -> Mapping[str, Any]:
        query = parse_qs(asked.path.partition("?")[2])
        limit, after = int(query.get("limit", ["20"])[0]), query.get("after", [""])[0]
        if not 1 <= limit <= 100:
            raise _Refusal(400, f"Invalid 'limit': {limit}.")
        last_first = query.get("order", ["desc"])[0] == "desc"
        ordered = sorted(held, key=lambda each: each["id"], reverse=last_first)
        left = [each for each in ordered if not after or (each["id"] < after if last_first else each["id"] > after)]
        view = left[:limit]
        ends = {"first_id": view[0]["id"], "last_id": view[-1]["id"]} if view else {}
        return {"object": "list", "data": view, **ends, "has_more": len(left) > limit}

    def _held(self, file: str) -> HostedFile:
        if file not in self.files:
            raise _Refusal(404, f"No such File object: {file}")
        return self.files[file]

    def _make_file(self, name: str, data: bytes) -> HostedFile:
        number = next(self._numbers)
        file = HostedFile(number=number, id=f"file-{number:06d}", name=name, data=data)
        self.files[file.id] = file
        return file

    def _place(self, file: HostedFile, store: str, attributes: dict[str, Any]) -> None:
        if len(attributes) > 16 or any(len(str(each)) > 512 for each in attributes.values()):
            raise _Refusal(400, "Invalid 'attributes': at most 16 of at most 512 characters.")
        file.store, file.attributes, file.placed_at = store, attributes, self.clock().timestamp()
        file.fate = self.fates.pop(0) if self.fates else self.fate

    def _store(self, store: str) -> dict[str, Any]:
        held = self.stores[store]
        total = sum(each.store == store for each in self.files.values())
        reply = {"object": "vector_store", "created_at": held["number"], "file_counts": {"total": total}}
        return {**reply, "id": store, "name": held["name"], "status": held["status"], "usage_bytes": 0}

    def _placed(self, file: HostedFile) -> dict[str, Any]:
        age = self.clock().timestamp() - file.placed_at
        status = _STATUS[[state for seconds, state in file.fate if seconds <= age][-1]]
        error = {"code": "invalid_file", "message": "told to"} if status == "failed" else None
        return {
            "id": file.id,
            "object": "vector_store.file",
            "created_at": file.number,
            "vector_store_id": file.store,
            "status": status,
            "last_error": error,
            "usage_bytes": len(file.data),
            "attributes": file.attributes,
        }


def _file(file: HostedFile) -> dict[str, Any]:
    reply = {"object": "file", "purpose": "assistants", "created_at": file.number, "status": "processed"}
    return {**reply, "id": file.id, "bytes": len(file.data), "filename": file.name}


def _file_in(asked: RecordedRequest) -> tuple[str, bytes]:
    """The name and the bytes of the file in a form."""
    head = f"Content-Type: {asked.headers.get('content-type', '')}\r\n\r\n".encode()
    for part in BytesParser(policy=HTTP).parsebytes(head + asked.body).iter_parts():
        data = part.get_payload(decode=True)
        if part.get_filename() is not None and isinstance(data, bytes):
            return str(part.get_filename()), data
    raise _Refusal(400, "Missing required parameter: 'file'.")


def _reply(status: int, body: Mapping[str, Any]) -> Answer:
    return Answer(status=status, headers={"Content-Type": "application/json"}, body=json.dumps(body).encode())


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
