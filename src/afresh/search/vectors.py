"""What is known of the vectors of a store, and what is made anew when a recipe changes."""

from dataclasses import dataclass
from typing import NamedTuple

from afresh.model.fetch import Chunk
from afresh.model.records import Page

UNEMBEDDED = "not embedded"  # how the reason of a look begins whose content waits for vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that made vectors of a store."""

    name: str  # its fingerprint
    dimensions: int
    serving: bool  # the one that answers searches


class Wanting(NamedTuple):
    """A chunk that lacks a vector, with the text it is to be made from."""

    chunk: int
    text_hash: str
    path: tuple[str, ...]
    content: str


class Lack(NamedTuple):
    """How many chunks or pages are to be made anew, and how many of them have no text to make them from."""

    number: int
    without_text: int


class Cut(NamedTuple):
    """A page whose text is to be cut into chunks anew, and what it was cut into."""

    page: Page
    markdown: str
    chunks: tuple[Chunk, ...] = ()
