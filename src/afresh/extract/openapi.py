"""Convert OpenAPI and Swagger descriptions to a document with summaries of their schemas."""

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
MAX_PARTS = 12  # properties, values or alternatives of a schema that its summary names
MOST_PROPERTIES = 300
MOST_HOPS = 5
MAX_SUMMARY_CHARS = 300
_json = json.JSONEncoder(ensure_ascii=False).encode
_JOINTS = (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and "))


def resolved(spec: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return the target of a reference within the file (never in other files), or the value itself."""
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
    """Yield a table row for each property of a schema and its `allOf` parts."""
    seen: set[str] = set()
    schema = resolved(spec, raw_schema)
    for part in [schema, *(resolved(spec, each) for each in sequence(schema.get("allOf"))[:MAX_PARTS])]:
        required = {name for name in sequence(part.get("required")) if isinstance(name, str)}
        for name, each in islice(mapping(part.get("properties")).items(), MOST_PROPERTIES):
            if name not in seen:
                seen.add(name)
                declared = _cell(mapping(each).get("description"))
                yield [f"`{name}`", summary(each), "yes" if name in required else "no", declared]


def summary(schema: Any) -> str:
    text = one_line(_summary(schema, 0))
    return text if len(text) <= MAX_SUMMARY_CHARS else f"{text[:MAX_SUMMARY_CHARS]}…"


def _summary(raw: Any, depth: int) -> str:
    schema = mapping(raw)
    if depth > DEEPEST:
        return "…"
    if isinstance(schema.get("$ref"), str):
        return unquote(schema["$ref"].rpartition("/")[2])[:MAX_SUMMARY_CHARS]
    for key, joint in _JOINTS:
        parts = [_summary(each, depth + 1) for each in sequence(schema.get(key))[:MAX_PARTS]]
        if parts:
            return joint.join(dict.fromkeys(parts))
    values = sequence(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    if values:
        rendered = ("…" if isinstance(each, dict | list) else _json(each)[:100] for each in values[:MAX_PARTS])
        return " | ".join(rendered) + _more(values)
    if "items" in schema:
        return f"array of {_summary(schema['items'], depth + 1)}"
    if inside := mapping(schema.get("properties")):
        required = [name for name in sequence(schema.get("required")) if isinstance(name, str)]
        rendered = (
            f"{name[:100]}{'' if name in required else '?'}: {_summary(each, depth + 1)}"
            for name, each in islice(inside.items(), MAX_PARTS)
        )
        return f"object {{{', '.join(rendered)}{_more(inside)}}}"
    return _type(schema)


def _more(values: list[Any] | dict[str, Any]) -> str:
    return " …" if len(values) > MAX_PARTS else ""


def _type(schema: dict[str, Any]) -> str:
    declared = schema.get("type")
    kinds = declared[:MAX_PARTS] if isinstance(declared, list) else [declared]
    rendered = " or ".join(filter(None, map(words, kinds))) or "any"
    form = words(schema.get("format"))
    return f"{rendered} ({form})"[:MAX_SUMMARY_CHARS] if form else rendered[:MAX_SUMMARY_CHARS]


MOST_OPERATIONS = 5_000
MOST_SCHEMAS = 5_000
MOST_ROWS = 200  # rows per table
MAX_PROSE_CHARS = 20_000
MAX_CELL_CHARS = 500
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")

_HEADING = re.compile(rf"^ {{0,3}}#{{1,6}}[ \t]+{HEADING_TEXT}", re.MULTILINE)

Spec = dict[str, Any]


def is_openapi(value: Any) -> bool:
    spec = mapping(value)
    declared = words(spec.get("openapi")) or words(spec.get("swagger"))
    has_content = any(isinstance(spec.get(key), dict) for key in ("paths", "webhooks", "components"))
    return declared[:1] in ("2", "3") and has_content


def reference(spec: Spec) -> str:
    """Return the reference of an API as Markdown: introduction, operations and schemas, up to the size limit."""
    blocks: list[str] = []
    size = 0
    for block in chain(_introduction(spec), _operations(spec), _schemas(spec)):
        blocks.append(block)
        size += len(block)
        if size > MOST_CHARS:  # YAML aliases may repeat content many times
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
    rendered = ", ".join(f"`{one_line(each)}`" for each in servers if each)
    yield f"Servers: {rendered}" if rendered else ""


def _operations(spec: Spec) -> Iterator[str]:
    number = 0
    for path, raw_item in (each for group in ("paths", "webhooks") for each in mapping(spec.get(group)).items()):
        item = resolved(spec, raw_item)
        for method in METHODS:
            if isinstance(item.get(method), dict):
                if number == MOST_OPERATIONS:
                    yield f"(cut after {MOST_OPERATIONS:,} operations)"
                    return
                number += 1
                yield _operation(spec, f"{method.upper()} {path}", item[method], sequence(item.get("parameters")))


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
    rendered = [f"`{media}`: {summary(mapping(each).get('schema'))}" for media, each in _content(body)]
    rendered += [summary(each.get("schema")) for each in given if each.get("in") == "body"]
    declared = _cell(body.get("description"))
    note = f" — {declared}" if declared else ""
    return f"Request body: {'; '.join(rendered)}{note}" if rendered or declared else ""


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
    """Return a description with its headings in bold, so that they do not mix with those of the reference."""
    return _HEADING.sub(r"**\1**", words(value)[:MAX_PROSE_CHARS]).strip()


def _cell(value: Any) -> str:
    return one_line(words(value)[:MAX_CELL_CHARS])
