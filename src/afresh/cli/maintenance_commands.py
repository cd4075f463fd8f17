"""Commands for the store and the settings: remove, doctor, config, demo, migrate, copy, prune."""

import os
import sys
from datetime import timedelta

import click

from afresh.cli.session import Session, here, start_collecting
from afresh.cli.shell import LABEL, argument, command, group, option, switch
from afresh.config import default_files, describe, find_file, list_values
from afresh.errors import ConfigError, StoreError, UsageError
from afresh.model.reports import CopyReport, Finding
from afresh.model.retention import PruneReport
from afresh.ports import StoreAccess
from afresh.present.wording import clean, count, duration, size
from afresh.present.wording import label as label_text
from afresh.text.quantities import read_duration
from afresh.text.redact import mask_secrets

SECTION = "Manage"


@command(SECTION, "afresh remove react@18", "afresh remove react@18 --yes")
@argument(*LABEL)
@switch("--yes -y", "Delete without asking for confirmation.")
def remove(session: Session, label: str, yes: bool) -> int:
    """Delete a source with its pages and index; the fetch history is kept."""
    if not yes:
        view = session.ask(lambda kb: kb.sources.view(label, only=True))
        name, pages = label_text(view.name, view.version), count(view.pages, "page")
        if session.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(f"remove {name} would delete {pages}: add --yes to confirm")
        if not click.confirm(f"Delete {clean(name)} with {pages}? This cannot be undone.", err=True):
            session.say("Nothing was removed.")
            return 1
    removed = session.ask(lambda kb: kb.sources.remove(label), access=StoreAccess.CHANGE)
    if not session.wrote_json({"removed": label, "pages": removed}) and not session.quiet:
        session.show(f"Removed {clean(label)} with {count(removed, 'page')}.")
    return 0


@command(SECTION, "afresh doctor", "afresh doctor --json")
def doctor(session: Session) -> int:
    """Check settings, store and environment, and say how to fix problems."""
    findings = _run_checks(session)
    session.answer(findings, "details.findings")
    return 0 if all(finding.ok for finding in findings) else 1


def _run_checks(session: Session) -> list[Finding]:
    try:
        found = session.config
    except ConfigError as wrong:
        fix = "correct the settings, then run `afresh config check`"
        return [Finding(check="settings", ok=False, detail=str(wrong), fix=fix)]
    try:
        return session.ask(lambda kb: kb.status.doctor())
    except StoreError as wrong:
        from afresh.services.doctor import without_store

        return without_store(found, wrong)


@group("config", "afresh config show", "afresh config check")
def config() -> None:
    """Show and check the settings."""


@command(config, "afresh config show", "afresh config show --json", name="show")
def config_show(session: Session) -> None:
    """Print every setting, its value and where it comes from; secrets are masked."""
    if not session.wrote_json(describe(session.config)):
        from afresh.cli import details

        session.show(details.settings(list_values(session.config)))


@command(config, "afresh config check", "afresh --config other.yaml config check", name="check")
def config_check(session: Session) -> None:
    """Check the settings; errors name file, line and the key that was probably meant.

    Also checks the targets of the sections `webhooks` and `notify`. A private address is refused unless
    `network.allow` lists it.
    """
    from afresh.services.webhooks import check_targets

    found = session.config
    check_targets(found)
    changed = len(found.origins)
    where = f"{found.file} is valid" if found.file else "No settings file (none is needed)"
    differ = "1 setting differs" if changed == 1 else f"{count(changed)} settings differ"
    answer = {"ok": True, "file": found.file, "set": dict(found.origins)}
    session.inform(answer, f"{where}; {differ} from the defaults.")


@command(config, "afresh config path", name="path")
def config_path(session: Session) -> None:
    """Print the settings file in use, or where afresh searches for one."""
    file, _ = find_file(session.config_file, os.environ, here())
    places = default_files(here())
    if session.wrote_json({"path": file, "looked_for": places}):
        return
    if file:
        session.show(clean(str(file)))
    else:
        session.say("No settings file. afresh searches here, in this order:")
        for place in places:
            session.show(clean(str(place)))


@command(SECTION, "afresh demo", "afresh demo --pace 2      # slower, to read along")
@option("--pace", "SECONDS", "Pause between the scenes.", type=click.FloatRange(0, 60), default=0.0)
def demo(session: Session, pace: float) -> int:
    """Show in a few seconds what afresh does, on a small local site.

    Serves a documentation site on this machine, crawls it, changes it, refreshes it and searches it, with a
    temporary store. Needs no network and no key.
    """
    from afresh.cli.demo import play

    return play(session, pace)


def age(typed: str) -> tuple[timedelta | None]:
    """Parse an age such as 30d; return it in a tuple, as None if it is "forever".

    The tuple distinguishes "forever" from a missing option, which is None without a tuple.
    """
    return (None if typed.strip().lower() in ("none", "null", "forever", "for ever") else read_duration(typed),)


@command(SECTION, "afresh migrate --dry-run", "afresh migrate --store postgresql://db.internal/afresh")
@switch("--dry-run", "Only show what would be done.")
def migrate(session: Session, dry_run: bool) -> None:
    """Upgrade a store of an older version.

    Commands that write upgrade the store automatically. The upgrade is one transaction. A store that a newer
    afresh has written is not changed.
    """
    import asyncio

    from afresh.store.open import migrate_store

    url = session.config.store.url
    start_collecting()
    with session.record_logs():
        done = asyncio.run(migrate_store(url, dry_run=dry_run))
    did = f"{'would be' if dry_run else 'was'} upgraded from schema {done.before} to {done.newest}"
    if done.before == done.newest:
        did = f"is up to date (schema {done.newest})"
    session.inform(done, f"{done.store} {did}.")


@command(
    SECTION,
    "afresh copy sqlite:///afresh.db postgresql://db.internal/afresh",
    "afresh copy postgresql://db.internal/afresh sqlite:///react.db --source react@19",
    "afresh copy sqlite:///afresh.db postgresql://db.internal/afresh --resume",
)
@argument("origin", "FROM_STORE", "The store to copy, as sqlite:///FILE or postgresql://…")
@argument("target", "TO_STORE", "An empty store, or one that does not exist yet.")
@option("--source labels", "LABEL", "Only this source; may be repeated.", multiple=True)
@switch("--resume", "Continue a copy that was stopped.")
def copy(session: Session, origin: str, target: str, labels: tuple[str, ...], resume: bool) -> None:
    """Copy a whole store into an empty one, from SQLite to PostgreSQL or back.

    Copies everything: pages, text, vectors, links, changes, history and queued work. At the end every row of
    both stores is compared. The target cannot be used before the copy is complete.
    """
    import asyncio

    from afresh.cli.progress import StopSignals, handle_signals, show_progress
    from afresh.services.copy_store import copy_store

    async def work() -> CopyReport:
        stopping = asyncio.Event()
        with show_progress(session) as watch, handle_signals(StopSignals(stopping.set, watch)):
            return await copy_store(
                origin, target, labels=labels, resume=resume, listener=watch.receive, stopping=stopping
            )

    start_collecting()
    with session.record_logs():
        done = asyncio.run(work())
    session.inform(done, _copy_summary(done))


def _copy_summary(done: CopyReport) -> str:
    rows = {each.table: each.rows for each in done.tables}
    what = f"{count(len(done.sources), 'source')}, {count(rows['documents'], 'page')} ({count(rows['pages'], 'URL')})"
    total = f"{count(sum(rows.values()), 'row')} in {duration(done.seconds)}"
    return f"Copied {what} to {clean(mask_secrets(done.target))}: {total}, all compared."


@command(
    SECTION,
    "afresh prune --dry-run",
    "afresh prune",
    "afresh prune --deleted-pages 0d --attempts 90d --changes 90d --vacuum",
)
@option("--deleted-pages", "AGE", "How long to keep records of deleted pages, such as 30d; none: forever.", type=age)
@option("--attempts", "AGE", "How long to keep attempts; the latest of a page is always kept.", type=age)
@option("--changes", "AGE", "How long to keep changes of pages.", type=age)
@option("--outbox", "AGE", "How long to keep sent and undeliverable messages.", type=age)
@switch("--dry-run", "Only show how many records would be removed.")
@switch("--vacuum", "Return free space to the disk afterwards (SQLite; PostgreSQL does this by itself).")
def prune(session: Session, dry_run: bool, vacuum: bool, **ages: tuple[timedelta | None] | None) -> int:
    """Delete records that are older than their retention time.

    The defaults are the settings `retention.*`. Each run removes expired deleted pages of its source; `afresh serve`
    and `afresh schedule` remove all other expired records once a day. Prune keeps records that a run still needs, the
    latest attempt of each page, and pages that still have external copies. You can stop it at any time; the next
    `afresh prune` continues.
    """
    kept = {name: given[0] for name, given in ages.items() if given is not None}
    from afresh.cli.progress import run

    done = run(
        session,
        lambda kb, listener: kb.status.prune(kept=kept, dry_run=dry_run, vacuum=vacuum, listener=listener),
        access=StoreAccess.READ if dry_run else StoreAccess.CHANGE,
    )
    if not session.wrote_json(done):
        session.show(_prune_summary(done))
    return 0 if done.complete else 1


def _prune_summary(done: PruneReport) -> str:
    names = {"deleted_pages": "deleted page", "former_texts": "former text"}
    kinds = ("deleted_pages", "attempts", "changes", "messages", "former_texts")
    removed = [count(getattr(done, kind), names.get(kind, kind[:-1])) for kind in kinds]
    verb = "Would remove" if done.dry_run else "Removed"
    lines = [f"{verb} {', '.join(removed)} in {duration(done.seconds)}."]
    lines += [] if done.complete else ["Stopped early; run `afresh prune` again to continue."]
    lines += [] if done.freed_bytes is None else [f"Returned {size(done.freed_bytes)} to the disk."]
    return "\n".join(lines)
