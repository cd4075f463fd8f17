"""The section `ai`: who says in a few lines what a document is about, and which links matter."""

from dataclasses import dataclass, field

from afresh.config import forms
from afresh.config.spec import Spec, number, text, whole

PROVIDERS = ("none", "openai")
BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class AiSettings:
    """Which model writes summaries and scores links, and what it may cost."""

    provider: str = text(
        "none",
        "who writes summaries: `none` takes them from the text itself, offline; "
        "`openai` is any API that speaks its chat completions",
        choices=PROVIDERS,
    )
    model: str | None = text(
        None, "the name of the model; `ai.provider: openai` needs one", optional=True, form=forms.name
    )
    base_url: str | None = text(
        None,
        "where the API is, up to and without `/chat/completions`; its host may be a private one; "
        "null: the provider's own",
        optional=True,
        form=forms.api_url,
    )
    api_key: str | None = field(
        default=None,
        repr=False,
        metadata={
            "spec": Spec(
                kind="text", doc="the key of the API; null: none", optional=True, secret=True, form=forms.key
            )
        },
    )
    budget_per_run: int | None = whole(
        1_000,
        "calls that one run may make; the rest waits for the next run; null: no limit",
        0,
        1_000_000_000,
        optional=True,
    )
    budget_per_day: int | None = whole(
        None,
        "calls that all runs on a store may make within 24 hours; null: no limit",
        0,
        1_000_000_000,
        optional=True,
    )
    max_summary_chars: int = whole(400, "characters of a summary at most", 40, 10_000)
    max_input_chars: int = whole(
        20_000,
        "characters of a document that are sent; of a longer one its headings and its beginning",
        500,
        1_000_000,
    )
    timeout_seconds: float = number(60.0, "how long the API may take for one answer", 0.1, 3600)
    prompt_file: str | None = text(
        None,
        "a text file with a prompt of your own; `{max_chars}` in it becomes `ai.max_summary_chars`; "
        "null: the one that comes with afresh",
        optional=True,
        form=forms.file,
    )

    @property
    def address(self) -> str | None:
        """Where the API is; None where none is asked."""
        return (self.base_url or BASE_URL) if self.provider == "openai" else None
