"""Who writes summaries: the text itself, or the model that the settings name."""

from afresh.config.ai import AiSettings
from afresh.models.allowance import Allowance
from afresh.models.prompt_file import prompt
from afresh.ports import Caller, Summarizer


class OfflineSummarizer:
    """Fulfils `ports.Summarizer` with what a document says of itself: no key, no network, no cost."""

    def __init__(self, most_chars: int = 400) -> None:
        self._most = most_chars

    @property
    def recipe(self) -> str:
        """What would make other summaries of the same text."""
        from afresh.digest.offline_summary import RECIPE

        return f"offline/{RECIPE}"

    async def summarise(self, title: str, text: str) -> str:
        """Title, first sentences, headings and terms."""
        from afresh.digest.offline_summary import summary_of

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
        prompt("summary.md", settings.prompt_file, "ai.prompt_file"),
        caller,
        base_url=address,
        api_key=settings.api_key,
        allowance=allowance or Allowance(settings.budget_per_run),
        most_chars=settings.max_summary_chars,
        most_input=settings.max_input_chars,
        timeout_seconds=settings.timeout_seconds,
    )
