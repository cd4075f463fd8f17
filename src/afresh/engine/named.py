"""A function known by its name: imported where it is called, which may be another process."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Named:
    """Calls a function of a module that is loaded only when the call is made."""

    module: str
    name: str

    def __call__(self, *args: Any) -> Any:
        function: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return function(*args)
