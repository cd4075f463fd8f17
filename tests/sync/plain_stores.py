"""The external stores without a server, as the tests see them from behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.sync.remote_stores import Held

from afresh.ports import Sink
from afresh.sync.sinks.folder import FENCE, FolderSink
from afresh.testing import ScriptedSink


class FolderRemote:
    """A folder of Markdown files."""

    page_size = 5

    def __init__(self, folder: Path) -> None:
        self.sinks: list[Sink] = []
        self._folder = folder

    def sink(self) -> Sink:
        self.sinks.append(FolderSink("team", self._folder))
        return self.sinks[-1]

    def held(self) -> list[Held]:
        return sorted(self._held(path) for path in self._folder.rglob("*.md"))

    def add_foreign(self, name: str) -> None:
        (self._folder / name).write_text("not ours", "utf-8")

    def _held(self, path: Path) -> Held:
        where = path.relative_to(self._folder).as_posix()
        return Held(where, where, path.read_text("utf-8").rpartition(f"\n{FENCE}\n\n")[2])


class ScriptedRemote:
    """The store in memory that the tests of the sync use: it must behave as real ones do."""

    page_size = 5

    def __init__(self) -> None:
        self.scripted = ScriptedSink("team")
        self.sinks: list[Sink] = [self.scripted]

    def sink(self) -> Sink:
        return self.scripted

    def held(self) -> list[Held]:
        sink = self.scripted
        return [Held(each.id, each.name, sink.texts[each.id]) for each in sink.documents.values()]

    def add_foreign(self, name: str) -> None:
        self.scripted.add(name)


@contextmanager
def folder() -> Iterator[FolderRemote]:
    """An empty folder."""
    with TemporaryDirectory(prefix="afresh-remote_store-") as place:
        yield FolderRemote(Path(place))


@contextmanager
def scripted() -> Iterator[ScriptedRemote]:
    """A store in memory."""
    yield ScriptedRemote()
