"""Point the tools of a run at the root of its site."""

from collections.abc import Callable

from afresh.crawl.tools import Kit
from afresh.crawl.url_patterns import Patterns
from afresh.model.records import Source
from afresh.sources.registry import ClosableWeb, Looking
from afresh.urls.scope import Rules


def aim(
    kit: Kit, webs: list[ClosableWeb], source: Source, site: Callable[[Rules], Looking], rules: Rules
) -> None:
    """Point the tools of a run at another root."""
    looking = site(rules)
    web, kit.lister = looking.at(source.kind)
    kit.web, kit.patterns = web, Patterns(kit.store, source.id, rules)
    webs.append(web)
    fit(kit, looking, rules)


def fit(kit: Kit, looking: Looking, rules: Rules) -> None:
    """Hand over what is known of a site by its root."""
    kit.trim, kit.modified, kit.notes = looking.trim, looking.modified, looking.notes
    kit.tells_news, kit.was_ours = looking.tells_news, rules.was_ours
