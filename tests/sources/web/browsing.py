"""A browser for tests: allowed to see loopback, or just some of it."""

import socket
import threading
from contextlib import suppress

from afresh.sources.web.browser.browser import Browsers
from afresh.sources.web.browser.launch import BrowserOptions
from afresh.sources.web.guard import AddressPolicy


def browsers(*allow: str, **more: float) -> Browsers:
    """Browsers that may connect to the named places beside public ones."""
    given = {"settle_seconds": 2.0, "timeout_seconds": 15.0, **more}
    return Browsers(BrowserOptions(policy=AddressPolicy(allow or ("127.0.0.1/32",)), **given))  # type: ignore[arg-type]


class Canary:
    """Listens where nobody may come, by TCP and UDP, and counts who does."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._tcp = socket.create_server((host, 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((host, 0))
        self.port: int = self._tcp.getsockname()[1]
        self.udp: int = self._udp.getsockname()[1]
        self.visitors: list[bytes] = []

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                guest, _ = self._tcp.accept()
                guest.settimeout(1)
                with guest, suppress(OSError):
                    self.visitors.append(guest.recv(200))
                    guest.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

    def _receive(self) -> None:
        with suppress(OSError):
            while True:
                self.visitors.append(self._udp.recv(200) or b"udp")

    def __enter__(self) -> "Canary":
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._accept, self._receive)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        for sock in (self._tcp, self._udp):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(5)
