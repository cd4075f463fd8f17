"""Let the MCP inspector, a client of another vendor, list and call every tool over stdio and HTTP.

`python -m soak mcp [--inspector FOLDER]`: FOLDER has an npm installation of the inspector; without it, npm
downloads one, which needs the network.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from afresh.app import build
from afresh.config import load
from afresh.server.app import make_app
from afresh.server.uvicorn_server import Server
from afresh.testing import TinySite

INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"
SETTINGS = 'store: {{url: "sqlite:///{store}"}}\nnetwork: {{allow: ["127.0.0.1/32"]}}\n'
PAGE = "<title>{0}</title><body><main><h1>{0}</h1><p>All about {0}.</p>{1}</main></body>"


def main(arguments: Sequence[str]) -> int:
    """Return 0 if every tool gives the expected answer over both transports."""
    parser = argparse.ArgumentParser(prog="python -m soak mcp", description=__doc__)
    parser.add_argument("--inspector", type=Path, metavar="FOLDER")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="afresh-mcp-") as folder:
        return asyncio.run(_run(Path(folder), given.inspector or Path(folder)))


async def _run(folder: Path, inspector: Path) -> int:
    program = inspector / "node_modules" / ".bin" / "mcp-inspector"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            print("npm is not installed: nothing was checked", file=sys.stderr)
            return 1
        await _output(npm, "install", "--no-audit", "--no-fund", "--prefix", str(inspector), INSPECTOR)
    with TinySite() as site:
        site.put("/", PAGE.format("Start", "".join(f'<a href="/p{n}">p{n}</a>' for n in range(20))))
        for number in range(20):
            site.put(f"/p{number}", PAGE.format(f"needle{number}", ""))
        stdio = await _checked([str(program), "--cli", str(_starter(folder))], site)
        async with _served(folder / "http.db") as url:
            http = await _checked([str(program), "--cli", url, "--transport", "http"], site)
    print(f"stdio: {stdio} tools, HTTP: {http} tools")
    return 0 if stdio == http == 11 else 1


def _starter(folder: Path) -> Path:
    """Return a command without options, since the inspector would read options as its own."""
    (folder / "afresh.yaml").write_text(SETTINGS.format(store=folder / "stdio.db"))
    starter = folder / "afresh-mcp"
    config = folder / "afresh.yaml"
    path = os.pathsep.join(sys.path)
    starter.write_text(f"#!/bin/sh\nPYTHONPATH='{path}' exec '{sys.executable}' -m afresh mcp --config '{config}'\n")
    starter.chmod(0o755)
    return starter


@asynccontextmanager
async def _served(store: Path) -> AsyncIterator[str]:
    flags = {"store.url": f"sqlite:///{store}", "network.allow": ["127.0.0.1/32"]}
    config = load(None, {}, flags, store.parent)
    kb = await build(config)
    server = Server(make_app(kb, config), "127.0.0.1", 0)
    serving = asyncio.create_task(server.work())
    yield f"{server.url}/mcp"
    server.leave()
    await serving
    await kb.close()


async def _checked(inspector: Sequence[str], site: TinySite) -> int:
    """Return how many tools are listed and answer."""
    calls: list[tuple[str, dict[str, object], str]] = [
        ("scrape_docs", {"url": site.url, "library": "docs", "wait": 60}, '"status": "completed"'),
        ("search_docs", {"query": "needle7", "library": "docs"}, "/p7"),
        ("list_libraries", {}, "docs"),
        ("find_version", {"library": "docs"}, "unversioned"),
        ("what_changed", {"limit": 3}, "new"),
        ("fetch_url", {"url": site.at("/p3")}, "needle3"),
        ("list_jobs", {}, '"jobId": 1'),
        ("get_job_info", {"jobId": 1}, "completed"),
        ("refresh_version", {"library": "docs", "wait": 60}, '"jobId": 2'),
        ("cancel_job", {"jobId": 1}, "not under way"),
        ("remove_docs", {"library": "docs"}, '"pages": 21'),
    ]
    listed = json.loads(await _output(*inspector, "--method", "tools/list"))
    names = {tool["name"] for tool in listed["tools"]}
    well = 0
    for tool, arguments, expected in calls:
        pairs = [f"{key}={value}" for key, value in arguments.items()]
        options = ["--tool-arg", *pairs] if pairs else []
        report = await _output(*inspector, "--method", "tools/call", "--tool-name", tool, *options)
        answer: dict[str, Any] = json.loads(report)
        is_well = tool in names and expected in json.dumps(answer)
        well += is_well
        print(f"{'ok  ' if is_well else 'FAIL'} {tool}" + ("" if is_well else f": {report}"), flush=True)
    return well if len(names) == len(calls) else 0


async def _output(*words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}: {err.decode()[-2000:]}")
    return out.decode()
