"""The use case of bringing a store up to date."""

from afresh.model.store_reports import Migrated
from afresh.ports import Access
from afresh.store.open import open_store
from afresh.store.versions import newest_schema, schema_of
from afresh.text.redact import mask_secrets


async def migrate_store(url: str, *, dry_run: bool = False) -> Migrated:
    """Bring a store forward, or only tell what that would do; a newer one is refused."""
    before, newest = await schema_of(url), newest_schema(url)
    if before < newest and not dry_run:
        store = await open_store(url, Access.CHANGE)
        await store.close()
    return Migrated(
        store=mask_secrets(url), before=before, after=before if dry_run else newest, newest=newest
    )
