"""Turn the settings of a source into the rules and the policy of a run."""

from afresh.config import Config
from afresh.config.sources import CrawlSettings, PolicySettings
from afresh.dataclass import fields, replace
from afresh.digest.records import LINKS as DIGEST_LINKS
from afresh.model.fetch import CHUNKER, recipe_of
from afresh.model.records import Policy, Source
from afresh.schedule.rules import Schedule, parse_schedule
from afresh.store.store import Store
from afresh.urls.scope import CrawlScope, Rules

UNBOUNDED = 10_000_000
# settings that have the same name in `Policy`
_POLICY, _CRAWL = (
    [each.name for each in fields(Policy) if each.name in {own.name for own in fields(section)}]
    for section in (PolicySettings, CrawlSettings)
)


def rules_for(source: Source, own: Config) -> Rules:
    crawl = own.crawl
    return Rules(
        root=source.url,
        scope=CrawlScope(crawl.scope),
        include=crawl.include,
        exclude=crawl.exclude,
        max_depth=crawl.max_depth,
        max_pages=crawl.max_pages if source.kind == "web" or "max_pages" in source.rules else UNBOUNDED,
        max_params=crawl.max_url_params,
        max_components=UNBOUNDED if crawl.max_path_components is None else crawl.max_path_components,
        max_per_pattern=crawl.max_per_pattern or 0,
    )


def own_settings_of(config: Config, source: Source) -> Config:
    """Return the configuration with the source's own settings; links of the knowledge base get their own policy."""
    own = config.with_overrides(source.rules, source.policy)
    if source.name != DIGEST_LINKS:
        return own
    kb = config.kb
    policy = replace(
        own.policy,
        retries=0,
        recheck_seconds=kb.url_refresh_min_interval_seconds,
        max_age_seconds=kb.url_refresh_max_age_seconds,
        backoff_base_seconds=kb.url_refresh_fail_backoff_base_seconds,
        backoff_max_seconds=kb.url_refresh_fail_backoff_max_seconds,
        budget_per_run=kb.url_refresh_budget_per_init,
        reread_seconds=0.0,
        adapt=False,
    )
    # A person chose these links, so noindex is ignored, and suspicious content is accepted (`Policy.holds`).
    # One request at a time keeps them in the order of their due dates.
    return replace(own, policy=policy, crawl=replace(own.crawl, respect_noindex=False, probe=False, concurrency=1))


def policy_for(own: Config, source: Source | None = None) -> Policy:
    from afresh.models.choose import wanted_model

    listed_by_hand = source is not None and source.name == DIGEST_LINKS
    return Policy(
        holds=not listed_by_hand,
        refusals_back_off=listed_by_hand,
        recipe=recipe_of(
            own.storage.body,
            wanted_model(own.embedding) if own.storage.body == "none" else None,
            hidden_links=own.crawl.hidden_links,
            render=own.crawl.render,
        ),
        chunker=CHUNKER,
        doubts=own.policy.doubt,
        **{name: getattr(own.policy, name) for name in _POLICY},
        **{name: getattr(own.crawl, name) for name in _CRAWL},
    )


async def rules_at_root(source: Source, own: Config, store: Store) -> Rules:
    """Return the rules of a source, including its former roots and the target of a temporary redirect of its root."""
    rules = rules_for(source, own)
    if source.kind != "web":
        return rules
    former, aside = await store.sources.root_places(source.id, source.url)
    return replace(rules, former=former, aside=aside if aside and rules.refusal(aside, 0) else None)


def schedule_of(policy: PolicySettings) -> Schedule | None:
    if policy.schedule is None:
        return None
    from zoneinfo import ZoneInfo

    return parse_schedule(
        policy.schedule, ZoneInfo(policy.time_zone), jitter_seconds=policy.jitter_seconds, budget=policy.budget
    )
