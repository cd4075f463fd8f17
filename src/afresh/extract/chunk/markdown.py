"""Cut a Markdown document into chunks along its structure."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise, takewhile
from zlib import crc32

from afresh.dataclass import replace
from afresh.extract.chunk.blocks import MAX_CHARS, MIN_CHARS, TINY_CHARS, Piece, Trail, pieces_of
from afresh.model.fetch import Body, Chunk, Document, embedded_text
from afresh.search.stemming import analysed, kept_language, search_config
from afresh.text.normalize import text_hash, with_search_terms
from afresh.text.plain import TargetlessText

_LAST_HEADING = 6
_DEPTH = 28  # deeper recursion is a sign of a malicious text, which is cut in the middle
_TYPES = ("text", "code", "table", "list")


class _Packing:
    """Groups pieces into chunks; `ranges` holds the range of the pieces of each chunk.

    A range that is too large is cut before the piece with the smallest key (`rank << 32 | hash`) that leaves
    enough text on both sides, and its parts are cut in the same way. After an edit, the keys of other pieces stay,
    and so do the cuts there. (Filling chunks in order would shift all later cuts.)
    """

    def __init__(self, sizes: Sequence[int], keys: Sequence[int]) -> None:
        self.keys = keys
        self.at = [0, *accumulate(sizes)]
        self.ranges: list[tuple[int, int]] = []
        self.cut(0, 0, len(sizes), 0)

    def size(self, low: int, high: int) -> int:
        return self.at[high] - self.at[low]

    def cut(self, low: int, first: int, high: int, depth: int) -> None:
        """Add the pieces `low:high` as one chunk, or several if too large; do not cut between `low` and `first`."""
        if self.size(low, high) <= MAX_CHARS or high - first < 2:
            self.ranges.append((low, high))
            return
        rank = min(self.keys[first + 1 : high]) >> 32
        if rank > _LAST_HEADING:
            self._halve(low, first, range(first + 1, high), high, depth)
            return
        borders = [i for i in range(first + 1, high) if self.keys[i] >> 32 == rank]
        groups = self._groups(low, first, borders, high)
        if len(groups) == 1 and groups[0][1] == first:
            self._halve(low, first, borders, high, depth)
            return
        for group in groups:
            self.cut(*group, depth + 1)

    def _halve(self, low: int, first: int, borders: Sequence[int], high: int, depth: int) -> None:
        border = self._best(low, borders, high, depth)
        self.cut(low, first, border, depth + 1)
        self.cut(border, border, high, depth + 1)

    def _best(self, low: int, borders: Sequence[int], high: int, depth: int) -> int:
        """Return where to cut: at the border with the smallest key and enough text on both sides, or in the middle."""
        at = self.at
        start = bisect_left(borders, at[low] + MIN_CHARS, key=at.__getitem__)
        stop = bisect_right(borders, at[high] - MIN_CHARS, key=at.__getitem__)
        if start < stop and depth < _DEPTH:
            best = min(borders[start:stop], key=self.keys.__getitem__)
            # If all keys are equal, cut in the middle: the smallest key would always be that of the first border.
            if best != borders[start] or self.keys[best] != self.keys[borders[stop - 1]]:
                return best
        middle = (at[low] + at[high]) // 2
        near = bisect_left(borders, middle, key=at.__getitem__)
        return min(borders[max(near - 1, 0) : near + 1], key=lambda i: abs(at[i] - middle))

    def _groups(self, low: int, first: int, borders: list[int], high: int) -> list[tuple[int, int, int]]:
        """Group small neighbouring sections (cut at `borders`); a section that is too large for a chunk stays alone.

        Return `low`, `first` and `high` of each group, as `cut` takes them.
        """
        groups: list[tuple[int, int, int]] = []
        joinable = False
        for start, stop in pairwise((low, *borders, high)):
            large = self.size(start, stop) > MAX_CHARS
            introduced = start == borders[0] and self.size(low, start) <= TINY_CHARS
            if groups and joinable and not large:
                groups[-1] = (*groups[-1][:2], stop)
            elif large and introduced:
                groups[-1] = (low, start, stop)
            else:
                groups.append((start, first if start == low else start, stop))
            joinable = not large
        return groups


def chunk(document: Document) -> Sequence[Chunk]:
    """Return the chunks of a document in order, each of about 800 to 2000 characters, not counting link targets.

    Sections, code blocks and table rows that fit into a chunk are not cut. Chunks far from an edit stay the same.
    """
    markdown = document.markdown
    if "\r" in markdown:
        markdown = markdown.replace("\r\n", "\n").replace("\r", "\n")
    if not markdown.isascii():  # lone surrogates cannot be encoded as UTF-8
        markdown = markdown.encode("utf-8", "replace").decode()
    text = TargetlessText(markdown)
    pieces = pieces_of(text.short)
    packing = _Packing([len(piece.text) for piece in pieces], _keys(pieces))
    at, config = packing.at, search_config(document.language)
    chunks = (_chunk(pieces, low, high, text.between(at[low], at[high])) for low, high in packing.ranges)
    title = analysed(document.title, config)
    return [with_search_terms(chunk, title, config) for chunk in chunks if chunk.content]


def extract_and_chunk(
    extract: Callable[[Body], Document], body: Body, known_hash: str | None, language: str | None, redetect: bool
) -> tuple[Document, Sequence[Chunk] | None]:
    """Return the document of a body and its chunks; None instead of chunks if the text is known or chunking fails.

    The text is known if its hash is `known_hash`. `language` is the stored language of the page, which determines the
    chunks; with `redetect`, the language of the document does.
    """
    document, chunks = extract(body), None
    if document.content_hash != known_hash:
        with suppress(Exception):  # the page is read; who needs the chunks asks again, and fails then
            kept = kept_language(language, document.language, redetect=redetect)
            chunks = chunk(replace(document, language=kept))
    return document, chunks


def _keys(pieces: Sequence[Piece]) -> list[int]:
    """Return a key for the cut before each piece (smaller is better): its rank, then a hash of its first words."""
    keys = []
    before = ""
    for index, piece in enumerate(pieces):
        words = piece.text[:48]
        if piece.heading and index + 1 < len(pieces):
            words += pieces[index + 1].text[:32]  # many sections may have the same title, such as "Example"
        introduced = not piece.heading and before.endswith(":")
        keys.append((piece.rank + introduced) << 32 | crc32(words.encode()))
        before = piece.text[-8:].rstrip()
    return keys


def _chunk(pieces: Sequence[Piece], low: int, high: int, text: str) -> Chunk:
    inside = pieces[low:high]
    trail = _common_trail(inside)
    path = tuple(title for _, title in trail)
    content = inside[0].reopen + text
    if close := pieces[high].close if high < len(pieces) else "":
        content += close if content.endswith("\n") else "\n" + close
    content = content.rstrip().lstrip("\n")
    kinds = {piece.kind for piece in inside if not piece.heading}
    if "list" in kinds and any("```" in piece.text for piece in inside if piece.kind == "list"):
        kinds.add("code")
    return Chunk(
        content=content,
        path=path,
        level=trail[-1][0] if trail else 0,
        types=tuple(kind for kind in _TYPES if kind in kinds) or ("text",),
        text_hash=text_hash(embedded_text(path, content)),
    )


def _common_trail(inside: Sequence[Piece]) -> Trail:
    """Return the headings that enclose everything in a chunk; ignore headings without text below them."""
    trails = [piece.trail for piece in inside if not piece.heading] or [piece.trail for piece in inside]
    common = trails[0]
    for trail in trails:
        if trail is not common:
            same = takewhile(lambda steps: steps[0] == steps[1], zip(common, trail, strict=False))
            common = tuple(step for step, _ in same)
    return common
