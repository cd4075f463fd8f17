"""Send requests to the APIs in the settings, with the crawler's address checks, and to no other host."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from yarl import URL

from afresh.errors import ApiError, ApiTimeout, ApiTooLarge
from afresh.ports import ApiResponse, JsonReply
from afresh.sources.web import answers, client
from afresh.sources.web.client import AbstractResolver, aiohttp
from afresh.sources.web.guard import AddressPolicy, asked_host
from afresh.text.json_input import MAX_JSON_BYTES, BadJson, read_json, read_large_json

MAX_ANSWER_BYTES = 4 * 1024 * 1024
_BYTES_PER_VALUE = 16  # fewer bytes per JSON value are suspicious: a number of a vector has about twenty
_IN_PIECES = 512 * 1024  # larger bodies are sent in pieces, so that other tasks get a turn


class ApiClient:
    """Implements `ports.HttpApi`: no redirects, no cookies, answers of limited size.

    Only the hosts of `addresses`, the configured URLs, are requested. They may be private; if `allow` is given,
    only hosts that it names may be private.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        user_agent: str = "afresh",
        connect_seconds: float = 10.0,
        largest_answer: int = MAX_ANSWER_BYTES,
        connections: int = 8,
        resolver: AbstractResolver | None = None,
        allow: Sequence[str] | None = None,
    ) -> None:
        origins = [origin for address in addresses if (origin := _origin(address))]
        self._origins = frozenset(origins)
        named = [f"{each.host_subcomponent}:{each.port}" for each in origins]
        self._policy = AddressPolicy(named if allow is None else allow)
        self._agent = user_agent
        self._connect_seconds = connect_seconds
        self._largest = largest_answer
        self._connections = connections
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def post_json(self, url: str, headers: Mapping[str, str], body: object, timeout: float) -> JsonReply:
        """Send a JSON body and return the answer; `timeout` covers everything from connecting to the last byte."""
        data = json.dumps(body).encode()
        typed = {"Content-Type": "application/json", **headers}
        status, found, answer = await self.ask("POST", url, typed, data, timeout)
        return JsonReply(status, found, await as_json(answer, self._largest, self._largest // _BYTES_PER_VALUE))

    async def get(
        self, url: str, headers: Mapping[str, str], timeout: float, *, largest: int | None = None
    ) -> ApiResponse:
        return await self.ask("GET", url, headers, None, timeout, largest)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        data: bytes | None,
        timeout: float,
        largest: int | None = None,
    ) -> ApiResponse:
        origin = _origin(url)
        host = (origin and origin.raw_host) or ""
        if not host or origin not in self._origins:
            raise ApiError(f"{host or 'this URL'} is not one of the APIs in the settings")
        target = URL(url, encoded=True)
        asked_host.set(host)
        try:
            async with asyncio.timeout(timeout) as deadline:
                return await self._exchange(method, target, headers, data, largest or self._largest)
        except client.RAISED as error:
            if deadline.expired():
                raise ApiTimeout(f"{host} gave no answer within {timeout:g} s") from None
            raise ApiError(client.request_failure(error, host, self._connect_seconds).reason) from None

    async def _exchange(
        self, method: str, target: URL, headers: Mapping[str, str], data: bytes | None, largest: int
    ) -> ApiResponse:
        session = self._session or self._open()
        tls = client.trusted() if target.scheme == "https" else True
        sent = BytesIO(data) if data and len(data) > _IN_PIECES else data
        response = await session.request(method, target, data=sent, headers=headers, allow_redirects=False, ssl=tls)
        try:
            found = {name.lower(): value for name, value in response.headers.items()}
            return ApiResponse(response.status, found, bytes(await self._read(response, largest)))
        finally:
            response.release()

    async def _read(self, response: aiohttp.ClientResponse, largest: int) -> bytearray:
        host = response.url.raw_host
        coding = answers.coding_of(response.headers.getall("Content-Encoding", []))
        if coding is None:
            raise ApiError(f"{host} answered with an unsupported content coding")
        try:
            data = await answers.gather(
                response.content, coding, largest, lambda: None
            )  # no piece extends the deadline
        except answers.CodingError as error:
            raise ApiError(f"the answer of {host} cannot be read: {error}") from None
        except answers.BodyTooLarge:
            data = bytearray(largest + 1)
        if len(data) > largest:
            raise ApiTooLarge(f"the answer of {host} is larger than {largest // 1024} KB")
        return data

    def _open(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                socket_factory=self._policy.open_socket, resolver=self._resolver, limit_per_host=self._connections
            ),
            headers={"User-Agent": self._agent, "Accept": "application/json", "Accept-Encoding": answers.OFFERED},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_seconds),
            auto_decompress=False,
            trust_env=False,
        )
        return self._session


def _origin(address: str) -> URL | None:
    try:
        return URL(address, encoded=True).origin()
    except ValueError:
        return None


async def as_json(data: bytes, max_bytes: int, max_values: int) -> Any:
    """Parse a body as JSON; return None if it is invalid, too large, too deep or has too many values."""
    try:
        if len(data) <= MAX_JSON_BYTES:
            return read_json(data)
        return await asyncio.to_thread(read_large_json, data, max_bytes=max_bytes, max_values=max_values)
    except BadJson:
        return None
