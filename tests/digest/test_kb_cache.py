"""The cache of the knowledge base: what is written is read back, and nothing but its exact schema is read."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.digest.cache import (
    CACHE_STATUSES,
    NEVER,
    NOTHING_READ,
    REPAIR,
    UPDATE,
    Cache,
    FileRecord,
    Record,
    UrlRecord,
    format_cache,
    index_text,
    parse_cache,
)
from afresh.digest.records import DigestPage, url_record
from afresh.errors import KbError
from afresh.text.normalize import content_hash

ROOT = Path(__file__).resolve().parents[2]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PATH = "/kb/index-cache.json"
FILE, LINK = "notes/a.md", "https://x.test/a"

# Whatever a file can be called, with the bytes that are no UTF-8, and whatever a summary can hold.
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0/") | st.sampled_from(
    ["\udc80", "\udcff", "\n", "\\", '"', "\u2028"]
)
paths = st.lists(
    st.text(letters, min_size=1, max_size=6).filter(lambda part: part not in (".", "..")), min_size=1, max_size=3
).map("/".join)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
headers = st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
times = st.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
hashes = st.binary(max_size=2).map(lambda data: content_hash(data.hex()))
whole = st.integers(0, 2**63 - 1)
files = st.builds(
    FileRecord,
    rel_path=paths,
    size_bytes=whole,
    mtime_ns=st.integers(-(2**62), 2**63 - 1),
    content_hash=hashes,
    summary_text=texts,
    last_indexed_at=times,
)
links = st.builds(
    UrlRecord,
    url=st.text("abc/?é", max_size=6).map(lambda rest: f"https://h{rest}"),
    content_hash=hashes,
    summary_text=texts,
    last_indexed_at=st.none() | times,
    last_fetched_at=st.none() | times,
    etag=headers,
    last_modified=headers,
    fetch_status=st.sampled_from(sorted(CACHE_STATUSES.values())),
    consecutive_failures=st.integers(0, 10**9),
    next_check_at=times,
)
caches = st.builds(
    lambda at, records: Cache(generated_at=at, sources={each.source_id: each for each in records}),
    times,
    st.lists(files | links, max_size=5),
)


def written(cache: Cache) -> bytes:
    return format_cache(cache).encode()


def two() -> Cache:
    """A file and a link."""
    file = FileRecord(
        rel_path=FILE,
        size_bytes=3,
        mtime_ns=5,
        content_hash=content_hash("a"),
        summary_text="A file.",
        last_indexed_at=NOON,
    )
    link = replace(
        url_record(DigestPage(url=LINK), LINK, NOON), last_fetched_at=NOON, etag='"1"', summary_text="A link."
    )
    return Cache(generated_at=NOON, sources={FILE: file, LINK: link})


# ---- written and read back


@law
@given(caches)
def test_E7_E8_what_is_written_is_read_back(cache: Cache) -> None:
    assert parse_cache(written(cache), PATH) == cache
    assert written(parse_cache(written(cache), PATH)) == written(cache)


@law
@given(caches)
def test_E8_E9_E10_E11_exactly_the_keys_of_the_schema_are_written(cache: Cache) -> None:
    plain = json.loads(written(cache))
    assert list(plain) == ["schema_version", "generated_at", "sources"]
    assert list(plain["sources"]) == sorted(cache.sources)
    for name, record in plain["sources"].items():
        kind = record["source_type"]
        assert kind in ("file", "url")
        assert set(record) == {"source_type", "content_hash", "summary_text", "last_indexed_at", kind}
        assert re.fullmatch("[0-9a-f]{64}", record["content_hash"])
        about = record[kind]
        if kind == "file":
            assert set(about) == {"rel_path", "size_bytes", "mtime_ns"}
        else:
            assert set(about) == {
                "url",
                "last_fetched_at",
                "etag",
                "last_modified",
                "fetch_status",
                "consecutive_failures",
                "next_check_at",
            }
        assert about["rel_path" if kind == "file" else "url"] == name
        stamps = [record["last_indexed_at"], *(about[key] for key in about if key.endswith("_at"))]
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", stamp) for stamp in stamps)


@law
@given(st.lists(files | links, max_size=5, unique_by=lambda each: each.source_id), st.randoms())
def test_the_order_of_records_makes_no_difference(records: list[Record], chance: Any) -> None:
    shuffled = records[:]
    chance.shuffle(shuffled)
    one, other = (
        Cache(generated_at=NOON, sources={each.source_id: each for each in order}) for order in (records, shuffled)
    )
    assert written(one) == written(other)


def test_E29_a_link_just_added_keeps_to_the_schema_and_is_due() -> None:
    added = url_record(DigestPage(url=LINK), LINK, NOON)
    cache = Cache(generated_at=NOON, sources={LINK: added})
    record = json.loads(written(cache))["sources"][LINK]
    assert record["url"]["consecutive_failures"] == 0
    assert record["url"]["next_check_at"] == "2026-03-01T12:00:00Z"
    assert record["url"]["last_fetched_at"] == record["last_indexed_at"] == "1970-01-01T00:00:00Z"
    assert record["content_hash"] == NOTHING_READ == content_hash("")
    assert parse_cache(written(cache), PATH).sources[LINK] == added


def test_never_is_also_read_as_null_and_as_an_empty_hash() -> None:
    plain = json.loads(written(Cache(generated_at=NOON, sources={LINK: url_record(DigestPage(url=LINK), LINK, NOON)})))
    plain["sources"][LINK].update(last_indexed_at=None, content_hash="")
    plain["sources"][LINK]["url"]["last_fetched_at"] = None
    assert parse_cache(json.dumps(plain).encode(), PATH).sources[LINK] == url_record(DigestPage(url=LINK), LINK, NOON)


@pytest.mark.parametrize(
    ("typed", "expected_value"),
    [
        ("2026-03-01T12:00:00+00:00", NOON),
        ("2026-03-01t12:00:00z", NOON),
        ("2026-03-01T12:00:00.5Z", NOON + timedelta(seconds=0.5)),
        ("2026-03-01T12:00:00.000001999Z", NOON + timedelta(microseconds=1)),
        ("1970-01-01T00:00:00Z", NEVER),
    ],
)
def test_times_are_read_as_rfc_3339_allows(typed: str, expected_value: datetime) -> None:
    plain = json.loads(written(two()))
    plain["generated_at"] = typed
    assert parse_cache(json.dumps(plain).encode(), PATH).generated_at == expected_value


def test_a_cache_whose_records_are_the_same_is_the_same() -> None:
    cache, later = two(), NOON + timedelta(days=1)
    assert cache.with_sources(dict(cache.sources), later) is cache
    fewer = cache.with_sources({FILE: cache.sources[FILE]}, later)
    assert (list(fewer.sources), fewer.generated_at) == ([FILE], later)


def test_a_byte_order_mark_does_no_harm() -> None:
    assert parse_cache(b"\xef\xbb\xbf" + written(two()), PATH) == two()


# ---- what is refused


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    """A good cache with one thing changed."""
    plain = json.loads(written(two()))
    change(plain)
    return json.dumps(plain).encode()


def put(*steps: str, value: object) -> bytes:
    """A good cache with one value replaced."""

    def change(plain: dict[str, Any]) -> None:
        for step in steps[:-1]:
            plain = plain[step]
        plain[steps[-1]] = value

    return changed(change)


def each(*steps: str, values: list[object]) -> list[bytes]:
    """The same for many values."""
    return [put(*steps, value=value) for value in values]


IN_FILE, IN_LINK = ("sources", FILE), ("sources", LINK)
WRONG = {
    "schema_version": each("schema_version", values=[0, -1, "1", 1.0, True, None, []]),
    "generated_at": each(
        "generated_at",
        values=[None, 5, "", "yesterday", "2026-03-01", "2026-03-01T12:00:00", "2026-03-01T12:00:00+02:00"],
    )
    + each("generated_at", values=["2026-13-01T12:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z"]),
    "sources": each("sources", values=[None, [], "a", 1]),
    "source_type": each(*IN_FILE, "source_type", values=["folder", None, ["file"]]),
    "content_hash": each(*IN_FILE, "content_hash", values=[None, "abc", "g" * 64, 1]),
    "summary_text": each(*IN_LINK, "summary_text", values=[None, 1, ["x"], "a\ud800b"]),
    "last_indexed_at": [put(*IN_FILE, "last_indexed_at", value=None)],
    "file": each(*IN_FILE, "file", values=[None, [], "a"]),
    "rel_path": each(
        *IN_FILE, "file", "rel_path", values=["/etc/passwd", "../a", "a/../b", "", "a//b", "a\0b", "a\ud800b", 1]
    ),
    "the record is for another source": [
        put(*IN_FILE, "file", "rel_path", value="notes/b.md"),
        put(*IN_LINK, "url", "url", value=f"{LINK}b"),
    ],
    "size_bytes": each(*IN_FILE, "file", "size_bytes", values=[-1, 1.0, True, "3", 2**63]),
    "mtime_ns": each(*IN_FILE, "file", "mtime_ns", values=[1.5, None, 2**64]),
    "url": each(*IN_LINK, "url", "url", values=["file:///etc", "https://x\r\n", "https:///", f"{LINK}\ud800"]),
    "etag": each(*IN_LINK, "url", "etag", values=['"1"\r\nCookie: x', 1, [], '"\ud800"']),
    "last_modified": [put(*IN_LINK, "url", "last_modified", value="now\n")],
    "fetch_status": each(*IN_LINK, "url", "fetch_status", values=["ok", None, ["error"]]),
    "consecutive_failures": each(*IN_LINK, "url", "consecutive_failures", values=[-1, "0", False, 2**63 - 1]),
    "next_check_at": each(*IN_LINK, "url", "next_check_at", values=[None, 0, "9999-12-31T23:59:59Z"]),
    "is missing": [
        changed(lambda plain: plain.pop("sources")),
        changed(lambda plain: plain["sources"][FILE].pop("summary_text")),
        changed(lambda plain: plain["sources"][LINK]["url"].pop("etag")),
    ],
    "unknown key": [
        put("comment", value="x"),
        put(*IN_FILE, "url", value={}),
        put(*IN_LINK, "url", "retries", value=1),
    ],
    "expected an object": [b"[]", b"null", b'"x"', b"1"],
    "occurs twice": [
        b'{"schema_version": 1, "schema_version": 1}',
        written(two()).replace(b'"etag": ', b'"etag": null, "etag": '),
    ],
    "is not a valid number": [
        written(two()).replace(b'"size_bytes": 3', b'"size_bytes": ' + word) for word in (b"NaN", b"-Infinity")
    ],
    "too long": [written(two()).replace(b'"size_bytes": 3', b'"size_bytes": ' + b"9" * 10_000)],
    "too deeply": [b"[" * 200_000, b'{"a":' * 200_000],
    "is not JSON": [b"", b"{", written(two())[:-40], b"{'schema_version': 1}", b"\0"],
    "is not UTF-8": [b"\xff\xfe{\0}\0", written(two()).replace(b"A file.", b"A f\xe9le.")],
}


@pytest.mark.parametrize("words", WRONG)
def test_E8_whatever_is_not_the_schema_is_refused_with_path_place_and_remedy(words: str) -> None:
    for data in WRONG[words]:
        with pytest.raises(KbError) as caught:
            parse_cache(data, PATH)
        found_text = str(caught.value)
        assert found_text.startswith(f"{PATH} cannot be used as the cache: ")
        assert words in found_text, data[:200]
        assert found_text.endswith(REPAIR)
        assert "\n" not in found_text
        assert len(found_text) < 400


def test_E8_a_newer_cache_with_a_huge_number_is_reported_in_short() -> None:
    with pytest.raises(KbError, match="from a newer afresh") as caught:
        parse_cache(b'{"schema_version": 1' + b"0" * 4000 + b"}", PATH)
    assert len(str(caught.value)) < 400


def test_E8_a_newer_cache_asks_for_a_newer_afresh() -> None:
    newer = b'{"schema_version": 2, "files": [], "generated_at": "later"}'
    with pytest.raises(KbError, match="schema_version 2 is from a newer afresh, this one supports 1") as caught:
        parse_cache(newer, PATH)
    assert str(caught.value).endswith(UPDATE)


@law
@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )
)
def test_hostile_json_is_refused_and_nothing_else_happens(hostile: object) -> None:
    data = hostile if isinstance(hostile, bytes) else json.dumps(hostile).encode()
    with pytest.raises(KbError):
        parse_cache(data, PATH)


@law
@given(st.data())
def test_one_value_replaced_by_anything_is_read_or_refused(data: st.DataObject) -> None:
    plain = json.loads(written(two()))
    place = plain
    while isinstance(place[key := data.draw(st.sampled_from(sorted(place)))], dict) and data.draw(st.booleans()):
        place = place[key]
    place[key] = data.draw(st.none() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
    text = json.dumps(plain).encode()
    try:
        cache = parse_cache(text, PATH)
    except KbError:
        return
    assert parse_cache(written(cache), PATH) == cache


# ---- what ships


def test_E32_the_examples_are_what_the_code_writes() -> None:
    data = (ROOT / "examples/index-cache.json").read_bytes()
    cache = parse_cache(data, "examples/index-cache.json")
    assert len(cache.sources) == 5
    assert written(cache) == data
    index = (ROOT / "examples/index.txt").read_bytes()
    assert index_text(cache.sources.values()).encode() == index
    assert f"```text\n{index.decode()}```" in (ROOT / "docs/howto/knowledge-base.md").read_text("utf-8")
