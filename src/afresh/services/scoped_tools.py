"""The tools as far as they are open to a token: what is not opened here is closed."""

from typing import TYPE_CHECKING, Any

from afresh.access.permissions import BOUND
from afresh.crawl.factory import Tools
from afresh.errors import Forbidden, Unknown
from afresh.services.valid_settings import if_settled
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.crawl.fetched_page import Glimpse

_OF_THE_TOOLS = {
    *(
        "retention",
        "bounds",
        "open",
        "recognise",
        "recognise_from_afar",
        "recognise_on_the_web",
        "check_settings",
    ),
    *("address", "page_address", "web_address"),
    *("why_left_out", "keeps_text", "keywords", "schedule", "identity", "sinks_of", "targets", "manners"),
}


class ReadersTools:
    """The tools of who may only read: of the web they see just what belongs to sources."""

    refusal = "is no part of any source, and this token may only read what is kept"

    def __init__(self, tools: Tools, store: Store) -> None:
        self._tools = tools
        self._store = store

    def __getattr__(self, name: str) -> Any:
        """What is the same for everybody."""
        return getattr(self._tools, name)

    async def glance(self, url: str) -> "Glimpse":
        """The text at a web address as it is now; Unknown, if that or where it leads belongs to no source."""
        await self._check(url)
        glimpse = await self._tools.glance(url)
        await self._check(glimpse.url)
        return glimpse

    async def _check(self, url: str) -> None:
        if await self._store.pages.find(url):
            return
        for source in await self._store.sources.all():
            bounds = if_settled(self._tools.bounds, source) if source.kind == "web" else None
            if bounds is not None and bounds[0].refusal(url, 0) is None:
                return
        raise Unknown(f"{url} {self.refusal}")


class BoundedTools(ReadersTools):
    """The same without what concerns all sources."""

    refusal = "is no part of the sources that this token is bound to"

    def __getattr__(self, name: str) -> Any:
        """What is the same for everybody."""
        return _open(self._tools, name, _OF_THE_TOOLS)


def _open(whole: object, name: str, names: set[str]) -> Any:
    if name not in names:
        raise AttributeError(name) if name.startswith("__") else Forbidden(BOUND)
    return getattr(whole, name)
