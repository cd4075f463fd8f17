"""The commands about the store itself: migrate, copy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from afresh.cli.session import Session
from afresh.cli.shell import argument, command, option, switch
from afresh.ports import Access
from afresh.present.safe_text import clean
from afresh.present.wording import count, duration, size
from afresh.text.durations import read_duration
from afresh.text.redact import mask_secrets

if TYPE_CHECKING:
    from datetime import timedelta

    from afresh.events import Listener
    from afresh.kb import KnowledgeBase
    from afresh.model.retention import PruneReport
    from afresh.model.store_reports import Copied, Migrated

SECTION = "Look after"


@dataclass(frozen=True, slots=True)
class Age:
    """A length of time that somebody typed; None: for ever."""

    length: "timedelta | None"


def age(typed: str) -> Age:
    """Read an age such as 30d, or none."""
    if typed.strip().lower() in ("none", "null", "for ever"):
        return Age(None)
    return Age(read_duration(typed))


@command(SECTION, "afresh migrate --dry-run", "afresh migrate --store postgresql://db.internal/afresh")
@switch("--dry-run", text="Only tell what would be done.")
def migrate(session: Session, dry_run: bool) -> None:
    """Bring the store of an older afresh up to date.

    Every command that writes does so by itself; this one does nothing else. It is one transaction: whatever
    happens, the store is as before or new. A store of a newer afresh is left alone.
    """
    import asyncio

    from afresh.store.migrate import migrate_store

    url = session.config.store.url
    with session.logged():
        done = asyncio.run(migrate_store(url, dry_run=dry_run))
    if not session.wrote_json(done):
        session.show(_told(done, dry_run=dry_run))


def _told(done: "Migrated", *, dry_run: bool) -> str:
    name = clean(done.store)
    if done.before == done.newest:
        return f"{name} is up to date (schema {done.newest})."
    verb = "would be brought" if dry_run else "was brought"
    return f"{name} {verb} from schema {done.before} to {done.newest}."


@command(
    SECTION,
    "afresh copy sqlite:///afresh.db postgresql://db.internal/afresh",
    "afresh copy postgresql://db.internal/afresh sqlite:///react.db --source react@19",
    "afresh copy sqlite:///afresh.db postgresql://db.internal/afresh --resume",
)
@argument("origin", "FROM_STORE", "The store to copy, as sqlite:///FILE or postgresql://…")
@argument("target", "TO_STORE", "An empty store, or one that does not exist yet.")
@option("--source", "labels", metavar="LABEL", multiple=True, text="Only this source; may be repeated.")
@switch("--resume", text="Go on with a copy that was stopped or killed.")
def copy(session: Session, origin: str, target: str, labels: tuple[str, ...], resume: bool) -> None:
    """Copy a whole store into an empty one, from SQLite to PostgreSQL or back.

    Everything goes along: pages, text, vectors, links, changes, history, and what waits. At the end every row
    of both stores is compared. The target can be used as soon as it is whole, and not before.
    """
    import asyncio

    from afresh.cli.progress import watching
    from afresh.cli.running import Brake, signals
    from afresh.services.copy_store import copy_store

    async def work() -> "Copied":
        stopping = asyncio.Event()
        with watching(session) as watch, signals(Brake(stopping.set, watch)):
            return await copy_store(
                origin,
                target,
                labels=tuple(dict.fromkeys(labels)),
                resume=resume,
                listener=watch.hear,
                stopping=stopping,
            )

    with session.logged():
        done = asyncio.run(work())
    if not session.wrote_json(done):
        session.show(_drawn(done))


def _drawn(done: "Copied") -> str:
    rows = {each.table: each.rows for each in done.tables}
    addresses = count(rows["pages"], "address", "addresses")
    what = f"{count(len(done.sources), 'source')}, {count(rows['documents'], 'page')} ({addresses} on record)"
    total = f"{count(sum(rows.values()), 'row')} in {duration(done.seconds)}"
    return f"Copied {what} to {clean(mask_secrets(done.target))}: {total}, every one compared."


@command(
    SECTION,
    "afresh prune --dry-run",
    "afresh prune",
    "afresh prune --deleted-pages 0d --attempts 90d --changes 90d --vacuum",
)
@option(
    "--deleted-pages",
    metavar="AGE",
    type=age,
    text="Keep records of deleted pages so long, as 30d; none: for ever.",
)
@option("--attempts", metavar="AGE", type=age, text="Keep attempts so long; the latest of a page stays.")
@option("--changes", metavar="AGE", type=age, text="Keep changes of pages so long.")
@option("--outbox", metavar="AGE", type=age, text="Keep messages that were sent or given up so long.")
@switch("--dry-run", text="Only tell how many records would be removed.")
@switch("--vacuum", text="Give free room back to the disk afterwards (SQLite; PostgreSQL does so by itself).")
def prune(session: Session, dry_run: bool, vacuum: bool, **ages: "Age | None") -> int:
    """Remove what is past its retention now.

    What is not given comes from the settings (`retention.*`). Each run removes the deleted pages of its
    source, and `afresh serve` and `afresh schedule` remove the rest once a day. What a run still needs, the
    latest attempt of a page and pages whose external copies are not gone yet stay. A prune may be stopped or
    killed at any time: the next one goes on.
    """
    kept = {name: given.length for name, given in ages.items() if given is not None}

    async def work(kb: "KnowledgeBase", listener: "Listener") -> "PruneReport":
        return await kb.status.prune(kept=kept, dry_run=dry_run, vacuum=vacuum, listener=listener)

    from afresh.cli.running import run

    done = run(session, work, access=Access.READ if dry_run else Access.CHANGE)
    if not session.wrote_json(done):
        session.show(_pruned(done))
    return 0 if done.complete else 1


def _pruned(done: "PruneReport") -> str:
    removed = [
        count(done.deleted_pages, "deleted page"),
        count(done.attempts, "attempt"),
        count(done.changes, "change"),
        count(done.messages, "message"),
        count(done.former_texts, "former text"),
    ]
    verb = "Would remove" if done.dry_run else "Removed"
    lines = [f"{verb} {', '.join(removed)} in {duration(done.seconds)}."]
    lines += [] if done.complete else ["Stopped before the end: afresh prune goes on."]
    lines += [] if done.freed_bytes is None else [f"Gave {size(done.freed_bytes)} back to the disk."]
    return "\n".join(lines)


COMMANDS = (migrate, copy, prune)
