"""A function known by its name: imported where it is called, which may be another process."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from afresh.model.fetch import Chunk, Document


@dataclass(frozen=True)
class Named:
    """Calls a function of a module that is loaded only when the call is made."""

    module: str
    name: str
    answer: Any = Any  # the type of its result, if that is not plain data

    def __reduce__(self) -> tuple[type["Named"], tuple[str, str]]:
        """Where it is called, the type of the result is not needed."""
        return Named, (self.module, self.name)

    def __call__(self, *args: Any) -> Any:
        function: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return function(*args)


EXTRACT = Named("afresh.extract", "extract", Document)
EXTRACT_VISIBLE = Named("afresh.extract", "extract_visible", Document)
CHUNK = Named("afresh.extract.chunk.markdown", "chunk", tuple[Chunk, ...])
DIFF = Named("afresh.text.diff", "markdown_diff", str)
