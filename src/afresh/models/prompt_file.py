"""The words that a model is told: those that come with afresh, or a file of one's own."""

from importlib.resources import files
from pathlib import Path

from afresh.core.errors import ConfigError

_LARGEST = 100_000  # bytes


def prompt(name: str, own: str | None, key: str) -> str:
    """The prompt of this name without blanks around it, or the file that the setting `key` names instead."""
    if own is None:
        return files("afresh.models").joinpath("prompts", name).read_text("utf-8").strip()
    try:
        with Path(own).expanduser().open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        words = data.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{key}: {own} cannot be read: {why}") from None
    if not words or len(data) > _LARGEST:
        wrong = "is larger than 100 KB" if words else "is empty"
        raise ConfigError(f"{key}: {own} {wrong}")
    return words
