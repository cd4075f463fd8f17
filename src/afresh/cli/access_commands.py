"""Commands for access tokens and outgoing messages."""

from typing import TYPE_CHECKING

import click

from afresh.access.permissions import CreatedToken, TokenScope
from afresh.cli.session import Session
from afresh.cli.shell import argument, command, group, option, switch
from afresh.notify.outbox import MessageState
from afresh.ports import StoreAccess
from afresh.present.wording import count
from afresh.text.quantities import read_duration

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase

EXAMPLES = ("afresh token create --scope read", "afresh token list", "afresh token revoke 3")

FIRST = (
    "This is the first token. From now on every request needs a token, also on this machine. To use the web interface, "
    "sign in with this token. To allow requests from this machine without a token, set `access.loopback_open: true`."
)


@group("token", *EXAMPLES)
def token() -> None:
    """Create, list and revoke access tokens of the server.

    Without tokens, the server answers only on this machine. With tokens, every request needs one.
    """


@command(
    token,
    "afresh token create --scope read --name agents",
    "afresh token create --scope write --source react --expires 90d",
    name="create",
)
@option(
    "--scope",
    "SCOPE",
    "`read` allows searching and reading; `write` also allows crawling, changing and deleting.",
    type=click.Choice([scope.value for scope in TokenScope]),
    required=True,
)
@option("--source sources", "LABEL", "Limit the token to this source; may be repeated.", multiple=True)
@option("--expires", "TIME", "Time until the token expires, such as 12h or 90d (default: never).")
@option("--name", "NAME", "Name of the token, shown by `afresh token list`.", default="")
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
        session.say(f"{token}. Copy it now, it won't be shown again.")
        if first:
            session.say(FIRST)
        session.show(made.token)


@command(token, "afresh token list", "afresh token list --json", name="list")
def list_tokens(session: Session) -> None:
    """List all tokens with scope, state and expiry; the secret text is not stored."""
    found, now = session.ask(lambda kb: kb.tokens.all()), session.now
    names = ("id", "name", "scope", "sources", "state", "created_at", "expires_at", "revoked_at")
    rows = [{name: getattr(each, name) for name in names} | {"state": each.state(now)} for each in found]
    if not session.wrote_json(rows):
        from afresh.cli.lists import tokens

        session.show(tokens(found, now, EXAMPLES[0]))


@command(token, "afresh token revoke 3", name="revoke")
@argument("number", "NUMBER", "Number of the token in `afresh token list`.", type=int)
def revoke(session: Session, number: int) -> None:
    """Revoke a token immediately."""
    session.ask(lambda kb: kb.tokens.revoke(number), access=StoreAccess.CHANGE)
    session.inform({"revoked": number}, f"Revoked token {number}.")


@command("Manage", "afresh webhooks", "afresh webhooks --state dead", "afresh webhooks --send")
@option(
    "--state",
    "STATE",
    "Only messages in this state: waiting, sent or dead (not delivered, and no longer retried).",
    type=click.Choice([state.value for state in MessageState]),
)
@option("--limit", "N", "Maximum messages.", type=click.IntRange(1, 10_000), default=50)
@switch("--send", "Send due messages first; `afresh serve` sends them automatically.")
def webhooks(session: Session, state: str | None, limit: int, send: bool) -> None:
    """List outgoing messages (webhooks and notifications), newest first, with delivery errors."""
    if send:
        sent = session.ask(lambda kb: kb.webhooks.send(), access=StoreAccess.CHANGE)
        session.say(f"Sent {count(sent, 'message')}.")
    wanted = MessageState(state) if state else None
    found = session.ask(lambda kb: kb.webhooks.messages(state=wanted, limit=limit))
    session.answer(found, "lists.messages", session.now)
