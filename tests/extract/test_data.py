"""JSON and YAML: code under a title; what describes an API becomes a reference."""

import json
import time
from typing import Any

import pytest
from tests.extract.files import read

from afresh.errors import ExtractError
from afresh.extract import data_files as data_module
from afresh.extract.chunk.markdown import chunk
from afresh.extract.data_files import parse_yaml


def test_json_is_pretty_code_under_its_title() -> None:
    document = read(b'{"title":"Jars","sizes":[1,"\\u00fc"]}', "jars.json", "application/json")
    assert document.markdown == '# Jars\n\n```json\n{\n  "title": "Jars",\n  "sizes": [\n    1,\n    "ü"\n  ]\n}\n```'
    assert document.title == "Jars"


def test_json_keeps_its_numbers_as_they_are_written() -> None:
    data = b'{"a": 1.10, "b": 1e-999, "c": [], "d": {}, "e": [true, null, -0.0, 12345678901234567890]}'
    assert "".join(read(data, "a.json").markdown.split()).endswith(data.decode().replace(" ", "") + "```")


def test_yaml_is_code_as_it_is_written_under_the_name_of_its_file() -> None:
    document = read(b"a: &x 1 # why\nb: *x\n", "my%20jars.yml", "text/plain")
    assert document.markdown == "# my jars.yml\n\n```yaml\na: &x 1 # why\nb: *x\n```"


@pytest.mark.parametrize("data", [b'{"a": 1,} // comment', b'{"a": 1}\n{"b": 2}', b"[" * 100_000, b"9" * 9_999])
def test_invalid_json_stays_as_it_is(data: bytes) -> None:
    assert read(data, "a.json").markdown.split("\n\n")[1].startswith("```json\n" + data[:9].decode())


def test_nothing_is_refused() -> None:
    for name in ("a.json", "a.yaml"):
        with pytest.raises(ExtractError, match="file is empty"):
            read(b" \n", name)


def test_large_data_is_cut_and_says_so() -> None:
    long = json.dumps({"file": "A" * 1_000_000, "rows": [{"number": at} for at in range(50_000)]}).encode()
    markdown = read(long, "long.json").markdown
    assert len(markdown) < data_module.MAX_DATA_CHARS + 1_000
    assert '… (1,000,000 characters)"' in markdown
    assert markdown.endswith("\n```\n\n(cut after 200,000 characters)")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["long.json", "long.yaml"])
def test_a_string_of_a_hundred_megabytes_is_cut(name: str) -> None:
    start = time.process_time()
    markdown = read(b'{"file": "' + b"A" * 100_000_000 + b'"}', name).markdown
    assert time.process_time() - start < 10
    assert "AAAA… (100,000,000 characters)" in markdown or "AAAA…\n```\n\n(cut after 2,000,000" in markdown
    assert len(markdown) < 1_000


def test_F61_halves_of_pairs_and_nulls_can_be_stored() -> None:
    document = read(b'{"title": "a\\u0000\\ud800b", "x": "\\ud800"}', "a.json")
    (document.title + document.markdown).encode()
    assert "\0" not in document.title + document.markdown


# ---- APIs -----------------------------------------------------------------------------------

API: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Jar API", "version": "2.0", "description": "# Hello\nKeeps jars."},
    "servers": [{"url": "https://api.lid.example/v2"}],
    "paths": {
        "/jars/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": {
                "summary": "Find a jar",
                "operationId": "getJar",
                "tags": ["jars"],
                "responses": {
                    "200": {
                        "description": "The jar",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Jar"}}},
                    },
                    "404": {"$ref": "#/components/responses/missing"},
                },
            },
            "put": {
                "deprecated": True,
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Jar"}}}
                    }
                },
            },
        }
    },
    "components": {
        "parameters": {
            "id": {
                "name": "id",
                "in": "path",
                "required": True,
                "schema": {"type": "integer", "format": "int64"},
                "description": "Which | one",
            }
        },
        "responses": {"missing": {"description": "No such jar"}},
        "schemas": {
            "Jar": {
                "description": "A jar.",
                "required": ["id"],
                "properties": {
                    "id": {"type": "integer"},
                    "lid": {"enum": ["cork", "tin"], "description": "What closes it"},
                    "size": {"type": "object", "properties": {"litres": {"type": "number"}}},
                },
            }
        },
    },
}

REFERENCE = """\
# Jar API

Version 2.0

**Hello**
Keeps jars.

Servers: `https://api.lid.example/v2`

## GET /jars/{id}

Find a jar

Operation: `getJar` · Tags: jars

Parameters:

| Parameter | In | Type | Required | Description |
| --- | --- | --- | --- | --- |
| `id` | path | integer (int64) | yes | Which \\| one |

Responses:

| Status | Description | Content |
| --- | --- | --- |
| 200 | The jar | Jar |
| 404 | No such jar |  |

## PUT /jars/{id}

Deprecated

Parameters:

| Parameter | In | Type | Required | Description |
| --- | --- | --- | --- | --- |
| `id` | path | integer (int64) | yes | Which \\| one |

Request body: `application/json`: array of Jar

## Schema Jar

A jar.

| Property | Type | Required | Description |
| --- | --- | --- | --- |
| `id` | integer | yes |  |
| `lid` | "cork" \\| "tin" | no | What closes it |
| `size` | object {litres?: number} | no |  |"""


def test_an_api_becomes_a_reference_with_a_section_for_each_operation() -> None:
    document = read(json.dumps(API).encode(), "openapi", "application/vnd.oai.openapi+json")
    assert document.markdown == REFERENCE
    assert document.title == "Jar API"
    assert any("GET /jars/{id}" in each.content for each in chunk(document))


SWAGGER = """\
swagger: "2.0"
info: &info {title: Old API, version: 1}
host: api.lid.example
basePath: /v1
x-common: &common
  tags: [lids]
  responses: &answers
    200: {description: Done, schema: {$ref: '#/definitions/Lid'}}
paths:
  /lids:
    post:
      <<: *common
      summary: Add a lid
      parameters:
        - {name: lid, in: body, schema: {$ref: '#/definitions/Lid'}}
        - {name: fast, in: query, type: boolean, required: true}
definitions:
  Lid: {type: object, properties: {wide: {type: boolean}}}
"""


@pytest.mark.parametrize("name", ["swagger.yaml", "swagger.yml?raw=true"])
def test_an_old_api_in_yaml_with_aliases_and_merged_keys(name: str) -> None:
    indented = "".join(f"  {line}" for line in SWAGGER.splitlines(keepends=True))
    markdown = read(f"---\n{indented}".encode(), name, "text/plain").markdown
    assert (
        "# Old API\n\nVersion 1\n\nServers: `api.lid.example/v1`\n\n## POST /lids\n\nAdd a lid\n\nTags: lids"
        in markdown
    )
    assert "| `fast` | query | boolean | yes |  |" in markdown
    assert "Request body: Lid" in markdown
    assert "| 200 | Done | Lid |" in markdown
    assert "## Schema Lid\n\n| Property |" in markdown


def test_an_api_of_any_shape_does_no_harm() -> None:
    odd: list[Any] = [None, 3, True, "x", [], {}, [3], {"$ref": "#/x"}, {"$ref": "#/components/schemas/a"}]
    for value in odd:
        api = {
            "openapi": "3.0.0",
            "info": value,
            "servers": value,
            "paths": {"/a": value, "/b": {"get": {"parameters": [value], "responses": value, "requestBody": value}}},
            "components": {"schemas": {"a": value, "b": {"allOf": [value], "properties": {"p": value}}}},
        }
        assert "## GET /b" in read(json.dumps(api).encode(), "api.json").markdown


LAUGHS = "openapi: 3.0.0\npaths: {}\nx0: &x0 [a]\n" + "".join(
    f"x{at}: &x{at} [{', '.join([f'*x{at - 1}'] * 10)}]\n" for at in range(1, 40)
)
MERGED = "openapi: 3.0.0\nx0: &x0 {a: {$ref: b}}\n" + "".join(
    f"x{at}: &x{at} {{k{at}: *x{at - 1}, <<: [{', '.join([f'*x{at - 1}'] * 10)}]}}\n" for at in range(1, 40)
)
FAT = MERGED + "paths:\n  /a:\n" + "".join(f"    {verb}: {{parameters: *x39}}\n" for verb in ("get", "put"))


@pytest.mark.parametrize("bomb", [LAUGHS, MERGED, FAT])
def test_yaml_bombs_stay_small(bomb: str) -> None:
    assert len(read(bomb.encode(), "api.yaml").markdown) < 100_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: &x [*x]", "alias is undefined"),
        ("a: *none", "broken YAML|alias is undefined"),
        ("[" * 1_000, "nested too deeply"),
        ("a: [1", "broken YAML"),
        ("a: &x 1\nb: [" + "*x, " * 10_001 + "]", "too many"),
    ],
)
def test_yaml_tricks_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ExtractError, match=reason):
        parse_yaml(text)


def test_yaml_values_are_what_an_api_needs_and_no_objects() -> None:
    text = "a: !!python/object:os.system x\nb: yes\n200: null\n? [x]\n: 1\nc: 'true'\nd: true"
    assert parse_yaml(text) == {"a": "x", "b": "yes", "200": None, "…": "1", "c": "true", "d": True}
