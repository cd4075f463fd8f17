"""The command that searches, with its filters."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from afresh.cli.session import Session
from afresh.cli.shell import argument, as_rows, command, option, switch
from afresh.errors import UsageError
from afresh.model.reports import Hit
from afresh.ports import Access

if TYPE_CHECKING:
    from afresh.events import Listener
    from afresh.kb import KnowledgeBase
    from afresh.model.reports import Answer

MODES = ("hybrid", "text", "vector")


@command(
    "Find",
    "afresh search retry with back-off",
    "afresh search '\"event loop\" policy' --in python --limit 3",
    "afresh search hooks --in react@^18 --in preact --path '/reference/*'",
    "afresh search breaking changes --changed-within 7d",
    "afresh search timeout --max-age 1h      # looks again at what is older",
    "afresh search timeout --json | jq '.[].url'",
)
@argument("query", "QUERY...", "What to look for; quotes keep words together.", nargs=-1, required=True)
@option(
    "--in",
    "within",
    metavar="LABEL",
    multiple=True,
    text="Only this source, as NAME, NAME@VERSION or NAME@RANGE; may be given again.",
)
@option("--language", metavar="TAG", text="Only pages in this language, as en or pt-BR.")
@option("--path", metavar="GLOB", text="Only pages whose path matches, as '/guide/*'.")
@option("--changed-within", metavar="TIME", text="Only pages that changed lately, within 7d for example.")
@option("--checked-within", metavar="TIME", text="Only pages that were looked at within this time.")
@option(
    "--mode",
    metavar="MODE",
    default="hybrid",
    show_default=True,
    text="hybrid, text (words alone) or vector (meanings alone).",
)
@option("--max-age", metavar="TIME", text="First look again at found pages that were checked longer ago.")
@option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1, max=2**31 - 1),
    default=10,
    show_default=True,
    text="Answers at most.",
)
@switch("--all-passages", text="Every matching passage, not the best of each page.")
@switch("--context", text="Each passage with what stands around it.")
@as_rows
def search(
    session: Session,
    query: tuple[str, ...],
    within: tuple[str, ...],
    language: str | None,
    path: str | None,
    changed_within: str | None,
    checked_within: str | None,
    mode: str,
    max_age: str | None,
    limit: int,
    all_passages: bool,
    context: bool,
) -> None:
    """Find passages by their words and their meaning, with how fresh each is."""
    words = " ".join(query)
    if not words.strip():
        raise UsageError("what should be searched for? Name some words: afresh search retry with back-off")
    asked: dict[str, Any] = {
        "within": tuple(dict.fromkeys(within)),
        "language": _language(language),
        "path": _glob(path),
        "changed_within": _time("--changed-within", changed_within, least=timedelta(seconds=1)),
        "checked_within": _time("--checked-within", checked_within, least=timedelta(seconds=1)),
        "mode": _mode(mode),
        "max_age": _time("--max-age", max_age),
        "limit": limit,
        "every_chunk": all_passages,
        "context": context,
    }
    found = _found(session, words, asked)
    for note in found.notes:
        session.say(f"note: {note}", "yellow")
    if session.wrote_rows(list(found.hits), Hit):
        return
    from afresh.cli import hits

    session.show(hits.draw(found.hits, words, session.now, verbose=session.verbose > 0))


def _found(session: Session, words: str, asked: dict[str, Any]) -> "Answer":
    """The answer; where pages are to be looked at again it is a run, with its progress and its Ctrl-C."""
    if asked["max_age"] is None:
        return session.ask(lambda kb: kb.search.search(words, **asked))
    from afresh.cli.running import run

    async def work(kb: "KnowledgeBase", listener: "Listener") -> "Answer":
        return await kb.search.search(words, **asked, listener=listener)

    return run(session, work, access=Access.CHANGE)


def _language(typed: str | None) -> str | None:
    if typed is None:
        return None
    from afresh.text.language import normalise_tag

    tag = normalise_tag(typed)
    if tag is None:
        raise UsageError(f"--language: expected a tag such as en or pt-BR, got {typed!r}")
    return tag


def _glob(typed: str | None) -> str | None:
    if typed is not None and not typed.strip():
        raise UsageError("--path: expected a pattern such as '/guide/*', got nothing")
    return typed


def _mode(typed: str) -> str:
    if typed.lower() not in MODES:
        raise UsageError(f"--mode: expected one of {', '.join(MODES)}, got {typed!r}")
    return typed.lower()


def _time(flag: str, typed: str | None, least: timedelta = timedelta()) -> timedelta | None:
    if typed is None:
        return None
    from afresh.text.durations import read_duration

    try:
        length = read_duration(typed)
    except UsageError as error:
        raise UsageError(f"{flag}: {error}") from None
    if length < least:
        raise UsageError(f"{flag}: nothing can be within {typed!r}; expected a longer time such as 7d")
    return length


COMMANDS = (search,)
