"""Styles, scripts and pictures: files of our own, kept by browsers until they change."""

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter, HTTPException, Request, Response

from afresh.server.auth import allowed_of

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


def asset_url(name: str) -> str:
    """The address of a file, which changes with it."""
    return f"/assets/{name}?v={_file(name)[1]}"


@router.get("/assets/{name}")
async def asset(name: str, request: Request, v: str | None = None) -> Response:
    """One file."""
    allowed_of(request.scope)  # open to all
    if name not in _names():
        raise HTTPException(404)
    raw, tag = _file(name)
    headers = {"cache-control": FOREVER if v == tag else "no-cache", "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(
            _packed(name), media_type=_kind(name), headers={**headers, "content-encoding": "gzip"}
        )
    return Response(raw, media_type=_kind(name), headers=headers)


def _kind(name: str) -> str:
    return KINDS[name.rpartition(".")[2]]


@cache
def _names() -> frozenset[str]:
    found = files("afresh.server.web").joinpath("assets").iterdir()
    return frozenset(each.name for each in found if each.name.rpartition(".")[2] in KINDS)


@cache
def _file(name: str) -> tuple[bytes, str]:
    raw = files("afresh.server.web").joinpath("assets", name).read_bytes()
    return raw, sha256(raw).hexdigest()[:12]


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(_file(name)[0], 9, mtime=0)
