"""What one look at an address showed that is no page of any source."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    """The text at an address, as it is now."""

    url: str  # where it was found, after redirects
    asked: str
    title: str
    markdown: str
    language: str | None
    media_type: str
    content_hash: str
    looked_at: datetime
    links: tuple[str, ...] = ()  # where it leads, each once
