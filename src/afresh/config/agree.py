"""Settings that depend on each other: defaults give way, contradictions are refused."""

from collections.abc import Container

from afresh.config.ai import BASE_URL, AiSettings
from afresh.config.embedding import BASE_URLS, LOCAL_MODELS, REMOTE, EmbeddingSettings
from afresh.config.spec import nearest, plain, shown
from afresh.config.tree import Config, replaced
from afresh.errors import ConfigError


def settle(config: Config, given: Container[str]) -> Config:
    """The tree with defaults bent to what was given; two given values that contradict are an error."""
    policy = config.policy
    if policy.heartbeat_seconds * 2 > policy.lease_seconds:
        if "policy.heartbeat_seconds" in given:
            raise ConfigError(
                f"policy.heartbeat_seconds ({plain(policy.heartbeat_seconds)}) must be at most half of "
                f"policy.lease_seconds ({plain(policy.lease_seconds)}), or workers would lose their pages"
            )
        config = replaced(config, {("policy", "heartbeat_seconds"): policy.lease_seconds / 6})
    if policy.backoff_base_seconds > policy.backoff_max_seconds:
        if "policy.backoff_base_seconds" in given:
            raise ConfigError(
                f"policy.backoff_base_seconds ({plain(policy.backoff_base_seconds)}) must be at most "
                f"policy.backoff_max_seconds ({plain(policy.backoff_max_seconds)})"
            )
        config = replaced(config, {("policy", "backoff_base_seconds"): policy.backoff_max_seconds})
    config = _with_kb_backoff(config, given)
    if wrong := _embedding(config.embedding) or _ai(config.ai) or _links(config):
        raise ConfigError(wrong)
    return config


def _with_kb_backoff(config: Config, given: Container[str]) -> Config:
    base = config.kb.url_refresh_fail_backoff_base_seconds
    longest = config.kb.url_refresh_fail_backoff_max_seconds
    if base <= longest:
        return config
    if "kb.url_refresh_fail_backoff_base_seconds" in given:
        raise ConfigError(
            f"kb.url_refresh_fail_backoff_base_seconds ({plain(base)}) must be at most "
            f"kb.url_refresh_fail_backoff_max_seconds ({plain(longest)})"
        )
    return replaced(config, {("kb", "url_refresh_fail_backoff_base_seconds"): longest})


def _embedding(embedding: EmbeddingSettings) -> str | None:
    """Why the settings of the model cannot be meant together, or None."""
    provider, model = embedding.provider, embedding.model
    if provider == "local" and model not in (None, *LOCAL_MODELS):
        known = f"expected {' or '.join(LOCAL_MODELS)} with embedding.provider: local"
        return f"embedding.model: {known}, got {shown(model)}{nearest(str(model), LOCAL_MODELS)}"
    if provider == "openai" and not model:
        return "embedding.model: embedding.provider: openai needs the name of a model"
    if provider in REMOTE and not embedding.api_key and embedding.address == BASE_URLS[provider]:
        return (
            f"embedding.provider: {provider} needs a key (AFRESH_EMBEDDING__API_KEY), "
            "or embedding.base_url names a server that needs none"
        )
    if provider not in (*REMOTE, "none") and embedding.dimensions is not None:
        return f"embedding.dimensions: embedding.provider: {provider} has vectors of one size only"
    return None


def _ai(ai: AiSettings) -> str | None:
    """Why the settings of summaries cannot be meant together, or None."""
    if ai.provider == "openai" and not ai.model:
        return "ai.model: ai.provider: openai needs the name of a model"
    if not ai.api_key and ai.address == BASE_URL:
        return (
            "ai.provider: openai needs a key (AFRESH_AI__API_KEY), "
            "or ai.base_url names a server that needs none"
        )
    return None


def _links(config: Config) -> str | None:
    """Why the settings of link scores cannot be meant together, or None."""
    if config.links.keywords and config.links.scorer == "model" and config.ai.address is None:
        return "links.scorer: model needs ai.provider: openai and ai.model, or set it to offline"
    return None
