"""The walk of one page: six steps, of which the worker takes the last for many pages at once."""

from dataclasses import replace

from afresh.core.decide import decide, request_for
from afresh.core.errors import AfreshError, ExtractError
from afresh.core.events import Step
from afresh.core.looks import Body, Failed, Fetched, Outcome, Read, Refused, Request, Seen
from afresh.core.model import Claim, Decision, Harvest, Visit
from afresh.engine.kit import Kit
from afresh.engine.prepare import prepare


async def look(claim: Claim, kit: Kit) -> Fetched | None:
    """Steps 1 and 2: ask for a page as cheaply as what is known of it allows; None if its host rests."""
    request = request_for(claim.page, kit.policy, full=kit.full)
    kit.listener(Step(name="request", url=request.url))
    fetched = await _fetch(claim, request, kit)
    if fetched is not None:
        kit.listener(Step(name="fetch", url=request.url))
    return fetched


async def conclude(claim: Claim, fetched: Fetched, kit: Kit) -> Visit:
    """Steps 3 to 5: read what came, decide what it means and make what that needs; nothing is written yet."""
    url = claim.page.url
    seen = await _extract(fetched, kit)
    if isinstance(fetched, Body):
        kit.listener(Step(name="extract", url=url))
    decision = decide(claim.page, seen, kit.policy, kit.clock())
    kit.listener(Step(name="decide", url=url))
    decision, harvest = await _prepare(claim, decision, seen, kit)
    kit.listener(Step(name="prepare", url=url))
    pause = fetched.retry_after if isinstance(fetched, Failed) else None
    return Visit(claim=claim, decision=decision, harvest=_weighed(harvest, fetched), pause=pause)


def broken_visit(claim: Claim, error: Exception, kit: Kit) -> Visit:
    """The visit of a page on which afresh itself stumbled: a failure like any other, so the rest goes on."""
    failed = Failed(outcome=Outcome.FAILED, reason=f"internal error: {type(error).__name__}: {error}")
    return Visit(claim=claim, decision=decide(claim.page, failed, kit.policy, kit.clock()))


async def _fetch(claim: Claim, request: Request, kit: Kit) -> Fetched | None:
    refusal = kit.lister.refusal(request.url, claim.page.depth)
    if refusal is not None:  # the rules changed since the page was found
        return Refused(outcome=Outcome.FAILED, reason=refusal)
    if not kit.hosts.is_known(claim.domain):
        asked = await kit.web.crawl_delay(request.url)
        kit.hosts.learn(claim.domain, max(kit.pace.delay_seconds, asked or 0.0))
    if not await kit.hosts.enter(claim.domain):
        return None
    try:
        if kit.hosts.is_dead(claim.domain):
            return Failed(outcome=Outcome.FAILED, reason=f"{claim.domain} has stopped answering")
        fetched = await kit.web.fetch(request)
    finally:
        kit.hosts.leave(claim.domain)
    if isinstance(fetched, Failed) and fetched.status_code is None:
        kit.hosts.failed(claim.domain)
    else:
        kit.hosts.answered(claim.domain)
    if isinstance(fetched, Failed) and fetched.retry_after:
        kit.hosts.pause(claim.domain, fetched.retry_after)
    return fetched


async def _extract(fetched: Fetched, kit: Kit) -> Seen:
    if not isinstance(fetched, Body):
        return fetched
    try:
        document = await kit.offload.call(kit.extract, fetched)
    except ExtractError as error:
        reason = f"{fetched.status_code}, but not read: {error}"
        return Refused(outcome=Outcome.FAILED, reason=reason, status_code=fetched.status_code)
    return Read(
        document=document,
        validators=fetched.validators,
        media_type=fetched.media_type,
        status_code=fetched.status_code,
    )


async def _prepare(claim: Claim, decision: Decision, seen: Seen, kit: Kit) -> tuple[Decision, Harvest]:
    """Make what the decision needs; if that fails the old content and its validators stay (G13)."""
    try:
        return decision, await prepare(claim, decision, seen, kit)
    except AfreshError as error:
        failed = Failed(outcome=Outcome.FAILED, reason=str(error))
        return decide(claim.page, failed, kit.policy, kit.clock()), Harvest()


def _weighed(harvest: Harvest, fetched: Fetched) -> Harvest:
    if not isinstance(fetched, Body):
        return harvest
    return replace(harvest, body_bytes=len(fetched.data))
