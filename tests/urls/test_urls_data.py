"""Canonical addresses against public collections of hard cases; each kind of difference is counted."""

import csv
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from afresh.urls.canonical import canonical, domain_of, host_of


def cases(text: str) -> list[dict[str, Any]]:
    return [case for case in json.loads(text) if isinstance(case, dict)]


def rows(table: Path) -> list[list[str]]:
    lines = table.read_bytes().decode().split("\n")
    kept = (line for line in lines if line.strip() and not line.startswith("#"))
    return [[field.strip(" ") for field in next(csv.reader([line], skipinitialspace=True))] for line in kept]


def same_octets(one: str, other: str) -> bool:
    return unquote_to_bytes(one) == unquote_to_bytes(other)


Explains = Callable[[str, str, str | None], bool]  # raw address, what the collection wants, our answer


def explained(differences: list[tuple[str, str, str | None]], kinds: dict[str, Explains]) -> Counter[str]:
    """Count differences by the first kind that explains them."""

    def kind_of(raw_url: str, wanted: str, got: str | None) -> str:
        fitting = (kind for kind, explains in kinds.items() if explains(raw_url, wanted, got))
        return next(fitting, f"UNEXPLAINED {raw_url!r}: wanted {wanted!r}, got {got!r}")

    return Counter(kind_of(*difference) for difference in differences)


BEYOND_WHATWG: dict[str, Explains] = {
    "user name or password refused": lambda _, wanted, got: got is None and "@" in domain_of(wanted),
    "raw control character refused": lambda raw, _, got: got is None and bool(re.search(r"[\0-\x1f\x7f]", raw)),
    "host ends in an empty label": lambda _, wanted, got: got is None and host_of(wanted).endswith("."),
    "trailing dot of the host off": lambda _, wanted, got: got == wanted.replace("./x", "/x"),
    "empty query off": lambda _, wanted, got: got == wanted.removesuffix("?"),
    "escapes upper or undone": lambda _, wanted, got: got is not None and got != wanted and same_octets(got, wanted),
}


def test_F68_wpt_urltestdata(shared: Path) -> None:
    """WHATWG's own cases: equal but for what `urls` documents; nothing accepted that the standard refuses."""
    accepted, differences, checked = [], [], 0
    for case in cases((shared / "data" / "wpt-url/urltestdata.json").read_text("utf-8")):
        got = canonical(case["input"], case["base"])
        wanted = case.get("href", "").partition("#")[0]
        if not wanted.startswith(("http://", "https://")):
            accepted += [] if got is None else [(case["input"], case["base"], got)]
        else:
            checked += 1
            differences += [] if got == wanted else [(case["input"], wanted, got)]
    assert accepted == []
    assert checked == 247
    assert explained(differences, BEYOND_WHATWG) == {
        "user name or password refused": 31,
        "escapes upper or undone": 7,
        "empty query off": 4,
        "raw control character refused": 3,
        "host ends in an empty label": 3,
    }


def test_F69_wpt_toascii(shared: Path) -> None:
    """F69: every IDN host comes out as the standard says, or is refused where it refuses."""
    for case in cases((shared / "data" / "wpt-url/toascii.json").read_text("utf-8")):
        wanted = f"https://{case['output']}/x" if case["output"] is not None else None
        assert canonical(f"https://{case['input']}/x") == wanted, case


def test_F69_idna_test_v2(shared: Path) -> None:
    """F69: Unicode's own IDNA cases; only the dots at the end of a host differ, by choice."""
    text = gzip.decompress((shared / "data" / "wpt-url/IdnaTestV2.json.gz").read_bytes()).decode()
    found = [(c["input"], c["output"], canonical(f"https://{c['input']}/x")) for c in cases(text) if c["input"]]
    assert [case for case in found if case[1] is None and case[2] is not None] == []
    named = [(raw_url, f"https://{wanted}/x", got) for raw_url, wanted, got in found if wanted is not None]
    kinds = explained([case for case in named if case[1] != case[2]], BEYOND_WHATWG)
    assert set(kinds) == {"trailing dot of the host off", "host ends in an empty label"}, kinds


BY_CHOICE: dict[str, Explains] = {
    "other schemes are not crawled": lambda raw, _, got: got is None and raw.startswith(("file:", "ftp:")),
    "an address needs a host": lambda raw, _, got: got is None and raw.startswith("http:///"),
    "an address needs a scheme": lambda raw, _, got: got is None and ":" not in raw,
    "raw control character refused": lambda raw, _, got: got is None and not raw.isprintable(),
    "doubled slashes stay: some servers tell them apart": lambda raw, _, got: got == raw and "//" in raw[8:],
    "a stray % stays, as browsers send it": lambda raw, wanted, got: (
        got is not None and "%25" in wanted and same_octets(got, wanted)
    ),
    "[ ] ^ ` | stay bare in a query, as browsers send them": lambda _, wanted, got: (
        got is not None and bool(set("[]^`|") & set(got)) and same_octets(got, wanted)
    ),
    "parameters keep order and empty values": lambda raw, _, got: got == raw.partition("#")[0] and "?" in raw,
}


def test_F68_crawler_commons_normalizer(shared: Path) -> None:
    """A normaliser with other aims: 75 of 112 equal, the rest differ by choice, each kind named."""
    table = rows(shared / "data" / "crawler-commons/normalizer/weirdToNormalizedUrls.csv")
    found = [(raw_url, wanted, canonical(raw_url)) for raw_url, wanted in table]
    assert len(found) == 112
    assert explained([case for case in found if case[1] != case[2]], BY_CHOICE) == {
        "parameters keep order and empty values": 11,
        "other schemes are not crawled": 6,
        "doubled slashes stay: some servers tell them apart": 6,
        "a stray % stays, as browsers send it": 5,
        "[ ] ^ ` | stay bare in a query, as browsers send them": 4,
        "raw control character refused": 2,
        "an address needs a host": 2,
        "an address needs a scheme": 1,
    }


def test_F68_crawler_commons_invalid_urls(shared: Path) -> None:
    """What cannot be an address gives None and never an exception."""
    assert [canonical(row[0]) for row in rows(shared / "data" / "crawler-commons/normalizer/invalidUrls.csv")] == [
        None,
        None,
    ]


def test_F68_crawler_commons_resolve(shared: Path) -> None:
    """Joins agree in 17 of 22 cases; the others differ in what `urls` documents."""
    table = rows(shared / "data" / "crawler-commons/url-utils/url-resolve.csv")
    found = [(raw_url, wanted, canonical(raw_url, base or None)) for raw_url, base, wanted in table]
    kinds: dict[str, Explains] = {
        "other schemes are not crawled": lambda _, wanted, got: got is None and wanted.startswith("file:"),
        "fragment off": lambda _, wanted, got: "#" in wanted and got == wanted.partition("#")[0],
    }
    assert len(found) == 22
    assert explained([case for case in found if case[1] != case[2]], kinds | BEYOND_WHATWG) == {
        "escapes upper or undone": 2,
        "user name or password refused": 1,
        "other schemes are not crawled": 1,
        "fragment off": 1,
    }
