"""Why a page is as it is: the evidence of the last look, in one sentence and its facts."""

from afresh.core.model import Attempt, Page, PageStatus
from afresh.core.views import PageView, Why
from afresh.ports import Library


async def explain(store: Library, page: Page, view: PageView, name: str, version: str | None) -> Why:
    """The evidence behind the state of a page."""
    latest, next_look, linked_from, attempts = await store.evidence(page)
    return Why(
        url=page.url,
        source=name,
        version=version,
        status=view.status,
        summary=_summary(page, latest),
        page=view,
        latest=latest,
        next_look=next_look,
        linked_from=linked_from,
        attempts=attempts,
        former=(await store.held(page.id)).former,
    )


def _summary(page: Page, latest: Attempt | None) -> str:
    if latest is None:
        return "not looked at yet: it waits in the queue"
    parts = [latest.reason or str(latest.outcome)]
    if page.doomed_by is not None:
        parts.append(f"run {page.doomed_by} wants to drop it and waits for a confirmation")
    elif page.status is PageStatus.ACTIVE and latest.error_message:
        parts.append("the content of the last good look is kept")
    if page.doubt is not None and page.doubt not in parts[0]:
        parts.append(page.doubt)
    if page.missing_count:
        times = "run" if page.missing_count == 1 else "runs in a row"
        parts.append(f"no link led here in {page.missing_count} complete {times}")
    return "; ".join(parts)
