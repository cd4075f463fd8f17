"""Send one message with apprise in a process of its own, which reads it from standard input."""

import json
import logging
import re
import sys
from typing import Any

from afresh.sources.web.guard import AddressPolicy, AddressRefused, asked_host

_SENT = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg"))
_PROGRAMS = frozenset(("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork"))
_STATUS = re.compile(r"error[=: ]+(\d{3})\b")


class ConnectGuard:
    """Audit hook that refuses forbidden connections before they are opened."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self.refused: tuple[str, str] | None = None

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo":
            host = args[0]
            asked_host.set(host.decode() if isinstance(host, bytes) else str(host or ""))
        elif event in _SENT:
            self._check(args[1])
        elif event in _PROGRAMS:
            self._refuse("this service", "a program of this machine")

    def _check(self, address: object) -> None:
        if not isinstance(address, tuple):  # None: the socket is already connected
            if address is not None:
                self._refuse("this service", "a socket of this machine")
            return
        ip, port = str(address[0]), int(address[1])
        host = asked_host.get() or ip
        if kind := self._policy.check(ip, host, port):
            self._refuse(host, kind)

    def _refuse(self, host: str, kind: str) -> None:
        self.refused = (host, kind)
        raise AddressRefused(kind)


class LogSummary(logging.Handler):
    """Summarises log messages of apprise, because they may contain parts of the secret URL."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.gist = "the service did not accept the message"

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if found := _STATUS.search(line):
            self.gist = f"the service answered {found[1]}"
        elif "onnection" in line:
            self.gist = "the service cannot be reached"


def send(order: dict[str, Any]) -> dict[str, object]:
    """Send the message in `order`; return why it failed, if it did."""
    from apprise import Apprise, AppriseAsset, NotifyFormat

    summary, guard = LogSummary(), ConnectGuard(AddressPolicy(order["allow"]))
    logging.getLogger("apprise").addHandler(summary)
    asset = AppriseAsset(http_redirects=False, async_mode=False, app_id="afresh", app_desc="afresh")
    if not (service := Apprise.instantiate(order["url"], asset=asset)):
        return _result("apprise does not support this kind of URL, or a part of the URL is missing")
    service.redirects = False  # even if the URL enables redirects
    sys.addaudithook(guard)
    if service.notify(title=order["title"], body=order["text"], body_format=NotifyFormat.TEXT):
        return _result(None)
    return _result(summary.gist, guard.refused)


def _result(reason: str | None, refused: tuple[str, str] | None = None) -> dict[str, object]:
    return {"reason": reason, "refused": refused}


def main() -> None:
    try:
        result = send(json.load(sys.stdin))
    except Exception as error:  # plugins may raise any exception, with the URL in its text
        result = _result(f"apprise failed ({type(error).__name__})")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
