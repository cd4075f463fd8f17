"""The knowledge base: holds the services that every interface calls."""

from afresh.access.permissions import Permissions
from afresh.dataclass import replace
from afresh.services.charts import ChartService
from afresh.services.context import ServiceContext
from afresh.services.digest import DigestService
from afresh.services.links import LinkService
from afresh.services.pages import PageService
from afresh.services.runs import RunService
from afresh.services.schedules import ScheduleService
from afresh.services.search import SearchService
from afresh.services.sinks import SinkService
from afresh.services.sources import SourceService
from afresh.services.status import StatusService
from afresh.services.tokens import TokenService
from afresh.services.webhooks import WebhookService
from afresh.store.scoped import ScopedStore


class KnowledgeBase:
    """An open knowledge base: the services of one store, without logic of its own."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self.allowed = context.allowed
        self.sinks = SinkService(context)
        self.runs = RunService(context)
        self.sources = SourceService(context, self.runs, self.sinks)
        self.pages = PageService(context, self.runs, self.sinks)
        self.links = LinkService(context)
        self.search = SearchService(context)
        self.status = StatusService(context, self.sinks)
        self.schedules = ScheduleService(context, self.sinks, self.status)
        self.webhooks = WebhookService(context)
        self.tokens = TokenService(context)
        self.charts = ChartService(context)
        self.digest = DigestService(context)

    def scoped_to(self, allowed: Permissions) -> "KnowledgeBase":
        """Return a view limited to permitted sources; operations on the whole store raise Forbidden.

        Without write permission, the view fetches no web pages outside the sources.
        """
        if allowed.everywhere and allowed.may_write:
            return self
        context = self._context
        store = context.store if allowed.everywhere else ScopedStore(context.store, allowed)
        tools = context.tools.scoped_to(allowed, store)
        return KnowledgeBase(replace(context, allowed=allowed, store=store, tools=tools))

    def stop(self) -> None:
        """Ask the active run to end soon; finished work is kept, and the rest stays queued."""
        self._context.stopping.set()

    async def close(self) -> None:
        """Close the store."""
        await self._context.store.close()
