"""`/docs`: Swagger UI from the files of an installed package, so that it works without any other host."""

import asyncio
import gzip
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response

OPENAPI = "/api/v1/openapi.json"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>afresh API</title>
<link rel="icon" href="/assets/mark.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
START = f"""SwaggerUIBundle({{
  url: "{OPENAPI}", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null, tryItOutEnabled: true
}});
"""
# Swagger UI draws its icons from data: addresses and styles elements by itself.
POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"
PACKAGE = "fastapi_offline"  # read, never imported
PACKED = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs() -> Response:
    """The page that shows the API."""
    return Response(PAGE, media_type="text/html", headers={"content-security-policy": POLICY})


@router.get("/docs/start.js")
async def start() -> Response:
    """What starts it."""
    return Response(START, media_type="text/javascript")


@router.get("/docs/{name}")
async def asset(name: str, request: Request) -> Response:
    """A file of Swagger UI."""
    if name not in PACKED:
        raise HTTPException(404)
    headers = {"cache-control": "max-age=86400", "vary": "accept-encoding"}
    packed = await asyncio.to_thread(_packed, name)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=PACKED[name], headers={**headers, "content-encoding": "gzip"})
    return Response(gzip.decompress(packed), media_type=PACKED[name], headers=headers)


@cache
def _packed(name: str) -> bytes:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise HTTPException(503, "/docs needs fastapi-offline: pip install fastapi-offline")
    return gzip.compress((Path(spec.origin).parent / "static" / name).read_bytes(), mtime=0)
