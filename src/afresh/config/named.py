"""Sections whose entries have names that the user gives them: `sinks.NAME.key`, `webhooks.NAME.key`."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from afresh.config.spec import Spec, WrongValue, nearest

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def _always(entries: Mapping[str, Any]) -> None:
    """Any entries go together."""


@dataclass(frozen=True, slots=True)
class NamedSection:
    """A section of entries that are all of one kind."""

    name: str
    kind: type[Any]
    check: Callable[[str, Mapping[str, Any]], None]  # WrongValue where an entry is not enough to be used
    agree: Callable[[Mapping[str, Any]], None] = _always  # WrongValue where entries cannot stand together

    def specs(self) -> dict[str, Spec]:
        """What can be set of every entry."""
        return {item.name: item.metadata["spec"] for item in fields(self.kind)}

    def spec_of(self, dotted: str) -> Spec:
        """The spec of the setting that `NAME.key` means."""
        name, _, key = dotted.rpartition(".")
        if not _NAME.fullmatch(name):
            wanted = "expected a name of small letters, digits, - and _, its settings below"
            raise WrongValue(f"{self.name}.{name or key}: {wanted}")
        if key not in self.specs():
            raise WrongValue(f"unknown key {self.name}.{dotted}{nearest(key, list(self.specs()))}")
        return self.specs()[key]

    def from_variable(self, rest: str, names: Iterable[str]) -> str:
        """`NAME.key` for the rest of a variable, `NAME__KEY`; known names may hold a hyphen."""
        name, _, key = rest.lower().rpartition("__")
        known = {each.replace("-", "_"): each for each in names}
        return f"{known.get(name, name)}.{key}"

    def built(self, values: Mapping[str, object]) -> dict[str, Any]:
        """The entries that settings `NAME.key` describe."""
        by_name: dict[str, dict[str, Any]] = {}
        for dotted, value in values.items():
            name, _, key = dotted.rpartition(".")
            by_name.setdefault(name, {})[key] = value
        for name, given in by_name.items():
            self.check(name, given)
        entries = {name: self.kind(**given) for name, given in by_name.items()}
        self.agree(entries)
        return entries
