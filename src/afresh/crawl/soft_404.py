"""What a site says where there is nothing: asked once a run, of an address that cannot exist."""

import asyncio
from collections.abc import Awaitable, Callable

from afresh.crawl.plausibility import SAME
from afresh.text.similarity import likeness
from afresh.urls.canonical import directory_of, origin_of

SUFFIXES = (".html", ".htm", ".php", ".aspx", ".md")


class Probe:
    """Asks each site once, when it first shows content; a site that says 404 leaves nothing to compare."""

    def __init__(self, root: str, name: str) -> None:
        self._root = root
        self._name = name  # random, so that no site knows it
        self._answers: dict[tuple[str, str], asyncio.Future[str]] = {}

    async def says_the_same(self, url: str, sketch: str, ask: Callable[[str], Awaitable[str]]) -> bool:
        """Whether a page is what its site answers for an address that cannot exist."""
        missing = await self._answer(url, ask)
        return bool(missing and sketch) and likeness(missing, sketch) >= SAME

    async def _answer(self, url: str, ask: Callable[[str], Awaitable[str]]) -> str:
        """The sketch of what the site shows there; pages that arrive meanwhile wait for the one question."""
        suffix = next((ending for ending in SUFFIXES if url.partition("?")[0].endswith(ending)), "")
        key = (origin_of(url), suffix)
        if key not in self._answers:
            self._answers[key] = asyncio.ensure_future(ask(self._address(url) + suffix))
        return await asyncio.shield(self._answers[key])

    def _address(self, url: str) -> str:
        at_home = origin_of(url) == origin_of(self._root)
        return (directory_of(self._root) if at_home else f"{origin_of(url)}/") + self._name
