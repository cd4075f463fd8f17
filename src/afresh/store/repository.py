"""What repositories have in common: the database, caches, and retries of calls that failed for a while."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from afresh.model.records import RunId
from afresh.store.dialect import Database
from afresh.store.link_cache import LinkCache
from afresh.store.matching import Known
from afresh.store.nearby import Nearby
from afresh.store.retry import RetryPolicy

if TYPE_CHECKING:
    from afresh.ports import Matrix

Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])


@dataclass(slots=True)
class Caches:
    """What a process remembers of a store between calls."""

    links: LinkCache = field(default_factory=LinkCache)
    known: Known = field(default_factory=Known)
    matrices: dict[str, tuple[int, Nearby]] = field(default_factory=dict)  # vectors by model
    middles: "dict[int, tuple[int, Matrix]]" = field(default_factory=dict)  # newest vector and mean by model
    renewing: asyncio.Lock = field(default_factory=asyncio.Lock)
    depths: dict[RunId, dict[int, int]] = field(default_factory=dict)  # of URLs queued by each run


class Repository:
    """Records of one kind; every public method is one query or one transaction, and can be retried."""

    def __init__(self, db: Database, caches: Caches, retry: RetryPolicy | None) -> None:
        self.db = db
        self.caches = caches
        self.retry = retry

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            is_call = inspect.iscoroutinefunction(method) and not name.startswith("_")
            if is_call and not hasattr(method, "is_not_retried"):
                setattr(cls, name, retried(method))


def not_retried(method: Method) -> Method:
    """Mark a method that runs inside a transaction of another, or must not be late."""
    method.is_not_retried = True  # type: ignore[attr-defined]
    return method


def retried_as(other: Callable[..., Awaitable[Any]]) -> Callable[[Method], Method]:
    """Mark a method that is retried by calling another one."""

    def mark(method: Method) -> Method:
        method.retried_as = other  # type: ignore[attr-defined]
        return method

    return mark


def retried(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a method that is made again by the policy of its repository."""
    again = getattr(method, "retried_as", method)

    @wraps(method)
    async def call(self: Repository, *args: Any, **kwargs: Any) -> Any:
        if self.retry is None:
            return await method(self, *args, **kwargs)
        return await self.retry.call(
            lambda: method(self, *args, **kwargs), lambda: again(self, *args, **kwargs)
        )

    return call
