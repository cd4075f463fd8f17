"""Asking a host only when it is its turn."""

from afresh.crawl.politeness import PATIENCE_SECONDS
from afresh.crawl.tools import Kit
from afresh.model.fetch import Failed, Fetched, Moved, Outcome, Request


async def fetch_politely(
    domain: str, request: Request, kit: Kit, patience: float = PATIENCE_SECONDS
) -> Fetched | None:
    """Fetch when the host may be asked, and learn from how it answers; None if it rests for longer."""
    if not domain:  # a file: nobody is bothered
        return await kit.web.fetch(request)
    lapses = kit.vigil.lapses
    if not kit.hosts.is_known(domain) and not kit.hosts.is_dead(domain):
        asked = await kit.web.crawl_delay(request.url)
        if asked is not None:  # else robots.txt is out of order, and asked for again with the next page
            kit.hosts.learn(domain, max(kit.pace.delay_seconds, asked))
    if not await kit.hosts.enter(domain, patience):
        return None
    try:
        if kit.vigil.lapses != lapses:  # we slept, and others are at it
            return None
        if not kit.hosts.may_try(domain):
            return Failed(outcome=Outcome.FAILED, reason=f"{domain} has stopped answering")
        fetched = await kit.web.fetch(request)
    finally:
        kit.hosts.leave(domain)
    if isinstance(fetched, Failed) and fetched.status_code is None:
        kit.hosts.failed(domain)
    else:
        kit.hosts.answered(domain)
    if isinstance(fetched, Failed | Moved) and fetched.retry_after:
        kit.hosts.pause(domain, fetched.retry_after)
    return fetched
