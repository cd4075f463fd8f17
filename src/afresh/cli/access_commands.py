"""Commands for access tokens and outgoing messages."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from afresh.access.permissions import AccessToken, CreatedToken, TokenScope
from afresh.cli.session import Session
from afresh.cli.shell import Group, argument, command, option, switch
from afresh.notify.outbox import MessageState, OutboxMessage
from afresh.ports import StoreAccess
from afresh.present.wording import ago, count
from afresh.text.quantities import read_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from afresh.kb import KnowledgeBase


EXAMPLES = ("afresh token create --scope read --source react", "afresh token list", "afresh token revoke 3")

FIRST = (
    "It is the first one: from now on every request needs a token, on this machine too. The pages of "
    "`afresh serve` ask for a login in the browser: paste the token there. "
    "access.loopback_open: true asks for none on this machine."
)


@click.group("token", cls=Group, no_args_is_help=False, section="Manage", examples=EXAMPLES)
def token() -> None:
    """Create, list and revoke access tokens of the server.

    Without any, it answers only on this machine. From the first one on, every request needs one.
    """


@command(
    "",
    "afresh token create --scope read --name agents",
    "afresh token create --scope write --source react --expires 90d",
    name="create",
)
@option(
    "--scope",
    "SCOPE",
    "`read` may search and read, `write` may also crawl, change and delete.",
    type=click.Choice([scope.value for scope in TokenScope]),
    required=True,
)
@option("--source sources", "LABEL", "Bind it to this source; may be repeated.", multiple=True)
@option("--expires", "TIME", "When it ends, counted from now, as 12h or 90d; else never.")
@option("--name", "NAME", "What it is for, to know it again.", default="")
def create(session: Session, scope: str, sources: tuple[str, ...], expires: str | None, name: str) -> None:
    """Create a token and show it once; only its hash is stored."""
    length = read_duration(expires) if expires else None

    async def make(kb: "KnowledgeBase") -> tuple[CreatedToken, bool]:
        first = not await kb.tokens.all()
        return await kb.tokens.create(TokenScope(scope), sources=sources, expires=length, name=name), first

    made, first = session.ask(make, access=StoreAccess.CREATE)
    if not session.wrote_json(made):
        bound = f" for {', '.join(made.sources)}" if made.sources else ""
        until = f" until {made.expires_at:%Y-%m-%d %H:%M} UTC" if made.expires_at else ""
        token = f"Token {made.id}: {made.scope}{bound}{until}"
        session.say(f"{token}. It is shown only now; put it where only you read.")
        if first:
            session.say(FIRST)
        session.show(made.token)


@command("", "afresh token list", "afresh token list --json", name="list")
def list_tokens(session: Session) -> None:
    """List all tokens, without their text."""
    found, now = session.ask(lambda kb: kb.tokens.all()), session.now
    names = ("id", "name", "scope", "sources", "state", "created_at", "expires_at", "revoked_at")
    rows = [{name: getattr(each, name) for name in names} | {"state": each.state(now)} for each in found]
    if not session.wrote_json(rows):
        session.show(_drawn(found, now))


def _drawn(found: list[AccessToken], now: datetime) -> "RenderableType":
    from afresh.cli.tables import empty, table

    if not found:
        return empty("No tokens: the server answers only on this machine. Make one:", EXAMPLES[0])
    rows = (
        (
            *(each.id, each.name, each.scope, each.state(now), ago(each.created_at, now)),
            f"{each.expires_at:%Y-%m-%d}" if each.expires_at else "never",
            ", ".join(each.sources) or "all",
        )
        for each in found
    )
    return table((">token", "name", "scope", "state", "made", "ends", "*sources"), rows)


@command("", "afresh token revoke 3", name="revoke")
@argument("number", "NUMBER", "The token, as `afresh token list` numbers it.", type=int)
def revoke(session: Session, number: int) -> None:
    """Revoke a token immediately."""
    session.ask(lambda kb: kb.tokens.revoke(number), access=StoreAccess.CHANGE)
    if not session.wrote_json({"revoked": number}):
        session.show(f"AccessToken {number} is revoked.")


for each in (create, list_tokens, revoke):
    token.add_command(each)


@command("Manage", "afresh webhooks", "afresh webhooks --state dead", "afresh webhooks --send")
@option(
    "--state",
    "STATE",
    "Only messages that are waiting, sent or dead.",
    type=click.Choice([state.value for state in MessageState]),
)
@option("--limit", "N", "How many at most.", type=click.IntRange(1, 10_000), default=50)
@switch("--send", "First send what is due; `afresh serve` does so by itself.")
def webhooks(session: Session, state: str | None, limit: int, send: bool) -> None:
    """List outgoing messages, newest first, and why some were not delivered."""
    if send:
        sent = session.ask(lambda kb: kb.webhooks.send(), access=StoreAccess.CHANGE)
        session.say(f"Sent {count(sent, 'message')}.")
    wanted = MessageState(state) if state else None
    found = session.ask(lambda kb: kb.webhooks.messages(state=wanted, limit=limit))
    if not session.wrote_json(found):
        session.show(_drawn_messages(found, session.now))


def _drawn_messages(found: list[OutboxMessage], now: datetime) -> "RenderableType":
    from afresh.cli.tables import empty, table

    if not found:
        return empty("No messages: name who is told under `webhooks:` or `notify:` in the settings.", "")
    rows = (
        (
            *(each.id, each.target, each.event, each.run_id, each.state, each.attempts),
            *(ago(each.created_at, now), each.error),
        )
        for each in found
    )
    return table((">message", "to", "event", ">run", "state", ">tries", "made", "*trouble"), rows)
