"""A fetcher that answers from a script."""

from collections.abc import Mapping, Sequence

from afresh.model.fetch import Fetched, Gone, Request


class ScriptedFetcher:
    """Fulfils `ports.Fetcher`: gives each address its answers in turn, the last one for ever, else `Gone`."""

    def __init__(self, answers: Mapping[str, Sequence[Fetched]] | None = None) -> None:
        self.answers: dict[str, list[Fetched]] = {url: list(each) for url, each in (answers or {}).items()}
        self.requests: list[Request] = []
        self.closed = False

    async def fetch(self, request: Request) -> Fetched:
        """Record the request and give the next answer of its address."""
        self.requests.append(request)
        left = self.answers.get(request.url)
        if not left:
            return Gone()
        return left.pop(0) if len(left) > 1 else left[0]

    def say(self, url: str, *answers: Fetched) -> None:
        """Let an address answer these from now on."""
        self.answers[url] = list(answers)

    def count(self, url: str) -> int:
        """How often an address was looked at."""
        return sum(1 for request in self.requests if request.url == url)

    async def close(self) -> None:
        """Remember that the owner closed it."""
        self.closed = True
