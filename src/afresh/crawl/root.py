"""Find where the root of a site leads before the rest is read: a site that moved is read where it is now.

| the root answers with                | the source                                                        |
|--------------------------------------|-------------------------------------------------------------------|
| content                              | is read from its root                                             |
| a permanent redirect, on its site    | moves there if the run ends well; pages below the old root follow |
| a temporary redirect, on its site    | keeps its URL; pages below the target belong to it, too           |
| a redirect to another site           | is not read, unless `may_move` says that it may                   |
| a redirect to a login, an error, 404 | is not read, nothing moves                                        |

A chain counts as permanent only if every redirect of it is.
"""

from dataclasses import replace
from datetime import timedelta

from afresh.crawl.content_signals import signs_of
from afresh.crawl.context import Course
from afresh.crawl.decide import request_for
from afresh.crawl.plausibility import Trust, doubt_of, is_wall
from afresh.crawl.polite_fetch import fetch_politely
from afresh.errors import ExtractError, ParserCrashed, ParserMissing
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, NotModified, Outcome, Refused, Request
from afresh.model.records import Claim, CrawlId, Listed, Page, PageId
from afresh.urls.canonical import domain_of
from afresh.urls.scope import OTHER_SITE, Rules

MAX_ROOT_MOVES = 5
MAX_DELAY_SECONDS = 60  # a host that may be asked later than that rests


async def follow_root(course: Course) -> list[Listed]:
    """Ask for the root, aim the run at where it leads, and return the URLs to queue as roots.

    The answers are kept for the visits of these URLs, so that none of them is asked twice.
    """
    kit, root, asked_by = course.kit, course.rules.root, course.rules
    if kit.aim is None or course.source.kind != "web":
        return [Listed(root, 0)]
    page = await _page_at(course, root)
    chain, answers = [root], [await _ask(course, root, page)]
    while isinstance(seen := answers[-1], Moved):
        if refused := _why_not_followed(course.rules, chain, seen):
            return _lose(course, asked_by, refused)
        chain.append(seen.to)
        _aim(course, replace(course.rules, root=seen.to, aside=None, former=(root, *course.rules.former)))
        known = await _page_at(course, seen.to)
        answers.append(await _ask(course, seen.to, known if known and known.content_hash else page))
    seen = answers[-1]
    if seen is None or (len(chain) == 1 and not isinstance(seen, Body)):
        if seen is not None:
            kit.answers[root] = seen
        return [Listed(root, 0)]
    if len(chain) > 1 and isinstance(seen, Gone | Refused | Failed):
        return _lose(course, asked_by, _refused(f"it moved permanently to {chain[-1]}: {_why(seen)}"))
    aside = seen.url if isinstance(seen, Body) and course.rules.refusal(seen.url, 0) is not None else None
    led = isinstance(seen, Body) and (aside is not None or len(chain) > 1)
    why = await _why_implausible(course, page, chain[-1], seen) if led and isinstance(seen, Body) else None
    if why is not None:
        return _lose(course, asked_by, _refused(f"it leads to {aside or chain[-1]}: {why}"))
    if _is_temporary(seen, chain):
        return _stay(course, asked_by, seen, aside)
    kit.answers |= {url: answer for url, answer in zip(chain, answers, strict=True) if answer is not None}
    if len(chain) > 1:
        course.moved_root = chain[-1]
    return [Listed(url, 0) for url in reversed(chain)]


async def _page_at(course: Course, url: str) -> Page | None:
    return (await course.kit.store.history.root_attempt(course.source.id, url))[0]


async def _ask(course: Course, url: str, page: Page | None) -> Fetched | None:
    """Ask for a URL, with the validators of a page where that URL issued them; None if its host rests."""
    kit, request = course.kit, Request(url=url)
    soon = kit.clock() + timedelta(seconds=MAX_DELAY_SECONDS)
    if any(
        host.next_allowed_at and host.next_allowed_at > soon
        for host in await kit.store.stats.host_states([domain_of(url)])
    ):
        return None
    if page is not None:
        known = request_for(page, kit.policy, kit.clock(), full=kit.full)
        validators = known.validators
        if validators is not None and page.url != url:
            validators = replace(validators, url=validators.url or page.url)
        request = replace(known, url=url, validators=validators)
    return await fetch_politely(domain_of(url), request, kit)


def _aim(course: Course, rules: Rules) -> None:
    course.rules = rules
    if course.kit.aim is not None:
        course.kit.aim(rules)


def _why_not_followed(rules: Rules, chain: list[str], seen: Moved) -> Refused | None:
    """Why a permanent redirect of the root is not followed; None if it is."""
    way = " → ".join((*chain, seen.to))
    if seen.to in chain:
        return _refused(f"redirect loop: {way}", seen)
    if len(chain) > MAX_ROOT_MOVES:
        return _refused(f"more than {MAX_ROOT_MOVES} redirects: {way}", seen)
    if not rules.may_lead(chain[-1], seen.to):
        return _refused(f"it moved permanently to {seen.to}, {OTHER_SITE}", seen)
    return None


def _refused(reason: str, seen: Moved | None = None) -> Refused:
    return Refused(outcome=Outcome.FAILED, reason=reason, status_code=seen.status_code if seen else None)


def _why(seen: Gone | Refused | Failed) -> str:
    return seen.reason or f"nothing is there ({seen.status_code})"


def _lose(course: Course, rules: Rules, refused: Refused) -> list[Listed]:
    """Read nothing but the root, which fails with the reason."""
    _aim(course, rules)
    course.kit.answers[rules.root] = refused
    course.lost_root = True
    return [Listed(rules.root, 0)]


def _is_temporary(seen: Fetched, chain: list[str]) -> bool:
    """Whether the last of several redirects, or the only one, holds just for now."""
    if isinstance(seen, Body):
        return seen.url != chain[-1]
    return isinstance(seen, NotModified) and seen.validators.url not in (None, chain[-1])


def _stay(course: Course, rules: Rules, seen: Fetched, aside: str | None) -> list[Listed]:
    """Keep the root, with the content of where it leads for now."""
    if isinstance(seen, Body):
        seen = replace(seen, validators=replace(seen.validators, url=seen.url))
        inside = rules.refusal(seen.url, 0) is None
        rules = rules if inside else replace(rules, aside=seen.url)
        if not inside:
            course.notes.append(f"the root leads to {seen.url} for now: pages below it are read, too")
    if rules != course.rules:
        _aim(course, rules)
    course.kit.answers[rules.root] = seen
    return [Listed(rules.root, 0)]


async def _why_implausible(course: Course, page: Page | None, url: str, body: Body) -> str | None:
    """Why what a root leads to cannot be the source; None if it may be."""
    kit = course.kit
    if not kit.policy.doubts:
        return None
    try:
        document = await kit.offload.call(kit.extract, body)
    except (ExtractError, ParserCrashed, ParserMissing) as error:
        return str(error)
    asked = page or Page(id=PageId(0), source_id=course.source.id, url=url)
    claim = Claim(crawl_id=CrawlId(0), page=asked, run_id=course.run.id, domain=domain_of(url))
    doubt = doubt_of(asked, document, await signs_of(claim, document, kit), kit.policy)
    if doubt is not None and doubt.trust is Trust.HOLD:
        return doubt.text
    is_new_wall = asked.content_hash is None and is_wall(document)
    return "it looks like a login or consent page" if is_new_wall else None
