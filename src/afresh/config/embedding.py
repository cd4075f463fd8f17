"""The section `embedding`: which model makes the vectors that search compares."""

from dataclasses import dataclass, field

from afresh.config import forms
from afresh.config.spec import Spec, number, text, whole

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
    )
    model: str | None = text(
        None,
        "the name of the model; `local` has `fast` and `quality`; null: the provider's usual one",
        optional=True,
        operator=True,  # a library takes it for a folder, too
        form=forms.name,
    )
    base_url: str | None = text(
        None,
        "where the API is, up to and without `/embeddings` or `/models`; its host may be a private one; "
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
    dimensions: int | None = whole(
        None,
        "numbers a vector, where the API can shorten them; null: as many as the model has",
        8,
        8192,
        optional=True,
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
        optional=True,
    )

    @property
    def named_model(self) -> str | None:
        """The model in use: the one that is set, or the provider's usual one."""
        return self.model or MODELS.get(self.provider)

    @property
    def address(self) -> str | None:
        """Where the API is; None for a provider without one."""
        return (self.base_url or BASE_URLS[self.provider]) if self.provider in REMOTE else None
