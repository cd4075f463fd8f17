"""The command that shows what others are told, and sends it."""

from typing import TYPE_CHECKING

import click

from afresh.cli.session import Session
from afresh.cli.shell import command, option, switch
from afresh.notify.outbox import Letter, LetterState
from afresh.ports import Access
from afresh.present.wording import count

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import RenderableType


@command("Look after", "afresh webhooks", "afresh webhooks --state dead", "afresh webhooks --send")
@option(
    "--state",
    metavar="STATE",
    type=click.Choice([state.value for state in LetterState]),
    text="Only messages that are waiting, sent or dead.",
)
@option("--limit", metavar="N", type=click.IntRange(1, 10_000), default=50, text="How many at most.")
@switch("--send", text="First send what is due; `afresh serve` does so by itself.")
def webhooks(session: Session, state: str | None, limit: int, send: bool) -> None:
    """Show the messages to others, newest first, and why some did not get there."""
    if send:
        sent = session.ask(lambda kb: kb.webhooks.send(), access=Access.CHANGE)
        session.say(f"Sent {count(sent, 'message')}.")
    wanted = LetterState(state) if state else None
    found = session.ask(lambda kb: kb.webhooks.messages(state=wanted, limit=limit))
    if not session.wrote_json(found):
        session.show(_drawn(found, session.now))


def _drawn(found: list[Letter], now: "datetime") -> "RenderableType":
    from afresh.cli.pieces import empty, table, text
    from afresh.present.wording import ago

    if not found:
        return empty("No messages: name who is told under `webhooks:` or `notify:` in the settings.", "")
    rows = (
        (
            str(each.id),
            text(each.target),
            text(each.event),
            str(each.run_id),
            text(each.state),
            str(each.attempts),
            ago(each.created_at, now),
            text(each.error or ""),
        )
        for each in found
    )
    return table((">message", "to", "event", ">run", "state", ">tries", "made", "*trouble"), rows)


COMMANDS = (webhooks,)
