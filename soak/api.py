"""Send valid and invalid requests made from the OpenAPI document, and hostile strings in every text field.

No response may be a 5xx, and every error has to be problem+json. The server listens on a real port. Nothing is
fetched, because no worker processes the runs that are started.
"""

import argparse
import asyncio
import json
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from schemathesis import Case
from schemathesis.core.result import Ok
from schemathesis.openapi import from_dict
from tests.postgres import running

from afresh.app import build
from afresh.config import Config, load
from afresh.server.app import make_app
from afresh.server.uvicorn_server import Server
from afresh.testing import TinySite

NAUGHTY = Path(__file__).resolve().parents[2] / "shared" / "data" / "naughty" / "blns.json"
SECONDS = 30
RECORDS = 20  # numbers that are likely to be there
STREAM = "/events"
Numbers = Counter[str]
NEEDED = {"q": "retry"}
USUAL = {
    "source_id": 1,
    "schedule": "@daily",
    "page_id": 1,
    "target": "x.example",
    "url": "x.example",
    "next_look": "2030-01-01T00:00Z",
}


def main(arguments: Sequence[str]) -> int:
    """Serve a small store, send the requests, and print a summary; return 1 if a response was wrong."""
    parser = argparse.ArgumentParser("python -m soak api", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server of its own")
    parser.add_argument("--no-strings", action="store_true", help="leave out the hostile strings")
    given_ = parser.parse_args(arguments)
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory())
        site = opened.enter_context(TinySite.docs())
        store = f"sqlite:///{folder}/api.db"
        if given_.postgres:
            store = asyncio.run(opened.enter_context(running()).emptied())
        flags = {"store.url": store, "network.allow": ["127.0.0.1/32"]}
        with served(load(None, {}, flags, Path(folder)), site.url) as (url, document):
            report = asyncio.run(naughty(url, document, [] if given_.no_strings else texts()))
            operations = len(list(_operations(document)))
            each = max(1, given_.requests // operations)
            report += fuzz(url, document, each, given_.seed)
    bad = {name: number for name, number in report.items() if name.startswith(("5", "wrong"))}
    print(json.dumps({"requests": report.total(), "statuses": dict(sorted(report.items())), "bad": bad}))
    return 1 if bad or report.total() < given_.requests * 0.9 else 0


def texts() -> list[str]:
    """Return strings that often cause faults."""
    found: list[str] = json.loads(NAUGHTY.read_text("utf-8"))
    return found


@contextmanager
def served(config: Config, target: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Serve a store with one site in a thread; yield the URL and the OpenAPI document."""
    ready, held = threading.Event(), dict[str, Any]()

    async def serve() -> None:
        kb = await build(config)
        try:
            await kb.runs.crawl(target, name="harbor")
            app = make_app(kb, config, works=False)
            server = Server(app, "127.0.0.1", 0)
            held.update(server=server, loop=asyncio.get_running_loop(), document=app.openapi())
            ready.set()
            await server.work()
        finally:
            await kb.close()
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield held["server"].url, held["document"]
    finally:
        held["loop"].call_soon_threadsafe(held["server"].leave)
        thread.join()


def fuzz(url: str, document: dict[str, Any], each: int, chance: int) -> Numbers:
    """Send generated requests (schemathesis) to every operation."""
    report: Numbers = Counter()
    schema = from_dict(document)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    for operation in sorted(operations, key=lambda each: each.method == "delete"):
        strategy = operation.as_strategy()

        @seed(chance)
        @settings(
            max_examples=each,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        @given(case=strategy)
        def ask(case: Case[Any]) -> None:
            if case.path.endswith(STREAM):  # has no end as long as nobody works on the run
                return
            number = (case.path_parameters or {}).get("number")
            if isinstance(number, int) and number % 2:  # half of them are those of records
                case.path_parameters["number"] = 1 + abs(number) % RECORDS
            answer = case.call(base_url=url, timeout=SECONDS)
            report[str(answer.status_code)] += 1
            if answer.status_code >= 500:
                print(case.as_curl_command(), answer.status_code)
            kind = answer.headers.get("content-type", ["?"])[0]
            if answer.status_code >= 400 and not kind.startswith("application/problem+json"):
                report[f"wrong {kind}"] += 1

        ask()
    return report


async def naughty(url: str, document: Mapping[str, Any], strings: Sequence[str]) -> Numbers:
    """Send each hostile string in each text field, one field at a time."""
    report: Numbers = Counter()
    async with aiohttp.ClientSession(url) as session:
        for method, path, sent_as, sent, field in _fields(document):
            for text in strings:
                given_: dict[str, Any] = {sent_as: {**sent, field: _shaped(field, text)}}
                async with session.request(method, path, **given_) as answer:
                    await answer.read()
                    report[str(answer.status)] += 1
                    if answer.status >= 500:
                        print(method, path, field, repr(text)[:200], answer.status)
    return report


def _shaped(field: str, text: str) -> object:
    """Return a text in the form that a field takes: in a list, in an object, or as it is."""
    return {"settings": {"include": [text], text[:90]: text}, "reset": [text]}.get(field, text)


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield every operation, with DELETE operations last."""
    found = [
        (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    return iter(sorted(found, key=lambda each: each[0] == "DELETE"))


def _fields(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any], str]]:
    """Yield every text field of parameters and bodies; numbers in paths are those of the first record."""
    for method, path, operation in _operations(document):
        place = path.replace("{number}", "1")
        for each in operation.get("parameters", ()):
            if each["in"] == "query" and "string" in json.dumps(each["schema"]):
                yield method, place, "params", NEEDED if path.endswith("/search") else {}, each["name"]
        media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
        schema = document["components"]["schemas"].get(name, {})
        base = {field: USUAL[field] for field in schema.get("required", ())}
        for field, kind in schema.get("properties", {}).items():
            if '"string"' in json.dumps(kind) or field == "settings":
                yield method, place, "json", base, field
