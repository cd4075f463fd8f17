"""Upload pages to Gemini File Search, with Google's SDK."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from afresh.config.server import SinkSettings
from afresh.errors import ConfigError, SinkBusy, SinkError, SinkRefused
from afresh.ports import HttpApi, Remote, RemoteState, SinkKind, Upload
from afresh.sync.sinks import calls
from afresh.sync.sinks.calls import RemoteMissing, SinkCalls

BASE_URL = "https://generativelanguage.googleapis.com"
API_VERSION = "v1beta"
PAGE_SIZE = 20  # documents per listing page, the maximum of the API
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # seconds between checks for the document of an upload
_CODES = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}  # gRPC → HTTP
_STATES = {"STATE_ACTIVE": RemoteState.ACTIVE, "STATE_FAILED": RemoteState.FAILED}  # others mean PROCESSING
_ODD = (ValueError, KeyError, TypeError, AttributeError)  # exceptions of the SDK for unexpected answers
Sleep = Callable[[float], Awaitable[None]]


class _Ended(Exception):
    """The server reported that an upload failed, so there is no document."""

    def __init__(self, error: SinkError) -> None:
        super().__init__(str(error))
        self.error = error


class GeminiSink:
    """Implements `ports.Sink`; `settings.store` is a resource name, or a display name (created if missing)."""

    def __init__(self, name: str, settings: SinkSettings, asker: HttpApi, *, sleep: Sleep = asyncio.sleep) -> None:
        if not settings.api_key:
            key = calls.variable(name)
            raise ConfigError(f"sinks.{name}.api_key is missing: set {key} to a key of Google AI Studio")
        self.name = name
        self.at_once = settings.at_once  # Google fails to index some documents with 50 to 100 concurrent uploads
        self._asker = asker  # the HTTP client, closed with the sink
        self._key = settings.api_key
        self._wanted = settings.store or name
        self._base_url = settings.base_url or BASE_URL
        self._version = settings.api_version or API_VERSION
        self._sleep = sleep
        self._calls = SinkCalls(asker, name, self._base_url, secrets=(settings.api_key,))
        self._sdk: Any = None  # a google.genai.Client, created by the first call
        self._store: str | None = None
        self._opening, self._finding = asyncio.Lock(), asyncio.Lock()

    async def put(self, upload: Upload) -> Remote:
        store = await self._found_store()
        fields = [{"key": key, "string_value": value} for key, value in calls.metadata(upload).items()]
        config = {"display_name": calls.document_name(upload), "mime_type": "text/markdown", "custom_metadata": fields}
        with self._understood():
            operation = await self._stores.upload_to_file_search_store(
                file_search_store_name=store, file=BytesIO(calls.content(upload)), config=config
            )
            try:
                return await self._made_by(operation, store)
            except _Ended as ended:
                raise ended.error from None
            except SinkError as error:
                raise self._calls.doubt(error) from None

    async def drop(self, remote_id: str) -> None:
        await self._open()
        with self._understood():
            try:
                await self._stores.documents.delete(name=remote_id, config={"force": True})
            except RemoteMissing:
                await self._check_store()

    async def look(self, remote_id: str) -> Remote | None:
        await self._open()
        with self._understood():
            if (found := await self._get(remote_id)) is None:
                await self._check_store()
            return found

    async def all(self) -> AsyncIterator[Remote]:
        store = await self._found_store()
        with self._understood():
            async for each in await self._stores.documents.list(parent=store, config={"page_size": PAGE_SIZE}):
                yield _remote(each)

    async def close(self) -> None:
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await sdk.aio.aclose()
            sdk.close()
        await self._asker.close()

    async def _found_store(self) -> str:
        """Return the resource name of the store; find or create it on the first call."""
        await self._open()
        async with self._finding:
            if self._store is None:
                with self._understood():
                    self._store = await self._find_store()
            return self._store

    async def _find_store(self) -> str:
        if self._wanted.startswith("fileSearchStores/"):
            return _name(await self._stores.get(name=self._wanted))
        listed = await self._stores.list(config={"page_size": PAGE_SIZE})
        names = [_name(each) async for each in listed if each.display_name == self._wanted]
        if self._calls.one_of(names, self._wanted):
            return names[0]
        return _name(await self._stores.create(config={"display_name": self._wanted[: calls.MAX_VALUE_CHARS]}))

    async def _check_store(self) -> None:
        if self._store is None:
            await self._found_store()
        else:
            await self._stores.get(name=self._store)

    async def _made_by(self, operation: Any, store: str) -> Remote:
        """Wait until the document of an upload exists; some operations never report that they are done."""
        for wait in (*WAITS, None):
            name = getattr(operation.response, "document_name", None) or ""
            if not name.startswith(f"{store}/documents/"):
                name = f"{store}/documents/{_name(operation).rpartition('/')[2]}"
            if found := await self._get(name):
                return found
            if wait is None:
                break
            operation = await self._sdk.aio.operations.get(operation)
            if operation.error:
                code = _CODES.get(int(operation.error.get("code", 13)), 400)
                raise _Ended(self._calls.refusal(code, operation.error))
            if not operation.done:
                await self._sleep(wait)
        raise SinkBusy(f"{self._calls.host} did not return the name of the document in time")

    async def _get(self, remote_id: str) -> Remote | None:
        try:
            return _remote(await self._stores.documents.get(name=remote_id))
        except RemoteMissing:
            return None

    @property
    def _stores(self) -> Any:
        return self._sdk.aio.file_search_stores

    async def _open(self) -> None:
        """Import the SDK in a thread on the first call, because this takes seconds."""
        async with self._opening:
            self._sdk = self._sdk or await asyncio.to_thread(self._load)

    def _load(self) -> Any:
        try:
            from afresh.sync.sinks.gemini_sdk import open_client

            return open_client(self._calls, api_key=self._key, base_url=self._base_url, api_version=self._version)
        except ImportError:
            raise SinkRefused(
                f"{self._calls.section}: kind gemini needs Google's SDK: pip install 'afresh[gemini]'"
            ) from None

    @contextmanager
    def _understood(self) -> Iterator[None]:
        from google.genai.errors import APIError
        from httpx2 import HTTPError, InvalidURL

        try:
            yield
        except SinkError:
            raise
        except (APIError, HTTPError, InvalidURL, *_ODD) as error:
            raise self._calls.odd(error) from error


def _name(resource: Any) -> str:
    if not resource.name:
        raise ValueError("a resource without a name")
    return str(resource.name)


def _remote(document: Any) -> Remote:
    fields = {each.key: each.string_value for each in document.custom_metadata or ()}
    state = _STATES.get(getattr(document.state, "value", ""), RemoteState.PROCESSING)
    return Remote(
        id=_name(document),
        name=document.display_name or "",
        state=state,
        mark=calls.mark_in(fields),
        url=calls.url_in(fields),
        size=document.size_bytes or 0,
        reason="Gemini could not index it" if state is RemoteState.FAILED else None,
    )


KIND = SinkKind(open=GeminiSink, needs=("store",), base_url=BASE_URL)
