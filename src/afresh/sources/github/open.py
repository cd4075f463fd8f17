"""Puts together what looks at one GitHub repository: the API, the state of the repository, its wiki."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from yarl import URL

from afresh.model.fetch import Failed, Outcome, Refused
from afresh.ports import Clock
from afresh.sources.github.address import PUBLIC_WEB, GithubAddress, odd_wiki_page
from afresh.sources.github.api import GithubApi
from afresh.sources.github.fetcher import GithubFetcher
from afresh.sources.github.repository import GithubRepository
from afresh.sources.github.token import VARIABLES, Token
from afresh.sources.web.api_client import ApiClient
from afresh.sources.web.http import HttpFetcher, HttpOptions
from afresh.sources.web.robots import RobotsGate

_PUBLIC_API, _PUBLIC_RAW = "https://api.github.com", "https://raw.githubusercontent.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubPlaces:
    """Where a GitHub server is, and the token that its operator gave for it."""

    web_url: str = PUBLIC_WEB
    api_url: str = _PUBLIC_API
    raw_url: str = _PUBLIC_RAW
    token: str | None = None


def open_github(
    address: GithubAddress,
    places: GithubPlaces,
    options: HttpOptions,
    environment: Mapping[str, str],
    *,
    anonymous: bool = False,
    mark: str | None,
    rules: str,
    refusal: Callable[[str], str | None],
    max_file_bytes: int,
    wiki: bool,
    most_files: int,
    respect_robots: bool,
    clock: Clock,
) -> tuple[GithubRepository, GithubFetcher]:
    """What looks at a repository; `refusal` leaves out paths, `rules` stands for what it obeys."""
    if address.web != places.web_url:  # github.com beside an Enterprise server: its token is not for it
        places = GithubPlaces()
        environment = {name: value for name, value in environment.items() if name not in VARIABLES}
    web = URL(places.web_url)
    api = GithubApi(
        ApiClient(
            [places.api_url, places.raw_url],
            user_agent=options.user_agent,
            connect_seconds=options.connect_seconds,
        ),
        api_url=places.api_url,
        raw_url=places.raw_url,
        token=Token(places.token, environment, web.host or "", anonymous=anonymous),
        clock=clock,
        timeout=options.total_seconds,
        max_file_bytes=max_file_bytes,
    )
    repository = GithubRepository(
        api,
        address,
        mark=mark,
        rules=rules,
        refusal=refusal,
        wiki=wiki,
        most_files=most_files,
        max_file_bytes=max_file_bytes,
    )
    if places.web_url != PUBLIC_WEB:
        options = replace(options, policy=options.policy.also(f"{web.host_subcomponent}:{web.port}"))

    async def barred(url: str, asked: str) -> Refused | Failed | None:
        root = repository.wiki
        outside = odd_wiki_page(url, root) if root else "no wiki"
        if outside is not None:
            return Refused(outcome=Outcome.FAILED, reason=outside)
        return await gate.refusal(url)

    http = HttpFetcher(options, clock=clock, refusal=barred)
    gate = RobotsGate(http, http, respect=respect_robots, clock=clock, learn=http.pace.learn)
    return repository, GithubFetcher(repository, api, gate)
