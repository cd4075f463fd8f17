"""OpenAPI 3 and Swagger 2 as a reference that people read and search finds: a section for each operation."""

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from afresh.extract.data.json_tree import mapping, sequence, words
from afresh.extract.data.openapi_schema import named, properties, resolved, summary
from afresh.extract.html.head import one_line
from afresh.extract.markdown import HEADING_TEXT
from afresh.extract.written import MOST_CHARS, heading, joined, table

MOST_OPERATIONS = 5_000
MOST_SCHEMAS = 5_000
MOST_ROWS = 200  # of one table
LONGEST_TEXT = 20_000
LONGEST_CELL = 500
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")

_HEADING = re.compile(rf"^ {{0,3}}#{{1,6}}[ \t]+{HEADING_TEXT}", re.MULTILINE)

Spec = dict[str, Any]


def is_openapi(value: Any) -> bool:
    """Whether a value describes an API in OpenAPI 3 or Swagger 2."""
    spec = mapping(value)
    told = words(spec.get("openapi")) or words(spec.get("swagger"))
    has_content = any(isinstance(spec.get(key), dict) for key in ("paths", "webhooks", "components"))
    return told[:1] in ("2", "3") and has_content


def reference(spec: Spec) -> str:
    """The Markdown of an API: what it is, its operations, its schemas, as far as a document goes."""
    blocks: list[str] = []
    size = 0
    for block in chain(_introduction(spec), _sections(spec), _schemas(spec)):
        blocks.append(block)
        size += len(block)
        if size > MOST_CHARS:  # what is written twice by aliases may have no end
            break
    return joined(blocks)


def _sections(spec: Spec) -> Iterator[str]:
    for number, each in enumerate(_operations(spec)):
        if number == MOST_OPERATIONS:
            yield f"(cut after {MOST_OPERATIONS:,} operations)"
            return
        yield _operation(spec, *each)


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


def _operations(spec: Spec) -> Iterator[tuple[str, str, Spec, list[Any]]]:
    """Method, path, operation and the parameters of its path, in the order of the file."""
    for group in ("paths", "webhooks"):
        for path, raw_item in mapping(spec.get(group)).items():
            item = resolved(spec, raw_item)
            shared = sequence(item.get("parameters"))
            for method in METHODS:
                if isinstance(item.get(method), dict):
                    yield method.upper(), path, item[method], shared


def _operation(spec: Spec, method: str, path: str, operation: Spec, shared: list[Any]) -> str:
    given = [resolved(spec, each) for each in [*shared, *sequence(operation.get("parameters"))][:MOST_ROWS]]
    return joined(
        [
            heading(2, f"{method} {path}"),
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
    return " · ".join(fact for fact in facts if fact)


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
    head = ["Parameter", "In", "Type", "Required", "Description"]
    return joined(["Parameters:", table([head, *rows])]) if rows else ""


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
    head = ["Status", "Description", "Content"]
    return joined(["Responses:", table([head, *rows])]) if rows else ""


def _content(part: Spec) -> list[tuple[str, Any]]:
    return list(islice(mapping(part.get("content")).items(), 10))


def _schemas(spec: Spec) -> Iterator[str]:
    found = named(spec)
    for name, schema in islice(found.items(), MOST_SCHEMAS):
        rows = [
            [f"`{each.name}`", each.kind, each.required, _cell(each.told)]
            for each in properties(spec, schema)
        ]
        head = ["Property", "Type", "Required", "Description"]
        yield heading(2, f"Schema {name}")
        yield _prose(mapping(schema).get("description"))
        yield table([head, *rows]) if rows else summary(schema)
    if len(found) > MOST_SCHEMAS:
        yield f"(cut after {MOST_SCHEMAS:,} schemas)"


def _prose(value: Any) -> str:
    """A description, which is Markdown; its headings would take the place of ours."""
    return _HEADING.sub(r"**\1**", words(value)[:LONGEST_TEXT]).strip()


def _cell(value: Any) -> str:
    return one_line(words(value)[:LONGEST_CELL])
