"""The sites that are measured: a pristine copy each, and the folder that is served."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import mix as mixes
from bench.links import START, reachable

FIXED_TIME = 1_767_225_600  # 2026-01-01: an untouched page has the same ETag in every run
_KEPT = {".html", ".css", ".js", ".png", ".svg"}


@dataclass(frozen=True)
class Corpus:
    """One site: its pages, what the mix will do to it, and where it is served from."""

    name: str
    pristine: Path
    served: Path
    mix: mixes.Mix
    query: str
    expected_pages: int | None = None  # as recorded elsewhere; None where nobody counted

    @property
    def pages(self) -> tuple[str, ...]:
        """Every page that links lead to."""
        return self.mix.before

    @property
    def megabytes(self) -> float:
        """Size of these pages."""
        return sum((self.pristine / page).stat().st_size for page in self.pages) / 1e6

    def start(self, base: str) -> str:
        """Address of the start page on a server."""
        return self.url(base, START)

    def url(self, base: str, page: str) -> str:
        """Address of a page on a server."""
        return f"{base}/{self.name}/{page}"

    def reset(self) -> None:
        """Serve the pristine pages again."""
        shutil.rmtree(self.served, ignore_errors=True)
        shutil.copytree(self.pristine, self.served)

    def update(self) -> None:
        """Let the typical mix happen to what is served."""
        mixes.apply(self.served, self.mix)


@dataclass(frozen=True)
class Origin:
    """Where the pages of a corpus come from."""

    name: str
    fill: Callable[[Path], None]
    query: str
    expected_pages: int | None = None


def prepare(origin: Origin, work: Path) -> Corpus:
    """Make the pristine copy: pages as they are, a word in those that will be deleted, one fixed time.

    What the mix will do stands in a manifest beside it.
    """
    pristine = work / "pristine" / origin.name
    shutil.rmtree(pristine, ignore_errors=True)
    pristine.mkdir(parents=True)
    origin.fill(pristine)
    mix = mixes.plan(reachable(pristine))
    mixes.mark_doomed(pristine, mix)
    (work / f"{origin.name}-manifest.json").write_text(json.dumps(asdict(mix), indent=1), "utf-8")
    for path in pristine.rglob("*"):
        os.utime(path, (FIXED_TIME, FIXED_TIME))
    return Corpus(origin.name, pristine, work / "www" / origin.name, mix, origin.query, origin.expected_pages)


def copy_of(folder: Path) -> Callable[[Path], None]:
    """Fills a folder with the pages of another one, and with their small assets."""

    def fill(target: Path) -> None:
        for path in _files(folder):
            copied = target / path.relative_to(folder)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)

    return fill


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "_sources")  # raw text that nothing links to
        for name in sorted(names):
            path = Path(parent) / name
            if path.suffix in _KEPT and path.is_file():
                yield path
