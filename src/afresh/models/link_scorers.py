"""Who scores links: words compared on this machine, or the model that the settings name."""

from afresh.config.ai import AiSettings
from afresh.config.links import LinksSettings
from afresh.errors import ConfigError
from afresh.models.allowance import Allowance
from afresh.models.offline_scorer import OfflineLinkScorer
from afresh.models.prompt_file import prompt
from afresh.ports import Caller, LinkScorer


def link_scorer_for(
    links: LinksSettings, ai: AiSettings, caller: Caller | None, allowance: Allowance
) -> LinkScorer:
    """The scorer of one run; `caller` asks `ai.address` and is needed where a model is."""
    address = ai.address
    if links.scorer == "offline" or (links.scorer == "auto" and address is None):
        return OfflineLinkScorer()
    if address is None:
        raise ConfigError("links.scorer: model needs a model: set ai.provider to openai, and ai.model")
    if caller is None:
        raise ValueError("ai.provider: openai needs a caller")
    from afresh.models.link_scorer import ChatLinkScorer

    return ChatLinkScorer(
        ai.model or "",
        prompt("links.md", links.prompt_file, "links.prompt_file"),
        caller,
        base_url=address,
        api_key=ai.api_key,
        allowance=allowance,
        timeout_seconds=ai.timeout_seconds,
    )
