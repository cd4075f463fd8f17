"""Mailboxes (mbox files) as sources of afresh, and JSON Lines files as sinks."""

import asyncio
import hashlib
import json
import mailbox
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from email.message import Message
from itertools import islice
from pathlib import Path
from urllib.parse import quote, unquote

from afresh.config.server import SinkSettings
from afresh.config.spec import whole
from afresh.errors import SourceError
from afresh.model.fetch import Body, Fetched, Gone, NotModified, Request, Validators
from afresh.model.records import ListedUrl
from afresh.ports import OwnerTag, Remote, RemoteState, SinkKind, Upload
from afresh.sources.registry import ListerBase, LocalFetcher, OpenedSource, SourceContext, SourceKind

PREFIX = "mbox:"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """The section `plugins.mbox` of the settings."""

    max_messages: int = whole(10_000, "messages that are read of one mailbox", 1, 1_000_000)


def recognise_mailbox(target: str) -> str | None:
    """Return the root that `mbox:PATH` means; None for other targets."""
    if not target.startswith(PREFIX):
        return None
    return PREFIX + "//" + quote(str(Path(target.removeprefix(PREFIX)).resolve()))


def open_mailbox(context: SourceContext) -> OpenedSource:
    """Open a mailbox: what fetches its messages, and what lists them."""
    path = Path(unquote(context.root.removeprefix(f"{PREFIX}//")))
    mails = Mailbox(path, context.root, context.settings.max_messages)
    return MailFetcher(mails), MailLister(mails)


class Mailbox:
    """The messages of a file by their URLs, read once in a run."""

    def __init__(self, path: Path, root: str, most: int) -> None:
        self.path, self.root, self.most = path, root, most
        self._messages: Mapping[str, bytes] | None = None

    def messages(self) -> Mapping[str, bytes]:
        if self._messages is None:
            try:
                found = mailbox.mbox(self.path, create=False)
            except (OSError, mailbox.Error) as error:
                raise SourceError(f"{self.path} cannot be read ({error}): all its pages are kept") from None
            self._messages = {
                f"{self.root}/{quote(each['Message-ID'] or str(key), safe='')}": _markdown(each)
                for key, each in islice(found.items(), self.most)
            }
        return self._messages


class MailLister(ListerBase):
    """Lists every message with a validator, so that unchanged ones are not read again."""

    kind = "mbox"

    def __init__(self, mails: Mailbox) -> None:
        self._mails = mails

    async def list(self) -> AsyncIterator[ListedUrl]:
        for url, text in (await asyncio.to_thread(self._mails.messages)).items():
            yield ListedUrl(url, 0, _validators(text))


class MailFetcher(LocalFetcher):
    """Fetches messages as Markdown."""

    def __init__(self, mails: Mailbox) -> None:
        self._mails = mails

    async def fetch(self, request: Request) -> Fetched:
        text = (await asyncio.to_thread(self._mails.messages)).get(request.url)
        if text is None:
            return Gone(status_code=None)
        if request.validators == _validators(text):
            return NotModified(validators=_validators(text), status_code=None)
        return Body(
            url=request.url,
            data=text,
            media_type="text/markdown",
            validators=_validators(text),
            status_code=None,
            proven=True,
        )


def _markdown(message: Message) -> bytes:
    part = next((each for each in message.walk() if each.get_content_type() == "text/plain"), None)
    payload = part.get_payload(decode=True) if part else b""
    text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    return f"# {message['Subject']}\n\nFrom {message['From']}, {message['Date']}\n\n{text}".encode()


def _validators(text: bytes) -> Validators:
    return Validators(etag=hashlib.sha256(text).hexdigest())


MBOX = SourceKind(
    open=open_mailbox, recognise=recognise_mailbox, name_of=lambda root: Path(root).stem, settings=MailSettings
)


def open_jsonl(name: str, settings: SinkSettings) -> "JsonLinesSink":
    """Open the sink that the entry `sinks.NAME` describes."""
    return JsonLinesSink(name, Path(str(settings.path)))


class JsonLinesSink:
    """Keeps one document on each line of a file."""

    at_once = 1

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path

    async def put(self, upload: Upload) -> Remote:
        remote = f"{upload.mark.page}-{upload.mark.hash}"
        self._write(self._read() | {remote: {**asdict(upload), "mark": asdict(upload.mark)}})
        return self._remote(remote, self._read()[remote])

    async def drop(self, remote_id: str) -> None:
        self._write({key: line for key, line in self._read().items() if key != remote_id})

    async def look(self, remote_id: str) -> Remote | None:
        line = self._read().get(remote_id)
        return None if line is None else self._remote(remote_id, line)

    async def all(self) -> AsyncIterator[Remote]:
        for remote_id, line in self._read().items():
            yield self._remote(remote_id, line)

    async def close(self) -> None:
        """Nothing is held open."""

    def _read(self) -> dict[str, dict[str, object]]:
        text = self._path.read_text("utf-8") if self._path.exists() else ""
        return dict(map(json.loads, text.splitlines()))

    def _write(self, lines: Mapping[str, object]) -> None:
        self._path.write_text("".join(f"{json.dumps(each)}\n" for each in lines.items()), "utf-8")

    @staticmethod
    def _remote(remote_id: str, line: Mapping[str, object]) -> Remote:
        mark = OwnerTag(**line["mark"])  # type: ignore[arg-type]
        return Remote(remote_id, str(line["name"]), RemoteState.ACTIVE, mark, url=str(line["url"]))


JSONL = SinkKind(open=open_jsonl, needs=("path",))
