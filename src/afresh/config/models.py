"""Settings of the models that embed, summarise and score links."""

from collections.abc import Mapping
from dataclasses import dataclass

from afresh.config import forms
from afresh.config.spec import number, text, weights, whole
from afresh.plugins import EMBEDDERS

PROVIDERS = ("local", "openai", "gemini", "fastembed", "sentence-transformers", "none")
LOCAL_MODELS = ("fast", "quality")
REMOTE = ("openai", "gemini")
LIBRARIES = ("fastembed", "sentence-transformers")
BASE_URLS = {
    "openai": "https://api.openai.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
MODELS = {
    "local": "fast",
    "gemini": "gemini-embedding-001",
    "fastembed": "BAAI/bge-small-en-v1.5",
    "sentence-transformers": "sentence-transformers/all-MiniLM-L6-v2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """Which model turns texts into vectors; changing it takes effect with `afresh reindex`."""

    provider: str = text(
        "local",
        "who makes the vectors: a model inside afresh, an API (`openai` is any that speaks its form), "
        "a library that loads models by itself, or nobody (search by words alone)",
        choices=PROVIDERS,
        plugins=EMBEDDERS,
    )
    model: str | None = text(
        None,
        "the name of the model; `local` has `fast` and `quality`; null: the provider's usual one",
        operator=True,  # libraries also accept a folder
        form=forms.name,
    )
    base_url: str | None = text(
        None,
        "where the API is, up to and without `/embeddings` or `/models`; its host may be a private one; "
        "null: the provider's own",
        form=forms.api_url,
    )
    api_key: str | None = forms.secret_text(None, "the key of the API; null: none")
    dimensions: int | None = whole(
        None, "numbers a vector, where the API can shorten them; null: as many as the model has", 8, 8192
    )
    document_prefix: str = text("", "put before every text that is indexed, where a model wants it")
    query_prefix: str = text("", "put before every question, where a model wants it")
    batch_size: int = whole(64, "texts that go to an API or a library at once", 1, 2048)
    timeout_seconds: float = number(60.0, "how long an API may take for one answer", 0.1, 3600)
    budget_per_run: int | None = whole(
        None,
        "texts that one run may send to an API; the rest waits for the next run; null: no limit",
        0,
        1_000_000_000,
    )

    @property
    def named_model(self) -> str | None:
        """Return the model in use: the configured one, or the default of the provider."""
        return self.model or MODELS.get(self.provider)

    @property
    def address(self) -> str | None:
        """Return the URL of the API; None for a provider without one."""
        return (self.base_url or BASE_URLS[self.provider]) if self.provider in REMOTE else None


AI_PROVIDERS = ("none", "openai")
AI_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class AiSettings:
    """Which model writes summaries and scores links, and what it may cost."""

    provider: str = text(
        "none",
        "who writes summaries: `none` takes them from the text itself, offline; "
        "`openai` is any API that speaks its chat completions",
        choices=AI_PROVIDERS,
    )
    model: str | None = text(None, "the name of the model; `ai.provider: openai` needs one", form=forms.name)
    base_url: str | None = text(
        None,
        "where the API is, up to and without `/chat/completions`; its host may be a private one; "
        "null: the provider's own",
        form=forms.api_url,
    )
    api_key: str | None = forms.secret_text(None, "the key of the API; null: none")
    budget_per_run: int | None = whole(
        1_000,
        "calls that one run may make; the rest waits for the next run; null: no limit",
        0,
        1_000_000_000,
        optional=True,
    )
    budget_per_day: int | None = whole(
        None, "calls that all runs on a store may make within 24 hours; null: no limit", 0, 1_000_000_000
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
        form=forms.file,
    )

    @property
    def address(self) -> str | None:
        """Return the URL of the API; None if no API is used."""
        return (self.base_url or AI_BASE_URL) if self.provider == "openai" else None


SCORERS = ("auto", "offline", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksSettings:
    """By which keywords links are scored, and who scores them."""

    keywords: Mapping[str, float] = weights(
        "what links are scored by: keywords, each with its weight from 0 to 1; none: no link is scored"
    )
    scorer: str = text(
        "auto",
        "who scores links: `offline` compares words, `model` asks the model of the section `ai`, "
        "`auto` asks it if `ai.provider` names one",
        choices=SCORERS,
    )
    unknown_keyword_weight: float = number(
        0.25, "the weight of a keyword that the model names although nobody asked for it", 0, 1
    )
    prompt_file: str | None = text(
        None,
        "a text file with a prompt of your own for scoring links; null: the one that comes with afresh",
        form=forms.file,
    )
