"""Both parsers of the WHATWG standard give the same URLs."""

import gzip
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from afresh.urls import canonical

BASE = "https://x.org/a/b?q"
PARTS = [
    *"/\\?#&=@:.%aE2é💩ß。 \t\n\0\x7f~^|`'\"<>{}[]",
    *("http:", "file:", "//", ":80", "..", "x.org", "[::1]", "%2e"),
]


def load_without(module: str) -> ModuleType:
    """Load afresh.urls.canonical once more where a module cannot be imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module, None)
        spec = importlib.util.spec_from_file_location("canonical_again", canonical.__file__)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    return loaded


PURE = load_without("ada_url")


def outcome(function: Callable[..., str], *arguments: str) -> str | None:
    try:
        return function(*arguments)
    except ValueError:
        return None


def differences(pairs: Iterator[tuple[str, str | None]]) -> list[str]:
    return [
        raw_url
        for raw_url, base in pairs
        if (outcome(PURE.normalize_url, raw_url) if base is None else outcome(PURE.join_url, base, raw_url))
        != (outcome(canonical.normalize_url, raw_url) if base is None else outcome(canonical.join_url, base, raw_url))
    ]


def test_the_parsers_are_two() -> None:
    assert canonical.join_url.__module__.startswith("ada_url")
    assert PURE.join_url is not canonical.join_url
    assert PURE.join_url(BASE, "../c%7E?d#e") == "https://x.org/c%7E?d#e"


def test_the_cases_of_the_standard_come_out_the_same(shared: Path) -> None:
    folder = shared / "data" / "wpt-url"
    urls = json.loads((folder / "urltestdata.json").read_bytes())
    hosts = [
        *json.loads((folder / "toascii.json").read_bytes()),
        *json.loads(gzip.decompress((folder / "IdnaTestV2.json.gz").read_bytes())),
    ]
    assert not differences((each["input"], each.get("base")) for each in urls if isinstance(each, dict))
    found = differences((f"https://{each['input']}/x", None) for each in hosts if isinstance(each, dict))
    assert {host for host in found if "\U0003e8ac" not in host} == set()  # unassigned, refused by ada-url alone


@given(st.lists(st.sampled_from(PARTS), max_size=9).map("".join))
@examples(300)
def test_any_text_comes_out_the_same(text: str) -> None:
    assert not differences(iter([(text, BASE), (f"http://x{text}", None)]))
