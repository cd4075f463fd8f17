"""JSON from outside (S2): bounded before it is parsed, in bytes, values and depth."""

import json

import pytest

from afresh.core.json_input import BadJson, count_values, read_json


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
def test_S2_json_is_refused_before_it_is_parsed(
    data: bytes, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
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
