"""Read a settings file as entries (key path, value, line), and refuse YAML features that settings do not need."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from afresh.config.spec import FileEntry, Scalar, quote_value
from afresh.errors import ConfigError

MAX_BYTES = 1_048_576
MAX_DEPTH = 10
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path) -> list[FileEntry]:
    """Return all keys of a file, including sections, in file order."""
    text, name = _text(path), path.name
    try:
        _refuse_tricks(text, name)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise ConfigError(_broken(error, text, name)) from None
    if root is None or (isinstance(root, yaml.ScalarNode) and root.tag.endswith(":null")):
        return []
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{name} line {_line(root)}: expected sections such as `crawl:`, got {_what(root)}")
    return list(_walk(root, (), name))


def flow_list(text: str) -> list[Scalar] | None:
    """Return the items of a YAML list such as `[a, b]`; None if the text is not a list."""
    try:
        _refuse_tricks(text, "the value")
        root = yaml.compose(text, Loader=_LOADER)
    except (yaml.YAMLError, ConfigError):
        return None
    if not isinstance(root, yaml.SequenceNode) or not all(isinstance(n, yaml.ScalarNode) for n in root.value):
        return None
    return [_scalar(node) for node in root.value]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path.name} is larger than 1 MB, the maximum for a settings file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path.name} line {line}: not UTF-8 text") from None


def _refuse_tricks(text: str, name: str) -> None:
    depth = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        where = f"{name} line {event.start_mark.line + 1}"
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigError(f"{where}: anchors and aliases (& and *) are not allowed in settings: repeat the value")
        if getattr(event, "tag", None):
            raise ConfigError(f"{where}: the YAML tag {quote_value(event.tag)} is not allowed in settings; remove it")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigError(f"{where}: nested too deeply: no setting has so many levels")
        if documents > 1:
            raise ConfigError(f"{where}: a second YAML document begins here (---): keep only one")


def _walk(mapping: Any, path: tuple[str, ...], name: str) -> Iterator[FileEntry]:
    seen: dict[str, int] = {}
    for key_node, node in mapping.value:
        line = _line(key_node)
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError(f"{name} line {line}: a key must be a string")
        key = key_node.value
        here = (*path, key)
        if key in seen:
            raise ConfigError(f"{name} line {line}: {'.'.join(here)} is also set in line {seen[key]}: keep one")
        seen[key] = line
        yield from _entry(node, here, line, name)


def _entry(node: Any, path: tuple[str, ...], line: int, name: str) -> Iterator[FileEntry]:
    if isinstance(node, yaml.MappingNode):
        yield FileEntry(path, None, line, items=_items(node))
        yield from _walk(node, path, name)
    elif isinstance(node, yaml.SequenceNode):
        if bad := next((item for item in node.value if not isinstance(item, yaml.ScalarNode)), None):
            raise ConfigError(
                f"{name} line {_line(bad)}: {'.'.join(path)}: expected strings or numbers, got {_what(bad)}"
            )
        yield FileEntry(path, [_scalar(item) for item in node.value], line)
    else:
        yield FileEntry(path, _scalar(node), line)


def _items(mapping: Any) -> dict[str, Scalar] | None:
    plain = all(isinstance(node, yaml.ScalarNode) for pair in mapping.value for node in pair)
    return {key.value: _scalar(node) for key, node in mapping.value} if plain else None


def _scalar(node: Any) -> Scalar:
    return Scalar(node.value, kind=node.tag.rpartition(":")[2], quoted=bool(node.style))


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _what(node: Any) -> str:
    return {"mapping": "a mapping", "sequence": "a list"}.get(node.id, quote_value(node.value))


def _broken(error: yaml.YAMLError, text: str, name: str) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        line = text[: getattr(error, "position", 0)].count("\n") + 1
        return f"{name} line {line}: a character that YAML does not allow; remove it"
    lines = text.split("\n")
    typed = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in typed[: len(typed) - len(typed.lstrip())]:
        return f"{name} line {mark.line + 1}: begins with a tab: indent YAML with spaces"
    problem = getattr(error, "problem", None) or "not YAML"
    return f"{name} line {mark.line + 1}: {problem}: {quote_value(typed.strip())}"
