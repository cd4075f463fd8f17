"""A fetcher that gives scripted results."""

from collections.abc import Mapping, Sequence

from afresh.model.fetch import Fetched, Gone, Request


class ScriptedFetcher:
    """Implements `ports.Fetcher`: returns the scripted results of a URL in turn and repeats the last one.

    For other URLs, it returns `Gone`.
    """

    def __init__(self, answers: Mapping[str, Sequence[Fetched]] | None = None) -> None:
        self.answers: dict[str, list[Fetched]] = {url: list(each) for url, each in (answers or {}).items()}
        self.requests: list[Request] = []
        self.closed = False

    async def fetch(self, request: Request) -> Fetched:
        """Record the request, and return the next result for its URL."""
        self.requests.append(request)
        left = self.answers.get(request.url)
        if not left:
            return Gone()
        return left.pop(0) if len(left) > 1 else left[0]

    def say(self, url: str, *answers: Fetched) -> None:
        self.answers[url] = list(answers)

    def count(self, url: str) -> int:
        return sum(1 for request in self.requests if request.url == url)

    async def close(self) -> None:
        self.closed = True
