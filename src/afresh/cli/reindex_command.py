"""The command that makes an index anew from stored text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.cli.session import Session
from afresh.cli.shell import argument, command
from afresh.model.reports import Reindexed
from afresh.ports import Access
from afresh.present.safe_text import clean
from afresh.present.wording import count, duration

if TYPE_CHECKING:
    from rich.text import Text

    from afresh.events import Listener
    from afresh.kb import KnowledgeBase


@command(
    "Keep fresh",
    "afresh reindex",
    "AFRESH_EMBEDDING__MODEL=quality afresh reindex      # better vectors, in the background",
)
@argument("labels", "[LABEL]...", "Sources, as NAME or NAME@VERSION; else all.", nargs=-1)
def reindex(session: Session, labels: tuple[str, ...]) -> int:
    """Make chunks and vectors anew where the recipe or the model changed.

    Nothing is fetched: stored text is cut and embedded again. Searches are answered by the old vectors until
    every chunk of the store has a new one. A reindex that was stopped goes on where it was.
    """

    async def work(kb: "KnowledgeBase", listener: "Listener") -> list[Reindexed]:
        return await kb.search.reindex(tuple(dict.fromkeys(labels)), listener=listener)

    from afresh.cli.running import run

    done = run(session, work, access=Access.CHANGE)
    if not session.wrote_json(done[0] if len(done) == 1 else done):
        for report in done:
            session.show(draw(report))
    return exit_code(done)


def exit_code(done: Sequence[Reindexed]) -> int:
    """0 when everything is as the settings want it."""
    return int(any(report.state != "completed" for report in done))


def draw(report: Reindexed) -> "Text":
    """What was made, what answers now, and what is left."""
    from rich.text import Text

    style = {"completed": "green", "partial": "yellow"}.get(report.state, "red")
    text = Text.assemble(
        (clean(report.source or "all sources"), "bold"),
        " · reindex ",
        (report.state, style),
        f" in {duration(report.seconds)}\n",
    )
    made = [f"{count(report.chunks_embedded, 'chunk')} embedded", f"{count(report.chunks_reused)} reused"]
    made += [f"{count(report.pages_cut, 'page')} cut anew"] if report.pages_cut else []
    text.append("  " + ", ".join(made) + "\n")
    text.append(f"  searches are answered by {report.serving or 'words alone'}\n", "dim")
    if report.left:
        text.append(f"  {count(report.left)} left: afresh reindex goes on with them\n", "yellow")
    if report.error:
        text.append(f"  {clean(report.error)}\n", "red")
    for note in report.notes:
        text.append(f"  {clean(note)}\n", "dim")
    text.rstrip()
    return text
