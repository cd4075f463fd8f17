"""Git repositories for tests: made by the real git, served by its own back end, requests counted."""

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from afresh.config.sources import NetworkSettings
from afresh.sources.git.address import GitAddress, parse_git
from afresh.sources.git.cache import GitCache
from afresh.sources.git.fetcher import GitFetcher, GitLister, GitRepository
from afresh.sources.git.remote import GitOptions, GitRemote
from afresh.sources.web.guard import AddressPolicy

HERE = AddressPolicy(("127.0.0.1/32",))
ENV = {
    "PATH": os.environ["PATH"],
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{author}_{what}": "t@t.org" for author in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
Tree = Mapping[str, str] | Mapping[str, bytes] | Mapping[bytes, str] | Mapping[str, str | bytes]


class Repo:
    """A bare repository whose commits are written whole, without a work tree."""

    def __init__(self, path: Path, branch: str = "main", *, form: str = "sha1") -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", f"--initial-branch={branch}", f"--object-format={form}", ".")
        self.git("config", "uploadpack.allowFilter", "true")
        self.git("config", "http.receivepack", "false")
        self.branch = branch

    @property
    def url(self) -> str:
        return f"git+file://{self.path}"

    def git(self, *args: str, data: bytes = b"") -> str:
        done = subprocess.run(["git", *args], cwd=self.path, env=ENV, input=data, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode().strip()

    def commit(self, tree: Tree, branch: str | None = None, modes: Mapping[str, str] | None = None) -> str:
        """Make a commit of just these files, the next one of its branch; the answer is its id."""
        name = f"refs/heads/{branch or self.branch}"
        lines = [b"commit %s\ncommitter t <t@t.org> 1700000000 +0000\ndata 1\nx\n" % name.encode()]
        if self.git("for-each-ref", name):
            lines.append(b"from %s^0\n" % name.encode())
        lines.append(b"deleteall\n")
        for path, text in tree.items():
            held = text if isinstance(text, bytes) else text.encode()
            named = path if isinstance(path, bytes) else path.encode()
            mode = (modes or {}).get(named.decode("utf-8", "replace"), "100644").encode()
            quoted = b'"%s"' % b"".join(b"\\%03o" % byte for byte in named)
            if mode == b"160000":
                lines.append(b"M 160000 %s %s\n" % (held, quoted))
            else:
                lines.append(b"M %s inline %s\ndata %d\n%s\n" % (mode, quoted, len(held), held))
        self.git("fast-import", "--quiet", "--force", data=b"".join(lines))
        return self.git("rev-parse", name)


def options(**given: object) -> GitOptions:
    """Bounds for tests, with loopback allowed."""
    network = NetworkSettings(timeout_seconds=20.0)
    return GitOptions(**{"policy": HERE, "network": network, "timeout_seconds": 30.0, **given})  # type: ignore[arg-type]


class Run:
    """One run over a repository, as the engine makes it: a lister and a fetcher on one state."""

    def __init__(
        self,
        address: str | GitAddress,
        cache: Path,
        *,
        mark: str | None = None,
        bounds: GitOptions | None = None,
        max_bytes: int = 2**31,
        rules: str = "",
    ) -> None:
        bounds = bounds or options()
        where = parse_git(address) if isinstance(address, str) else address
        self.remote = GitRemote(where, bounds, cache)
        self.repository = GitRepository(self.remote, GitCache(cache, max_bytes), hidden)
        self.lister = GitLister(self.repository, mark=mark, rules=rules)
        self.fetcher = GitFetcher(self.repository, bounds.max_file_bytes)

    async def __aenter__(self) -> "Run":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.fetcher.close()

    async def listed(self) -> dict[str, str | None]:
        """Addresses to the ids that the listing shows."""
        return {each.url: each.validators.etag if each.validators else None async for each in self.lister.list()}


def hidden(path: str) -> str | None:
    """Leave out what is hidden, as the rules for folders do."""
    return "hidden" if any(part.startswith(".") for part in path.split("/")) else None


# ---- over HTTP ------------------------------------------------------------------------------------------


class GitServer:
    """Repositories of a folder, served by git's own back end on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[str] = []  # method and path, in order
        self.redirect: str | None = None  # answer everything with this place
        self.needs: str | None = None  # the Authorization header that has to come
        self.down = False  # answer everything with 503
        self.received: list[str | None] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def at(self, name: str) -> str:
        return f"git+http://127.0.0.1:{self.port}/{name}"

    @contextmanager
    def running(self) -> Iterator["GitServer"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def _handler(served: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            if self.headers.get("Transfer-Encoding") == "chunked":
                self._answer(self._chunks())
            else:
                self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def _chunks(self) -> bytes:
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def _answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            served.requests.append(f"{self.command} {path}")
            served.received.append(self.headers.get("Authorization"))
            if served.down:
                self.send_error(503)
            elif served.redirect is not None:
                self.send_response(301)
                self.send_header("Location", served.redirect + self.path)
                self.end_headers()
            elif served.needs is not None and self.headers.get("Authorization") != served.needs:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
                self.end_headers()
            else:
                self._backend(path, query, body)

        def _backend(self, path: str, query: str, body: bytes) -> None:
            env = ENV | {
                "GIT_PROJECT_ROOT": str(served.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": unquote(path),
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "REMOTE_ADDR": "127.0.0.1",
            }
            done = subprocess.run(
                ["git", "http-backend"], env=env, input=body, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            head, _, data = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
            self.send_response(int(fields.pop("Status", "200").split(" ")[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    return Handler
