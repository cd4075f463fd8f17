"""Send GET requests over the connections of aiohttp, with its protocol and parser, but without its session.

The session prepares cookies, proxies, redirects and traces for every request, of which none is used here. That
takes as much CPU time as everything else that aiohttp does for an unchanged page.
"""

from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage
from multidict import CIMultiDictProxy
from yarl import URL

from afresh.dataclass import dataclass
from afresh.sources.web.client import NotHttp, aiohttp, trusted
from afresh.urls.canonical import domain_of, origin_of

MAX_ORIGINS = 1_000  # that are remembered
_MAX_HEADERS = 100
_MAX_LINE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Origin:
    url: str  # scheme, host and port
    host: str
    domain: str
    opening: aiohttp.ClientRequest  # names the connections to it


class Response:
    """The head of a response, and its body as a stream; call `release` at the end."""

    def __init__(self, connection: Connection, message: RawResponseMessage, content: aiohttp.StreamReader) -> None:
        self.status = message.code
        self.headers: CIMultiDictProxy[str] = message.headers
        self.raw_headers = message.raw_headers
        self.content = content
        self.release = connection.release  # closes the connection unless the body was received to its end

    @property
    def content_length(self) -> int | None:
        length = self.headers.get("Content-Length")
        return None if length is None else int(length)


class Connections:
    """Keeps connections for the next requests; `headers` are sent with each."""

    def __init__(self, connector: aiohttp.TCPConnector, headers: dict[str, str], connect_seconds: float) -> None:
        self._connector = connector
        self._headers = headers
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._origins: dict[str, Origin | None] = {}

    async def close(self) -> None:
        await self._connector.close()

    def origin(self, url: str) -> Origin | None:
        """Return the server of a URL; None if it is not an http or https URL, or holds a user name."""
        key = origin_of(url)
        if key not in self._origins:
            if len(self._origins) >= MAX_ORIGINS:
                self._origins.clear()
            self._origins[key] = _origin(key)
        return self._origins[key]

    async def get(self, origin: Origin, url: str, headers: dict[str, str]) -> Response:
        """Return the response to a request; send it again once if the server has closed the kept connection."""
        target = url[len(origin.url) :].partition("#")[0] or "/"
        sent = self._headers | headers
        if " " in target or not all(map(str.isprintable, (target, *sent.values()))):  # a line break adds a header
            raise aiohttp.InvalidURL(url)
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        head = f"GET {target} HTTP/1.1\r\nHost: {origin.domain}\r\n{lines}\r\n".encode()
        try:
            return await self._send(origin, head)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            return await self._send(origin, head)

    async def _send(self, origin: Origin, head: bytes) -> Response:
        connection = await self._connector.connect(origin.opening, [], self._timeout)
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            connection.close()
            raise aiohttp.ServerDisconnectedError
        try:
            protocol.set_response_params(
                read_until_eof=True,
                auto_decompress=False,
                max_line_size=_MAX_LINE_BYTES,
                max_field_size=_MAX_LINE_BYTES,
                max_headers=_MAX_HEADERS,
            )
            transport.write(head)
            message, content = await protocol.read()
            while 100 <= message.code < 200 and message.code != 101:  # it only announces the response
                message, content = await protocol.read()
        except BaseException as error:
            connection.close()
            if isinstance(error, HttpProcessingError):
                raise NotHttp from error
            raise
        return Response(connection, message, content)


def _origin(key: str) -> Origin | None:
    try:
        url = URL(f"{key}/", encoded=True)
    except ValueError:
        return None
    is_server = url.raw_host and url.raw_user is None and url.raw_path_qs == "/" and not url.raw_fragment
    if url.scheme not in ("http", "https") or not is_server:
        return None
    tls = trusted() if url.scheme == "https" else True
    return Origin(key, url.raw_host or "", domain_of(key), aiohttp.ClientRequest("GET", url, ssl=tls))
