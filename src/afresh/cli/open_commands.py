"""The commands about one thing: open, restore, find-version."""

from afresh.cli.session import Session
from afresh.cli.shell import argument, command, option, switch
from afresh.ports import Access
from afresh.present.safe_text import clean


@command(
    "Find",
    "afresh open https://react.dev/reference/react",
    "afresh open react.dev/reference/react --in react@18 | less",
)
@argument("url", "URL", "Address of the page.")
@option("--in", "within", metavar="LABEL", text="Only this source, as NAME, NAME@VERSION or NAME@RANGE.")
@switch("--former", text="The text that a flagged page had before it lost nearly all of it.")
def open(session: Session, url: str, within: str | None, former: bool) -> None:  # noqa: A001 - its name
    """Print a stored page as Markdown."""
    view = session.ask(lambda kb: kb.pages.open(url, within=within, former=former))
    if session.wrote_json(view):
        return
    if session.out.is_terminal and not session.quiet:
        from afresh.cli import single

        session.show(single.heading(view, session.now))
    session.write(view.markdown)


@command("Look after", "afresh restore https://react.dev/learn")
@argument("url", "URL", "Address of the page.")
@option("--in", "within", metavar="LABEL", text="Only this source, as NAME or NAME@VERSION.")
def restore(session: Session, url: str, within: str | None) -> None:
    """Put back the former text of a page that lost nearly all of it, until the page changes."""
    view = session.ask(lambda kb: kb.pages.restore(url, within=within), access=Access.CHANGE)
    if session.wrote_json(view):
        return
    session.show(clean(f"{view.url} has its former text again: {len(view.markdown):,} characters."))


@command(
    "Find",
    "afresh find-version react@^18",
    "afresh find-version 'react@>=17 <19' --json",
    name="find-version",
)
@argument("label", "LABEL", "NAME, or NAME@ and a version or a range: 18, 18.2.x, ^18, '>=17 <19'.")
def find_version(session: Session, label: str) -> None:
    """Tell which version of a source a name or a range means."""
    view = session.ask(lambda kb: kb.sources.find_version(label))
    if session.wrote_json(view):
        return
    from afresh.cli import single

    session.show(single.version(view))


COMMANDS = (open, restore, find_version)
