"""Commands that change the settings of a source, single pages and single links."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from afresh.cli.session import Session
from afresh.cli.shell import LABEL, argument, command, group, named, option, switch
from afresh.config.layers import check_rule_names, parse_rule
from afresh.errors import ConfigError, NotFound, UsageError
from afresh.links.score import parse_keywords
from afresh.model.filters import ALL_PAGES, LinkFilter, LinkRecord, Sources
from afresh.model.labels import parse_label
from afresh.model.records import Source
from afresh.model.reports import PageView
from afresh.ports import StoreAccess
from afresh.present.wording import clean
from afresh.text.quantities import read_duration

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase

Record = TypeVar("Record", PageView, LinkRecord)
SECTION = "Manage"
PAGE = ("page", "PAGE", "The page: its URL or its number.")
LINK = ("link", "LINK", "The link: its URL or its number.")
SETTINGS = (
    "afresh set react@19 max_pages=500 exclude='/blog/*,/legal/*'",
    "afresh set react@19 --reset exclude",
    "afresh set react@18 --rename react@19 --url https://19.react.dev/",
)
PAGES = ("afresh page look https://react.dev/learn", "afresh page remove https://react.dev/old --in react@19")
LINKS = ("afresh link set https://react.dev/learn --score 1.5", "afresh link remove 12")

within = option("--in within", "LABEL", "Only in this source, as NAME or NAME@VERSION.")


@command(SECTION, *SETTINGS, name="set")
@argument(*LABEL)
@argument("pairs", "[KEY=VALUE]...", "Setting to change, see docs/reference/settings.md; lists with commas.", nargs=-1)
@option("--reset", "KEY", "Reset this setting to the default; may be repeated.", multiple=True)
@option("--rename", "LABEL", "New name, as NAME or NAME@VERSION.")
@option("--url", "URL", "New URL, used from the next run on.")
@switch("--again", "Use the URL even if another source has it.")
def change(
    session: Session,
    label: str,
    pairs: tuple[str, ...],
    reset: tuple[str, ...],
    rename: str | None,
    url: str | None,
    again: bool,
) -> None:
    """Change settings, name or URL of a source, without fetching anything.

    KEY is a setting of the sections crawl, files, policy, storage and links, without the name of the section. A
    change takes effect with the next run. A renamed source keeps its pages, history and schedule.
    """
    settings = dict(map(_setting, pairs))
    if not settings and not reset and not rename and not url:
        raise UsageError(f"give at least one setting to change, for example: {SETTINGS[0]}")
    with named("--reset"):
        check_rule_names(reset)
    name, version = parse_label(rename) if rename else (None, ...)
    before: list[str] = []

    async def work(kb: "KnowledgeBase") -> tuple[Source, list[str]]:
        source = await kb.sources.find(label)
        before.append(source.label)
        return await kb.sources.change(
            source, name=name, version=version, url=url, again=again, settings=settings, reset=reset, by_operator=True
        )

    changed, notes = session.ask(work, access=StoreAccess.CHANGE)
    own = {**changed.rules, **changed.policy}
    if session.wrote_json({"source": changed.label, "url": changed.url, "settings": own, "notes": notes}):
        return
    if rename:
        session.show(clean(f"{before[0]} is now {changed.label}."))
    if url:
        session.show(clean(f"{changed.label} now reads {changed.url}. Run `afresh refresh {changed.label}`."))
    if settings or reset:
        pairs_set = ", ".join(f"{key}={_typed_value(value)}" for key, value in sorted(own.items()))
        session.show(clean(f"Settings of {changed.label}: {pairs_set or 'only defaults'}."))
    for note in notes:
        session.say(clean(f"note: {note}"))


def _setting(pair: str) -> tuple[str, object]:
    key, equals, value = pair.partition("=")
    if not equals:
        raise UsageError(f"expected KEY=VALUE such as max_pages=500, got {pair!r}")
    try:
        return key.strip(), parse_rule(key.strip(), value)
    except ConfigError as wrong:
        raise UsageError(str(wrong)) from None


def _typed_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}:{each}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@group("page", *PAGES)
def page() -> None:
    """Add, recheck or remove single pages.

    The next runs check these pages like all others, and may add or remove them again.
    """


@command(page, "afresh page add react@19 https://react.dev/hidden", name="add")
@argument(*LABEL)
@argument("url", "URL", "URL of the page; it must be in the scope of the source.")
def add_page(session: Session, label: str, url: str) -> None:
    """Add a page that no other page links to. The next check of due pages reads it."""

    async def work(kb: "KnowledgeBase") -> PageView:
        return await kb.pages.add(await kb.sources.find(label), url)

    made = session.ask(work, access=StoreAccess.CHANGE)
    session.inform(made, f"Added {made.url} as page {made.id}. Run `afresh refresh {label} --due` to read it.")


@command(page, PAGES[0], "afresh page look 12 --after 2h", name="look")
@argument(*PAGE)
@within
@option("--after", "TIME", "Check the page after this time, such as 15m, 2h or 7d (default: now).", default="0s")
def schedule_page(session: Session, page: str, within: str | None, after: str) -> None:
    """Set when a page is checked next."""
    with named("--after"):
        at = session.now + read_duration(after)

    async def work(kb: "KnowledgeBase") -> PageView:
        return await kb.pages.check_at((await _page(kb, page, within)).id, at)

    found = session.ask(work, access=StoreAccess.CHANGE)
    due = f"{found.url} is due at {at:%Y-%m-%d %H:%M} UTC"
    session.inform(found, f"{due}; `afresh refresh --due` checks it then.")


@command(page, PAGES[1], name="remove")
@argument(*PAGE)
@within
def remove_page(session: Session, page: str, within: str | None) -> None:
    """Remove a page from the index. A later run may find it again; `exclude` prevents that."""

    async def work(kb: "KnowledgeBase") -> PageView:
        found = await _page(kb, page, within)
        await kb.pages.drop(found.id)
        return found

    gone = session.ask(work, access=StoreAccess.CHANGE)
    session.inform({"removed": gone.url, "id": gone.id}, f"Removed {gone.url} from the index.")


@group("link", *LINKS)
def link() -> None:
    """Add, score or remove single links.

    These changes last until the links of the page change or are scored again.
    """


@command(link, "afresh link add https://react.dev/ https://react.dev/hidden --text Hidden", name="add")
@argument(*PAGE)
@argument("url", "URL", "Target of the link.")
@within
@option("--text", "TEXT", "Text of the link.", default="")
def add_link(session: Session, page: str, url: str, within: str | None, text: str) -> None:
    """Add a link to a page."""

    async def work(kb: "KnowledgeBase") -> LinkRecord:
        return await kb.links.add((await _page(kb, page, within)).id, url, text)

    made = session.ask(work, access=StoreAccess.CHANGE)
    session.inform(made, f"Added {made.url} as link {made.id}.")


@command(link, LINKS[0], "afresh link set 12 --comment 'read this first'", name="set")
@argument(*LINK)
@within
@option("--score", "S", "Score, from 0 to 2.", type=click.FloatRange(0, 2))
@option("--comment", "TEXT", "Reason for the score.")
@option(
    "--keywords",
    "WORDS",
    "Matching keywords, each with a score from 0 to 1 (default 1), such as budget:0.5,contact; "
    "without --score, the score of the link is computed from them.",
)
def set_link(
    session: Session, link: str, within: str | None, score: float | None, comment: str | None, keywords: str | None
) -> None:
    """Set score, keywords or comment of a link."""
    if score is None and comment is None and keywords is None:
        raise UsageError("give at least one of --score, --keywords and --comment")
    with named("--keywords"):
        words = None if keywords is None else parse_keywords(keywords)

    async def work(kb: "KnowledgeBase") -> LinkRecord:
        found = await _link(kb, link, within)
        worth = found.score if score is None and words is None else score
        return await kb.links.set_worth(found.id, worth, found.comment if comment is None else comment, words)

    made = session.ask(work, access=StoreAccess.CHANGE)
    score_text = "no score" if made.score is None else f"score {made.score}"
    session.inform(made, f"{made.url} has {score_text}{f': {made.comment}' if made.comment else ''}.")


@command(link, LINKS[1], name="remove")
@argument(*LINK)
@within
def remove_link(session: Session, link: str, within: str | None) -> None:
    """Remove a link from all pages of its source."""

    async def work(kb: "KnowledgeBase") -> LinkRecord:
        found = await _link(kb, link, within)
        await kb.links.remove(found.id)
        return found

    gone = session.ask(work, access=StoreAccess.CHANGE)
    session.inform({"removed": gone.url, "id": gone.id}, f"Removed {gone.url} from all pages.")


async def _sources(kb: "KnowledgeBase", within: str | None) -> Sources:
    return None if within is None else [(await kb.sources.find(within)).id]


async def _page(kb: "KnowledgeBase", wanted: str, within: str | None) -> PageView:
    if wanted.isascii() and wanted.isdigit():
        return await kb.pages.get(int(wanted))
    found = await kb.pages.records(await _sources(kb, within), ALL_PAGES, url=wanted, limit=2)
    return _single(found, "page", wanted)


async def _link(kb: "KnowledgeBase", wanted: str, within: str | None) -> LinkRecord:
    if wanted.isascii() and wanted.isdigit():
        return await kb.links.get(int(wanted))
    sources = await _sources(kb, within)
    return _single(await kb.links.records(sources, LinkFilter(url=wanted), limit=2), "link", wanted)


def _single(found: Sequence[Record], kind: str, wanted: str) -> Record:
    if not found:
        raise NotFound(f"no {kind} {wanted}; `afresh {kind}s NAME` lists them")
    if len(found) > 1:
        raise UsageError(f"several sources have {wanted}: choose one with --in LABEL")
    return found[0]
