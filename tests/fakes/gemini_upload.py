"""Uploads to a Gemini server: resumable in any number of pieces, or all in one multipart request."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from itertools import count
from typing import Any
from urllib.parse import parse_qs

from tests.fakes.gemini_hosted import Hosted, HostedStore, Wrong, invalid, missing

from afresh.testing.script import Answer
from afresh.testing.site import RecordedRequest

_STATUS = "X-Goog-Upload-Status"
GRANULARITY = 262_144
Reply = Callable[[HostedStore, Mapping[str, Any], bytes], Mapping[str, Any]]  # keeps a document, tells the answer


@dataclass(kw_only=True)
class Session:
    """One resumable upload."""

    store: str
    meta: Mapping[str, Any]
    size: int | None
    data: bytearray = field(default_factory=bytearray)
    status: str = "active"


class Uploads:
    """The sessions of a server; `largest` is what one file may hold."""

    def __init__(self, hosted: Hosted, keep: Reply) -> None:
        self.sessions: dict[str, Session] = {}
        self.largest = 100_000_000
        self._hosted = hosted
        self._keep = keep
        self._numbers = count(1)

    def begin(self, store: HostedStore, asked: RecordedRequest, base_url: str) -> Answer:
        """A request to the upload address of a store: the start of a session, or a whole multipart body."""
        protocol = asked.headers.get("x-goog-upload-protocol", "")
        if protocol == "multipart" or asked.headers.get("content-type", "").startswith("multipart/"):
            meta, data = _parts(asked)
            self._check(len(data))
            return _json(self._keep(store, meta, data))
        if protocol != "resumable" or asked.headers.get("x-goog-upload-command") != "start":
            raise invalid("Unknown upload protocol.")
        size = asked.headers.get("x-goog-upload-header-content-length")
        self._check(int(size or 0))
        meta = json.loads(asked.body or b"{}")
        typed = asked.headers.get("x-goog-upload-header-content-type", "application/octet-stream")
        meta = {"mimeType": typed, "displayName": asked.headers.get("x-goog-upload-file-name", ""), **meta}
        self._hosted.check(meta, int(size or 0))
        key = f"upload-{next(self._numbers)}"
        self.sessions[key] = Session(store=store.name, meta=meta, size=None if size is None else int(size))
        to = f"{base_url}{asked.path.partition('?')[0]}?upload_id={key}&upload_protocol=resumable"
        head = {"X-Goog-Upload-URL": to, _STATUS: "active", "X-Goog-Upload-Chunk-Granularity": str(GRANULARITY)}
        return Answer(status=200, headers=head)

    def go_on(self, asked: RecordedRequest) -> Answer:
        """A request to the address of a session."""
        key = parse_qs(asked.path.partition("?")[2])["upload_id"][0]
        session = self.sessions.get(key)
        if session is None:
            raise missing(f"upload {key}")
        commands = {each.strip() for each in asked.headers.get("x-goog-upload-command", "").split(",")}
        if "query" in commands:
            return _json({}, {_STATUS: session.status, "X-Goog-Upload-Size-Received": str(len(session.data))})
        if session.status != "active":
            raise invalid("Upload has already been terminated.")
        if "cancel" in commands:
            session.status = "cancelled"
            return _json({}, {_STATUS: "cancelled"})
        self._receive(session, asked, commands)
        if "finalize" not in commands:
            return Answer(status=200, headers={_STATUS: "active"})
        return self._finish(session)

    def _receive(self, session: Session, asked: RecordedRequest, commands: set[str]) -> None:
        if not commands & {"upload", "finalize"}:
            raise invalid("Unknown upload command.")
        if int(asked.headers.get("x-goog-upload-offset", 0)) != len(session.data):
            raise invalid(f"Upload offset does not match the {len(session.data)} bytes received.")
        if "finalize" not in commands and len(asked.body) % GRANULARITY:
            raise invalid("Chunk size is not a multiple of the granularity.")
        session.data += asked.body

    def _finish(self, session: Session) -> Answer:
        if session.size is not None and session.size != len(session.data):
            raise invalid(f"{len(session.data)} bytes came, and {session.size} were announced.")
        reply = self._keep(self._hosted.store(session.store), session.meta, bytes(session.data))
        session.status = "final"
        return _json(reply, {_STATUS: "final"})

    def _check(self, size: int) -> None:
        if size > self.largest:
            raise Wrong(413, "INVALID_ARGUMENT", f"The file is larger than {self.largest} bytes.")


def _parts(asked: RecordedRequest) -> tuple[Mapping[str, Any], bytes]:
    """The JSON and the file of a multipart body, related or form-data."""
    head = f"Content-Type: {asked.headers.get('content-type', '')}\r\n\r\n".encode()
    parts = list(BytesParser(policy=HTTP).parsebytes(head + asked.body).iter_parts())
    if len(parts) != 2:
        raise invalid("A multipart upload has two parts.")
    reply, data = (part.get_payload(decode=True) for part in parts)
    if not isinstance(reply, bytes) or not isinstance(data, bytes):
        raise invalid("A part of a multipart upload is bytes.")
    return {"mimeType": parts[1].get_content_type(), **json.loads(reply)}, data


def _json(body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
    head = {"Content-Type": "application/json; charset=UTF-8", **(headers or {})}
    return Answer(status=200, headers=head, body=json.dumps(body).encode())
