"""The knowledge base: holds the services that every face calls."""

from dataclasses import replace
from typing import cast

from afresh.access.permissions import Allowed
from afresh.crawl.factory import Tools
from afresh.services.charts import ChartService
from afresh.services.context import Context
from afresh.services.digest import DigestService
from afresh.services.links import LinkService
from afresh.services.pages import PageService
from afresh.services.runs import RunService
from afresh.services.schedules import ScheduleService
from afresh.services.scoped_tools import BoundedTools, ReadersTools
from afresh.services.search import SearchService
from afresh.services.sinks import SinkService
from afresh.services.sources import SourceService
from afresh.services.status import StatusService
from afresh.services.tokens import TokenService
from afresh.services.webhooks import WebhookService
from afresh.store.scoped import ScopedStore


class KnowledgeBase:
    """An open knowledge base; has no behaviour of its own."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.allowed = context.allowed
        self.sinks = SinkService(context)
        self.runs = RunService(context, self.sinks)
        self.sources = SourceService(context, self.runs, self.sinks)
        self.pages = PageService(context, self.runs, self.sinks)
        self.links = LinkService(context)
        self.search = SearchService(context, self.runs)
        self.status = StatusService(context, self.sinks)
        self.schedules = ScheduleService(context, self.runs, self.sinks, self.status)
        self.webhooks = WebhookService(context, self.runs)
        self.tokens = TokenService(context)
        self.charts = ChartService(context)
        self.digest = DigestService(context, self.runs)

    def scoped_to(self, allowed: Allowed) -> "KnowledgeBase":
        """Return a view limited to permitted sources; operations on the whole store raise Forbidden.

        A token that may only read has no other pages of the web fetched.
        """
        if allowed.everywhere and allowed.may_write:
            return self
        context = self._context
        if allowed.everywhere:
            tools = cast("Tools", ReadersTools(context.tools, context.store))
            return KnowledgeBase(replace(context, allowed=allowed, tools=tools))
        store = ScopedStore(context.store, allowed)
        tools = cast("Tools", BoundedTools(context.tools, store))
        return KnowledgeBase(replace(context, allowed=allowed, store=store, tools=tools))

    def stop(self) -> None:
        """Ask the run in progress to end soon; what is finished is kept, the rest waits."""
        self._context.stopping.set()

    async def close(self) -> None:
        """Close the store."""
        await self._context.store.close()
