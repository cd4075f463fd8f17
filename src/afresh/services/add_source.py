"""Adding a source: which one is meant, under which name."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

from afresh.digest.records import FILES, LINKS
from afresh.errors import AlreadyKept, UsageError
from afresh.model.labels import check_name, check_version, name_for
from afresh.model.records import Source
from afresh.store.store import Store

KB_OWNS = "belongs to the knowledge base of files and links, which `afresh init-kb` keeps"
# Refuses rules and policy that a source cannot have together.
Check: TypeAlias = Callable[[Mapping[str, object], Mapping[str, object]], None]


async def add_source(
    store: Store,
    kind: str,
    url: str,
    name: str | None,
    version: str | None,
    rules: Mapping[str, object],
    policy: Mapping[str, object],
    check: Check,
    now: datetime,
    *,
    by_operator: bool,
    keep: bool = True,
    again: bool = True,
) -> Source:
    """The source with that root, made if it is new; a name that belongs to another root is refused.

    What others than the operator add is read without the operator's keys.
    """
    known = None if name else await store.sources.find_by_url(url, version)
    name = check_name(name) if name else known.name if known else name_for(url, kind)
    check_version(version)
    if name in (FILES, LINKS):
        raise UsageError(f"{name} {KB_OWNS}; give {url} another name with --name")
    same = known or await store.sources.find(name, version)
    elsewhere = same is not None and same.url != url and same != await store.sources.find_by_url(url, version)
    if same is not None and elsewhere:
        raise UsageError(
            f"the name {same.label} belongs to {same.url}; give {url} another one with --name "
            f"(--name {name}/docs puts both into the library {name})"
        )
    if same is None and not again:
        await refuse_twice(store, url, name)
    own = (same.rules, same.policy) if same is not None else ({}, {})
    check({**own[0], **rules}, {**own[1], **policy})
    return await store.sources.add(
        name=name,
        version=version,
        kind=kind,
        url=url,
        rules=rules,
        policy=policy,
        now=now,
        by_operator=by_operator,
        trial=not keep,
    )


async def refuse_twice(store: Store, url: str, name: str | None = None) -> None:
    """Refuse a URL that a source has already; one of that name is the likeliest to be meant."""
    having = [source for source in await store.sources.all() if source.url == url]
    if not having:
        return
    source = next((each for each in having if each.name == name), having[0])
    instead = "refresh that source"
    if source.name == name and source.version is not None:
        instead = f"give `version` {source.version} or refresh {source.label} if you mean that one"
    raise AlreadyKept(
        f"{source.label} has {url} already: {instead}, or set `again` to add the URL once more", source.label
    )
