"""The walk of one page: six steps, of which the worker takes the last for many pages at once."""

from dataclasses import dataclass, replace

from afresh.crawl.content_signals import signs_of
from afresh.crawl.decide import decide, request_for
from afresh.crawl.lastmod import is_news, is_settled, unasked
from afresh.crawl.plausibility import is_poison, must_wait
from afresh.crawl.polite_fetch import fetch_politely
from afresh.crawl.prepare import prepare
from afresh.crawl.tools import Kit
from afresh.digest.summaries import file_hash
from afresh.errors import (
    AfreshError,
    EmbedderDown,
    EmbedError,
    ExtractError,
    ParserCrashed,
    ParserLate,
    ParserMissing,
    StoreError,
    SummarizerDown,
)
from afresh.events import Step
from afresh.model.fetch import (
    Body,
    Failed,
    Fetched,
    Moved,
    NotModified,
    Outcome,
    Read,
    Refused,
    Request,
    Seen,
)
from afresh.model.media_types import media_type_of_file
from afresh.model.records import Claim, Decision, Harvest, Visit
from afresh.ops.failpoints import failpoint
from afresh.ops.tracing import UNHEARD, Value, sampled
from afresh.search.vectors import UNEMBEDDED
from afresh.sources.web.render_check import RENDERED
from afresh.text.normalize import bytes_hash

LINK_BYTES = 500  # that a link costs in memory, with its address and its text


async def look(claim: Claim, kit: Kit) -> Fetched | None:
    """Steps 1 and 2: ask for a page as cheaply as what is known of it allows; None if its host rests."""
    request = request_for(claim.page, kit.policy, kit.clock(), full=kit.full)
    kit.listener(Step(name="request", url=request.url))
    failpoint("page.request")
    with sampled("look", {"url.full": request.url}) as note:
        fetched = await _fetch(claim, request, kit)
        if note is not UNHEARD:
            note.add(_signs(fetched))
    if fetched is not None:
        kit.listener(Step(name="fetch", url=request.url))
        failpoint("page.fetched")
    return fetched


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """What is remembered of an answer once its body was read: bodies are large, and many are in work."""

    claim: Claim
    size: int = 0
    body_hash: str | None = None
    pause: float | None = None
    text_hash: str | None = None  # of a file of the knowledge base
    rendered: bool = False

    @classmethod
    def from_(cls, claim: Claim, fetched: Fetched) -> "Arrived":
        """The answer without its body."""
        if isinstance(fetched, Body):
            data, rendered = fetched.data, fetched.rendered is not None
            return cls(claim=claim, size=len(data), body_hash=bytes_hash(data), rendered=rendered)
        return cls(claim=claim, pause=fetched.retry_after if isinstance(fetched, Failed | Moved) else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A look whose meaning shows when the run has seen the rest."""

    arrived: Arrived
    seen: Read

    @property
    def weight(self) -> int:
        """About how many bytes it keeps in memory."""
        document = self.seen.document
        return 2 * len(document.markdown) + LINK_BYTES * len(document.links)


async def conclude(claim: Claim, fetched: Fetched, kit: Kit) -> Visit | Waiting:
    """Steps 3 to 5: read what came, decide what it means and make what that needs; nothing is written yet."""
    arrived = Arrived.from_(claim, fetched)
    if kit.telling is not None and isinstance(fetched, Body):
        arrived = replace(arrived, text_hash=file_hash(fetched))
    seen = _weary(await _extract(arrived, fetched, kit), claim.page.url, kit)
    del fetched
    if arrived.body_hash is not None:
        kit.listener(Step(name="extract", url=claim.page.url))
        failpoint("page.extracted")
    if isinstance(seen, Read) and not seen.proven:
        seen = replace(seen, signs=await signs_of(claim, seen.document, kit))
        if must_wait(claim.page, seen, kit.policy):
            return Waiting(arrived=arrived, seen=seen)
    return await _finish(arrived, seen, kit)


async def conclude_last(waiting: Waiting, kit: Kit) -> Visit:
    """The same for a look that waited until the rest was seen."""
    signs = await signs_of(waiting.arrived.claim, waiting.seen.document, kit)
    seen = replace(waiting.seen, signs=replace(signs, last=True))
    return await _finish(waiting.arrived, seen, kit)


async def _finish(arrived: Arrived, seen: Seen, kit: Kit) -> Visit:
    claim, url = arrived.claim, arrived.claim.page.url
    decision = decide(claim.page, seen, kit.policy, kit.clock())
    kit.listener(Step(name="decide", url=url))
    failpoint("page.decided")
    decision, harvest = await _prepare(arrived, decision, seen, kit)
    kit.listener(Step(name="prepare", url=url))
    failpoint("page.prepared")
    if arrived.size:
        harvest = replace(harvest, body_bytes=arrived.size, rendered=arrived.rendered)
    known = claim.page.content_hash is not None
    hinted = known and is_news(kit.modified(url), claim.page.checked_at, kit.clock())
    return Visit(claim=claim, decision=decision, harvest=harvest, pause=arrived.pause, hinted=hinted)


def broken_visit(claim: Claim, error: Exception, kit: Kit) -> Visit:
    """The visit of a page on which afresh itself stumbled: a failure like any other, so the rest goes on."""
    failed = Failed(outcome=Outcome.FAILED, reason=f"internal error: {type(error).__name__}: {error}")
    return Visit(claim=claim, decision=decide(claim.page, failed, kit.policy, kit.clock()))


def _signs(fetched: Fetched | None) -> dict[str, Value]:
    """What a span tells of a look."""
    code = getattr(fetched, "status_code", None)
    kind = type(fetched).__name__ if fetched else "PutOff"
    return {"afresh.look": kind, **({"http.response.status_code": code} if code else {})}


async def _fetch(claim: Claim, request: Request, kit: Kit) -> Fetched | None:
    if (asked := kit.answers.pop(request.url, None)) is not None:
        return asked
    refusal = kit.lister.refusal(request.url, claim.page.depth)
    if refusal is not None and not kit.was_ours(request.url, claim.page.depth):  # the rules changed
        return Refused(outcome=Outcome.FAILED, reason=refusal)
    if kit.policy.trust_lastmod and (settled := _settled(claim, kit)):
        return settled
    return await fetch_politely(claim.domain, request, kit)


def _settled(claim: Claim, kit: Kit) -> NotModified | None:
    """What is known of a page without a look, because its site says that nothing changed since the last."""
    page, modified = claim.page, kit.modified(claim.page.url)
    if kit.full or page.depth == 0 or modified is None:  # the root tells whether the site is well
        return None
    return unasked(modified) if is_settled(page, modified, kit.policy, kit.clock()) else None


def _weary(seen: Seen, url: str, kit: Kit) -> Seen:
    """What was seen; a page that is put off for ever fails in the end like any other, so that a run ends."""
    if isinstance(seen, Failed) and seen.retry_after is not None and not kit.hosts.puts_off(url):
        return replace(seen, retry_after=None)
    return seen


async def _extract(arrived: Arrived, fetched: Fetched, kit: Kit) -> Seen:
    if not isinstance(fetched, Body):
        return fetched
    page, code = arrived.claim.page, fetched.status_code
    came = code or "read"
    if is_poison(page, arrived.body_hash):
        reason = f"{came}, but not read again: {page.doubt}"
        return Refused(outcome=Outcome.FAILED, reason=reason, status_code=code)
    try:
        document = await kit.offload.call(kit.extract, fetched)
    except ParserCrashed as error:
        return Failed(
            outcome=Outcome.FAILED,
            reason=f"{came}, but {error}",
            status_code=code,
            poison=arrived.body_hash,
            hopeless=isinstance(error, ParserLate),
        )
    except ParserMissing as error:
        return Failed(outcome=Outcome.FAILED, reason=f"{came}, but {error}", status_code=code)
    except ExtractError as error:
        reason = str(error) if code is None else f"{code}, but not read: {error}"
        kept = fetched.validators if fetched.proven else None
        return Refused(outcome=Outcome.FAILED, reason=reason, status_code=code, validators=kept)
    return Read(
        document=document,
        validators=fetched.validators,
        media_type=RENDERED if fetched.rendered else _media_type(fetched),
        status_code=code,
        proven=fetched.proven,
        rendered=fetched.rendered,
    )


def _media_type(body: Body) -> str:
    """Return what a server called a body, or what the name of a file says."""
    return body.media_type or (media_type_of_file(body.url) if body.proven else "")


async def _prepare(arrived: Arrived, decision: Decision, seen: Seen, kit: Kit) -> tuple[Decision, Harvest]:
    """Make what the decision needs; if that fails the old content and its validators stay (G13)."""
    claim = arrived.claim
    try:
        harvest = await prepare(claim, decision, seen, kit)
        return decision, await _told(harvest, arrived, decision, seen, kit)
    except StoreError:  # no fault of the page
        raise
    except AfreshError as error:
        poison = arrived.body_hash if isinstance(error, ParserCrashed) else None
        said = f"{UNEMBEDDED}: {error}" if isinstance(error, EmbedError) else str(error)
        hopeless = isinstance(error, EmbedderDown | ParserLate | SummarizerDown)
        failed = Failed(outcome=Outcome.FAILED, reason=said, poison=poison, hopeless=hopeless)
        decision = decide(claim.page, failed, kit.policy, kit.clock())
        return decision, await _told(Harvest(), arrived, decision, failed, kit)


async def _told(harvest: Harvest, arrived: Arrived, decision: Decision, seen: Seen, kit: Kit) -> Harvest:
    """With what the record of a page of the knowledge base is to say."""
    if kit.telling is None:
        return harvest
    return replace(harvest, told=await kit.telling.of(arrived.claim, decision, seen, arrived.text_hash))
