"""Check the installation, the settings and the store, and say how to fix problems."""

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from afresh.config import Config
from afresh.config.forms import store_file
from afresh.config.server import SinkSettings
from afresh.crawl.heartbeat import LiveWorkers, live_workers
from afresh.errors import AfreshError, ConfigError, EmbedderUnavailable, StoreDamaged, StoreError, StoreMissing
from afresh.extract.registry import Format
from afresh.model.labels import is_among, label_of
from afresh.model.records import PageStatus, RunState, Source, WorkerRecord
from afresh.model.reports import Finding
from afresh.models.choose import check_installed, fingerprint, wanted_model
from afresh.models.completions import read_prompt
from afresh.plugins import BUILT_IN, EXTRACTORS, SINKS, SOURCES, PluginError, installed_plugins, load_plugin
from afresh.ports import SinkKind
from afresh.services.resolve import is_under_way
from afresh.sources.registry import SourceKind
from afresh.sources.web.browser.launch import why_no_browser, why_unsandboxed
from afresh.store.store import Store
from afresh.text.quantities import count
from afresh.text.redact import mask_secrets

ENOUGH_BYTES = 500 * 2**20
SKEW = timedelta(minutes=5)  # clocks may differ by this much
WIDE = 2**16  # IP addresses; a larger block is reported
_REINDEX = "`afresh reindex` rebuilds the index from stored text; until then the old one is used"
RESTORE = "restore the file from a backup, or move it away and crawl again"


async def examine(config: Config, store: Store, me: WorkerRecord, lease_seconds: float, now: datetime) -> list[Finding]:
    """Run all checks of `afresh doctor`, and return a finding for each, also if it passed."""
    workers = await store.workers.all()
    alive = live_workers(workers, me, lease_seconds, now)
    return [
        *await asyncio.to_thread(_environment, config, await store.sources.all()),
        await _store(config, store),
        await _integrity(store),
        await _locks(store, [each.name for each in workers], alive.names),
        await _runs(store, alive),
        await _doubts(store),
        await _vectors(config, store),
        await _clock(store, now),
        *[await _sink(store, name, each) for name, each in sorted(config.sinks.items())],
    ]


def _finding(check: str, detail: str, fix: str | None = None) -> Finding:
    """Return a finding: a problem if there is a `fix`, else a passed check."""
    return Finding(check=check, ok=fix is None, detail=detail, fix=fix)


def without_store(config: Config, problem: StoreError) -> list[Finding]:
    """Return findings if the store cannot be opened: the reason, and the checks that need no store."""
    if isinstance(problem, StoreMissing):
        return [*_environment(config), _finding("store", str(problem))]
    fix = f"{_store_location(config)} is the store in use; --store names another"
    return [*_environment(config), _finding("store", str(problem), fix)]


def _environment(config: Config, sources: Sequence[Source] = ()) -> list[Finding]:
    return [
        _finding("python", f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"),
        _finding("settings", str(config.file) if config.file else "defaults, no file"),
        *_plugins(),
        *_invalid_settings(config, sources),
        _network(config),
        *([_disk_space(file)] if (file := store_file(config.store.url)) is not None else []),
        check_browser(config, required=any(source.policy.get("render") == "always" for source in sources)),
        check_model(config),
    ]


def _plugins() -> list[Finding]:
    found, kinds = [], {SOURCES: SourceKind, EXTRACTORS: Format, SINKS: SinkKind}
    for group, name in ((each, name) for each in BUILT_IN for name in installed_plugins(each)):
        try:
            load_plugin(group, name, kinds.get(group, object))
            found.append(_finding(f"plug-in {name}", f"adds to {group}"))
        except PluginError as error:
            found.append(_finding(f"plug-in {name}", str(error), "update or uninstall the package"))
    return found


def _invalid_settings(config: Config, sources: Sequence[Source]) -> list[Finding]:
    """Return a finding for each source with settings that conflict with the settings file of this machine."""
    found = []
    for source in sources:
        try:
            config.with_overrides(source.rules, source.policy)
        except ConfigError as wrong:
            fix = f"`afresh set {source.label} --reset NAME` resets a setting, or change the file"
            found.append(_finding("settings", f"{source.label} is not checked: {wrong}", fix))
    return found


def _store_location(config: Config) -> str:
    """Return the file or URL of the store, without its password."""
    return mask_secrets(str(store_file(config.store.url) or config.store.url))


def _network(config: Config) -> Finding:
    if not (allowed := config.network.allow):
        return _finding("network", "private and local addresses are blocked")
    if wide := [place for place in allowed if _is_wide(place)]:
        detail = f"network.allow opens {', '.join(wide)} to every source that starts there"
        fix = "list only the addresses that sources need, such as 127.0.0.1:8000 or docs.internal"
        return _finding("network", detail, fix)
    return _finding("network", f"sources may start at {', '.join(allowed)} (network.allow)")


def _is_wide(place: str) -> bool:
    """Return whether an entry of `network.allow` is a whole network instead of a few machines."""
    try:
        return ip_network(place).num_addresses > WIDE
    except ValueError:  # a host name, or an IP address with its port
        return False


def _disk_space(path: Path) -> Finding:
    free = shutil.disk_usage(next(each for each in path.absolute().parents if each.is_dir())).free
    detail = f"{free / 2**30:.1f} GB free beside the store"
    return _finding("disk", detail, None if free >= ENOUGH_BYTES else "make room or move the store with --store")


async def _store(config: Config, store: Store) -> Finding:
    detail = f"{_store_location(config)}, {await store.stats.size_bytes() / 2**20:.1f} MB"
    try:
        await store.stats.try_to_write()
    except StoreError as problem:
        fix = "reads still work; crawl and refresh wait or stop until it can be written to"
        return _finding("store", f"{detail}: {problem}", fix)
    return _finding("store", detail)


async def _integrity(store: Store) -> Finding:
    try:
        problem = await store.stats.integrity()
    except StoreDamaged as error:
        problem = str(error)
    except StoreError as error:
        fix = "run `afresh doctor` again when the store can be written to"
        return _finding("integrity", f"not checked: {error}", fix)
    if problem is not None:
        return _finding("integrity", problem, RESTORE)
    return _finding("integrity", "database and full-text index are consistent")


async def _locks(store: Store, known: Sequence[str], alive: frozenset[str]) -> Finding:
    if not (gone := (set(known) | await store.workers.lock_owners()) - alive):
        return _finding("workers", f"{len(alive)} active")
    fix = "nothing is lost: the next `afresh refresh` continues their work"
    return _finding("workers", f"{len(gone)} ended without releasing their work", fix)


async def _doubts(store: Store) -> Finding:
    views = [await store.stats.source_view(source) for source in await store.sources.all()]
    if not (pages := sum(view.doubtful for view in views)):
        return _finding("content", "no page looks like an error, login or empty page")
    worst = max(views, key=lambda view: view.doubtful)
    name = label_of(worst.name, worst.version)
    looks = "page looks" if pages == 1 else "pages look"
    detail = f"{pages} {looks} like an error, login or empty page, or lost nearly all text"
    fix = f"`afresh pages {name} --doubtful` says why; to accept it, `afresh refresh {name} --trust`"
    return _finding("content", detail, fix)


async def _vectors(config: Config, store: Store) -> Finding:
    if store.vectors.no_vectors is not None:
        return _finding("vectors", "keyword search only", store.vectors.no_vectors)
    settings, serving = config.embedding, await store.vectors.serving_model()
    wanted = wanted_model(settings)
    try:
        check_installed(fingerprint(settings) if settings.provider != "none" else "")
    except EmbedderUnavailable as error:
        return _finding("vectors", "keyword search only", str(error))
    if wanted is None:
        return _finding("vectors", "keyword search only (embedding.provider)")
    missing = await store.stats.missing_vectors(serving.name if serving else wanted)
    if serving is not None and serving.name != wanted:
        return _finding("vectors", f"searches use {serving.name}, but {wanted} is configured", _REINDEX)
    if missing.number:
        missing_vectors = count(missing.number, "passage has", "passages have")
        detail = f"{missing_vectors} no vector of {wanted}: only keyword search finds such text"
        fix = _REINDEX if missing.number > missing.without_text else "`afresh refresh` reads their pages again"
        return _finding("vectors", detail, fix)
    detail = f"every passage has a vector of {wanted}" if serving else f"no vectors yet; {wanted} will make them"
    return _finding("vectors", detail)


async def _runs(store: Store, alive: LiveWorkers) -> Finding:
    runs = await store.runs.live()
    if waiting := [run for run in runs if run.state is RunState.NEEDS_CONFIRMATION]:
        fix = f"see `afresh status`, then `afresh confirm {waiting[0].id}`"
        return _finding("runs", f"{len(waiting)} need confirmation", fix)
    if not (interrupted := [run for run in runs if not is_under_way(run, alive)]):
        return _finding("runs", f"{len(runs)} in progress, none interrupted")
    source = await store.sources.get(interrupted[0].source_id)
    fix = f"`afresh refresh {source.label if source else ''}` continues it"
    return _finding("runs", f"{len(interrupted)} interrupted", fix)


async def _sink(store: Store, name: str, settings: SinkSettings) -> Finding:
    check, known = f"sink {name}", await store.sources.all()
    idle = [each for each in settings.sources if not any(is_among(source.label, [each]) for source in known)]
    record = {each.name: each for each in await store.copies.sink_records()}.get(name)
    if record is not None and record.error is not None:
        since = f" since {record.failing_since:%Y-%m-%d %H:%M} UTC" if record.failing_since else ""
        fix = f"fix that, then `afresh sync --to {name}` continues it"
        return _finding(check, f"not synced{since}: {record.error}", fix)
    if idle:
        detail = f"sinks.{name}.sources names unknown sources: {', '.join(idle)}"
        return _finding(check, detail, "correct the setting; `afresh sources` lists the existing names")
    attached = [source.id for source in known if is_among(source.label, settings.sources)]
    states = await store.stats.count_copies(name, attached)
    if refused := states.get(PageStatus.ERROR):
        fix = "`afresh pages NAME --status error` lists them, `afresh why URL` gives the reason"
        return _finding(check, f"{count(refused, 'page was', 'pages were')} refused", fix)
    if stuck := await store.stats.count_stuck(name, attached):
        detail = f"{count(stuck, 'document is', 'documents are')} stuck"
        detail += f": processed for longer than sinks.{name}.deadline_seconds"
        return _finding(check, detail, f"`afresh sync --to {name}` deletes and uploads again")
    active, pages = states.get(PageStatus.ACTIVE, 0), count(sum(states.values()), "page")
    return _finding(check, f"{settings.kind}, {active:,} of {pages} active")


async def _clock(store: Store, now: datetime) -> Finding:
    if (latest := await store.workers.latest_moment()) is None or latest <= now + SKEW:
        return _finding("clock", f"{now:%Y-%m-%d %H:%M} UTC, not earlier than the last run")
    detail = f"it is {now:%Y-%m-%d %H:%M} UTC here, but the store was last used at {latest:%Y-%m-%d %H:%M} UTC"
    return _finding("clock", detail, "correct the clock of this machine; until then pages may be checked too late")


def check_browser(config: Config, *, required: bool = False) -> Finding:
    """Check whether a browser is installed, without starting it; with `required`, a missing one is a problem."""
    if config.crawl.render == "never" and not required:
        return _finding("browser", "no page is rendered in a browser (crawl.render)")
    own = config.browser
    if (reason := why_no_browser(own.engines, own.executable_path, own.channel)) is None:
        risk = why_unsandboxed(own.sandbox) if "chromium" in own.engines else None
        return _finding("browser", "pages that need a browser can be rendered" + (f"; {risk}" if risk else ""))
    if config.crawl.render == "always" or required:
        return _finding("browser", "crawl.render requires a browser, and none is installed", reason)
    return _finding("browser", f"none: pages that need JavaScript may lack content; to render them: {reason}")


def check_model(config: Config) -> Finding:
    """Check whether the settings of the model are complete, without a request to the model."""
    ai, links = config.ai, config.links
    if ai.address is None and links.scorer == "model":
        fix = "set ai.provider to openai and ai.model, or links.scorer to offline"
        return _finding("model", "links.scorer needs a model, and none is configured", fix)
    try:
        read_prompt("summary.md", ai.prompt_file, "ai.prompt_file")
        read_prompt("links.md", links.prompt_file, "links.prompt_file")
    except AfreshError as wrong:
        return _finding("model", str(wrong), "set it to another file, or to null for the built-in prompt")
    if ai.address is None:
        return _finding("model", "no AI provider configured; summaries and link scores are generated locally")
    host = urlsplit(ai.address).hostname
    most = "any number of" if ai.budget_per_run is None else f"at most {ai.budget_per_run:,}"
    return _finding("model", f"{ai.model} at {host} makes summaries and link scores, with {most} calls per run")
