"""`KnowledgeBase`, the main object of afresh: it holds the services that every interface calls."""

from functools import cached_property
from typing import TYPE_CHECKING

from afresh.access.permissions import Permissions
from afresh.dataclass import replace
from afresh.services.context import ServiceContext

if TYPE_CHECKING:
    from afresh.services.charts import ChartService
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


class KnowledgeBase:
    """An open store with the services that work on it. Each service is imported when it is first used."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self.allowed = context.allowed

    @cached_property
    def sinks(self) -> "SinkService":
        from afresh.services.sinks import SinkService

        return SinkService(self._context)

    @cached_property
    def runs(self) -> "RunService":
        from afresh.services.runs import RunService

        return RunService(self._context)

    @cached_property
    def sources(self) -> "SourceService":
        from afresh.services.sources import SourceService

        return SourceService(self._context, self.runs, self.sinks)

    @cached_property
    def pages(self) -> "PageService":
        from afresh.services.pages import PageService

        return PageService(self._context, self.runs, self.sinks)

    @cached_property
    def links(self) -> "LinkService":
        from afresh.services.links import LinkService

        return LinkService(self._context)

    @cached_property
    def search(self) -> "SearchService":
        from afresh.services.search import SearchService

        return SearchService(self._context)

    @cached_property
    def status(self) -> "StatusService":
        from afresh.services.status import StatusService

        return StatusService(self._context, self.sinks)

    @cached_property
    def schedules(self) -> "ScheduleService":
        from afresh.services.schedules import ScheduleService

        return ScheduleService(self._context, self.sinks, self.status)

    @cached_property
    def webhooks(self) -> "WebhookService":
        from afresh.services.webhooks import WebhookService

        return WebhookService(self._context)

    @cached_property
    def tokens(self) -> "TokenService":
        from afresh.services.tokens import TokenService

        return TokenService(self._context)

    @cached_property
    def charts(self) -> "ChartService":
        from afresh.services.charts import ChartService

        return ChartService(self._context)

    @cached_property
    def digest(self) -> "DigestService":
        from afresh.services.digest import DigestService

        return DigestService(self._context)

    def scoped_to(self, allowed: Permissions) -> "KnowledgeBase":
        """Return a view limited to permitted sources; operations on the whole store raise Forbidden.

        Without write permission, the view fetches only web pages that belong to a source.
        """
        if allowed.everywhere and allowed.may_write:
            return self
        from afresh.store.scoped import ScopedStore

        context = self._context
        store = context.store if allowed.everywhere else ScopedStore(context.store, allowed)
        tools = context.tools.scoped_to(allowed, store)
        return KnowledgeBase(replace(context, allowed=allowed, store=store, tools=tools))

    def stop(self) -> None:
        """Ask the active run to end soon; finished work is kept, and the rest stays queued."""
        self._context.stopping.set()

    async def close(self) -> None:
        await self._context.store.close()
