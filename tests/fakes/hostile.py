"""A web site that misbehaves by script, down to the raw bytes of its answers."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

from tests.fakes.wire import Reply, raw_sockets, sent

from afresh.testing.script import Answer, notice, unless_known
from afresh.testing.site import Listen, RecordedRequest, ServedSite

Script = bytes | Callable[[RecordedRequest, Answer], "Reply | Answer"]
SERVICE = ("/robots.txt", "/sitemap.xml")


class HostileSite(ServedSite):
    """A site like TinySite, with scripts that stand before its pages and answer as they like.

    A script is raw bytes, or a function of the request (its path, headers and visit number) and of the
    site's own answer; it returns bytes, an `Answer`, or pieces that end with the connection. Every request
    is recorded when it arrives. `say` scripts one path, or all that begin alike ("/cal/*");
    `say_everywhere` all but robots.txt and the sitemap; `say_unknown` all that have no page; `restore` and
    `behave` take it back.

    | wanted | script, in `tricks` (bytes) or `lies` (content) |
    |---|---|
    | slow head, slow body; silent | `drip("head")`, `drip("body")`; `hold(path)` of the site |
    | slow robots.txt | `say("/robots.txt", drip("body"))`, or `hold("/robots.txt")` |
    | breaks off before its length, in a chunk, between chunks | `truncated()`, `broken_chunks(kind)` |
    | bad chunk sizes; two lengths, a negative one | `broken_chunks("size")`; `lengths("5", "9")` |
    | shorter length than body; length and chunks | `surplus(raw)`, `both_framings(raw)` |
    | endless chunked; so many bytes, announced or not | `endless()`, `giant(size, announced=…)` |
    | bombs: gzip, deflate, raw deflate, gzip in gzip, parts | `bomb(coding)`, `members()` |
    | gzip header, plain body and so on | `coded(coding, body)` |
    | endless head, one giant header, too many | `flood("endless" or "giant" or "many")` |
    | no HTTP at all, or a connection that just closes | `then_close(raw)` |
    | one ETag for all; 304 for ever; always another ETag | `same_etag()`, `always_304()`, `new_etags()` |
    | flapping | `flap(404)`, `in_turn(…)` by visit number |
    | redirects: anywhere, endless, all to the login | `hop(to, code)`, `chain("/hop/")`, `to_login(code)` |
    | soft 404 for what is unknown | `say_unknown(soft_404())` |
    | login, challenge, consent for everything | `say_everywhere(wall("login"))` and so on |
    | emptied, blank, an empty shell, shrunken | `emptied("none" or "blanks" or "shell")`, `shrunken(0.05)` |
    | 429 or 503 with Retry-After | `busy(code, retry_after)` |
    | traps | `calendar("/cal/")`, `pager("/list")`, `sessions("/s")`, `deeper("/a/")` |
    """

    def __init__(self, *, port: int = 0, etags: bool = True) -> None:
        super().__init__(port=port, etags=etags)
        self._scripts: dict[str, Script] = {}
        self._everywhere: tuple[Script, Sequence[str]] | None = None
        self._unknown: Script | None = None
        self._visits: Counter[str] = Counter()

    # ---- its scripts --------------------------------------------------------------------------

    def say(self, path: str, script: Script) -> Self:
        """Answer a path, or all that begin alike ("/cal/*"), by script."""
        with self._lock:
            self._scripts[path] = script
        return self

    def say_everywhere(self, script: Script, *, but: Sequence[str] = ()) -> Self:
        """Answer every path by script, except robots.txt, the sitemap and those that are named."""
        with self._lock:
            self._everywhere = script, (*SERVICE, *but)
        return self

    def say_unknown(self, script: Script) -> Self:
        """Answer every path by script that has no page, robots.txt and the sitemap excepted."""
        with self._lock:
            self._unknown = script
        return self

    def restore(self, path: str) -> None:
        """Take back every trouble and every script of a path."""
        super().restore(path)
        with self._lock:
            self._scripts.pop(path, None)

    def behave(self) -> None:
        """Take back all scripts; pages, troubles and visit numbers stay."""
        with self._lock:
            self._scripts.clear()
            self._everywhere = self._unknown = None

    # ---- answering ----------------------------------------------------------------------------

    def _listening(self) -> Listen:
        return raw_sockets(self._respond)

    async def _respond(self, asked: RecordedRequest) -> Reply:
        with self._lock:
            self._visits[asked.path] += 1
            asked = replace(asked, visit=self._visits[asked.path])
        self.requests.add(asked)
        await self._wait(asked.path)
        reply = self._reply(asked)
        return sent(reply) if isinstance(reply, Answer) else reply

    def _reply(self, asked: RecordedRequest) -> Reply | Answer:
        with self._lock:
            own = self.find(asked.path, self.url)
            script = self._script(asked.path, known=own != notice(404))
        if script is None:
            return unless_known(own, asked.if_none_match, asked.if_modified_since)
        return script if isinstance(script, bytes) else script(asked, own)

    def _script(self, path: str, *, known: bool) -> Script | None:
        if path in self._scripts:
            return self._scripts[path]
        for name, script in self._scripts.items():
            if name.endswith("*") and path.startswith(name[:-1]):
                return script
        if self._everywhere is not None and path not in self._everywhere[1]:
            return self._everywhere[0]
        return None if known or path in SERVICE else self._unknown
