"""Give a source another name or another root."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from afresh.access.permissions import Allowed, Token
from afresh.digest.records import FILES, LINKS
from afresh.errors import Forbidden, Unknown, UsageError
from afresh.model.labels import check_name, check_version
from afresh.model.records import Source
from afresh.services.add_source import KB_OWNS, refuse_twice
from afresh.store.store import Store


def check_label(source: Source, name: str, version: str | None) -> None:
    """Refuse a name or version that a source cannot have; UsageError names the field."""
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
    """Return the root that is meant, if a source may have it; UsageError names the field."""
    try:
        kind, root = recognise(url)
    except UsageError as wrong:
        raise UsageError(f"url: {str(wrong).removeprefix('target: ')}") from None
    if kind != source.kind:
        told = f"{root} would be read as {kind}, and {source.label} is {source.kind}"
        raise UsageError(f"url: {told}: add it as a source of its own")
    if root != source.url and not again:
        await refuse_twice(store, root)
    return root


def check_tokens(
    tokens: list[Token], source: Source, name: str, version: str | None, now: datetime, *, by_operator: bool
) -> list[str]:
    """Say which bound tokens see the source no longer; only the operator may open it to others."""
    label, notes = replace(source, name=name, version=version).label, []
    for token in tokens:
        if not token.sources or token.state(now) != "good":
            continue
        bound = Allowed(who="", sources=frozenset(token.sources))
        saw, sees = bound.sees(source.label), bound.sees(label)
        told = f"token {token.id} is bound to {', '.join(token.sources)}"
        if sees and not saw and not by_operator:
            raise Forbidden(f"{told} and would see {source.label} as {label}: choose another name")
        if sees != saw:
            notes.append(f"{told} and {'now sees' if sees else 'no longer sees'} this source")
    return notes


async def change_source(
    store: Store,
    source: Source,
    name: str,
    version: str | None,
    url: str,
    now: datetime,
    *,
    by_operator: bool,
) -> Source:
    """Write them; the operator's keys read only a root that the operator named."""
    named = url if by_operator and url != source.url else source.operator_url
    changed = await store.sources.change(
        source.id, name=name, version=version, url=url, operator_url=named, now=now
    )
    if changed is None:
        raise Unknown(f"there is no source {source.id}")
    return changed
