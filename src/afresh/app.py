"""Build `KnowledgeBase`, the main object of afresh, from the settings."""

import os
from datetime import UTC, datetime
from functools import partial

from afresh.config import Config
from afresh.crawl.factory import RunToolFactory
from afresh.kb import KnowledgeBase
from afresh.ops.failpoints import arm
from afresh.ports import Clock, StoreAccess
from afresh.search.model_provider import ModelProvider
from afresh.services.context import ServiceContext
from afresh.store.open import open_store
from afresh.store.repository import RetryPolicy

TRY_SECONDS = 1.0  # timeout of one write attempt; a stop takes effect between two attempts

utc_now: Clock = partial(datetime.now, UTC)


async def build(config: Config, *, clock: Clock = utc_now, access: StoreAccess = StoreAccess.CREATE) -> KnowledgeBase:
    arm()
    one_thread()
    opened = await open_store(config.store.url, access, wait_seconds=TRY_SECONDS)
    store = opened.with_retries(RetryPolicy())
    models = ModelProvider(config, store, clock)
    tools = RunToolFactory(config, opened, models, clock)
    return KnowledgeBase(ServiceContext(store=store, tools=tools, models=models, clock=clock))


def one_thread() -> None:
    """Limit numpy to one thread, because its idle threads slow down the process; call this before numpy is imported."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
