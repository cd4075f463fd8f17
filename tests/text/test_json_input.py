"""JSON from outside (S2): bounded before it is parsed, in bytes, values and depth."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from afresh.text.json_input import PIECE_BYTES, BadJson, count_values, read_json, read_large_json

BOUNDS: Mapping[str, int] = {"max_bytes": 8 * 1024 * 1024, "max_values": 500_000}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"[" + b"[]," * 100 + b"1]", "more than 50 values"),
        (b"{" + b",".join(b'"%d":1' % n for n in range(60)) + b"}", "more than 50 values"),
        (b'"' + b"a" * 1_000 + b'"', "larger than 1,000 bytes"),
        (json.dumps([1] * 60).encode("utf-16"), "more than 50 values"),
        (b"{", "no JSON"),
        (b"9" * 900, None),
        (b"\xff\xfe", "no JSON"),
    ],
)
def test_S2_json_is_refused_before_it_is_parsed(data: bytes, why: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    loads = json.loads

    def counted(raw: bytes) -> object:
        parsed.append(len(raw))
        return loads(raw)

    monkeypatch.setattr(json, "loads", counted)
    if why is None:
        assert read_json(data, max_bytes=1_000, max_values=50) == int(data)
        return
    with pytest.raises(BadJson, match=why):
        read_json(data, max_bytes=1_000, max_values=50)
    assert bool(parsed) is (why == "no JSON")


def test_S2_json_that_is_too_deep_is_none() -> None:
    with pytest.raises(BadJson, match="no JSON"):
        read_json(b"[" * 40_000)


@pytest.mark.parametrize("value", [1, [], {}, [1, 2], {"a": [1, {"b": [[], {}]}]}, [[[]]], ["a,b[{"]])
def test_S2_no_value_escapes_the_count(value: object) -> None:
    def values(of: object) -> int:
        inner = of.values() if isinstance(of, dict) else of if isinstance(of, list) else ()
        return 1 + sum(map(values, inner))

    assert count_values(json.dumps(value).encode()) >= values(value)


@pytest.mark.parametrize(
    "value",
    [
        [{"path": f"docs/{n}.md", "size": n} for n in range(30_000)],
        {"data": [{"index": n, "embedding": [n / 7] * 2_000} for n in range(20)], "model": "m"},
        {"tree": [[1.5] * 20_000, "é" * 200_000, {"a": ["b" * 600_000, {}, []]}, None, True]},
        [[[[[["deep" * 10, n] for n in range(10_000)]]]]],
        ['[{,\\"' * 1_000] * 100,
        "a" * 1_000_000,
    ],
    ids=["many items", "vectors", "large items", "deep", "marks in texts", "one text"],
)
def test_S2_F165_large_json_says_the_same_in_pieces(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        assert len(text) > PIECE_BYTES
        assert read_large_json(text.encode(), **BOUNDS) == value


def test_S2_F165_no_piece_of_large_json_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    decode = msgspec.json.decode

    def counted(text: memoryview, type: Any = Any) -> Any:  # noqa: A002
        if type not in (list[msgspec.Raw], dict[str, msgspec.Raw]):  # which only scan
            parsed.append(len(text))
        return decode(text, type=type)

    monkeypatch.setattr(msgspec.json, "decode", counted)
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(len(text)))
    data = msgspec.json.encode({"tree": [{"path": f"docs/{n}.md", "size": n} for n in range(60_000)]})
    assert len(read_large_json(data, **BOUNDS)["tree"]) == 60_000
    assert sum(parsed) > 0.9 * len(data) > 5 * PIECE_BYTES
    assert max(parsed) <= PIECE_BYTES + 2


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"[" + b'"' + b"a" * 9_000_000 + b'"]', "larger than"),
        (b"[" + b"[]," * 400_000 + b"1]", "more than"),
        (b"[" * 400_000, "no JSON"),
        (b'{"a": [1, 2' + b" " * 300_000, "no JSON"),
        (b'["' + b"\xff" * 300_000 + b'"]', "no JSON"),
        (b"<html>" * 60_000, "no JSON"),
    ],
)
def test_S2_F165_large_json_is_refused_as_small_json_is(data: bytes, why: str) -> None:
    with pytest.raises(BadJson, match=why):
        read_large_json(data, **BOUNDS)
