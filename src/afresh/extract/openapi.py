"""Convert OpenAPI and Swagger descriptions to a document, with short forms of their schemas."""

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any
from urllib.parse import unquote

from afresh.extract.decode import mapping, sequence, words
from afresh.extract.html.head import one_line
from afresh.extract.markdown import HEADING_TEXT, MOST_CHARS, heading, joined, table

DEEPEST = 2
MOST_SHOWN = 12  # of the properties, values or alternatives of one schema
MOST_PROPERTIES = 300
MOST_HOPS = 5
LONGEST = 300
_json = json.JSONEncoder(ensure_ascii=False).encode
_JOINTS = (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and "))


def resolved(spec: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return the target of a reference within the file, or the value itself; other files are never read."""
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


def _properties(spec: dict[str, Any], raw_schema: Any) -> Iterator[list[str]]:
    """Yield rows for the properties of a schema and its `allOf` parts, each property once."""
    seen: set[str] = set()
    schema = resolved(spec, raw_schema)
    for part in [schema, *(resolved(spec, each) for each in sequence(schema.get("allOf"))[:MOST_SHOWN])]:
        required = {name for name in sequence(part.get("required")) if isinstance(name, str)}
        for name, each in islice(mapping(part.get("properties")).items(), MOST_PROPERTIES):
            if name not in seen:
                seen.add(name)
                told = _cell(mapping(each).get("description"))
                yield [f"`{name}`", summary(each), "yes" if name in required else "no", told]


def summary(schema: Any) -> str:
    """Return a short form of a schema on one line."""
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
        shown = ("…" if isinstance(each, dict | list) else _json(each)[:100] for each in values[:MOST_SHOWN])
        return " | ".join(shown) + _more(values)
    if "items" in schema:
        return f"array of {_summary(schema['items'], depth + 1)}"
    if inside := mapping(schema.get("properties")):
        required = [name for name in sequence(schema.get("required")) if isinstance(name, str)]
        shown = (
            f"{name[:100]}{'' if name in required else '?'}: {_summary(each, depth + 1)}"
            for name, each in islice(inside.items(), MOST_SHOWN)
        )
        return f"object {{{', '.join(shown)}{_more(inside)}}}"
    return _type(schema)


def _more(values: list[Any] | dict[str, Any]) -> str:
    return " …" if len(values) > MOST_SHOWN else ""


def _type(schema: dict[str, Any]) -> str:
    told = schema.get("type")
    kinds = told[:MOST_SHOWN] if isinstance(told, list) else [told]
    shown = " or ".join(filter(None, map(words, kinds))) or "any"
    form = words(schema.get("format"))
    return f"{shown} ({form})"[:LONGEST] if form else shown[:LONGEST]


MOST_OPERATIONS = 5_000
MOST_SCHEMAS = 5_000
MOST_ROWS = 200  # of one table
LONGEST_TEXT = 20_000
LONGEST_CELL = 500
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")

_HEADING = re.compile(rf"^ {{0,3}}#{{1,6}}[ \t]+{HEADING_TEXT}", re.MULTILINE)

Spec = dict[str, Any]


def is_openapi(value: Any) -> bool:
    """Return whether a value describes an API in OpenAPI 3 or Swagger 2."""
    spec = mapping(value)
    told = words(spec.get("openapi")) or words(spec.get("swagger"))
    has_content = any(isinstance(spec.get(key), dict) for key in ("paths", "webhooks", "components"))
    return told[:1] in ("2", "3") and has_content


def reference(spec: Spec) -> str:
    """Return the Markdown of an API: introduction, operations and schemas, up to the size limit."""
    blocks: list[str] = []
    size = 0
    for block in chain(_introduction(spec), _operations(spec), _schemas(spec)):
        blocks.append(block)
        size += len(block)
        if size > MOST_CHARS:  # YAML aliases may repeat content without end
            break
    return joined(blocks)


def _introduction(spec: Spec) -> Iterator[str]:
    info = mapping(spec.get("info"))
    yield heading(1, words(info.get("title")) or "API")
    version = one_line(words(info.get("version")))
    yield f"Version {version}" if version else ""
    yield _prose(info.get("summary"))
    yield _prose(info.get("description"))
    servers = [words(mapping(each).get("url")) for each in sequence(spec.get("servers"))[:20]]
    if words(spec.get("host")):
        servers.append(words(spec["host"]) + words(spec.get("basePath")))
    shown = ", ".join(f"`{one_line(each)}`" for each in servers if each)
    yield f"Servers: {shown}" if shown else ""


def _operations(spec: Spec) -> Iterator[str]:
    number = 0
    for path, raw_item in (
        each for group in ("paths", "webhooks") for each in mapping(spec.get(group)).items()
    ):
        item = resolved(spec, raw_item)
        for method in METHODS:
            if isinstance(item.get(method), dict):
                if number == MOST_OPERATIONS:
                    yield f"(cut after {MOST_OPERATIONS:,} operations)"
                    return
                number += 1
                yield _operation(
                    spec, f"{method.upper()} {path}", item[method], sequence(item.get("parameters"))
                )


def _operation(spec: Spec, title: str, operation: Spec, shared: list[Any]) -> str:
    given = [resolved(spec, each) for each in [*shared, *sequence(operation.get("parameters"))][:MOST_ROWS]]
    return joined(
        [
            heading(2, title),
            _prose(operation.get("summary")),
            _facts(operation),
            _prose(operation.get("description")),
            _parameters([each for each in given if each.get("in") != "body"]),
            _request(spec, operation, given),
            _responses(spec, operation),
        ]
    )


def _facts(operation: Spec) -> str:
    tags = ", ".join(one_line(words(tag)) for tag in sequence(operation.get("tags"))[:20])
    name = one_line(words(operation.get("operationId")))
    facts = [
        f"Operation: `{name}`" if name else "",
        f"Tags: {tags}" if tags else "",
        "Deprecated" if operation.get("deprecated") is True else "",
    ]
    return " · ".join(filter(None, facts))


def _parameters(given: list[Spec]) -> str:
    rows = [
        [
            f"`{words(each.get('name'))}`",
            words(each.get("in")),
            summary(each.get("schema") or each),
            "yes" if each.get("required") is True else "no",
            _cell(each.get("description")),
        ]
        for each in given
        if words(each.get("name"))
    ]
    return _titled_table("Parameters:", ["Parameter", "In", "Type", "Required", "Description"], rows)


def _titled_table(title: str, head: list[str], rows: list[list[str]]) -> str:
    return joined([title, table([head, *rows])]) if rows else ""


def _request(spec: Spec, operation: Spec, given: list[Spec]) -> str:
    body = resolved(spec, operation.get("requestBody"))
    shown = [f"`{media}`: {summary(mapping(each).get('schema'))}" for media, each in _content(body)]
    shown += [summary(each.get("schema")) for each in given if each.get("in") == "body"]
    told = _cell(body.get("description"))
    return f"Request body: {'; '.join(shown)}{f' — {told}' if told else ''}" if shown or told else ""


def _responses(spec: Spec, operation: Spec) -> str:
    rows = []
    for code, raw in islice(mapping(operation.get("responses")).items(), MOST_ROWS):
        answer = resolved(spec, raw)
        schemas = [summary(mapping(each).get("schema")) for _, each in _content(answer)]
        schemas += [summary(answer["schema"])] if "schema" in answer else []
        rows.append([words(code), _cell(answer.get("description")), "; ".join(dict.fromkeys(schemas))])
    return _titled_table("Responses:", ["Status", "Description", "Content"], rows)


def _content(part: Spec) -> list[tuple[str, Any]]:
    return list(islice(mapping(part.get("content")).items(), 10))


def _schemas(spec: Spec) -> Iterator[str]:
    found = mapping(mapping(spec.get("components")).get("schemas")) or mapping(spec.get("definitions"))
    for name, schema in islice(found.items(), MOST_SCHEMAS):
        rows = list(_properties(spec, schema))
        head = ["Property", "Type", "Required", "Description"]
        yield heading(2, f"Schema {name}")
        yield _prose(mapping(schema).get("description"))
        yield table([head, *rows]) if rows else summary(schema)
    if len(found) > MOST_SCHEMAS:
        yield f"(cut after {MOST_SCHEMAS:,} schemas)"


def _prose(value: Any) -> str:
    """Return a Markdown description with its headings in bold, because they would compete with ours."""
    return _HEADING.sub(r"**\1**", words(value)[:LONGEST_TEXT]).strip()


def _cell(value: Any) -> str:
    return one_line(words(value)[:LONGEST_CELL])
