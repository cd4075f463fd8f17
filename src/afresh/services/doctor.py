"""Looking for what is wrong, and saying what to do about it."""

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path

from afresh.config import Config
from afresh.config.sinks import SinkSettings
from afresh.config.store_url import file_of
from afresh.crawl.heartbeat import LiveWorkers, live_workers
from afresh.errors import ConfigError, EmbedderDown, StoreDamaged, StoreError, StoreMissing
from afresh.model.records import PageStatus, Run, RunState, Source, Worker
from afresh.model.store_reports import Finding
from afresh.models.choose import check_installed, fingerprint, wanted_model
from afresh.services import doctor_requirements
from afresh.store.store import Store
from afresh.sync.sync import is_attached
from afresh.text.redact import mask_secrets
from afresh.text.wording import count

ENOUGH_BYTES = 500 * 2**20
SKEW = timedelta(minutes=5)  # by so much clocks may differ
WIDE = 2**16  # addresses in a block that nobody opens by accident only
_REINDEX = "`afresh reindex` makes the index anew from stored text; until then the old one answers"
RESTORE = "restore the file from a backup, or move it away and crawl again"


async def examine(
    config: Config, store: Store, me: Worker, lease_seconds: float, now: datetime
) -> list[Finding]:
    """Every check, the good ones too."""
    workers = await store.workers.all()
    alive = live_workers(workers, me, lease_seconds, now)
    return [
        *await asyncio.to_thread(_surroundings, config, await store.sources.all()),
        await _store(config, store),
        await _integrity(store),
        await _locks(store, [each.name for each in workers], alive.names),
        await _runs(store, alive),
        await _doubts(store),
        await _vectors(config, store),
        await _clock(store, now),
        *[await _sink(store, name, each) for name, each in sorted(config.sinks.items())],
    ]


def without_store(config: Config, trouble: StoreError) -> list[Finding]:
    """The checks that need no store, and why there is none."""
    if isinstance(trouble, StoreMissing):
        return [*_surroundings(config), Finding(check="store", ok=True, detail=str(trouble))]
    fix = f"{_place(config)} is the store in use; --store names another"
    return [*_surroundings(config), Finding(check="store", ok=False, detail=str(trouble), fix=fix)]


def _surroundings(config: Config, sources: Sequence[Source] = ()) -> list[Finding]:
    always = any(source.policy.get("render") == "always" for source in sources)
    where = str(config.file) if config.file else "defaults, no file"
    return [
        Finding(check="python", ok=True, detail=f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"),
        Finding(check="settings", ok=True, detail=where),
        *_wrong(config, sources),
        _network(config),
        *([_room(file)] if (file := file_of(config.store.url)) is not None else []),
        doctor_requirements.browser(config, always=always),
        doctor_requirements.model(config),
    ]


def _wrong(config: Config, sources: Sequence[Source]) -> list[Finding]:
    """Sources whose own settings cannot be meant together with those of this machine."""
    found = []
    for source in sources:
        try:
            config.with_overrides(source.rules, source.policy)
        except ConfigError as wrong:
            detail = f"{source.label} is not looked at: {wrong}"
            fix = f"`afresh set {source.label} --reset NAME` takes a setting back, or change the file"
            found.append(Finding(check="settings", ok=False, detail=detail, fix=fix))
    return found


def _place(config: Config) -> str:
    """Where the store is, without the password to it."""
    return mask_secrets(str(file_of(config.store.url) or config.store.url))


def _network(config: Config) -> Finding:
    allowed = config.network.allow
    if not allowed:
        return Finding(check="network", ok=True, detail="private and local addresses are out of reach")
    wide = [place for place in allowed if _is_wide(place)]
    if not wide:
        return Finding(
            check="network", ok=True, detail=f"sources may start at {', '.join(allowed)} (network.allow)"
        )
    return Finding(
        check="network",
        ok=False,
        detail=f"network.allow opens {', '.join(wide)} to every source that starts there",
        fix="name only the addresses that are to be read, as 127.0.0.1:8000 or docs.internal",
    )


def _is_wide(place: str) -> bool:
    """Whether an entry opens a whole network rather than a machine or a few."""
    try:
        return ip_network(place).num_addresses > WIDE
    except ValueError:  # a name, or an address with its port
        return False


def _room(path: Path) -> Finding:
    folder = next(each for each in path.absolute().parents if each.is_dir())
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GB free beside the store"
    if free >= ENOUGH_BYTES:
        return Finding(check="disk", ok=True, detail=detail)
    return Finding(check="disk", ok=False, detail=detail, fix="make room or move the store with --store")


async def _store(config: Config, store: Store) -> Finding:
    detail = f"{_place(config)}, {await store.stats.size_bytes() / 2**20:.1f} MB"
    try:
        await store.stats.try_to_write()
    except StoreError as trouble:
        fix = "reading goes on; crawl and refresh wait or stop until it can be written to"
        return Finding(check="store", ok=False, detail=f"{detail}: {trouble}", fix=fix)
    return Finding(check="store", ok=True, detail=detail)


async def _integrity(store: Store) -> Finding:
    try:
        trouble = await store.stats.integrity()
    except StoreDamaged as error:
        trouble = str(error)
    except StoreError as error:
        fix = "run `afresh doctor` again when the store can be written to"
        return Finding(check="integrity", ok=False, detail=f"not checked: {error}", fix=fix)
    if trouble is not None:
        return Finding(check="integrity", ok=False, detail=trouble, fix=RESTORE)
    return Finding(check="integrity", ok=True, detail="it is sound, and the text index agrees with it")


async def _locks(store: Store, known: Sequence[str], alive: frozenset[str]) -> Finding:
    gone = (set(known) | await store.workers.lock_owners()) - alive
    if not gone:
        return Finding(check="workers", ok=True, detail=f"{len(alive)} at work")
    return Finding(
        check="workers",
        ok=False,
        detail=f"{len(gone)} ended without giving back what they held",
        fix="nothing is lost: the next `afresh refresh` takes it back",
    )


async def _doubts(store: Store) -> Finding:
    views = [await store.stats.source_view(source) for source in await store.sources.all()]
    odd = [view for view in views if view.doubtful]
    if not odd:
        return Finding(check="content", ok=True, detail="no page shows what is not believed")
    pages, worst = sum(view.doubtful for view in odd), max(odd, key=lambda view: view.doubtful)
    name = f"{worst.name}@{worst.version}" if worst.version else worst.name
    show = "page shows" if pages == 1 else "pages show"
    return Finding(
        check="content",
        ok=False,
        detail=f"{pages} {show} what is not believed, or lost nearly all text",
        fix=f"`afresh pages {name} --doubtful` tells why; if it is right, `afresh refresh {name} --trust`",
    )


async def _vectors(config: Config, store: Store) -> Finding:
    if store.vectors.no_vectors is not None:
        return Finding(
            check="vectors", ok=False, detail="search goes by words alone", fix=store.vectors.no_vectors
        )
    settings, serving = config.embedding, await store.vectors.serving_model()
    wanted = wanted_model(settings)
    try:
        check_installed(fingerprint(settings) if settings.provider != "none" else "")
    except EmbedderDown as missing:
        return Finding(check="vectors", ok=False, detail="search goes by words alone", fix=str(missing))
    if wanted is None:
        return Finding(check="vectors", ok=True, detail="search goes by words alone (embedding.provider)")
    lack = await store.stats.lack(serving.name if serving else wanted)
    if serving is not None and serving.name != wanted:
        detail = f"{serving.name} answers, but {wanted} is set"
        return Finding(check="vectors", ok=False, detail=detail, fix=_REINDEX)
    if lack.number:
        have = "1 chunk has" if lack.number == 1 else f"{lack.number:,} chunks have"
        detail = f"{have} no vector of {wanted}: found by words only"
        fix = _REINDEX if lack.number > lack.without_text else "`afresh refresh` reads their pages again"
        return Finding(check="vectors", ok=False, detail=detail, fix=fix)
    detail = f"every chunk has one of {wanted}" if serving else f"none yet; {wanted} will make them"
    return Finding(check="vectors", ok=True, detail=detail)


async def _runs(store: Store, alive: LiveWorkers) -> Finding:
    runs = await store.runs.live()
    waiting = [run for run in runs if run.state is RunState.NEEDS_CONFIRMATION]
    if waiting:
        return Finding(
            check="runs",
            ok=False,
            detail=f"{len(waiting)} wait for a confirmation",
            fix=f"look at `afresh status`, then `afresh confirm {waiting[0].id}`",
        )
    interrupted = [run for run in runs if not _under_way(run, alive)]
    if not interrupted:
        return Finding(check="runs", ok=True, detail=f"{len(runs)} under way, none interrupted")
    source = await store.sources.get(interrupted[0].source_id)
    return Finding(
        check="runs",
        ok=False,
        detail=f"{len(interrupted)} interrupted",
        fix=f"`afresh refresh {source.label if source else ''}` goes on where it was",
    )


def _under_way(run: Run, alive: LiveWorkers) -> bool:
    return run.state is RunState.QUEUED or (run.state is RunState.RUNNING and alive.work_on(run))


async def _sink(store: Store, name: str, settings: SinkSettings) -> Finding:
    """Whether an external store could be synced, and whether it holds what it is to hold."""
    check, known = f"sink {name}", await store.sources.all()
    idle = [each for each in settings.sources if not any(is_attached([each], source) for source in known)]
    record = {each.name: each for each in await store.copies.sink_records()}.get(name)
    if record is not None and record.error is not None:
        since = f" since {record.failing_since:%Y-%m-%d %H:%M} UTC" if record.failing_since else ""
        fix = f"put that right, then `afresh sync --to {name}` goes on where it was"
        return Finding(check=check, ok=False, detail=f"not synced{since}: {record.error}", fix=fix)
    if idle:
        fix = "`afresh sources` lists the names there are"
        detail = f"sinks.{name}.sources names what is not there: {', '.join(idle)}"
        return Finding(check=check, ok=False, detail=detail, fix=fix)
    attached = [source.id for source in known if is_attached(settings.sources, source)]
    states = await store.stats.count_copies(name, attached)
    if states.get(PageStatus.ERROR):
        refused = states[PageStatus.ERROR]
        detail = f"{count(refused, 'page was', 'pages were')} refused"
        fix = "`afresh pages NAME --status error` lists them, `afresh why URL` tells the reason"
        return Finding(check=check, ok=False, detail=detail, fix=fix)
    if stuck := await store.stats.count_stuck(name, attached):
        detail = f"{count(stuck, 'document is', 'documents are')} stuck"
        detail += f": processed for longer than sinks.{name}.deadline_seconds"
        fix = f"`afresh sync --to {name}` deletes and uploads again"
        return Finding(check=check, ok=False, detail=detail, fix=fix)
    active, pages = states.get(PageStatus.ACTIVE, 0), count(sum(states.values()), "page")
    detail = f"{settings.kind}, {active:,} of {pages} active"
    return Finding(check=check, ok=True, detail=detail)


async def _clock(store: Store, now: datetime) -> Finding:
    latest = await store.workers.latest_moment()
    if latest is None or latest <= now + SKEW:
        return Finding(check="clock", ok=True, detail=f"{now:%Y-%m-%d %H:%M} UTC, not before the last run")
    return Finding(
        check="clock",
        ok=False,
        detail=f"it is {now:%Y-%m-%d %H:%M} UTC here, but the store has seen {latest:%Y-%m-%d %H:%M} UTC",
        fix="set the clock of this machine right; until then pages may be looked at too late",
    )
