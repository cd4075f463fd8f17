"""Schemas of an API in short: `array of Pet`, `"a" | "b"`, `object {id: integer, name?: string}`."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from afresh.extract.data.json_tree import mapping, sequence, words
from afresh.extract.html.head import one_line

DEEPEST = 2
MOST_SHOWN = 12  # of the properties, values or alternatives of one schema
MOST_PROPERTIES = 300
MOST_HOPS = 5
LONGEST = 300
_JOINTS = (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and "))


class Property(NamedTuple):
    """One row of the table of a schema."""

    name: str
    kind: str
    required: str
    told: Any


def named(spec: dict[str, Any]) -> dict[str, Any]:
    """The schemas that have names."""
    return mapping(mapping(spec.get("components")).get("schemas")) or mapping(spec.get("definitions"))


def resolved(spec: dict[str, Any], value: Any) -> dict[str, Any]:
    """What a reference within the file leads to, or the value itself; never a file elsewhere."""
    found = mapping(value)
    for _ in range(MOST_HOPS):
        pointer = found.get("$ref")
        if not isinstance(pointer, str) or not pointer.startswith("#/"):
            break
        target: Any = spec
        for step in pointer[2:].split("/")[:20]:
            target = mapping(target).get(unquote(step).replace("~1", "/").replace("~0", "~"))
        found = mapping(target)
    return found


def properties(spec: dict[str, Any], raw_schema: Any) -> Iterator[Property]:
    """The properties of a schema and of what it is put together from, each once."""
    seen: set[str] = set()
    schema = resolved(spec, raw_schema)
    for part in [schema, *(resolved(spec, each) for each in sequence(schema.get("allOf"))[:MOST_SHOWN])]:
        required = {name for name in sequence(part.get("required")) if isinstance(name, str)}
        for name, each in islice(mapping(part.get("properties")).items(), MOST_PROPERTIES):
            if name not in seen:
                seen.add(name)
                told = mapping(each).get("description")
                yield Property(name, summary(each), "yes" if name in required else "no", told)


def summary(schema: Any) -> str:
    """A schema in a few words."""
    text = one_line(_summary(schema, 0))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _summary(raw: Any, depth: int) -> str:
    schema = mapping(raw)
    if depth > DEEPEST:
        return "…"
    if isinstance(schema.get("$ref"), str):
        return unquote(schema["$ref"].rpartition("/")[2])[:LONGEST]
    for key, joint in _JOINTS:
        parts = [_summary(each, depth + 1) for each in sequence(schema.get(key))[:MOST_SHOWN]]
        if parts:
            return joint.join(dict.fromkeys(parts))
    values = sequence(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    if values:
        return " | ".join(_value(value) for value in values[:MOST_SHOWN]) + _more(values)
    if "items" in schema:
        return f"array of {_summary(schema['items'], depth + 1)}"
    if mapping(schema.get("properties")):
        return f"object {{{_inner(schema, depth)}}}"
    return _type(schema)


def _inner(schema: dict[str, Any], depth: int) -> str:
    required = [name for name in sequence(schema.get("required")) if isinstance(name, str)]
    inside = mapping(schema.get("properties"))
    shown = [
        f"{name[:100]}{'' if name in required else '?'}: {_summary(each, depth + 1)}"
        for name, each in islice(inside.items(), MOST_SHOWN)
    ]
    return ", ".join(shown) + _more(inside)


def _more(values: list[Any] | dict[str, Any]) -> str:
    return " …" if len(values) > MOST_SHOWN else ""


def _type(schema: dict[str, Any]) -> str:
    told = schema.get("type")
    kinds = [words(each) for each in told[:MOST_SHOWN]] if isinstance(told, list) else [words(told)]
    shown = " or ".join(kind for kind in kinds if kind) or "any"
    form = words(schema.get("format"))
    return f"{shown} ({form})"[:LONGEST] if form else shown[:LONGEST]


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:100] if not isinstance(value, dict | list) else "…"
