"""Upload pages to a vector store of OpenAI's API: each as a file and an entry in the store."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

from afresh.config.server import SinkSettings
from afresh.errors import ConfigError, SinkError, SinkMissing
from afresh.ports import HttpApi, Remote, RemoteState, SinkKind, Upload
from afresh.sync.sinks import calls
from afresh.sync.sinks.calls import RemoteMissing, SinkCalls

BASE_URL = "https://api.openai.com/v1"
PAGE_SIZE = 100  # documents per listing page, the maximum of the API
_NAME = "name"  # attribute for the display name, because entries have only the id of the file
# Other states mean PROCESSING.
_STATES = {"completed": RemoteState.ACTIVE, "failed": RemoteState.FAILED, "cancelled": RemoteState.FAILED}


class OpenAISink:
    """Implements `ports.Sink`; `settings.store` is an id (`vs_…`), or a name (the store is created if missing)."""

    def __init__(self, name: str, settings: SinkSettings, asker: HttpApi) -> None:
        key, base_url = settings.api_key, settings.base_url or BASE_URL
        if not key and settings.base_url is None:  # self-hosted servers may need no key
            raise ConfigError(f"sinks.{name}.api_key is missing: set {calls.variable(name)} to a key of OpenAI")
        self.name = name
        self.at_once = settings.at_once
        self.page_size = PAGE_SIZE
        self._asker = asker  # the HTTP client, closed with the sink
        self._wanted = settings.store or name
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._calls = SinkCalls(asker, name, base_url, secrets=(key,) if key else ())
        self._store: str | None = None
        self._finding = asyncio.Lock()

    async def put(self, upload: Upload) -> Remote:
        """Upload a file and add it to the store; if that fails, delete the file."""
        store = await self._found_store()
        border = f"afresh-{secrets.token_hex(16)}"
        head = {"Content-Type": f"multipart/form-data; boundary={border}"}
        data = _form(border, f"{calls.document_name(upload)}.md", calls.content(upload))
        file = self._text(await self._send("POST", "/files", head, data), "id")
        attributes = {_NAME: calls.document_name(upload), **calls.metadata(upload)}
        try:
            body = {"file_id": file, "attributes": attributes}
            placed = await self._json("POST", f"/vector_stores/{store}/files", body, adds=True)
        except SinkError:
            with suppress(SinkError):
                await self._forget(file, store)
            raise
        return self._remote(placed)

    async def drop(self, remote_id: str) -> None:
        store = await self._found_store()
        if not await self._forget(remote_id, store):
            await self._json("GET", f"/vector_stores/{store}")  # raises an error if the store itself does not exist

    async def look(self, remote_id: str) -> Remote | None:
        store = await self._found_store()
        try:
            return self._remote(await self._json("GET", _place(store, remote_id)))
        except RemoteMissing:
            await self._json("GET", f"/vector_stores/{store}")
            return None

    async def all(self) -> AsyncIterator[Remote]:
        async for each in self._listed(f"/vector_stores/{await self._found_store()}/files"):
            yield self._remote(each)

    async def close(self) -> None:
        await self._asker.close()

    async def _found_store(self) -> str:
        """Return the id of the store; find or create it on the first call."""
        async with self._finding:
            if self._store is None:
                self._store = await self._find_store()
            return self._store

    async def _find_store(self) -> str:
        if self._wanted.startswith("vs_"):
            found = [await self._json("GET", f"/vector_stores/{quote(self._wanted, safe='')}")]
        else:
            found = [each async for each in self._listed("/vector_stores") if each.get("name") == self._wanted]
        ids = [self._text(each, "id") for each in found]
        if not self._calls.one_of(ids, self._wanted):
            made = await self._json("POST", "/vector_stores", {"name": self._wanted[: calls.MAX_VALUE_CHARS]})
            return self._text(made, "id")
        if found[0].get("status") == "expired":
            raise SinkMissing(f'the store "{self._wanted}" has expired: set {self._calls.section}.store to another one')
        return ids[0]

    async def _forget(self, file: str, store: str) -> bool:
        """Delete a file, then its entry (an interrupted deletion stays listed); return whether either existed."""
        return any([await self._delete(f"/files/{quote(file, safe='')}"), await self._delete(_place(store, file))])

    async def _delete(self, path: str) -> bool:
        with suppress(RemoteMissing):
            await self._json("DELETE", path)
            return True
        return False

    def _remote(self, file: Mapping[str, Any]) -> Remote:
        attributes, error = file.get("attributes") or {}, file.get("last_error") or {}
        if not isinstance(attributes, dict) or not isinstance(error, dict):
            raise self._calls.odd("attributes")
        identity, state = self._text(file, "id"), _STATES.get(str(file.get("status")), RemoteState.PROCESSING)
        failed = state is RemoteState.FAILED
        size = file.get("usage_bytes")
        return Remote(
            id=identity,
            name=str(attributes.get(_NAME) or identity),
            state=state,
            mark=calls.mark_in(attributes),
            url=calls.url_in(attributes),
            size=size if isinstance(size, int) else 0,
            reason=str(error.get("message") or file.get("status")) if failed else None,
        )

    async def _listed(self, path: str) -> AsyncIterator[dict[str, Any]]:
        after = ""
        while True:
            query = {"limit": self.page_size, "order": "asc"} | ({"after": after} if after else {})
            page = await self._json("GET", f"{path}?{urlencode(query)}")
            entries = page.get("data")
            if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
                raise self._calls.odd("no list")
            for each in entries:
                yield each
            last = str(entries[-1].get("id")) if entries else after
            if not page.get("has_more") or last == after:
                return
            after = last

    async def _json(self, method: str, path: str, body: object = None, *, adds: bool = False) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        return await self._send(method, path, {"Content-Type": "application/json"} if data else {}, data, adds=adds)

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], data: bytes | None, *, adds: bool = False
    ) -> dict[str, Any]:
        answer = await self._calls.send(method, self._base_url + path, {**self._headers, **headers}, data, adds=adds)
        if not (found := await calls.as_object(answer.data)):
            raise self._calls.odd("no JSON")
        return found

    def _text(self, found: Mapping[str, Any], key: str) -> str:
        value = found.get(key)
        if not isinstance(value, str) or not value:
            raise self._calls.odd(f"no {key}")
        return value


def _place(store: str, file: str) -> str:
    return f"/vector_stores/{store}/files/{quote(file, safe='')}"


def _form(border: str, name: str, data: bytes) -> bytes:
    quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    purpose = '\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
    file = f'\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"'
    kind = "\r\nContent-Type: text/markdown\r\n\r\n"
    return f"--{border}{purpose}--{border}{file}{kind}".encode() + data + f"\r\n--{border}--\r\n".encode()


KIND = SinkKind(open=OpenAISink, needs=("store",), base_url=BASE_URL)
