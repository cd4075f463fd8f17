"""Asking a host only when it is its turn."""

from afresh.core.looks import Failed, Fetched, Outcome, Request
from afresh.engine.kit import Kit


async def fetch_politely(domain: str, request: Request, kit: Kit) -> Fetched | None:
    """Fetch when the host may be asked, and learn from how it answers; None if it rests for long."""
    if not kit.hosts.is_known(domain):
        asked = await kit.web.crawl_delay(request.url)
        kit.hosts.learn(domain, max(kit.pace.delay_seconds, asked or 0.0))
    if not await kit.hosts.enter(domain):
        return None
    try:
        if kit.hosts.is_dead(domain):
            return Failed(outcome=Outcome.FAILED, reason=f"{domain} has stopped answering")
        fetched = await kit.web.fetch(request)
    finally:
        kit.hosts.leave(domain)
    if isinstance(fetched, Failed) and fetched.status_code is None:
        kit.hosts.failed(domain)
    else:
        kit.hosts.answered(domain)
    if isinstance(fetched, Failed) and fetched.retry_after:
        kit.hosts.pause(domain, fetched.retry_after)
    return fetched
