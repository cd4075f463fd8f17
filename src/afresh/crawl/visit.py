"""Visit a page: steps 1 to 5 in docs/explanation/architecture.md. The worker commits the visit in step 6."""

import asyncio
import hashlib

from afresh import errors
from afresh.aio import ITEM_CHARACTERS, TURN_CHARACTERS
from afresh.crawl.decide import decide, request_for
from afresh.crawl.hosts import fetch_politely
from afresh.crawl.listing_diff import is_dated_newer, is_dated_unchanged, not_requested
from afresh.crawl.plausibility import CRASHES, SuspicionAction, suspicion_of
from afresh.crawl.soft_404 import content_signals
from afresh.crawl.tools import RunTools
from afresh.dataclass import dataclass, replace
from afresh.digest.summaries import file_hash
from afresh.events import PageStep
from afresh.extract.pool.wire import CHUNK, DIFF, READ
from afresh.model.fetch import (
    Body,
    Document,
    Failed,
    Fetched,
    Gone,
    Link,
    Moved,
    Outcome,
    ReadDocument,
    Refused,
    Seen,
    media_type_of_file,
)
from afresh.model.records import Claim, ContentAction, Decision, LinkAction, Visit, VisitContent
from afresh.ops.failpoints import failpoint
from afresh.ops.tracing import NULL_SPAN, sampled_span
from afresh.search.records import UNEMBEDDED
from afresh.sources.web.render_check import RENDERED
from afresh.urls.scope import ENDLESS
from afresh.urls.traps import NUMBERED

LINK_BYTES = 500  # memory of a link with its URL and text


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSummary:
    """The values of a response that are kept after its body is parsed and freed."""

    claim: Claim
    size: int = 0
    body_hash: str | None = None
    pause: float | None = None  # seconds that the host asked to wait
    text_hash: str | None = None  # of a file in the knowledge base
    rendered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingVisit:
    """A visit that can be decided only after the other pages of the run were visited."""

    arrived: FetchSummary
    seen: ReadDocument

    @property
    def weight(self) -> int:
        """Return the approximate memory use of the visit in bytes."""
        document = self.seen.document
        return 2 * len(document.markdown) + LINK_BYTES * len(document.links)


def report_step(name: str, url: str, tools: RunTools) -> None:
    if tools.wants_steps:
        tools.listener(PageStep(name=name, url=url))


async def fetch_page(claim: Claim, tools: RunTools) -> Fetched | None:
    """Fetch a page (steps 1 and 2 of a visit); return None if its host must not be requested now."""
    page, url = claim.page, claim.page.url
    request = request_for(page, tools.policy, tools.clock(), full=tools.full)
    report_step("request", url, tools)
    failpoint("page.request")
    fetched: Fetched | None = tools.answers.pop(url, None)
    if fetched is None:
        refusal = tools.lister.refusal(url, page.depth)
        if refusal is not None and not tools.was_ours(url, page.depth):  # the rules changed
            fetched = Refused(outcome=Outcome.FAILED, reason=refusal)
    # the root is always requested, because it shows whether the site is available
    if fetched is None and tools.policy.trust_lastmod and not tools.full and page.depth:
        modified = tools.modified(url)
        if modified is not None and is_dated_unchanged(page, modified, tools.policy, tools.clock()):
            fetched = not_requested(modified)
    if fetched is None:
        fetched = await fetch_politely(claim.domain, request, tools)
    if fetched is not None:
        report_step("fetch", url, tools)
        failpoint("page.fetched")
    return fetched


async def fetch_page_in_span(claim: Claim, tools: RunTools) -> Fetched | None:
    with sampled_span("look", {"url.full": claim.page.url}) as note:
        fetched = await fetch_page(claim, tools)
        if note is not NULL_SPAN:
            code = getattr(fetched, "status_code", None)
            kind = type(fetched).__name__ if fetched else "PutOff"
            note.add({"afresh.look": kind, **({"http.response.status_code": code} if code else {})})
    return fetched


async def process_page(claim: Claim, fetched: Fetched, tools: RunTools) -> Visit | PendingVisit:
    """Parse a page, decide about it and prepare what to store (steps 3 to 5); return the visit, maybe still pending."""
    url = claim.page.url
    arrived = FetchSummary(claim=claim, pause=fetched.retry_after if isinstance(fetched, Failed | Moved) else None)
    if isinstance(fetched, Body):
        arrived = FetchSummary(
            claim=claim,
            size=len(fetched.data),
            body_hash=hashlib.sha256(fetched.data).hexdigest(),
            text_hash=file_hash(fetched) if tools.summaries is not None else None,
            rendered=fetched.rendered is not None,
        )
    seen = await _extract(arrived, fetched, tools) if isinstance(fetched, Body) else fetched
    del fetched
    if isinstance(seen, Failed) and seen.retry_after is not None and not tools.hosts.may_defer(url):
        seen = replace(seen, retry_after=None)  # too many deferrals count as a failure, so that the run can end
    if arrived.body_hash is not None:
        report_step("extract", url, tools)
        failpoint("page.extracted")
    if isinstance(seen, ReadDocument) and not seen.proven:
        seen = replace(seen, signs=await content_signals(claim, seen.document, tools))
        doubt = suspicion_of(claim.page, seen.document, seen.signs, tools.policy)
        if doubt is not None and doubt.action is SuspicionAction.WAIT:
            return PendingVisit(arrived=arrived, seen=replace(seen, chunks=None))  # they would fill the memory
    return await _decide_and_prepare(arrived, seen, tools)


async def process_pending(waiting: PendingVisit, tools: RunTools) -> Visit:
    signs = await content_signals(waiting.arrived.claim, waiting.seen.document, tools)
    seen = replace(waiting.seen, signs=replace(signs, others_checked=True))
    return await _decide_and_prepare(waiting.arrived, seen, tools)


def broken_visit(claim: Claim, error: Exception, tools: RunTools) -> Visit:
    """Return a failed visit for an internal error, so that the run can continue."""
    failed = Failed(outcome=Outcome.FAILED, reason=f"internal error: {type(error).__name__}: {error}")
    return Visit(claim=claim, decision=decide(claim.page, failed, tools.policy, tools.clock()))


async def _extract(arrived: FetchSummary, fetched: Body, tools: RunTools) -> Seen:
    page, policy, code = arrived.claim.page, tools.policy, fetched.status_code
    known_hash = page.content_hash if page.recipe == policy.recipe else None
    came = code or "read"
    if page.crashes >= CRASHES and page.doubt_hash == arrived.body_hash:  # this body crashed the parser
        reason = f"{came}, but not read again: {page.doubt}"
        return Refused(outcome=Outcome.FAILED, reason=reason, status_code=code)
    try:
        document, chunks = await tools.parsers.call(
            READ, tools.extract, fetched, known_hash, page.language, policy.redetect
        )
    except errors.ParserCrashed as error:
        return Failed(
            outcome=Outcome.FAILED,
            reason=f"{came}, but {error}",
            status_code=code,
            crash_hash=arrived.body_hash,
            hopeless=isinstance(error, errors.ParserTimeout),
        )
    except errors.ParserUnavailable as error:
        return Failed(outcome=Outcome.FAILED, reason=f"{came}, but {error}", status_code=code)
    except errors.ExtractError as error:
        reason = str(error) if code is None else f"{code}, but not read: {error}"
        kept = fetched.validators if fetched.proven else None
        return Refused(outcome=Outcome.FAILED, reason=reason, status_code=code, validators=kept)
    of_file = media_type_of_file(fetched.url) if fetched.proven else ""
    return ReadDocument(
        document=document,
        validators=fetched.validators,
        media_type=RENDERED if fetched.rendered else fetched.media_type or of_file,
        status_code=code,
        proven=fetched.proven,
        rendered=fetched.rendered,
        chunks=chunks,
    )


async def _decide_and_prepare(arrived: FetchSummary, seen: Seen, tools: RunTools) -> Visit:
    """Decide about a page and return the visit; if preparing fails, keep the old content and validators."""
    claim, url = arrived.claim, arrived.claim.page.url
    decision = decide(claim.page, seen, tools.policy, tools.clock())
    report_step("decide", url, tools)
    failpoint("page.decided")
    try:
        content = await _prepare(arrived, decision, seen, tools)
    except errors.StoreError:  # not the page's fault
        raise
    except errors.AfreshError as error:
        failed = Failed(
            outcome=Outcome.FAILED,
            reason=f"{UNEMBEDDED}: {error}" if isinstance(error, errors.EmbedError) else str(error),
            crash_hash=arrived.body_hash if isinstance(error, errors.ParserCrashed) else None,
            hopeless=isinstance(
                error, errors.EmbedderUnavailable | errors.ParserTimeout | errors.SummarizerUnavailable
            ),
        )
        decision = decide(claim.page, failed, tools.policy, tools.clock())
        content = await _prepare(arrived, decision, failed, tools)
    report_step("prepare", url, tools)
    failpoint("page.prepared")
    modified = tools.modified(url) if claim.page.content_hash is not None else None
    hinted = modified is not None and is_dated_newer(modified, claim.page.checked_at, tools.clock())
    return Visit(claim=claim, decision=decision, content=content, pause=arrived.pause, hinted=hinted)


async def _prepare(arrived: FetchSummary, decision: Decision, seen: Seen, tools: RunTools) -> VisitContent:
    """Return the content and links to store after a decision; none for an unchanged page."""
    claim, content = arrived.claim, VisitContent(body_bytes=arrived.size, rendered=arrived.rendered)
    match seen:
        case Moved(to=to):  # its only link is the target
            content = await _with_links(content, (Link(to, ""),), claim, tools)
            if not tools.lister.walks(to) or tools.lister.refusal(to, claim.page.depth) is not None:
                content = replace(content, children=frozenset())
        case Gone() if claim.page.content_hash is None:
            content = replace(content, links=())  # a former redirect has no links any more
        case ReadDocument(document=document):
            if decision.content is ContentAction.REPLACE:
                content = await _with_chunks(content, claim, decision, seen, tools)
            if decision.follow is not LinkAction.STORED:
                content = await _with_links(content, _trimmed_links(document, decision, tools), claim, tools)
            if decision.follow is LinkAction.NEW:
                content = replace(content, long_links=document.long_links)
    if tools.summaries is not None:
        content = replace(content, digest=await tools.summaries.of(claim, decision, seen, arrived.text_hash))
    return content


async def _with_chunks(
    content: VisitContent, claim: Claim, decision: Decision, seen: ReadDocument, tools: RunTools
) -> VisitContent:
    """Return the content with the chunks of the new text, the number of chunks embedded, and the diff."""
    document = seen.document
    if seen.chunks is not None:
        chunks = seen.chunks
    else:  # after waiting for other pages, or for another language
        text = replace(document, links=(), language=decision.page.language)  # links are not needed there
        chunks = await tools.parsers.call(CHUNK, text)
    failpoint("page.chunked")
    embedded = await tools.embedding.ensure(chunks) if tools.embedding else None
    diff = None
    if tools.keep_body and claim.page.content_hash not in (None, document.content_hash):
        old = (await tools.store.pages.content(claim.page.id)).markdown
        diff = None if old is None else await tools.parsers.call(DIFF, old, document.markdown)
    return replace(content, document=document, chunks=tuple(chunks), embedded=embedded, diff=diff)


def _trimmed_links(document: Document, decision: Decision, tools: RunTools) -> tuple[Link, ...]:
    """Return the links of a page, each URL once, with `follow` set by the decision and the settings."""
    trimmed: dict[str, Link] = {}
    for link in document.links:
        url = tools.trim(link.url)
        follow = decision.follow is LinkAction.NEW and (link.follow or not tools.policy.respect_nofollow)
        if url not in trimmed:
            same = url == link.url and follow == link.follow
            trimmed[url] = link if same else link._replace(url=url, follow=follow)
    return tuple(trimmed.values())


async def _with_links(content: VisitContent, links: tuple[Link, ...], claim: Claim, tools: RunTools) -> VisitContent:
    """Return the content with the links of its page and, as `children`, the targets that belong to the source."""
    plain, numbered, trapped = list[str](), list[Link](), 0
    turn = TURN_CHARACTERS
    for link in links:
        turn -= ITEM_CHARACTERS + len(link.url)
        if turn < 0:  # give other tasks a turn, as `yield_in_turns`, which would take longer than to judge a link
            await asyncio.sleep(0)
            turn = TURN_CHARACTERS
        refusal = tools.lister.refusal(link.url, 0)
        if refusal is None and tools.lister.walks(link.url):
            if NUMBERED.match(link.url):
                numbered.append(link)
            else:
                plain.append(link.url)
        elif link.follow and refusal is not None and refusal.startswith(ENDLESS):
            trapped += 1
    children = frozenset(plain)
    if numbered:
        children |= await tools.patterns.let_in(numbered, claim.page.url)
        trapped += sum(link.follow and link.url not in children for link in numbered)
    return replace(content, links=links, children=children, trapped=trapped)
