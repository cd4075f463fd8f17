"""Opening a stored page: its text, or why there is none."""

from collections.abc import Sequence
from datetime import datetime

from afresh.crawl.factory import Tools
from afresh.errors import UsageError, without_former_text
from afresh.model.records import Page, PageStatus, SourceId
from afresh.model.reports import OpenedPage, PageView
from afresh.model.versions import is_newer
from afresh.services.valid_settings import if_settled, trouble_with
from afresh.sources.linklist.parse import LINKS
from afresh.store.store import Store
from afresh.text.wording import count
from afresh.urls.files import is_file_url
from afresh.urls.suggest import clues, nearest
from afresh.urls.traps import pattern_of, shown

_MAX_MOVES = 10
Found = tuple[Page, PageView, str, str | None]  # with the name and the version of its source
_LOOKED_AT = 500  # addresses compared with one that is not on record


def _preferred(found: Sequence[Found]) -> Found:
    """Of the sources that hold an address the first, in the version that is meant where none is named."""
    best = found[0]
    for each in found[1:]:
        if each[2] == best[2] and is_newer(each[3], best[3]):
            best = each
    return best


async def open_page(
    store: Store, url: str, source: SourceId | None, *, former: bool = False
) -> OpenedPage | None:
    """The page at an address or where it moved to; None if the address is not on record."""
    moves: list[str] = []
    while True:
        found = await store.pages.find(url, source)
        if not found:
            if moves:
                raise UsageError(f"{moves[-1]} moved to {url}, which is not on record")
            return None
        page, _, name, version = _preferred(found)
        if page.status is not PageStatus.REDIRECT or not page.moved_to:
            break
        moves.append(url)
        if page.moved_to in moves or len(moves) > _MAX_MOVES:
            raise UsageError(f"{moves[0]} leads in circles: {' → '.join((*moves, page.moved_to))}")
        url, source = page.moved_to, source or page.source_id
    label = f"{name}@{version}" if version else name
    return OpenedPage(
        url=page.url,
        title=page.title or page.url,
        source=name,
        version=version,
        language=page.language,
        status=page.status,
        content_type=page.content_type,
        checked_at=page.checked_at,
        changed_at=page.changed_at,
        markdown=await _text(store, page, label, former=former),
        moved_from=tuple(moves),
        also_in=tuple(_label(each[2], each[3]) for each in found[1:] if each[0].content_hash is not None),
        doubt=page.doubt,
    )


async def near_addresses(store: Store, url: str, source: SourceId | None) -> tuple[str, ...]:
    """Addresses on record that may be meant instead of one that is not."""
    for clue in clues(url):
        if near := nearest(url, await store.pages.urls_with(clue, source, limit=_LOOKED_AT)):
            return near
    return ()


async def why_unknown(
    store: Store,
    tools: Tools,
    url: str,
    within: SourceId | None,
) -> str:
    """Why an address is no page: a file or a link that was left out, or nothing at all."""
    for source in await store.sources.all() if is_file_url(url) else ():
        meant = source.id == (within or source.id)
        if meant and (reason := if_settled(lambda each: tools.why_left_out(each, url), source)):
            return f"{url} is left out of {source.label}: {reason}"
    link = await store.links.leading_to(url, within)
    if link is None:
        near = await near_addresses(store, url, within)
        other = f"near it are {', '.join(near)}" if near else "`afresh pages NAME` lists what is"
        return f"{url} is not on record; {other}"
    source, page, depth, follow, belongs = link
    if source.kind == LINKS:
        return f"{url} is linked from {page}, but {source.label} is a list of links: what it names is read"
    if wrong := trouble_with(tools, source):
        return f"{url} is linked from {page}, but the settings of {source.label} are wrong: {wrong}"
    rules, _ = tools.bounds(source)
    reason = rules.refusal(url, depth + 1)
    if reason is None and follow and not belongs and (pattern := pattern_of(url, rules.root)):
        most = count(rules.max_per_pattern, "page")
        reason = f"there are already {most} like {shown(pattern)}, which look endless"
    if reason is None:
        reason = "max_pages was reached" if follow else "the link or its page says nofollow"
    return f"{url} is linked from {page} but was left out: {reason}"


async def _text(store: Store, page: Page, label: str, *, former: bool) -> str:
    held = await store.pages.content(page.id)
    if former:
        if held.former is None:
            raise UsageError(without_former_text(page.url))
        return held.former
    if page.content_hash is None:
        raise UsageError(_why_empty(page, label))
    if held.markdown is None:
        raise UsageError(
            f"no text of {page.url} is kept, only its words (storage.body: none); "
            f"set storage.body: markdown, then `afresh refresh {label}` reads it again"
        )
    return held.markdown


def _why_empty(page: Page, label: str) -> str:
    match page.status:
        case PageStatus.DELETED:
            return f"{page.url} was deleted {_since(page.changed_at)}; `afresh why {page.url}` tells why"
        case PageStatus.PENDING:
            return f"{page.url} has not been read yet; `afresh refresh {label}` reads it"
    return f"{page.url} has no text on record; `afresh why {page.url}` tells why"


def _since(when: datetime | None) -> str:
    return f"on {when:%Y-%m-%d at %H:%M:%S} UTC" if when else "some time ago"


def _label(name: str, version: str | None) -> str:
    return f"{name}@{version}" if version else name
