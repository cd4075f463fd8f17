"""A GitHub server on loopback: its REST API, its raw files and the web pages of its wiki."""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from tests.fakes.api import CountedApi
from tests.fakes.git_objects import Pushed
from tests.fakes.github_repository import HostedRepository
from tests.fakes.github_wiki import wiki_answer
from tests.fakes.wire import sent

from afresh.testing.script import Answer, unless_known
from afresh.testing.site import RecordedRequest

ROBOTS = b"User-agent: *\nDisallow: /*/*/pulse\nDisallow: /*/raw/\nDisallow: /*/*/wiki/*/_history\n"
_MOST_ENTRIES = 100_000


class GithubServer(CountedApi):
    """Serves one repository from a thread of its own; what it holds is set from Python.

    API, raw files and web pages stand at one port, as on an Enterprise server. `requests` is what was asked,
    `kinds` how often for each kind: repo, tree, blob, raw, wiki, robots, other.
    """

    def __init__(
        self, name: str = "octo/docs", *, private: bool = False, token: str | None = None, weak: bool = True
    ) -> None:
        super().__init__()
        self.repository = HostedRepository(name, private=private)
        self.token = token  # the one that is taken; without it any token is refused
        self.weak = weak  # whether the API's ETags are weak, as GitHub's are
        self.limit = 60  # questions to the API that are allowed, 304s not counted
        self.reset_at = int(time.time()) + 3600
        self.most_entries = _MOST_ENTRIES  # of a tree in one answer
        self.raw_lags = False  # raw files of a branch are those before the last push
        self.raw_answer: Answer | None = None  # what the raw host says to everything
        self.script: list[Answer] = []  # what happens to the next questions to the API
        self.bend: Callable[[str, Any], Any] = lambda kind, body: body  # lies about what the API answers
        self.used = 0  # questions that count against the limit

    # ---- where it is -------------------------------------------------------------------------

    @property
    def web_url(self) -> str:
        """What `github.web_url` has to be."""
        return self.origin

    @property
    def api_url(self) -> str:
        """What `github.api_url` has to be."""
        return f"{self.web_url}/api/v3"

    @property
    def raw_url(self) -> str:
        """What `github.raw_url` has to be."""
        return f"{self.web_url}/raw"

    @property
    def settings(self) -> dict[str, object]:
        """The settings that lead here."""
        return {"github.api_url": self.api_url, "github.raw_url": self.raw_url, "github.web_url": self.web_url}

    def page(self, path: str, branch: str | None = None) -> str:
        """The address of the page of a file."""
        repository = self.repository
        return f"{self.web_url}/{repository.name}/blob/{branch or repository.default}/{path}"

    def wiki(self, page: str = "") -> str:
        """The address of a wiki page, of the first one without a name."""
        return f"{self.web_url}/{self.repository.name}/wiki" + (f"/{page}" if page else "")

    # ---- what it holds -----------------------------------------------------------------------

    def push(self, files: Mapping[str, Pushed], branch: str | None = None) -> str:
        """A commit that holds exactly these files; its id."""
        return self.repository.push(files, branch)

    def rename_branch(self, old: str, new: str) -> None:
        """Give a branch another name."""
        self.repository.rename_branch(old, new)

    def rename(self, name: str) -> None:
        """Give the repository another name; the old one leads to it."""
        self.repository.rename(name)

    def set_wiki(self, pages: Mapping[str, str]) -> None:
        """The pages of the wiki by name, `Home` first, as HTML."""
        self.repository.pages = dict(pages)

    # ---- what it answers ---------------------------------------------------------------------

    async def _respond(self, asked: RecordedRequest) -> bytes:
        path, _, query = asked.path.partition("?")
        kind, answer = self._find(path, query, asked)
        self.kinds[kind] += 1
        answer = unless_known(answer, asked.if_none_match, None)
        if path.startswith("/api/"):
            self.used += answer.status != 304
            answer = _with(answer, self._limits())
        self.requests.add(
            RecordedRequest(method=asked.method, path=asked.path, status=answer.status, headers=asked.headers)
        )
        return sent(answer)

    def _find(self, path: str, query: str, asked: RecordedRequest) -> tuple[str, Answer]:
        if path.startswith("/api/v3/"):
            return self._api(path.removeprefix("/api/v3"), query, asked)
        if path.startswith("/raw/"):
            return "raw", self._raw(path.removeprefix("/raw/"))
        if path == "/robots.txt":
            return "robots", Answer(status=200, headers={"Content-Type": "text/plain"}, body=ROBOTS)
        return wiki_answer(self.repository, path)

    def _api(self, path: str, query: str, asked: RecordedRequest) -> tuple[str, Answer]:
        parts = path.strip("/").split("/", 3)
        kind = _kind(parts)
        if self.script:
            return kind, self.script.pop(0)
        if self.used >= self.limit:
            return kind, _message(403, "API rate limit exceeded for 127.0.0.1.")
        view = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if view and view != self.token:
            return kind, _message(401, "Bad credentials")
        repository = self.repository
        if repository.private and not view:
            return kind, _message(404, "Not Found")
        if parts[0] == "repos" and len(parts) > 2:
            name, rest = "/".join(parts[1:3]), "/".join(parts[3:])
            if name.lower() in repository.former:
                by_number = f"{self.api_url}/repositories/{repository.number}" + (f"/{rest}" if rest else "")
                to = f"{by_number}?{query}" if query else by_number
                return "moved", _with(_message(301, "Moved Permanently"), {"Location": to})
            known = name.lower() == repository.name.lower()
        else:
            rest = "/".join(parts[2:])
            known = parts[:2] == ["repositories", str(repository.number)]
        return kind, self._answer(kind, rest, query, asked) if known else _message(404, "Not Found")

    def _answer(self, kind: str, rest: str, query: str, asked: RecordedRequest) -> Answer:
        if kind == "repo":
            return self._json(kind, self.repository.facts(self.web_url))
        if kind == "tree":
            ref = unquote(rest.removeprefix("git/trees/"))
            tree = self.repository.listing(ref, whole="recursive=" in query, most=self.most_entries)
            if isinstance(tree, int):
                return _message(tree, "Git Repository is empty." if tree == 409 else "Not Found")
            return self._json(kind, tree)
        if kind == "blob":
            return self._blob(rest.removeprefix("git/blobs/"), asked)
        return _message(404, "Not Found")

    def _blob(self, name: str, asked: RecordedRequest) -> Answer:
        data = self.repository.objects.blobs.get(name)
        if data is None:
            return _message(404, "Not Found")
        if "raw" in asked.headers.get("accept", ""):
            head = {"Content-Type": "application/vnd.github.raw+json", "ETag": f'"{name}"'}
            return Answer(status=200, headers=head, body=data)
        content = base64.b64encode(data).decode()
        return self._json("blob", {"sha": name, "size": len(data), "encoding": "base64", "content": content})

    def _raw(self, path: str) -> Answer:
        if self.raw_answer is not None:
            return self.raw_answer
        data = self.repository.raw(unquote(path), lagging=self.raw_lags)
        if data is None or self.repository.private:
            return Answer(status=404, headers={"Content-Type": "text/plain"}, body=b"404: Not Found")
        return Answer(status=200, headers={"Content-Type": "text/plain; charset=utf-8"}, body=data)

    def _json(self, kind: str, body: object) -> Answer:
        data = json.dumps(self.bend(kind, body)).encode()
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        head = {"Content-Type": "application/json; charset=utf-8", "ETag": f"W/{tag}" if self.weak else tag}
        return Answer(status=200, headers=head, body=data)

    def _limits(self) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(self.limit - self.used, 0)),
            "X-RateLimit-Reset": str(self.reset_at),
        }


def _kind(parts: list[str]) -> str:
    rest = "/".join(parts[3 if parts[0] == "repos" else 2 :])
    if rest.startswith(("git/trees/", "git/blobs/")):
        return rest.split("/")[1].removesuffix("s")
    return "other" if rest else "repo"


def _message(status: int, text: str) -> Answer:
    body = json.dumps({"message": text, "documentation_url": "https://docs.github.com/rest"}).encode()
    return Answer(status=status, headers={"Content-Type": "application/json; charset=utf-8"}, body=body)


def _with(answer: Answer, headers: Mapping[str, str]) -> Answer:
    return Answer(status=answer.status, headers={**headers, **answer.headers}, body=answer.body)
