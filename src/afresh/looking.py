"""What looks at a source of each kind: the lister that tells what there is, and the web that fetches it."""

import os
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from afresh.config import Config
from afresh.core.errors import SourceError
from afresh.core.file_urls import path_of
from afresh.core.looks import Failed, Outcome, Refused
from afresh.core.scope import Globs, Rules
from afresh.engine.kit import Web
from afresh.engine.named import Named
from afresh.engine.offload import Offload
from afresh.ports import Clock, Lister, Lookout

if TYPE_CHECKING:
    from afresh.fetchers.robots import RobotsGate
    from afresh.sources.sieve import Sieve

Refusal = Callable[[str], Awaitable[Refused | Failed | None]]
_ELSEWHERE = "crawl that address instead or widen the scope"


class ClosableWeb(Web, Protocol):
    """A web that holds connections or processes."""

    async def close(self) -> None: ...


Eyes = tuple[ClosableWeb, Lister]


class Looking:
    """Makes the eyes of one run."""

    def __init__(self, own: Config, rules: Rules, clock: Clock, offload: Offload, mark: str | None) -> None:
        self._own = own
        self._rules = rules
        self._clock = clock
        self._offload = offload
        self._mark = mark  # of the state that was read last; None to read all anew

    def at(self, kind: str, *, listed: bool = False) -> Eyes:
        """The web and the lister for a kind of source; `listed`: its listings named pages before."""
        match kind:
            case "web":
                return self._site(listed)
            case "folder":
                return self._folder()
            case "links":
                return self._links(listed)
            case _:
                raise SourceError(f"this afresh cannot look at a source of the kind {kind}; update it")

    def _site(self, listed: bool) -> Eyes:
        from afresh.sources.web import WebLister

        rules = self._rules

        async def refusal(url: str) -> Refused | Failed | None:
            outside = rules.refusal(url, 0)
            if outside is not None:
                return Refused(outcome=Outcome.FAILED, reason=f"{outside}; {_ELSEWHERE}")
            return await gate.refusal(url)

        gate = self._gate(refusal)
        lister = WebLister(
            rules,
            gate,
            gate.sitemaps,
            parse=partial(self._offload.call, Named("afresh.sources.sitemap_file", "parse_sitemap")),
            use_sitemaps=self._own.crawl.sitemaps,
            expects_sitemap=listed,
        )
        return gate, lister

    def _gate(self, refusal: Refusal) -> "RobotsGate":
        """The guarded client behind robots.txt; `refusal` says where redirects may not lead."""
        from afresh.fetchers.guard import AddressPolicy
        from afresh.fetchers.http import HttpFetcher, HttpOptions
        from afresh.fetchers.robots import RobotsGate

        own = self._own
        network = own.network
        options = HttpOptions(
            user_agent=network.user_agent,
            total_seconds=network.timeout_seconds,
            connect_seconds=network.connect_seconds,
            idle_seconds=network.idle_seconds,
            max_body_bytes=network.max_body_bytes,
            connections_per_host=own.crawl.concurrency,
            policy=AddressPolicy(network.allow),
        )
        http = HttpFetcher(options, clock=self._clock, refusal=refusal)
        return RobotsGate(http, http, respect=own.crawl.respect_robots, clock=self._clock)

    def _links(self, listed: bool) -> Eyes:
        from afresh.sources.links import LinkedWeb, LinkLister

        async def refusal(url: str) -> Refused | Failed | None:
            return await gate.refusal(url)  # a listed address may lead to any site

        gate = self._gate(refusal)
        lister = LinkLister(Path(path_of(self._rules.root)), expects_links=listed)
        return LinkedWeb(gate, lister), lister

    def _folder(self) -> Eyes:
        from afresh.fetchers.file import FileFetcher, FileOptions
        from afresh.sources.folder import FolderLister

        files = self._own.files
        path = os.path.realpath(path_of(self._rules.root))
        single = os.path.basename(path) if os.path.isfile(path) else None
        sieve = sieve_for(self._own, self._rules, os.path.dirname(path) if single else path)
        lister = FolderLister(sieve, only=single, mark=self._mark, verify=files.verify)
        options = FileOptions(max_bytes=files.max_file_bytes, trusts_times=files.verify == "stat")
        return FileFetcher(path, options, lister.why_not), lister


def sieve_for(own: Config, rules: Rules, root: str) -> "Sieve":
    """Which files of a folder are let in; those that afresh itself writes never are."""
    from afresh.sources.sieve import FolderRules, Sieve

    files = own.files
    folder = FolderRules(
        gitignore=files.gitignore,
        hidden=files.hidden,
        symlinks=files.symlinks,
        archives=files.archives,
        ignore=(*files.ignore, *_written_below(root, own)),
        max_files=min(files.max_files, rules.max_pages),
        max_depth=rules.max_depth,
    )
    return Sieve(root, folder, Globs(rules.include, rules.exclude))


def lookout_for(own: Config, rules: Rules, kind: str) -> Lookout:
    """What hears of changes at the root of a source; single files tell something only of a folder."""
    from afresh.sources.events import FileEvents

    path = path_of(rules.root)
    sieve = sieve_for(own, rules, os.path.realpath(path)) if kind == "folder" else None
    return FileEvents(path, sieve)


def _written_below(root: str, own: Config) -> list[str]:
    """Patterns for the store and the log, where they stand inside a folder."""
    from afresh.store.open import sqlite_path

    ways = [(str(sqlite_path(own.store.url)), "-*"), *([(own.log.file, ".*")] if own.log.file else [])]
    patterns = []
    for name, more in ways:
        path = os.path.realpath(name)
        if path.startswith(root.rstrip("/") + "/"):
            plain = re.sub(r"([\\*?\[\]!# ])", r"\\\1", path[len(root.rstrip("/")) :])
            patterns += [plain, plain + more]
    return patterns
