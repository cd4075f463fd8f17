"""Who scores links: words compared on this machine, or the model that the settings name."""

import re
from collections.abc import Sequence

from afresh.config.ai import AiSettings
from afresh.config.links import LinksSettings
from afresh.core.errors import ConfigError
from afresh.core.link_score import AskedLink, Verdict
from afresh.models.allowance import Allowance
from afresh.ports import Caller, LinkScorer

_WORD = re.compile(r"[^\W_]+")


class OfflineLinkScorer:
    """Fulfils `ports.LinkScorer` by the words of a link: no key, no network, no cost."""

    recipe = "offline/words-1"
    batch = 5_000
    calls = 0
    tokens = 0

    async def score(self, links: Sequence[AskedLink], keywords: Sequence[str]) -> Sequence[Verdict]:
        """The keywords of which each link holds the word or its plural."""
        verdicts = [_verdict(link, keywords) for link in links]
        return [verdict for verdict in verdicts if verdict.keywords]

    async def close(self) -> None:
        """Nothing is open."""


def _verdict(link: AskedLink, keywords: Sequence[str]) -> Verdict:
    words = {word.casefold() for word in _WORD.findall(f"{link.text} {link.url.partition('://')[2]}")}
    found = {keyword: 1.0 for keyword in keywords if not words.isdisjoint({keyword, f"{keyword}s"})}
    return Verdict(link.url, link.text, found, f"named: {', '.join(found)}" if found else "")


def link_scorer_for(
    links: LinksSettings, ai: AiSettings, caller: Caller | None, allowance: Allowance
) -> LinkScorer:
    """The scorer of one run; `caller` asks `ai.address` and is needed where a model is."""
    wants_model = links.scorer == "model" or (links.scorer == "auto" and ai.address is not None)
    if not wants_model:
        return OfflineLinkScorer()
    raise ConfigError("links.scorer: a model cannot be asked yet: set it to offline")
