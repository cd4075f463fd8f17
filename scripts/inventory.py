"""List what users rely on: commands with their options, settings, REST routes, MCP tools.

    .venv/bin/python scripts/inventory.py > before.txt     # on one commit, and again on another; then diff

Everything is asked from outside, of the installed command and a real server on an empty store, so that the
list can be made of any commit.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

AFRESH = str(Path(sys.executable).with_name("afresh"))
METHODS = ("get", "post", "put", "patch", "delete")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder, COLUMNS="200")
        os.chdir(folder)
        for lines in (commands(), settings(), routes(folder), asyncio.run(tools())):
            print("\n".join(lines))


def commands(*path: str) -> Iterator[str]:
    """Yield every command below `path` with the options of its help."""
    text = run(*path, "--help")
    usage = " ".join(text.split("\n\n")[0].split()).removeprefix("Usage: ")
    options = sorted(set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)))
    yield f"command {usage}  {' '.join(options)}"
    if "COMMAND" not in usage:
        return
    own = text.split("\nOptions", 1)[0] if path == () else text.split("\nOptions of every", 1)[0]
    for name in re.findall(r"^  ([a-z][\w-]*)(?:  +\S|$)", own, re.MULTILINE):
        yield from commands(*path, name)


def settings() -> Iterator[str]:
    """Yield every setting with its default."""
    yield from sorted(
        f"setting {key} = {value!r}" for key, value in leaves(json.loads(run("config", "show", "--json")))
    )


def leaves(value: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from leaves(below, f"{prefix}.{key}" if prefix else key)
    else:
        yield prefix, "a file in the user's folder" if prefix == "store.url" else value


def routes(folder: str) -> Iterator[str]:
    """Yield every route of the REST API with its parameters and fields, and those of the web interface."""
    command = [AFRESH, "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            address = wait_for_address(server)
            with urllib.request.urlopen(f"{address}/api/v1/openapi.json") as answer:
                spec = json.load(answer)
        finally:
            server.terminate()
    for path, methods in sorted(spec["paths"].items()):
        for method, route in methods.items():
            if method in METHODS:
                names = sorted(each["name"] for each in route.get("parameters", []))
                answers = " ".join(sorted(route["responses"]))
                yield f"route {method.upper()} {path}  {' '.join(names)}  -> {answers}"
    for name, schema in sorted(spec["components"]["schemas"].items()):
        yield f"schema {name}  {' '.join(sorted(schema.get('properties', {})))}"


def wait_for_address(server: "subprocess.Popen[str]") -> str:
    for stream in (server.stderr, server.stdout):
        for line in stream or ():
            if found := re.search(r"http://[\d.]+:\d+", line):
                return found[0]
    raise SystemExit("the server did not say where it listens")


async def tools() -> list[str]:
    """Return every MCP tool with its arguments."""
    server = StdioServerParameters(command=AFRESH, args=["mcp"], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        listed = (await client.list_tools()).tools
    return [f"tool {tool.name}  {' '.join(sorted(tool.input_schema.get('properties', {})))}" for tool in listed]


def run(*arguments: str) -> str:
    return subprocess.run([AFRESH, *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
