"""A store with something of everything that pages show, a server over it, and a browser."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

from tests.e2e.inprocess import InProcess
from tests.e2e.library import settings
from tests.server.served import served

from afresh.app import build, utc_now
from afresh.kb import KnowledgeBase
from afresh.ports import Clock
from afresh.testing import TinySite

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Result = TypeVar("Result")
KEYWORDS = {"install": 1.0, "backup": 0.5}


@dataclass
class Stand:
    """A server that is up, and what is in its store."""

    url: str
    site: TinySite
    atlas: TinySite
    mirror: Path  # a folder that is to hold harbor
    harbor: int = 0  # a source with changes and trouble
    braked: int = 0  # the run that waits for a word
    synced: int = 0  # the sync of harbor in which a document was refused
    page: int = 0  # one that changed


async def everything(kb: KnowledgeBase, stand: Stand) -> None:
    """Read two sites, change them, and read them again; the second so that the brake holds."""
    site, atlas = stand.site, stand.atlas
    await kb.runs.crawl(site.url, name="harbor", policy={"keywords": KEYWORDS})
    await kb.sinks.sync(["harbor"])
    path = next(each for each in site.paths if "install" in each)
    site.edit(path, add_paragraph="Since version 3 the installer asks for nothing: run it and wait.")
    site.edit("/", add_paragraph="Harbor 3 is out.")
    site.fail(site.paths[-1], 503)
    await kb.runs.refresh(["harbor"])
    root = min(stand.mirror.rglob("*.md"), key=lambda file: len(file.name))
    root.write_text("somebody else's\n", "utf-8")  # so that the new one is refused
    [synced] = await kb.sinks.sync(["harbor"])
    [stand.synced] = synced.runs
    for number in range(24):
        atlas.put(f"/place/{number}", _place(number))
    atlas.put("/", _front(24))
    await kb.runs.crawl(atlas.url, name="atlas", version="2")
    for number in range(6, 24):
        atlas.delete(f"/place/{number}")
    [braked] = await kb.runs.refresh(["atlas@2"])
    assert braked.state == "needs_confirmation", braked
    stand.harbor = next(source.id for source in await kb.sources.all() if source.name == "harbor")
    stand.page = (await kb.pages.records(None, url=site.url.rstrip("/") + path, limit=1))[0].id
    stand.braked = braked.run


def _place(number: int) -> str:
    words = " ".join(f"street-{number}-{each}" for each in range(40))
    return f"<title>Place {number}</title><main><h1>Place {number}</h1><p>{words}</p></main>"


def _front(number: int) -> str:
    links = "".join(f'<li><a href="/place/{each}">Place {each}</a></li>' for each in range(number))
    return f"<title>Atlas</title><main><h1>Atlas</h1><p>Every place.</p><ul>{links}</ul></main>"


Fill = Callable[[KnowledgeBase, Stand], Awaitable[None]]


@contextmanager
def standing(
    store: Path, fill: Fill = everything, flags: Mapping[str, object] | None = None, clock: Clock = utc_now
) -> Iterator[Stand]:
    """A server over a store that was filled by a clock, in a thread of its own."""
    mirror = store.parent / "mirror"
    kept = {"embedding.provider": "none", "sinks.mirror.kind": "folder", "sinks.mirror.path": str(mirror)}
    config = settings(store, {**kept, "sinks.mirror.sources": ["harbor"], **(flags or {})})
    with TinySite.docs() as site, TinySite() as atlas:
        stand, over = Stand("", site, atlas, mirror), asyncio.Event()

        async def serve(up: threading.Event) -> None:
            kb = await build(config, clock=clock)
            try:
                await fill(kb, stand)
            finally:
                await kb.close()
            async with served(store, config=config) as client:
                stand.url = client.server.url
                up.set()
                await over.wait()

        with patch("afresh.crawl.factory.ParserPool", InProcess), beside(serve, over):
            yield stand


@contextmanager
def beside(serve: Callable[[threading.Event], Coroutine[Any, Any, None]], over: asyncio.Event) -> Iterator[None]:
    """While something is served by a loop in another thread."""
    loop, up, failed = asyncio.new_event_loop(), threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            loop.run_until_complete(serve(up))
        except BaseException as error:
            failed.append(error)
        finally:
            loop.close()
            up.set()

    thread = threading.Thread(target=run)
    thread.start()
    up.wait()
    try:
        if failed:
            raise failed[0]
        yield
    finally:
        if not failed:
            loop.call_soon_threadsafe(over.set)
        thread.join()


def elsewhere(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """The result of a coroutine, made in another thread: a browser keeps this one's loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


@contextmanager
def browser() -> Iterator["Browser"]:
    """Debian's chromium, or the one that Playwright brings."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield made
        finally:
            made.close()
