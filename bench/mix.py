"""The typical refresh: of a site's pages some change, some go, some are new; the same for the same seed."""

import os
import random
import re
import time
from dataclasses import dataclass
from pathlib import Path

from bench.links import START, reachable

SEED = 7
MODIFIED, DELETED, ADDED = 0.07, 0.03, 0.03
_HEADING_END = re.compile(rb"</h[12]>", re.IGNORECASE)


@dataclass(frozen=True)
class Mix:
    """What will happen to which page, and the unique word by which a search can tell."""

    before: tuple[str, ...]
    modified: dict[str, str]
    deleted: dict[str, str]
    added: dict[str, str]
    parents: dict[str, str]  # added page -> the page that links to it

    @property
    def changed(self) -> frozenset[str]:
        """Pages whose content is different afterwards: the modified ones and those that got a link."""
        return frozenset(self.modified) | frozenset(self.parents.values())

    @property
    def after(self) -> frozenset[str]:
        """Pages that exist afterwards."""
        return (frozenset(self.before) - frozenset(self.deleted)) | frozenset(self.added)


def plan(pages: tuple[str, ...], seed: int = SEED) -> Mix:
    """Choose the pages; the start page is never modified or deleted, but may get links."""
    rng = random.Random(seed)
    pool = sorted(page for page in pages if page != START)
    rng.shuffle(pool)
    modified_count, deleted_count, added_count = (
        max(1, round(len(pages) * share)) for share in (MODIFIED, DELETED, ADDED)
    )
    modified = pool[:modified_count]
    deleted = pool[modified_count : modified_count + deleted_count]
    added = [f"bench-new-{seed}-{number:04d}.html" for number in range(added_count)]
    return Mix(
        before=pages,
        modified=_words("zqmod", seed, sorted(modified)),
        deleted=_words("zqold", seed, sorted(deleted)),
        added=_words("zqnew", seed, added),
        # Every second new page hangs on a modified page, the others on the start page.
        parents={page: START if n % 2 else rng.choice(modified) for n, page in enumerate(added)},
    )


def _words(stem: str, seed: int, pages: list[str]) -> dict[str, str]:
    return {page: f"{stem}{seed}x{number:04d}" for number, page in enumerate(pages)}


def mark_doomed(root: Path, mix: Mix) -> None:
    """Give each page that will be deleted its word beforehand, so that a search can tell when it is gone."""
    for page, word in mix.deleted.items():
        _insert(root / page, f"<p>Note {word}: this page is going to be withdrawn.</p>")


def apply(root: Path, mix: Mix) -> None:
    """Change the folder; what changed gets the present time, and so another ETag."""
    for page, word in mix.modified.items():
        _insert(root / page, f"<p>Revision {word}: the behaviour described here has changed.</p>")
    for page in mix.deleted:
        (root / page).unlink()
    for page, word in mix.added.items():
        (root / page).write_text(_new_page(page, word), "utf-8")
        parent = mix.parents[page]
        _insert(root / parent, f'<p>See also <a href="{"../" * parent.count("/")}{page}">{page}</a>.</p>')
    now = time.time()
    for page in (*mix.changed, *mix.added):
        os.utime(root / page, (now, now))


def unreachable_after(root: Path, mix: Mix) -> frozenset[str]:
    """Pages that still exist but that no link leads to any more."""
    return mix.after - frozenset(reachable(root))


def _insert(path: Path, html: str) -> None:
    """Put a paragraph behind the first heading, where every extractor looks for content."""
    data = path.read_bytes()
    heading = _HEADING_END.search(data)
    at = heading.end() if heading else data.rfind(b"</body>")
    path.write_bytes(data[:at] + f"\n{html}\n".encode() + data[at:] if at >= 0 else data + html.encode())


def _new_page(name: str, word: str) -> str:
    sentence = "It lists the options, their defaults and the errors that a wrong value leads to. "
    sections = "".join(f"<h2>Part {n}</h2><p>{sentence * 6}</p>" for n in range(1, 6))
    return (
        f'<!doctype html><html lang="en"><head><title>{name}</title></head><body><main>'
        f"<h1>{name}</h1><p>Unique word {word}.</p>{sections}</main></body></html>"
    )
