"""What the settings of a source mean for a run: what belongs to it, how it decides, how fast it goes."""

from dataclasses import replace

from afresh.config import Config
from afresh.crawl.tools import Pace
from afresh.links.score import Weighing
from afresh.model.recipe import CHUNKER, recipe_of
from afresh.model.records import Policy, Source
from afresh.store.store import Store
from afresh.urls.scope import Rules, Scope

UNBOUNDED = 10_000_000


def rules_for(source: Source, own: Config) -> Rules:
    """What belongs to a source under its settings."""
    crawl = own.crawl
    return Rules(
        root=source.url,
        scope=Scope(crawl.scope),
        include=crawl.include,
        exclude=crawl.exclude,
        max_depth=crawl.max_depth,
        max_pages=crawl.max_pages if source.kind == "web" or "max_pages" in source.rules else UNBOUNDED,
        max_params=crawl.max_url_params,
        max_components=UNBOUNDED if crawl.max_path_components is None else crawl.max_path_components,
        max_per_pattern=crawl.max_per_pattern or 0,
    )


def weighing_for(own: Config) -> Weighing:
    """What the keywords of a source weigh."""
    return Weighing(weights=own.links.keywords, unknown=own.links.unknown_keyword_weight)


def policy_for(own: Config) -> Policy:
    """The numbers that decisions obey, with the recipe of the content they guard."""
    from afresh.models.choose import wanted_model

    policy = own.policy
    return Policy(
        recipe=recipe_of(
            own.storage.body,
            wanted_model(own.embedding) if own.storage.body == "none" else None,
            hidden_links=own.crawl.hidden_links,
            render=own.crawl.render,
        ),
        chunker=CHUNKER,
        recheck_seconds=policy.recheck_seconds,
        backoff_base_seconds=policy.backoff_base_seconds,
        backoff_max_seconds=policy.backoff_max_seconds,
        retries=policy.retries,
        gone_after=policy.gone_after,
        missing_after=policy.missing_after,
        brake_percent=policy.brake_percent,
        brake_pages=policy.brake_pages,
        respect_noindex=own.crawl.respect_noindex,
        respect_nofollow=own.crawl.respect_nofollow,
        doubts=policy.doubt,
        reread_seconds=policy.reread_seconds,
        max_age_seconds=policy.max_age_seconds,
        budget_per_run=policy.budget_per_run,
        adapt=policy.adapt,
        adapt_max_seconds=policy.adapt_max_seconds,
        trust_lastmod=own.crawl.trust_lastmod,
    )


def pace_for(own: Config) -> Pace:
    """How fast and how far a run goes."""
    return Pace(
        concurrency=own.crawl.concurrency,
        delay_seconds=own.crawl.delay_seconds,
        max_pages=own.crawl.max_pages,
        max_depth=own.crawl.max_depth,
        lease_seconds=own.policy.lease_seconds,
        heartbeat_seconds=own.policy.heartbeat_seconds,
    )


async def rules_at_root(source: Source, own: Config, store: Store) -> Rules:
    """The rules of a source, with where its root was before and where it leads for now."""
    rules = rules_for(source, own)
    if source.kind != "web":
        return rules
    former, aside = await store.sources.root_places(source.id, source.url)
    return replace(rules, former=former, aside=aside if aside and rules.refusal(aside, 0) else None)
