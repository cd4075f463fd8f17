"""A knowledge base of files and links in a folder of its own, driven by the command line."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.library import url_of
from tests.e2e.program import Program
from tests.fakes.chat_server import ChatServer

from afresh.cli import main
from afresh.testing import TinySite
from afresh.text.normalize import content_hash

LONG_AGO = 1_600_000_000
UNCHANGED = ("/robots.txt", "/favicon.ico")


class Base:
    """The folder with notes, list, settings, index and cache; `chat` counts what is paid for."""

    def __init__(self, place: Path, capture: pytest.CaptureFixture[str], chat: ChatServer, **settings: object) -> None:
        self.place = place
        self.notes = place / "notes"
        self.notes.mkdir(exist_ok=True)
        self.links = place / "links.txt"
        self.index = place / "index.txt"
        self.cache = place / "index-cache.json"
        self.chat = chat
        self.timeout = 20.0  # seconds; a busy machine takes its time
        self._capture = capture
        self.program = Program(place / "kb.db", in_process=True)
        self.configure(**settings)

    def configure(self, **settings: object) -> None:
        """Settings of `kb` on top of folder and list; None takes one away."""
        tree: dict[str, Any] = {
            "store": {"url": url_of(self.place / "kb.db")},
            "network": {"allow": ["127.0.0.1/32"], "timeout_seconds": self.timeout},
            "embedding": {"provider": "none"},
            "ai": {"provider": "openai", "model": "told", "base_url": self.chat.base_url},
            "kb": {"sources_dir": "notes", "links_file_path": "links.txt", **settings},
        }
        self.program.file.write_text(yaml.safe_dump(tree))

    def note(self, name: str, text: str, *, at: int = LONG_AGO) -> Path:
        """Write a file with a time of its own."""
        file = self.notes / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        os.utime(file, (at, at))
        return file

    def list(self, *lines: str) -> None:
        """Write the list of links, saved a while ago."""
        self.links.write_text("".join(f"{line}\n" for line in lines))
        os.utime(self.links, (LONG_AGO, LONG_AGO))

    def run(self, *words: str, code: int = 0) -> Any:
        """`afresh init-kb`, or another command, to its end."""
        self._capture.readouterr()
        done = main([*(words or ("init-kb",)), "--json", "--config", str(self.program.file)])
        out, err = self._capture.readouterr()
        assert done == code, (out, err)
        return json.loads(out)

    def say(self, *words: str, code: int = 0) -> str:
        """What a command tells people."""
        self._capture.readouterr()
        done = main([*words, "--config", str(self.program.file)])
        out, err = self._capture.readouterr()
        assert done == code, (out, err)
        return " ".join((out + err).split())

    @property
    def sources(self) -> dict[str, Any]:
        """The records of the cache."""
        return dict(json.loads(self.cache.read_text())["sources"])

    def url(self, name: str) -> dict[str, Any]:
        """What the cache says of a link."""
        return dict(self.sources[name]["url"])

    def wait(self, name: str) -> float:
        """Seconds from now to the next check of a link."""
        return wait_of(self.url(name), now())

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the records of the cache, as a person might."""
        held = json.loads(self.cache.read_text())
        change(held["sources"])
        self.cache.write_text(json.dumps(held))

    def let_time_pass(self, *names: str, seconds: float = 1e6) -> None:
        """Make links due, as if that much time had gone by since they were scheduled."""

        def earlier(sources: dict[str, Any]) -> None:
            for name in names:
                at = datetime.fromisoformat(sources[name]["url"]["next_check_at"])
                sources[name]["url"]["next_check_at"] = stamp(at - timedelta(seconds=seconds))

        self.edit(earlier)

    def forget_store(self) -> None:
        """Take the database away; cache and index stay."""
        for file in self.place.glob("kb.db*"):
            file.unlink()

    @contextmanager
    def unpaid(self) -> Iterator[None]:
        """No summary is asked for meanwhile."""
        before = self.chat.calls
        yield
        assert self.chat.calls == before


def stamp(at: datetime) -> str:
    """A time as the cache writes it."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def wait_of(about: Mapping[str, Any], since: datetime) -> float:
    """Seconds from a moment to the next check."""
    return (datetime.fromisoformat(about["next_check_at"]) - since).total_seconds()


def now() -> datetime:
    """The present."""
    return datetime.now(UTC)


def page(words: str) -> str:
    """A web page that says this."""
    body = f"<main><h1>{words}</h1><p>All about {words}.</p></main>"
    return f"<html><head><title>{words}</title></head><body>{body}</body></html>"


def asked(site: TinySite) -> list[str]:
    """The pages that a site was asked for, in order."""
    return [each.path for each in site.requests if each.path not in UNCHANGED]


def message_of(base: Base, name: str) -> str:
    """The hash that a file should have."""
    return content_hash((base.notes / name).read_text())
