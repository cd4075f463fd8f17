"""Commands that search, and that measure the quality of search results."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from afresh.cli.session import Session
from afresh.cli.shell import argument, as_rows, command, one_of, option, switch
from afresh.dataclass import replace
from afresh.errors import UsageError
from afresh.model.reports import SearchAnswer, SearchHit
from afresh.ports import StoreAccess
from afresh.present.wording import read_language, read_length, read_path
from afresh.search.records import MODE_NAMES, SearchMode

if TYPE_CHECKING:
    from afresh.search.evaluation import Evaluation, Question

MODES = (*map(str, SearchMode), *map(str, MODE_NAMES))
MAX_QUESTIONS_BYTES = 20_000_000
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
@option("--checked-within", "TIME", "Only pages that were checked within this time; failed checks do not count.")
@option("--mode", "MODE", "hybrid, keyword (or text) or semantic (or vector).", default="hybrid", show_default=True)
@option("--max-age", "TIME", "First check those result pages again whose last check is older than this, such as 1h.")
@option("--limit", "N", "Maximum results.", type=click.IntRange(min=1, max=2**31 - 1), default=10, show_default=True)
@switch("--all-passages every_chunk", "Show every matching passage, not only the best of each page.")
@switch("--context", "Show the text around each passage.")
@as_rows
def search(session: Session, query: tuple[str, ...], mode: str, **asked: Any) -> None:
    """Search by keywords and meaning; each result shows how fresh it is."""
    words = " ".join(query)
    if not words.strip():
        raise UsageError("enter a search query, for example: afresh search retry with back-off")
    asked |= {"within": tuple(dict.fromkeys(asked["within"])), "mode": one_of(SearchMode, "--mode", mode)}
    asked["language"] = read_language("--language", asked["language"])
    asked["path"] = read_path("--path", asked["path"])
    for name, least in LEAST_SECONDS.items():
        asked[name] = read_length(f"--{name.replace('_', '-')}", asked[name], least)
    found = _found(session, words, asked)
    for note in found.notes:
        session.say(f"note: {note}", "yellow")
    if not session.wrote_rows(list(found.hits), SearchHit):
        from afresh.cli import hits

        by = "words" if asked["mode"] == SearchMode.TEXT else "meaning"
        session.show(hits.draw(found.hits, words, session.now, verbose=session.verbose > 0, by=by))


def _found(session: Session, words: str, asked: dict[str, Any]) -> SearchAnswer:
    """Search and return the answer; if pages are checked first, show their progress, and let Ctrl-C stop the checks."""
    if asked["max_age"] is None:
        return session.ask(lambda kb: kb.search.search(words, **asked))
    from afresh.cli.progress import run

    return run(
        session, lambda kb, listener: kb.search.search(words, **asked, listener=listener), access=StoreAccess.CHANGE
    )


@command(
    "Find",
    "afresh eval questions.jsonl",
    "afresh eval questions.jsonl --in react --compare text",
    "afresh eval questions.jsonl --compare quality.yaml      # settings with another model or store",
    "afresh eval questions.jsonl --fail-under 0.8            # exit code 1 if MRR is lower",
    name="eval",
)
@argument("file", "FILE", "Questions as JSON Lines; - reads stdin.", type=click.Path(path_type=Path, allow_dash=True))
@option(
    "--in within", "LABEL", "Only this source, as NAME, NAME@VERSION or NAME@RANGE; may be repeated.", multiple=True
)
@option(
    "--mode",
    "MODE",
    "hybrid, keyword (or text) or semantic (or vector).",
    type=click.Choice(MODES),
    default="hybrid",
    show_default=True,
)
@option("--compare", "MODE|FILE", "Also score another mode, or the settings in another file, and compare.")
@option(
    "--misses",
    "N",
    "Show at most N questions without a right result.",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
)
@option(
    "--fail-under",
    "MRR",
    "Exit with code 1 if the mean reciprocal rank (MRR) is below this value.",
    type=click.FloatRange(0, 1),
)
def evaluate(
    session: Session,
    file: Path,
    within: tuple[str, ...],
    mode: str,
    compare: str | None,
    misses: int,
    fail_under: float | None,
) -> int:
    """Score search on your own questions with known answers.

    Each line of FILE is a question with the pages that answer it, as URLs or ends of paths:
    {"query": "set a timeout", "pages": ["/guide/timeouts"]}. Pages may have grades:
    {"/guide/timeouts": 3, "/api/client": 1}. An empty list says that nothing answers the question.
    """
    from afresh.search.evaluation import compare as compared

    questions = _read_questions(file)
    first = _evaluate(session, questions, within, mode)
    if compare is None:
        session.answer(first, "details.evaluation", misses)
    else:
        second = (
            _evaluate(session, questions, within, compare)
            if compare in MODES
            else _evaluate(replace(session, config_file=Path(compare), store=None), questions, within, mode)
        )
        session.answer(compared(first, second), "details.comparison", mode, compare)
    return int(fail_under is not None and first.mrr < fail_under)


def _read_questions(file: Path) -> list["Question"]:
    from afresh.search.evaluation import read_questions

    try:
        with click.open_file(str(file), encoding="utf-8") as stream:
            text = stream.read(MAX_QUESTIONS_BYTES + 1)
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"cannot read {file}: {getattr(wrong, 'strerror', None) or 'it is not UTF-8 text'}") from None
    if len(text) > MAX_QUESTIONS_BYTES:
        raise UsageError(f"{file} is larger than 20 MB")
    try:
        return read_questions(text)
    except UsageError as wrong:
        raise UsageError(f"{file}: {wrong}") from None


def _evaluate(session: Session, questions: list["Question"], within: tuple[str, ...], mode: str) -> "Evaluation":
    from afresh.cli.progress import run

    done = run(
        session,
        lambda kb, listener: kb.search.evaluate(questions, within=within, mode=mode, listener=listener),
        access=StoreAccess.READ,
    )
    if done.questions < len(questions):
        raise click.Abort
    return done
