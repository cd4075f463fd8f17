"""Who writes summaries: the text itself, or the model that the settings name."""

from importlib.resources import files
from pathlib import Path

from afresh.config.ai import AiSettings
from afresh.core.errors import ConfigError
from afresh.core.summary import RECIPE, summary_of
from afresh.models.allowance import Allowance
from afresh.ports import Caller, Summarizer

_LARGEST_PROMPT = 100_000  # bytes


class OfflineSummarizer:
    """Fulfils `ports.Summarizer` with what a document says of itself: no key, no network, no cost."""

    recipe = f"offline/{RECIPE}"

    def __init__(self, most_chars: int = 400) -> None:
        self._most = most_chars

    async def summarise(self, title: str, text: str) -> str:
        """Title, first sentences, headings and terms."""
        return summary_of(title, text, self._most)

    async def close(self) -> None:
        """Nothing is open."""


def summarizer_for(
    settings: AiSettings, caller: Caller | None, allowance: Allowance | None = None
) -> Summarizer:
    """The summariser of one run; `caller` asks `settings.address` and is needed where there is one."""
    address = settings.address
    if address is None:
        return OfflineSummarizer(settings.max_summary_chars)
    if caller is None:
        raise ValueError("ai.provider: openai needs a caller")
    from afresh.models.summarizer import ChatSummarizer

    return ChatSummarizer(
        settings.model or "",
        _prompt(settings.prompt_file),
        caller,
        base_url=address,
        api_key=settings.api_key,
        allowance=allowance or Allowance(settings.budget_per_run),
        most_chars=settings.max_summary_chars,
        most_input=settings.max_input_chars,
        timeout_seconds=settings.timeout_seconds,
    )


def _prompt(file: str | None) -> str:
    """The words of the prompt, without blanks around them."""
    if file is None:
        return files("afresh.models").joinpath("prompts", "summary.md").read_text("utf-8").strip()
    try:
        with Path(file).expanduser().open("rb") as opened:
            data = opened.read(_LARGEST_PROMPT + 1)
        prompt = data.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"ai.prompt_file: {file} cannot be read: {why}") from None
    if not prompt or len(data) > _LARGEST_PROMPT:
        wrong = "is larger than 100 KB" if prompt else "is empty"
        raise ConfigError(f"ai.prompt_file: {file} {wrong}")
    return prompt
