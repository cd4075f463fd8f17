"""Slow work before the transaction: chunks and a diff for changed content, links for a changed page."""

from dataclasses import replace

from afresh.aio import in_turns
from afresh.crawl.tools import Kit
from afresh.model.fetch import Document, Gone, Link, Moved, Read, Seen
from afresh.model.records import Claim, Content, Decision, Follow, Harvest
from afresh.ops.failpoints import failpoint
from afresh.urls.traps import ENDLESS


async def prepare(claim: Claim, decision: Decision, seen: Seen, kit: Kit) -> Harvest:
    """Make just what the decision needs; nothing at all for a page that stayed the same."""
    match seen:
        case Moved(to=to):
            return await _pointing(to, claim, kit)
        case Gone() if claim.page.content_hash is None:
            return Harvest(links=())  # a stub that led on leads nowhere now
        case Read(document=document):
            return await _harvest(claim, decision, document, kit)
        case _:
            return Harvest()


async def _pointing(to: str, claim: Claim, kit: Kit) -> Harvest:
    """A page that moved has one link: to where it went."""
    harvest = await _linked(Harvest(), (Link(to, ""),), claim, kit)
    belongs = kit.lister.walks(to) and kit.lister.refusal(to, claim.page.depth) is None
    return harvest if belongs else replace(harvest, children=frozenset())


async def _harvest(claim: Claim, decision: Decision, document: Document, kit: Kit) -> Harvest:
    harvest = Harvest()
    if decision.content is Content.REPLACE:
        text = replace(document, links=(), language=decision.page.language)  # links need no trip
        chunks = await kit.offload.call(kit.chunk, text)
        failpoint("page.chunked")
        embedded = await kit.embedding.ensure(chunks) if kit.embedding else None
        harvest = replace(
            harvest,
            document=document,
            chunks=tuple(chunks),
            embedded=embedded,
            diff=await _diff(claim, document, kit) if kit.keep_body else None,
        )
    match decision.follow:
        case Follow.NEW:
            harvest = replace(harvest, long_links=document.long_links)
            return await _linked(harvest, _trimmed(document.links, kit), claim, kit)
        case Follow.NONE:
            links = tuple(link._replace(follow=False) for link in _trimmed(document.links, kit))
            return await _linked(harvest, links, claim, kit)
        case Follow.STORED:
            return harvest


async def _diff(claim: Claim, document: Document, kit: Kit) -> str | None:
    if claim.page.content_hash in (None, document.content_hash):
        return None
    old = (await kit.store.pages.content(claim.page.id)).markdown
    return None if old is None else await kit.offload.call(kit.diff, old, document.markdown)


def _trimmed(links: tuple[Link, ...], kit: Kit) -> tuple[Link, ...]:
    trimmed: dict[str, Link] = {}
    for link in links:
        url = kit.trim(link.url)
        trimmed.setdefault(url, link if url == link.url else link._replace(url=url))
    follow = kit.policy.respect_nofollow
    return tuple(link if follow or link.follow else link._replace(follow=True) for link in trimmed.values())


async def _linked(harvest: Harvest, links: tuple[Link, ...], claim: Claim, kit: Kit) -> Harvest:
    """With links, and those of them that belong, whatever their depth: that is for the queue to judge."""
    belonging, trapped = [], 0
    async for link in in_turns(links, lambda link: link.url):
        refusal = kit.lister.refusal(link.url, 0)
        if refusal is None and kit.lister.walks(link.url):
            belonging.append(link)
        elif link.follow and refusal is not None and refusal.startswith(ENDLESS):
            trapped += 1
    children = await kit.patterns.let_in(belonging, claim.page.url)
    trapped += sum(link.follow and link.url not in children for link in belonging)
    return replace(harvest, links=links, children=children, trapped=trapped)
