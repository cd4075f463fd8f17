"""What stands around a document: how like the old content it is, and who else shows the same."""

import asyncio

from afresh.crawl.plausibility import is_strange
from afresh.crawl.polite_fetch import fetch_politely
from afresh.crawl.tools import Kit
from afresh.errors import ExtractError
from afresh.model.fetch import Body, Document, Request, Signs
from afresh.model.records import Claim
from afresh.text.similarity import likeness, sketch_of
from afresh.urls.canonical import domain_of


async def signs_of(claim: Claim, document: Document, kit: Kit) -> Signs:
    """What `crawl/plausibility.py` wants to know; nothing is asked about content that stayed the same."""
    page, run = claim.page, claim.run_id
    if page.content_hash == document.content_hash:
        return Signs(run=run)
    if not kit.policy.doubts:
        return await _signs_of_trusted(claim, document, kit)
    if page.content_hash is None:
        at_root = page.depth == 0  # where everything starts, whatever it looks like
        return Signs(run=run, like_missing=not at_root and await _like_missing(claim, document, kit))
    held = await kit.store.pages.content(page.id)
    before, length = held.sketch, held.length
    if page.doubt is not None and held.former and not kit.policy.holds:  # what is on record is the wall
        before, length = await asyncio.to_thread(sketch_of, held.former, page.url), len(held.former)
    alike = likeness(before, document.sketch) if length else None
    twins = await _twins(claim, before, document, kit) if is_strange(alike) else 0
    like_missing = await _like_missing(claim, document, kit)
    if page.depth == 0 and not twins:  # many sites show their start page where there is nothing
        like_missing = False
    former = len(held.former or "") if page.doubt is not None else 0
    return Signs(
        run=run,
        likeness=alike,
        length=max(held.length or 0, former) or None,
        twins=twins,
        like_missing=like_missing,
    )


async def _signs_of_trusted(claim: Claim, document: Document, kit: Kit) -> Signs:
    """What tells whether the text on record is worth keeping; nobody is asked for it."""
    if claim.page.content_hash is None:
        return Signs(run=claim.run_id)
    held = await kit.store.pages.content(claim.page.id)
    alike = likeness(held.sketch, document.sketch) if held.length else None
    return Signs(run=claim.run_id, likeness=alike, length=held.length)


async def _twins(claim: Claim, before: str, document: Document, kit: Kit) -> int:
    """How many other addresses show the same, in this run or since an earlier one."""
    in_run = kit.crowd.join(claim.page.url, before, document.sketch)
    return max(in_run, await kit.store.pages.count_alike(claim.page, document, claim.run_id))


async def _like_missing(claim: Claim, document: Document, kit: Kit) -> bool:
    async def ask(url: str) -> str:
        return await _sketch_at(url, kit)

    return kit.probe is not None and await kit.probe.says_the_same(claim.page.url, document.sketch, ask)


async def _sketch_at(url: str, kit: Kit) -> str:
    """The sketch of what stands at an address; "" where there is nothing to read."""
    fetched = await fetch_politely(domain_of(url), Request(url=url), kit, kit.pace.patience_seconds)
    if not isinstance(fetched, Body):
        return ""
    try:
        document = await kit.offload.call(kit.extract, fetched)
    except ExtractError:
        return ""
    return document.sketch
