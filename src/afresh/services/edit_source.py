"""Add a source, or change its name, URL or settings."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from afresh.access.permissions import AccessToken, Permissions
from afresh.config.layers import split_settings
from afresh.crawl.factory import RunToolFactory
from afresh.dataclass import replace
from afresh.digest.records import FILES, LINKS
from afresh.errors import AlreadyExists, Forbidden, UsageError
from afresh.model.labels import check_name, check_version
from afresh.model.records import Source
from afresh.sources.registry import name_of_root
from afresh.store.store import Store

KB_OWNS = "belongs to the knowledge base of files and links, which `afresh init-kb` updates"


async def add_source(
    store: Store,
    tools: RunToolFactory,
    target: tuple[str, str],
    name: str | None,
    version: str | None,
    rules: Mapping[str, object] | None,
    policy: Mapping[str, object] | None,
    *,
    by_operator: bool,
    keep: bool = True,
    again: bool = True,
) -> Source:
    """Add a source, and return it; raise UsageError if a source with another URL has its name.

    `target` holds kind and URL. A source that the operator did not add is read without the operator's credentials.
    Without `keep`, a new source is removed if its first run reads nothing. An existing source with this name and URL
    is returned. If only a source with another name or version has the URL, raise AlreadyExists unless `again`.
    """
    (kind, url), rules, policy = target, rules or {}, policy or {}
    known = None if name else await store.sources.find_by_url(url, version)
    name = check_name(name) if name else known.name if known else name_of_root(url, kind)
    check_version(version)
    if name in (FILES, LINKS):
        raise UsageError(f"{name} {KB_OWNS}; choose another name for {url} with --name")
    same = known or await store.sources.find(name, version)
    elsewhere = same is not None and same.url != url and same != await store.sources.find_by_url(url, version)
    if same is not None and elsewhere:
        raise UsageError(
            f"the name {same.label} belongs to {same.url}; choose another name for {url} with --name "
            f"(--name {name}/docs puts both into the library {name})"
        )
    if same is None and not again:
        await check_url_is_new(store, url, name)
    own = (same.rules, same.policy) if same is not None else ({}, {})
    tools.config.with_overrides({**own[0], **rules}, {**own[1], **policy})
    return await store.sources.add(
        name=name,
        version=version,
        kind=kind,
        url=url,
        rules=rules,
        policy=policy,
        now=tools.clock(),
        by_operator=by_operator,
        trial=not keep,
    )


def checked_settings(
    tools: RunToolFactory, source: Source, settings: Mapping[str, object], reset: Sequence[str]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the rules and policy of a source after a change of its settings; raise ConfigError for invalid ones."""
    rules, policy = (
        {key: value for key, value in {**own, **new}.items() if key not in reset}
        for own, new in zip((source.rules, source.policy), split_settings(settings), strict=True)
    )
    tools.config.with_overrides(rules, policy)
    return rules, policy


async def check_url_is_new(store: Store, url: str, name: str | None = None) -> None:
    """Raise AlreadyExists if a source has this URL; the message names it, preferably the one called `name`."""
    if not (having := [source for source in await store.sources.all() if source.url == url]):
        return
    source = next((each for each in having if each.name == name), having[0])
    instead = "refresh that source"
    if source.name == name and source.version is not None:
        instead = f"give `version` {source.version} or refresh {source.label} if you mean that one"
    raise AlreadyExists(
        f"{source.label} has {url} already: {instead}, or set `again` to add the URL once more", source.label
    )


def check_label(source: Source, name: str, version: str | None) -> None:
    """Raise UsageError if a source cannot have this name or version; the message begins with `name` or `version`."""
    field = "name"
    try:
        check_name(name)
        field = "version"
        check_version(version)
    except UsageError as wrong:
        raise UsageError(f"{field}: {wrong}") from None
    for each in (name, source.name):
        if each in (FILES, LINKS):
            raise UsageError(f"name: {each} {KB_OWNS}")


async def checked_url(
    store: Store, source: Source, url: str, recognise: Callable[[str], tuple[str, str]], *, again: bool
) -> str:
    """Return the canonical form of a URL, as found by `recognise`; raise UsageError if `source` cannot have it."""
    try:
        kind, root = recognise(url)
    except UsageError as wrong:
        raise UsageError(f"url: {str(wrong).removeprefix('target: ')}") from None
    if kind != source.kind:
        kinds = f"{root} would be read as {kind}, but {source.label} is of the kind {source.kind}"
        raise UsageError(f"url: {kinds}: add the URL as a new source")
    if root != source.url and not again:
        await check_url_is_new(store, root)
    return root


def check_tokens(
    tokens: list[AccessToken], source: Source, name: str, version: str | None, now: datetime, *, by_operator: bool
) -> list[str]:
    """Note which tokens gain or lose access by a new name; raise Forbidden if one gains it, unless `by_operator`."""
    label, notes = replace(source, name=name, version=version).label, []
    for token in tokens:
        if not token.sources or token.state(now) != "good":
            continue
        bound = Permissions(caller="", sources=frozenset(token.sources))
        saw, sees = bound.sees(source.label), bound.sees(label)
        bound_to = f"token {token.id} is bound to {', '.join(token.sources)}"
        if sees and not saw and not by_operator:
            raise Forbidden(f"{bound_to} and would see {source.label} as {label}: choose another name")
        if sees != saw:
            notes.append(f"{bound_to} and {'now sees' if sees else 'no longer sees'} this source")
    return notes
