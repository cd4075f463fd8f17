"""Answers: JSON with a tag, so that who has it already is told just that."""

import gzip
import json
from hashlib import sha256

from fastapi import Request, Response

from afresh.present.as_json import plain

MEDIA = "application/json"
FRESH = {"cache-control": "private, no-cache"}  # to be kept by who asked, and to be asked about


def as_json(value: object) -> bytes:
    """A value as JSON in UTF-8."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode()


def reply(request: Request, value: object) -> Response:
    """The answer to a read: 304 for who names the tag that it has."""
    return tagged(request, as_json(value), MEDIA)


def tagged(request: Request, body: bytes, media: str) -> Response:
    """Bytes with their tag, or 304."""
    tag = f'"{sha256(body).hexdigest()[:32]}"'
    if _names(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=304, headers={"etag": tag, **FRESH})
    return Response(body, headers={"etag": tag, **FRESH}, media_type=media)


def packed(request: Request, answer: Response) -> Response:
    """A long answer in fewer bytes for who reads gzip; its tag is a weak one, as both forms have it."""
    answer.headers.add_vary_header("accept-encoding")
    if not answer.body or "gzip" not in request.headers.get("accept-encoding", ""):
        return answer
    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
    if "etag" in kept:
        kept["etag"] = f"W/{kept['etag']}"
    less = gzip.compress(bytes(answer.body), 5, mtime=0)
    return Response(less, answer.status_code, {**kept, "content-encoding": "gzip"})


def made(value: object, status: int = 201, location: str | None = None) -> Response:
    """The answer to a write."""
    headers = {"cache-control": "no-store"} | ({"location": location} if location else {})
    return Response(as_json(value), status, headers, MEDIA)


def _names(header: str, tag: str) -> bool:
    """Whether If-None-Match names a tag, compared weakly."""
    return header.strip() == "*" or tag in [each.strip().removeprefix("W/") for each in header.split(",")]
