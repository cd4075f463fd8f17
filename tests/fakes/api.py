"""An API on loopback that can be started, taken down and closed; what it says is for others to decide."""

from abc import ABC, abstractmethod
from collections import Counter
from types import TracebackType
from typing import Self

from tests.fakes.wire import Reply, raw_sockets

from afresh.testing.site import HOST, LoopbackServer, RecordedRequest, RequestLog


class LoopbackApi(ABC):
    """Serves what `_respond` answers from a thread of its own."""

    def __init__(self) -> None:
        self._server = LoopbackServer(raw_sockets(self._respond))

    @abstractmethod
    async def _respond(self, asked: RecordedRequest) -> Reply:
        """The answer to a request."""

    @property
    def origin(self) -> str:
        """Where it is, without a slash at the end."""
        return f"http://{HOST}:{self._server.port}"

    def down(self) -> None:
        """Refuse connections."""
        self._server.down()

    def up(self) -> None:
        """Accept connections again."""
        self._server.up()

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()


class CountedApi(LoopbackApi):
    """Keeps its requests, and counts them by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = RequestLog()
        self.kinds: Counter[str] = Counter()

    def forget(self) -> None:
        """Begin to count requests anew."""
        self.requests.clear()
        self.kinds.clear()
