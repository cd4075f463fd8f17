"""A site that makes pages to order: every address below a trap answers, and leads to more of this kind."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from tests.e2e.sites import page

from afresh.testing import TinySite
from afresh.testing.script import Answer

if TYPE_CHECKING:
    from aiohttp import web


def calendar(path: str) -> list[str]:
    """A month leads to its days, to the next and the previous month, and to the same month of other years."""
    year, month = (int(part) for part in path.split("/")[2:4])
    days = [f"/cal/{year}/{month:02}/{day:02}" for day in range(1, 6)]
    return [
        f"/cal/{year + month // 12}/{month % 12 + 1:02}",
        *(f"/cal/{year + step}/{month:02}" for step in (-1, 1, 10)),
        *days,
    ]


def pager(path: str) -> list[str]:
    """A page of a list leads to many later ones."""
    number = int(parse_qs(urlsplit(path).query)["page"][0])
    return [f"/list?page={number + step}" for step in range(1, 8)]


def sessions(path: str) -> list[str]:
    """Every answer has links with a session of its own."""
    mark = f"{abs(hash(path)):032x}"[:32]
    return [
        f"/shop/a;jsessionid={mark}",
        f"/shop/b?PHPSESSID={mark}",
        f"/shop/c?sid={mark}",
        f"/shop/d?CFID={mark}&CFTOKEN=7",
        f"/shop/e?key={mark}",
    ]


def deeper(path: str) -> list[str]:
    """A relative link that a server answers at any depth."""
    return [f"{path.rstrip('/')}/a", f"{path.rstrip('/')}/b/c"]


def longer(path: str) -> list[str]:
    """The address grows by a piece each time."""
    return [f"{path}{'x' * 300}", f"{path}{'y' * 300}"]


def params(path: str) -> list[str]:
    """One more parameter each time, by a new name and by an old one."""
    mark = "&" if "?" in path else "?"
    return [f"{path}{mark}p{path.count('=')}=on", f"{path}{mark}tag=on"]


TRAPS: dict[str, Callable[[str], list[str]]] = {
    "/cal/": calendar,
    "/list": pager,
    "/shop/": sessions,
    "/deep": deeper,
    "/long/": longer,
    "/grow": params,
}
ENTRIES = {
    "/cal/": "/cal/2024/05",
    "/list": "/list?page=1",
    "/shop/": "/shop/a",
    "/deep": "/deep",
    "/long/": "/long/",
    "/grow": "/grow",
}


class EndlessSite(TinySite):
    """A site with traps; whatever its script holds stands before them."""

    def _answer(self, request: "web.BaseRequest") -> Answer:
        path = request.path_qs
        for start, links in TRAPS.items():
            if path.startswith(start):
                self.put(path, page(path, links(path)), listed=False)
        return super()._answer(request)
