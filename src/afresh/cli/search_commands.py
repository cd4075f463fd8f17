"""The search command with its filters."""

from typing import Any

import click

from afresh.cli.session import Session
from afresh.cli.shell import argument, as_rows, command, option, switch
from afresh.errors import UsageError
from afresh.model.reports import SearchAnswer, SearchHit
from afresh.ports import StoreAccess
from afresh.present.wording import read_language, read_length, read_path

MODES = ("hybrid", "text", "vector")
LEAST_SECONDS = {"changed_within": 1, "checked_within": 1, "max_age": 0}


@command(
    "Find",
    "afresh search retry with back-off",
    "afresh search '\"event loop\" policy' --in python --limit 3",
    "afresh search hooks --in react@^18 --in preact --path '/reference/*'",
    "afresh search breaking changes --changed-within 7d",
    "afresh search timeout --max-age 1h      # first checks older results again",
    "afresh search timeout --json | jq '.[].url'",
)
@argument("query", "QUERY...", 'Search terms or a question; use "quotes" for exact phrases.', nargs=-1, required=True)
@option(
    "--in within", "LABEL", "Only this source, as NAME, NAME@VERSION or NAME@RANGE; may be repeated.", multiple=True
)
@option("--language", "TAG", "Only pages in this language, such as en or pt-BR.")
@option("--path", "GLOB", "Only pages whose path matches, such as '/guide/*'.")
@option("--changed-within", "TIME", "Only pages that changed within this time, such as 7d.")
@option("--checked-within", "TIME", "Only pages that were checked within this time.")
@option(
    "--mode", "MODE", "hybrid, text (keywords only) or vector (semantic only).", default="hybrid", show_default=True
)
@option("--max-age", "TIME", "First check results again that were checked longer ago.")
@option("--limit", "N", "Maximum results.", type=click.IntRange(min=1, max=2**31 - 1), default=10, show_default=True)
@switch("--all-passages every_chunk", "Show every matching passage, not only the best of each page.")
@switch("--context", "Show the text around each passage.")
@as_rows
def search(session: Session, query: tuple[str, ...], mode: str, **asked: Any) -> None:
    """Search by keywords and meaning; each result shows how fresh it is."""
    words = " ".join(query)
    if not words.strip():
        raise UsageError("enter a search query, for example: afresh search retry with back-off")
    if mode.lower() not in MODES:
        raise UsageError(f"--mode: expected one of {', '.join(MODES)}, got {mode!r}")
    asked |= {"within": tuple(dict.fromkeys(asked["within"])), "mode": mode.lower()}
    asked["language"] = read_language("--language", asked["language"])
    asked["path"] = read_path("--path", asked["path"])
    for name, least in LEAST_SECONDS.items():
        asked[name] = read_length(f"--{name.replace('_', '-')}", asked[name], least)
    found = _found(session, words, asked)
    for note in found.notes:
        session.say(f"note: {note}", "yellow")
    if not session.wrote_rows(list(found.hits), SearchHit):
        from afresh.cli import hits

        session.show(hits.draw(found.hits, words, session.now, verbose=session.verbose > 0))


def _found(session: Session, words: str, asked: dict[str, Any]) -> SearchAnswer:
    """Search and return the answer; if pages are checked first, show their progress, and let Ctrl-C stop the checks."""
    if asked["max_age"] is None:
        return session.ask(lambda kb: kb.search.search(words, **asked))
    from afresh.cli.progress import run

    return run(
        session, lambda kb, listener: kb.search.search(words, **asked, listener=listener), access=StoreAccess.CHANGE
    )
