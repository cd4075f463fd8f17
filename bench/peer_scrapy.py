"""What a careful user would write with Scrapy: crawl, Markdown, pieces in FTS5, and a refresh by ETag.

    python peer_scrapy.py START_URL DATABASE

Stands alone, because it runs in an environment of its own. The first run reads everything; later ones ask
with If-None-Match, follow the stored links of a page that did not change, and drop a page that is gone.
"""

import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

import scrapy  # type: ignore[import-not-found]
from markdownify import markdownify  # type: ignore[import-not-found]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]
from scrapy.linkextractors import LinkExtractor  # type: ignore[import-not-found]

SCHEMA = """
pragma journal_mode = wal;
pragma synchronous = normal;
create table if not exists pages (url text primary key, etag text, links text);
create table if not exists pieces (id integer primary key, url text);
create index if not exists pieces_of on pieces (url);
create virtual table if not exists search using fts5 (title, body, tokenize = 'porter unicode61');
"""
MAX_CHUNK_CHARS = 1500
_HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)


def pieces(markdown: str) -> Iterator[str]:
    """Sections, cut at line ends where they are too long."""
    for section in _HEADING.split(markdown):
        rest = section.strip()
        while rest:
            cut = (
                len(rest)
                if len(rest) <= MAX_CHUNK_CHARS
                else max(rest.rfind("\n", 0, MAX_CHUNK_CHARS), MAX_CHUNK_CHARS // 2)
            )
            yield rest[:cut]
            rest = rest[cut:].strip()


class Index:
    """Pages and their pieces in SQLite."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA)

    def known(self) -> dict[str, str]:
        """The ETag of every page."""
        return dict(self.db.execute("select url, etag from pages"))

    def links(self, url: str) -> list[str]:
        """The stored links of a page."""
        row = self.db.execute("select links from pages where url = ?", (url,)).fetchone()
        return list(json.loads(row[0])) if row else []

    def drop(self, url: str) -> None:
        """Forget a page."""
        self.db.execute("delete from search where rowid in (select id from pieces where url = ?)", (url,))
        self.db.execute("delete from pieces where url = ?", (url,))
        self.db.execute("delete from pages where url = ?", (url,))
        self.db.commit()

    def put(self, url: str, etag: str, links: list[str], title: str, markdown: str) -> None:
        """Replace a page."""
        self.drop(url)
        for piece in pieces(markdown):
            row = self.db.execute("insert into pieces (url) values (?)", (url,)).lastrowid
            self.db.execute("insert into search (rowid, title, body) values (?, ?, ?)", (row, title, piece))
        self.db.execute("insert into pages values (?, ?, ?)", (url, etag, json.dumps(links)))
        self.db.commit()


class Docs(scrapy.Spider):  # type: ignore[misc]
    """Follows links below the start page."""

    name = "docs"
    handle_httpstatus_list = (304, 404)

    def __init__(self, start: str, index: Index, **rest: Any) -> None:
        super().__init__(**rest)
        self.start_urls = [start]
        self.index = index
        self.etags = index.known()
        below = "^" + re.escape(start.rsplit("/", 1)[0] + "/")
        self.extractor = LinkExtractor(allow=below, deny_extensions=None)

    async def start(self) -> Any:
        """The start page, and every page that is known."""
        for url in {*self.start_urls, *self.etags}:
            yield self.ask(url)

    def ask(self, url: str) -> Any:
        """A request, conditional if the page is known."""
        etag = self.etags.get(url)
        return scrapy.Request(url, headers={"If-None-Match": etag} if etag else None)

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        """Index a page that is new or different, and go on with its links."""
        url = response.url
        if response.status == 404:
            self.index.drop(url)
            return
        if response.status == 304:
            links = self.index.links(url)
        else:
            links = sorted({link.url.split("#")[0] for link in self.extractor.extract_links(response)})
            markdown = markdownify(response.text, heading_style="ATX", strip=["script", "style"])
            etag = response.headers.get("ETag", b"").decode()
            self.index.put(url, etag, links, response.css("title::text").get(""), markdown)
        for link in links:
            yield self.ask(link)


def main() -> None:
    """Crawl or refresh."""
    start, path = sys.argv[1:]
    index = Index(path)
    process = CrawlerProcess(
        {
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "CONCURRENT_REQUESTS": 32,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
            "DOWNLOAD_DELAY": 0,
        }
    )
    process.crawl(Docs, start=start, index=index)
    process.start()
    print(json.dumps({"pages": len(index.known())}))


if __name__ == "__main__":
    main()
