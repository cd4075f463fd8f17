"""The commands about tokens: who may ask the server."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from afresh.access.permissions import MadeToken, Scope, Token
from afresh.cli.session import Session
from afresh.cli.shell import Group, argument, command, option
from afresh.ports import Access
from afresh.text.durations import read_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from afresh.kb import KnowledgeBase

EXAMPLES = ("afresh token create --scope read --source react", "afresh token list", "afresh token revoke 3")

FIRST = (
    "It is the first one: from now on every request needs a token, on this machine too. The pages of "
    "`afresh serve` ask for a login in the browser: paste the token there. "
    "access.loopback_open: true asks for none on this machine."
)


@click.group("token", cls=Group, no_args_is_help=False, section="Look after", examples=EXAMPLES)
def token() -> None:
    """Make, list and revoke the tokens that the server asks for.

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
    metavar="SCOPE",
    type=click.Choice([scope.value for scope in Scope]),
    required=True,
    text="`read` may search and read, `write` may also crawl, change and delete.",
)
@option(
    "--source", "sources", metavar="LABEL", multiple=True, text="Bind it to this source; may be repeated."
)
@option("--expires", metavar="TIME", text="When it ends, counted from now, as 12h or 90d; else never.")
@option("--name", metavar="NAME", default="", text="What it is for, to know it again.")
def create(session: Session, scope: str, sources: tuple[str, ...], expires: str | None, name: str) -> None:
    """Make a token and show it, once: only its hash is kept."""
    length = read_duration(expires) if expires else None

    async def make(kb: "KnowledgeBase") -> tuple[MadeToken, bool]:
        first = not await kb.tokens.all()
        return await kb.tokens.create(Scope(scope), sources=sources, expires=length, name=name), first

    made, first = session.ask(make, access=Access.CREATE)
    if not session.wrote_json(made):
        session.say(_told(made))
        if first:
            session.say(FIRST)
        session.show(made.token)


def _told(made: MadeToken) -> str:
    bound = f" for {', '.join(made.sources)}" if made.sources else ""
    until = f" until {made.expires_at:%Y-%m-%d %H:%M} UTC" if made.expires_at else ""
    return f"Token {made.id}: {made.scope}{bound}{until}. It is shown only now; put it where only you read."


@command("", "afresh token list", "afresh token list --json", name="list")
def list_tokens(session: Session) -> None:
    """Show all tokens, never their text."""
    found = session.ask(lambda kb: kb.tokens.all())
    now = session.now
    if not session.wrote_json([_row(each, now) for each in found]):
        session.show(_drawn(found, now))


def _row(each: Token, now: datetime) -> dict[str, object]:
    return {
        "id": each.id,
        "name": each.name,
        "scope": each.scope,
        "sources": each.sources,
        "state": each.state(now),
        "created_at": each.created_at,
        "expires_at": each.expires_at,
        "revoked_at": each.revoked_at,
    }


def _drawn(found: list[Token], now: datetime) -> "RenderableType":
    from afresh.cli.pieces import empty, table, text
    from afresh.present.wording import ago

    if not found:
        return empty("No tokens: the server answers only on this machine. Make one:", EXAMPLES[0])
    rows = (
        (
            str(each.id),
            text(each.name),
            text(each.scope),
            text(each.state(now)),
            ago(each.created_at, now),
            text(f"{each.expires_at:%Y-%m-%d}" if each.expires_at else "never"),
            text(", ".join(each.sources) or "all"),
        )
        for each in found
    )
    return table((">token", "name", "scope", "state", "made", "ends", "*sources"), rows)


@command("", "afresh token revoke 3", name="revoke")
@argument("number", "NUMBER", "The token, as `afresh token list` numbers it.", type=int)
def revoke(session: Session, number: int) -> None:
    """Make a token useless at once."""
    session.ask(lambda kb: kb.tokens.revoke(number), access=Access.CHANGE)
    if not session.wrote_json({"revoked": number}):
        session.show(f"Token {number} is revoked.")


for each in (create, list_tokens, revoke):
    token.add_command(each)

COMMANDS = (token,)
