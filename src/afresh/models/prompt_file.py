"""The words that a model is told: those that come with afresh, or a file of one's own."""

from importlib.resources import files
from pathlib import Path

from afresh.config.small_file import read_small_file
from afresh.errors import ConfigError

MAX_PROMPT_BYTES = 100_000


def prompt(name: str, own: str | None, key: str) -> str:
    """The prompt of this name without blanks around it, or the file that the setting `key` names instead.

    It reads a file: call it in a thread.
    """
    if own is None:
        return files("afresh.models").joinpath("prompts", name).read_text("utf-8").strip()
    try:
        data = read_small_file(Path(own).expanduser(), MAX_PROMPT_BYTES)
        words = data.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{key}: {own} cannot be read: {why}") from None
    if not words:
        raise ConfigError(f"{key}: {own} is empty")
    return words
