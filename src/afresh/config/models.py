"""Define the settings of the models that make embeddings and summaries and score links."""

from collections.abc import Mapping

from afresh.config import forms
from afresh.config.spec import number, text, weights, whole
from afresh.dataclass import dataclass
from afresh.plugins import EMBEDDERS

LOCAL_MODELS = ("fast", "quality")
REMOTE = ("openai", "gemini")
LIBRARIES = ("fastembed", "sentence-transformers")
BASE_URLS = {"openai": "https://api.openai.com/v1", "gemini": "https://generativelanguage.googleapis.com/v1beta"}
MODELS = {
    "local": "fast",
    "gemini": "gemini-embedding-001",
    "fastembed": "BAAI/bge-small-en-v1.5",
    "sentence-transformers": "sentence-transformers/all-MiniLM-L6-v2",
}
AI_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """The model that converts texts to vectors; after a change, run `afresh reindex`."""

    provider: str = text(
        "local",
        "what makes the vectors: a model inside afresh, an API (`openai` also means any compatible server), a library "
        "that loads models by itself, or nothing (keyword search only)",
        choices=("local", "openai", "gemini", "fastembed", "sentence-transformers", "none"),
        plugins=EMBEDDERS,
    )
    model: str | None = text(
        None,
        "the name of the model; `local` has `fast` and `quality`; null: the provider's default",
        operator=True,  # libraries also accept a folder
        form=forms.name,
    )
    base_url: str | None = text(
        None,
        "the URL of the API, without `/embeddings` or `/models`; it may be on a private host; null: the provider's own",
        form=forms.api_url,
    )
    api_key: str | None = forms.secret_text(None, "the key of the API; null: none")
    dimensions: int | None = whole(
        None, "length of a vector, if the API can shorten it; null: that of the model", 8, 8192
    )
    document_prefix: str = text("", "text put before every indexed passage, if the model needs it")
    query_prefix: str = text("", "text put before every query, if the model needs it")
    batch_size: int = whole(64, "texts sent to an API or a library at once", 1, 2048)
    timeout_seconds: float = number(60.0, "maximum time of one API call", 0.1, 3600)
    budget_per_run: int | None = whole(
        None,
        "maximum texts that one run sends to an API; the rest waits for the next run; null: no limit",
        0,
        1_000_000_000,
    )

    @property
    def named_model(self) -> str | None:
        return self.model or MODELS.get(self.provider)

    @property
    def address(self) -> str | None:
        """Return the URL of the API; None if the provider has no API."""
        return (self.base_url or BASE_URLS[self.provider]) if self.provider in REMOTE else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AiSettings:
    """The model that writes summaries and scores links, and the limits of its use."""

    provider: str = text(
        "none",
        "what writes summaries: `none` takes sentences from the text itself, offline; `openai` is any API with "
        "OpenAI's chat completions",
        choices=("none", "openai"),
    )
    model: str | None = text(None, "the name of the model; `ai.provider: openai` needs one", form=forms.name)
    base_url: str | None = text(
        None,
        "the URL of the API, without `/chat/completions`; it may be on a private host; null: the provider's own",
        form=forms.api_url,
    )
    api_key: str | None = forms.secret_text(None, "the key of the API; null: none")
    budget_per_run: int | None = whole(
        1_000,
        "maximum calls of one run; the rest waits for the next run; null: no limit",
        0,
        1_000_000_000,
        optional=True,
    )
    budget_per_day: int | None = whole(
        None, "maximum calls of all runs on a store within 24 hours; null: no limit", 0, 1_000_000_000
    )
    max_summary_chars: int = whole(400, "maximum characters of a summary", 40, 10_000)
    max_input_chars: int = whole(
        20_000,
        "maximum characters of a document that are sent; of a longer one, its headings and its beginning",
        500,
        1_000_000,
    )
    timeout_seconds: float = number(60.0, "maximum time of one API call", 0.1, 3600)
    prompt_file: str | None = text(
        None,
        "a text file with your own prompt; `{max_chars}` in it becomes `ai.max_summary_chars`; null: the built-in one",
        form=forms.file,
    )

    @property
    def address(self) -> str | None:
        """Return the URL of the API; None if no API is used."""
        return (self.base_url or AI_BASE_URL) if self.provider == "openai" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksSettings:
    """The keywords by which links are scored, and the settings for computing the scores."""

    keywords: Mapping[str, float] = weights(
        "the keywords by which links are scored, each with a weight from 0 to 1; none: links are not scored"
    )
    scorer: str = text(
        "auto",
        "how links are scored: `offline` compares words, `model` asks the model of the section `ai`, "
        "`auto` asks that model if `ai.provider` is set, else compares words",
        choices=("auto", "offline", "model"),
    )
    unknown_keyword_weight: float = number(0.25, "the weight of a keyword that the model adds by itself", 0, 1)
    prompt_file: str | None = text(
        None, "a text file with your own prompt for scoring links; null: the built-in one", form=forms.file
    )
