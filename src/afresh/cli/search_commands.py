"""The search command with its filters."""

from datetime import timedelta
from typing import Any

import click

from afresh.cli.session import Session
from afresh.cli.shell import argument, as_rows, command, option, switch
from afresh.errors import UsageError
from afresh.model.reports import SearchAnswer, SearchHit
from afresh.ports import StoreAccess
from afresh.present.wording import read_language, read_length, read_path

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
    "--in within",
    "LABEL",
    "Only this source, as NAME, NAME@VERSION or NAME@RANGE; may be given again.",
    multiple=True,
)
@option("--language", "TAG", "Only pages in this language, as en or pt-BR.")
@option("--path", "GLOB", "Only pages whose path matches, as '/guide/*'.")
@option("--changed-within", "TIME", "Only pages that changed lately, within 7d for example.")
@option("--checked-within", "TIME", "Only pages that were looked at within this time.")
@option(
    "--mode",
    "MODE",
    "hybrid, text (words alone) or vector (meanings alone).",
    default="hybrid",
    show_default=True,
)
@option("--max-age", "TIME", "First look again at found pages that were checked longer ago.")
@option(
    "--limit",
    "N",
    "Answers at most.",
    type=click.IntRange(min=1, max=2**31 - 1),
    default=10,
    show_default=True,
)
@switch("--all-passages", "Every matching passage, not the best of each page.")
@switch("--context", "Each passage with what stands around it.")
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
    """Search by keywords and meaning; each result shows how fresh it is."""
    words = " ".join(query)
    if not words.strip():
        raise UsageError("what should be searched for? Name some words: afresh search retry with back-off")
    if mode.lower() not in MODES:
        raise UsageError(f"--mode: expected one of {', '.join(MODES)}, got {mode!r}")
    asked: dict[str, Any] = {
        "within": tuple(dict.fromkeys(within)),
        "language": read_language("--language", language),
        "path": read_path("--path", path),
        "changed_within": _time("--changed-within", changed_within, least=timedelta(seconds=1)),
        "checked_within": _time("--checked-within", checked_within, least=timedelta(seconds=1)),
        "mode": mode.lower(),
        "max_age": _time("--max-age", max_age),
        "limit": limit,
        "every_chunk": all_passages,
        "context": context,
    }
    found = _found(session, words, asked)
    for note in found.notes:
        session.say(f"note: {note}", "yellow")
    if not session.wrote_rows(list(found.hits), SearchHit):
        from afresh.cli import hits

        session.show(hits.draw(found.hits, words, session.now, verbose=session.verbose > 0))


def _found(session: Session, words: str, asked: dict[str, Any]) -> SearchAnswer:
    """Return the answer; if pages are checked again, show it as a run with progress and Ctrl-C."""
    if asked["max_age"] is None:
        return session.ask(lambda kb: kb.search.search(words, **asked))
    from afresh.cli.progress import run

    return run(
        session, lambda kb, hear: kb.search.search(words, **asked, listener=hear), access=StoreAccess.CHANGE
    )


def _time(flag: str, typed: str | None, least: timedelta = timedelta()) -> timedelta | None:
    length = read_length(flag, typed)
    if length is not None and length < least:
        raise UsageError(f"{flag}: nothing can be within {typed!r}; expected a longer time such as 7d")
    return length
