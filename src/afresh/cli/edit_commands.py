"""The commands that change by hand: settings of a source, single pages, single links."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import click

from afresh.cli.session import Session
from afresh.cli.shell import Group, argument, command, option, switch
from afresh.config.overlay import check_names, typed
from afresh.errors import ConfigError, Unknown, UsageError
from afresh.links.score import KeywordError, parse_keywords
from afresh.model.filters import ALL_PAGES, LinkFilter, LinkRecord, Sources
from afresh.model.labels import parse_label
from afresh.model.records import Source
from afresh.model.reports import PageView
from afresh.ports import Access
from afresh.present.safe_text import clean
from afresh.text.durations import read_duration

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase

Record = TypeVar("Record", PageView, LinkRecord)
SECTION = "Look after"
PAGE = ("page", "PAGE", "The page: its address, or its number.")
LINK = ("link", "LINK", "The link: where it leads, or its number.")
SETTINGS = (
    "afresh set react@19 max_pages=500 exclude='/blog/*,/legal/*'",
    "afresh set react@19 --reset exclude",
    "afresh set react@18 --rename react@19 --url https://19.react.dev/",
)
PAGES = ("afresh page look https://react.dev/learn", "afresh page remove https://react.dev/old --in react@19")
LINKS = ("afresh link set https://react.dev/learn --score 1.5", "afresh link remove 12")

within = option("--in", "within", metavar="LABEL", text="Only in this source, as NAME or NAME@VERSION.")


@command(SECTION, *SETTINGS, name="set")
@argument("label", "LABEL", "The source, as NAME or NAME@VERSION.")
@argument(
    "pairs", "[KEY=VALUE]...", "Settings, as docs/configuration.md names them; lists with commas.", nargs=-1
)
@option("--reset", metavar="KEY", multiple=True, text="Let this be as everywhere again; may be repeated.")
@option("--rename", metavar="LABEL", text="Give it this name, as NAME or NAME@VERSION.")
@option("--url", metavar="URL", text="Read it from this URL from the next run on.")
@switch("--again", text="Take the URL even if another source has it.")
def change(
    session: Session,
    label: str,
    pairs: tuple[str, ...],
    reset: tuple[str, ...],
    rename: str | None,
    url: str | None,
    again: bool,
) -> None:
    """Change settings, name or URL of one source; what is not named stays, and nothing is read.

    Settings are those of crawl, files, policy, storage and links, without the section. The next run goes by
    them. A source that is renamed keeps its pages, history and schedule.
    """
    settings = {key: _value(key, value) for key, value in map(_pair, pairs)}
    if not settings and not reset and not rename and not url:
        raise UsageError(f"name what to change: {SETTINGS[0]}")
    _refuse_wrong(reset)
    name, version = parse_label(rename) if rename else (None, ...)
    before: list[str] = []

    async def work(kb: "KnowledgeBase") -> tuple[Source, list[str]]:
        source = await _source(kb, label)
        before.append(source.label)
        return await kb.sources.change(
            source,
            name=name,
            version=version,
            url=url,
            again=again,
            settings=settings,
            reset=reset,
            by_operator=True,
        )

    changed, notes = session.ask(work, access=Access.CHANGE)
    own = {**changed.rules, **changed.policy}
    answer = {"source": changed.label, "url": changed.url, "settings": own, "notes": notes}
    if session.wrote_json(answer):
        return
    if rename:
        session.show(clean(f"{before[0]} is now {changed.label}."))
    if url:
        session.show(
            clean(f"{changed.label} is read from {changed.url}; `afresh refresh {changed.label}` does.")
        )
    if settings or reset:
        told = ", ".join(f"{key}={_shown(value)}" for key, value in sorted(own.items()))
        session.show(clean(f"{changed.label} has of its own: {told or 'nothing'}."))
    for note in notes:
        session.say(clean(f"note: {note}"))


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"expected KEY=VALUE such as max_pages=500, got {text!r}")
    return key.strip(), value


def _value(key: str, text: str) -> object:
    try:
        return typed(key, text)
    except ConfigError as wrong:
        raise UsageError(str(wrong)) from None


def _refuse_wrong(names: Sequence[str]) -> None:
    try:
        check_names(names)
    except ConfigError as wrong:
        raise UsageError(f"--reset: {wrong}") from None


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}:{each}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@click.group("page", cls=Group, no_args_is_help=False, section=SECTION, examples=PAGES)
def page() -> None:
    """Add, look at again or take out single pages.

    What is changed by hand holds until a run finds otherwise.
    """


@command("", "afresh page add react@19 https://react.dev/hidden", name="add")
@argument("label", "LABEL", "The source, as NAME or NAME@VERSION.")
@argument("url", "URL", "Address of the page; it has to belong to the source.")
def add_page(session: Session, label: str, url: str) -> None:
    """Make an address known that no link leads to; it is looked at with what is due."""

    async def work(kb: "KnowledgeBase") -> PageView:
        return await kb.pages.add(await _source(kb, label), url)

    made = session.ask(work, access=Access.CHANGE)
    _tell(session, made, f"{made.url} is page {made.id}; `afresh refresh {label} --due` looks at it.")


@command("", PAGES[0], "afresh page look 12 --after 2h", name="look")
@argument(*PAGE)
@within
@option("--after", metavar="TIME", default="0s", text="In so long, as 15m, 2h or 7d; else now.")
def look_at_page(session: Session, page: str, within: str | None, after: str) -> None:
    """Set when a page is looked at next."""
    at = session.now + _length(after)

    async def work(kb: "KnowledgeBase") -> PageView:
        return await kb.pages.check_at((await _page(kb, page, within)).id, at)

    found = session.ask(work, access=Access.CHANGE)
    due = f"{found.url} is due at {at:%Y-%m-%d %H:%M} UTC"
    _tell(session, found, f"{due}; `afresh refresh --due` looks at it then.")


@command("", PAGES[1], name="remove")
@argument(*PAGE)
@within
def remove_page(session: Session, page: str, within: str | None) -> None:
    """Take a page out of the index; a later run that finds it brings it back. `exclude` keeps it out."""

    async def work(kb: "KnowledgeBase") -> PageView:
        found = await _page(kb, page, within)
        await kb.pages.drop(found.id)
        return found

    gone = session.ask(work, access=Access.CHANGE)
    if not session.wrote_json({"removed": gone.url, "id": gone.id}):
        session.show(clean(f"{gone.url} is out of the index."))


@click.group("link", cls=Group, no_args_is_help=False, section=SECTION, examples=LINKS)
def link() -> None:
    """Add, score or take off single links.

    What is changed by hand holds until the links of a page change, or links are scored anew.
    """


@command("", "afresh link add https://react.dev/ https://react.dev/hidden --text Hidden", name="add")
@argument(*PAGE)
@argument("url", "URL", "Where the link leads.")
@within
@option("--text", metavar="TEXT", default="", text="Its words.")
def add_link(session: Session, page: str, url: str, within: str | None, text: str) -> None:
    """Put a link on a page."""

    async def work(kb: "KnowledgeBase") -> LinkRecord:
        return await kb.links.add((await _page(kb, page, within)).id, url, text)

    made = session.ask(work, access=Access.CHANGE)
    _tell(session, made, f"{made.url} is link {made.id}.")


@command("", LINKS[0], "afresh link set 12 --comment 'read this first'", name="set")
@argument(*LINK)
@within
@option("--score", metavar="S", type=click.FloatRange(0, 2), text="What it is worth, from 0 to 2.")
@option("--comment", metavar="TEXT", text="Why.")
@option(
    "--keywords", metavar="WORDS", text="How well keywords fit, as budget:0.5,contact; they make the score."
)
def set_link(
    session: Session,
    link: str,
    within: str | None,
    score: float | None,
    comment: str | None,
    keywords: str | None,
) -> None:
    """Set score, keywords or comment of a link."""
    if score is None and comment is None and keywords is None:
        raise UsageError("name --score, --keywords or --comment")
    words = None if keywords is None else _keywords(keywords)

    async def work(kb: "KnowledgeBase") -> LinkRecord:
        found = await _link(kb, link, within)
        worth = found.score if score is None and words is None else score
        return await kb.links.set_worth(found.id, worth, found.comment if comment is None else comment, words)

    made = session.ask(work, access=Access.CHANGE)
    why = f": {made.comment}" if made.comment else ""
    _tell(
        session, made, f"{made.url} is worth {made.score if made.score is not None else 'nothing yet'}{why}."
    )


@command("", LINKS[1], name="remove")
@argument(*LINK)
@within
def remove_link(session: Session, link: str, within: str | None) -> None:
    """Take a link off all pages of its source."""

    async def work(kb: "KnowledgeBase") -> LinkRecord:
        found = await _link(kb, link, within)
        await kb.links.remove(found.id)
        return found

    gone = session.ask(work, access=Access.CHANGE)
    if not session.wrote_json({"removed": gone.url, "id": gone.id}):
        session.show(clean(f"{gone.url} is off all pages."))


def _tell(session: Session, record: PageView | LinkRecord, sentence: str) -> None:
    if not session.wrote_json(record):
        session.show(clean(sentence))


def _keywords(text: str) -> dict[str, float]:
    try:
        return parse_keywords(text)
    except KeywordError as wrong:
        raise UsageError(f"--keywords: {wrong}") from None


def _length(text: str) -> timedelta:
    try:
        return read_duration(text)
    except UsageError as wrong:
        raise UsageError(f"--after: {wrong}") from None


async def _source(kb: "KnowledgeBase", label: str) -> Source:
    return await kb.sources.get((await kb.sources.view(label)).id)


async def _sources(kb: "KnowledgeBase", within: str | None) -> Sources:
    return None if within is None else [(await kb.sources.view(within)).id]


async def _page(kb: "KnowledgeBase", named: str, within: str | None) -> PageView:
    if named.isascii() and named.isdigit():
        return await kb.pages.get(int(named))
    return _only(
        await kb.pages.records(await _sources(kb, within), ALL_PAGES, url=named, limit=2), "page", named
    )


async def _link(kb: "KnowledgeBase", named: str, within: str | None) -> LinkRecord:
    if named.isascii() and named.isdigit():
        return await kb.links.get(int(named))
    return _only(
        await kb.links.records(await _sources(kb, within), LinkFilter(url=named), limit=2), "link", named
    )


def _only(found: Sequence[Record], kind: str, named: str) -> Record:
    """The one that is meant."""
    if not found:
        raise Unknown(f"there is no {kind} {named} on record; `afresh {kind}s NAME` lists them")
    if len(found) > 1:
        raise UsageError(f"several sources have {named}: name one with --in LABEL")
    return found[0]


for each in (add_page, look_at_page, remove_page):
    page.add_command(each)
for each in (add_link, set_link, remove_link):
    link.add_command(each)

COMMANDS = (change, page, link)
