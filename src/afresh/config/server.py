"""Settings of `afresh serve`."""

from dataclasses import dataclass

from afresh.config import forms
from afresh.config.spec import text, texts, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where `afresh serve` listens, and what those who call it may name."""

    host: str = text("127.0.0.1", "the address that is listened at", operator=True, form=forms.name)
    port: int = whole(8000, "the port that is listened at; 0: any that is free", 0, 65_535)
    allowed_roots: tuple[str, ...] = texts(
        "folders of this machine that a caller may name as a source, with all that is in them; none: only "
        "what is on the web",
        form=forms.file,
    )
