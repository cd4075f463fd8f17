"""The command that brings the knowledge base of files and links up to date."""

from typing import TYPE_CHECKING

from afresh.cli.session import Session
from afresh.cli.shell import command

if TYPE_CHECKING:
    from afresh.events import Listener
    from afresh.kb import KnowledgeBase
    from afresh.model.reports import KbReport


NAMED = 10  # links that cannot be read and are told one by one


@command(
    "Keep fresh",
    "afresh init-kb",
    "AFRESH_KB__SOURCES_DIR=notes afresh init-kb",
    "afresh init-kb --json | jq .summaries",
)
def init_kb(session: Session) -> int:
    """Bring index.txt and its cache up to date.

    Reads the files below kb.sources_dir that changed, asks for links of kb.links_file_path that are due,
    within kb.url_refresh_budget_per_init, and writes a summary of what is new or changed. The same is done
    by the command init_kb.
    """

    async def work(kb: "KnowledgeBase", listener: "Listener") -> "KbReport":
        return await kb.digest.update(listener=listener)

    from afresh.cli import report
    from afresh.cli.running import run

    done = run(session, work)
    runs = [each for each in (done.files, done.links) if each is not None]
    if not session.wrote_json(done):
        if runs:
            session.show(report.draw_all(runs, verbose=session.verbose, quiet=session.quiet))
        session.write("\n".join([told(done), *failing(done)]))
    return 1 if done.failing_links else report.exit_code(runs)


def told(done: "KbReport") -> str:
    """`index.txt: 12 files, 3 links; 2 summaries made; 1 link is due and waits for the next update`."""
    from afresh.present.wording import count

    made = "nothing changed" if not done.written else f"{count(done.summaries, 'summary', 'summaries')} made"
    line = f"{done.index}: {count(done.file_records, 'file')}, {count(done.url_records, 'link')}; {made}"
    waits = "is due and waits" if done.due == 1 else "are due and wait"
    return f"{line}; {count(done.due, 'link')} {waits} for the next update" if done.due else line


def failing(done: "KbReport") -> list[str]:
    """`1 link cannot be read: URL (no answer; again after 2026-03-04 12:05 UTC)`."""
    from afresh.present.safe_text import clean
    from afresh.present.wording import count

    if not done.failing_links:
        return []
    first = [
        f"{link.url} ({link.reason or 'its last check failed'}; again after {link.next_at:%Y-%m-%d %H:%M} UTC)"
        for link in done.failing_links[:NAMED]
    ]
    more = len(done.failing_links) - len(first)
    rest = f" and {more} more" if more else ""
    return [f"{count(len(done.failing_links), 'link')} cannot be read: {clean(', '.join(first))}{rest}"]
