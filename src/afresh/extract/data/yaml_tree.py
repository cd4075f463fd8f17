"""YAML of any origin as Python values: no tags, no recursion, no copies, so that nothing in it can grow."""

from typing import Any

import yaml

from afresh.errors import ExtractError

MOST_CHARS = 5_000_000
DEEPEST = 60
MOST_ALIASES = 10_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def parse_yaml(text: str) -> Any:
    """The value of the first YAML document; what an alias names is shared, never copied."""
    if len(text) > MOST_CHARS:
        raise ExtractError(f"YAML of more than {MOST_CHARS:,} characters")
    building = _Building()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentEndEvent):
                break
            building.take(event)
    except (yaml.YAMLError, ValueError) as error:
        raise ExtractError(f"broken YAML ({' '.join(str(error).split())[:200]})") from error
    return building.root


class _Open:
    """A mapping or list that is not complete yet."""

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: str | None = None


class _Building:
    """The values that were read so far."""

    def __init__(self) -> None:
        self.root: Any = None
        self._open: list[_Open] = []
        self._named: dict[str, Any] = {}
        self._aliases = 0

    def take(self, event: Any) -> None:
        """Take the next event of the parser."""
        match event:
            case yaml.ScalarEvent():
                value = event.value if event.style else _WORDS.get(event.value.lower(), event.value)
                self._put(value, event.anchor)
            case yaml.AliasEvent():
                self._put(self._alias(event.anchor), None)
            case yaml.MappingStartEvent():
                self._begin({}, event.anchor)
            case yaml.SequenceStartEvent():
                self._begin([], event.anchor)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                done = self._open.pop()
                self._put(done.value, done.anchor)
            case _:
                pass

    def _begin(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        if len(self._open) >= DEEPEST:
            raise ExtractError("YAML that is nested too deeply")
        self._open.append(_Open(value, anchor))

    def _alias(self, anchor: str | None) -> Any:
        self._aliases += 1
        if (
            self._aliases > MOST_ALIASES or anchor is None or anchor not in self._named
        ):  # one that names what it stands in
            raise ExtractError("YAML with aliases that lead nowhere or are too many")
        return self._named[anchor]

    def _put(self, value: Any, anchor: str | None) -> None:
        if anchor:
            self._named[anchor] = value
        if not self._open:
            self.root = value
            return
        inside = self._open[-1]
        if isinstance(inside.value, list):
            inside.value.append(value)
        elif inside.key is None:
            inside.key = _key(value)
        else:
            _keep(inside.value, inside.key, value)
            inside.key = None


def _keep(into: dict[str, Any], key: str, value: Any) -> None:
    """Set a key; `<<` brings the keys of other mappings that are not there yet."""
    if key != "<<":
        into[key] = value
        return
    for other in value if isinstance(value, list) else [value]:
        for name, each in other.items() if isinstance(other, dict) else ():
            into.setdefault(name, each)


def _key(value: Any) -> str:
    """A key as a string: `200:` and `true:` are keys of objects, too."""
    if isinstance(value, str):
        return value
    return "…" if isinstance(value, dict | list) else "null" if value is None else str(value).lower()
