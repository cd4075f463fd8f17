"""Pages of a made-up documentation site, for machines without the real ones."""

import random
from collections.abc import Callable
from html import escape
from pathlib import Path

PAGES = 1200
PER_CHAPTER = 20
_NOUNS = """
    cluster replica segment buffer cursor schema tenant broker session token ledger shard snapshot journal
    index planner worker lease queue socket packet region bucket volume checkpoint trigger gateway router
    listener payload envelope signature keyring partition watermark heartbeat scheduler allocator
""".split()  # noqa: SIM905
_VERBS = """
    starts stops copies flushes replays renews expires rejects retries compacts merges splits locks
    releases verifies rotates encrypts throttles forwards batches commits discards restores promotes
""".split()  # noqa: SIM905
_ADJECTIVES = """
    idle stale durable remote local nested partial atomic read-only primary secondary orphaned expired
    compressed encrypted ordered bounded lazy eager transient
""".split()  # noqa: SIM905
_TYPES = ("integer", "boolean", "duration", "string", "list of strings")


def fill_with(count: int, seed: int = 7) -> Callable[[Path], None]:
    """Fills a folder with that many pages, the same for the same seed."""

    def fill(folder: Path) -> None:
        writer = _Writer(random.Random(seed), _paths(count))
        for number, path in enumerate(writer.paths):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(writer.page(number), "utf-8")

    return fill


def _paths(count: int) -> list[str]:
    """The start page, then chapters of twenty pages, each led by its own index."""
    paths = ["index.html"]
    for number in range(count - 1):
        chapter, place = divmod(number, PER_CHAPTER)
        paths.append(f"chapter-{chapter:02d}/{f'page-{place:02d}' if place else 'index'}.html")
    return paths


class _Writer:
    def __init__(self, rng: random.Random, paths: list[str]) -> None:
        self.rng = rng
        self.paths = paths
        self.titles = ["Manual"] + [self._title() for _ in paths[1:]]
        self.chapters = [n for n, path in enumerate(paths) if n and path.endswith("/index.html")]

    def page(self, number: int) -> str:
        """One whole page of 5 to 60 kB."""
        size = int(self.rng.triangular(5_000, 60_000, 9_000))
        title = escape(self.titles[number])
        body: list[str] = []
        while sum(map(len, body)) < size * 0.7:
            body.append(self._section(number, len(body)))
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title} — Manual</title>'
            f'</head>\n<body><nav class="top">{self._chapter_list(number)}</nav>\n'
            f'<aside class="sidebar">{self._siblings(number)}</aside>\n<main>\n<h1>{title}</h1>\n'
            + "\n".join(body)
            + f'\n</main>\n<footer class="related">{self._neighbours(number)}</footer></body></html>\n'
        )

    def _section(self, number: int, place: int) -> str:
        makers = (self._prose, self._prose, self._code, self._table, self._definitions)
        content = "\n".join(self.rng.choice(makers)(number) for _ in range(3))
        return f'<section id="s{place}"><h2>{self._title()}</h2>\n{content}</section>'

    def _prose(self, number: int) -> str:
        other = self.rng.randrange(len(self.paths))
        link = self._link(number, other)
        return f"<p>{self._sentences(4)} See {link} for details. {self._sentences(2)}</p>"

    def _code(self, _: int) -> str:
        lines = [
            f"{self.rng.choice(_NOUNS)} = client.{self.rng.choice(_NOUNS)}(limit={self.rng.randrange(999)})"
            for _ in range(self.rng.randrange(3, 12))
        ]
        return f'<pre><code class="language-python">{escape(chr(10).join(lines))}</code></pre>'

    def _table(self, _: int) -> str:
        rows = "".join(
            f"<tr><td><code>{self.rng.choice(_NOUNS)}_{self.rng.choice(_NOUNS)}</code></td>"
            f"<td>{self.rng.choice(_TYPES)}</td><td>{self._sentences(1)}</td></tr>"
            for _ in range(self.rng.randrange(3, 10))
        )
        head = "<thead><tr><th>Option</th><th>Type</th><th>Meaning</th></tr></thead>"
        return f"<table>{head}<tbody>{rows}</tbody></table>"

    def _definitions(self, _: int) -> str:
        items = (f"<dt>{self._title()}</dt><dd>{self._sentences(2)}</dd>" for _ in range(4))
        return f"<dl>{''.join(items)}</dl>"

    def _sentences(self, count: int) -> str:
        pick = self.rng.choice
        return " ".join(
            f"The {pick(_ADJECTIVES)} {pick(_NOUNS)} {pick(_VERBS)} the {pick(_NOUNS)} before "
            f"a {pick(_ADJECTIVES)} {pick(_NOUNS)} {pick(_VERBS)}."
            for _ in range(count)
        )

    def _title(self) -> str:
        return f"{self.rng.choice(_ADJECTIVES)} {self.rng.choice(_NOUNS)} {self.rng.choice(_NOUNS)}".capitalize()

    def _link(self, source: int, target: int) -> str:
        up = "../" * self.paths[source].count("/")
        return f'<a href="{up}{self.paths[target]}">{escape(self.titles[target])}</a>'

    def _chapter_list(self, number: int) -> str:
        return "".join(f"<li>{self._link(number, chapter)}</li>" for chapter in self.chapters)

    def _siblings(self, number: int) -> str:
        first = max((chapter for chapter in self.chapters if chapter <= number), default=1)
        last = min(first + PER_CHAPTER, len(self.paths))
        return f"<ul>{''.join(f'<li>{self._link(number, page)}</li>' for page in range(first, last))}</ul>"

    def _neighbours(self, number: int) -> str:
        near = [page for page in (number - 1, number + 1) if 0 <= page < len(self.paths)]
        return " | ".join(self._link(number, page) for page in (0, *near))
