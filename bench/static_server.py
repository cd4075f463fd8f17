"""A small file server with ETags, used without nginx: `python -m bench.static_server ROOT PORT LOG`."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TextIO

from aiohttp import web

from bench.access_log import Asked, line


def handler(root: Path, log: TextIO) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Answers GET for the files below root, as nginx would, and logs each answer."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        began_at = time.time()
        response = _response(root, request)
        size = len(response.body) if isinstance(response.body, bytes) else 0
        asked = Asked(began_at, request.method, response.status, size, request.raw_path)
        log.write(line(asked, time.time() - began_at))
        return response

    return answer


def _response(root: Path, request: web.BaseRequest) -> web.Response:
    path = (root / request.path.lstrip("/")).resolve()
    if path.is_dir():
        path /= "index.html"
    if not path.is_relative_to(root) or not path.is_file():
        return web.Response(status=404, text="not found")
    about = path.stat()
    headers = {"ETag": f'"{int(about.st_mtime):x}-{about.st_size:x}"'}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return web.Response(status=304, headers=headers)
    return web.Response(body=path.read_bytes(), content_type="text/html", charset="utf-8", headers=headers)


async def serve(root: Path, port: int, log: TextIO) -> None:
    """Serve until the process is ended."""
    runner = web.ServerRunner(web.Server(handler(root, log)))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    folder, number, log_file = sys.argv[1:]
    with Path(log_file).open("a", buffering=1, encoding="utf-8") as lines:
        asyncio.run(serve(Path(folder).resolve(), int(number), lines))
