"""What a web lister remembers from run to run, as the text that is kept with the source."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from afresh.model.fetch import Validators
from afresh.sources.web.sitemap_file import Entry, SitemapFile

MOST_KEPT = 100_000  # characters of what remembered files list, all together
_ENTRY = 50  # characters of an entry beside its address
_LONGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Remembered:
    """A file that lists pages, as it was last read: used again while the site says that it is the same."""

    validators: Validators
    base: str  # the address it came from
    file: SitemapFile

    @property
    def weight(self) -> int:
        """About how many characters it takes to remember it."""
        return sum(len(entry.loc) + _ENTRY for entry in self.file.entries)


def has_room(files: Mapping[str, Remembered], more: Remembered) -> bool:
    """Whether one more file can be remembered."""
    return sum(kept.weight for kept in files.values()) + more.weight <= MOST_KEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The hints that a site gave when it was last listed."""

    looked: bool = False  # hints that nobody points to were looked for
    llms: tuple[str, ...] = ()  # the llms.txt that was there
    feeds: tuple[str, ...] = ()  # that were there
    named: tuple[str, ...] = ()  # feeds that the root names and nobody asked for yet
    form: str | None = (
        None  # how its Markdown files are named (sources/web/markdown_alternates.py); None: nobody knows
    )
    dated: bool = False  # something that was listed came with the time of its last change
    files: Mapping[str, Remembered] = field(default_factory=dict)
    engine: str | None = None  # of the browser that shows its pages; None: none was needed

    @property
    def text(self) -> str:
        """The mark as it is kept."""
        told = {
            "looked": self.looked,
            "llms": self.llms,
            "feeds": self.feeds,
            "named": self.named,
            "form": self.form,
            "dated": self.dated,
            **({"engine": self.engine} if self.engine else {}),
            "files": {url: _told(kept) for url, kept in self.files.items()},
        }
        return json.dumps(told, separators=(",", ":"), sort_keys=True)


def mark_from(text: str | None) -> Mark:
    """The mark that a text tells of; one that cannot be read is as good as none."""
    if not text or len(text) > _LONGEST:
        return Mark()
    try:
        told = json.loads(text)
        return Mark(
            looked=bool(told["looked"]),
            llms=tuple(map(str, told["llms"])),
            feeds=tuple(map(str, told["feeds"])),
            named=tuple(map(str, told["named"])),
            form=None if told["form"] is None else str(told["form"]),
            dated=bool(told["dated"]),
            files={str(url): _kept(row) for url, row in told["files"].items()},
            engine=str(told["engine"]) if told.get("engine") else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Mark()


def _told(kept: Remembered) -> list[object]:
    entries = [[entry.loc, entry.lastmod and entry.lastmod.isoformat()] for entry in kept.file.entries]
    validators = kept.validators
    return [validators.etag, validators.last_modified, validators.url, kept.base, kept.file.kind, entries]


def _kept(row: Any) -> Remembered:
    etag, modified, issuer, base, kind, entries = row
    file = SitemapFile(
        "index" if kind == "index" else "urlset",
        tuple(Entry(str(loc), datetime.fromisoformat(at) if at else None) for loc, at in entries),
    )
    return Remembered(Validators(etag=etag, last_modified=modified, url=issuer), str(base), file)
