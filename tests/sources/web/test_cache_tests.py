"""The public tests for HTTP caches, as far as they speak of a client that asks again (F44, F48).

afresh keeps what it made of a page, not the answer, and asks before every use. So these suites say nothing
about it: how long an answer is fresh (cc-freshness, cc-parse, cc-request, age-parse, expires, expires-parse,
heuristic, stale, pragma, cdn-cache-control, status, method), which stored answer fits a request (vary,
vary-parse, auth, partial), stored header fields (headers), and what others change meanwhile (updateHEAD,
invalidation, other). What applies: every case in which the stored answer is validated, every stored answer
that carries a validator in the suites on conditional requests, and interim answers.
"""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.hostile import HostileSite
from tests.fakes.servers import fetching
from tests.fakes.tricks import then_close
from tests.fakes.wire import Reply, answer, raw

from afresh.model.fetch import Body, NotModified, Request, Validators
from afresh.testing import RecordedRequest
from afresh.testing.script import Answer, http_date

VALIDATED = ("etag_validated", "lm_validated")
CONDITIONAL = ("conditional-inm", "conditional-lm", "update304")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
# Its first answer names a content coding that does not exist, so that no client can read it.
UNREADABLE = "304-etag-update-response-Content-Encoding"


@pytest.fixture(scope="session")
def suites(shared: Path) -> dict[str, list[dict[str, Any]]]:
    data = json.loads(gzip.decompress((shared / "data/http-cache-tests/cache_tests.json.gz").read_bytes()))
    return {suite["id"]: suite["tests"] for suite in data}


def _headers(request: dict[str, Any]) -> dict[str, str]:
    """The headers of a scripted answer; a number in a date is seconds from now."""
    return {
        name: http_date(NOW + timedelta(seconds=value)) if isinstance(value, int) else value
        for name, value, *_ in request.get("response_headers", [])
        if name != "Content-Length"
    }


def _validators(headers: dict[str, str], known: Validators) -> Validators:
    etag, modified = headers.get("ETag"), headers.get("Last-Modified")
    return Validators(etag=etag or known.etag, last_modified=modified or known.last_modified)


class Case:
    """A site that plays the server of one case: its answers in turn, 304 where its validators come back."""

    def __init__(self, requests: list[dict[str, Any]]) -> None:
        self.answers = [_headers(request) for request in requests]

    def __call__(self, asked: RecordedRequest, own: Answer) -> Reply:
        headers = self.answers[min(asked.visit, len(self.answers)) - 1]
        if asked.conditional:
            return raw(304, b"", headers)
        return raw(200, b"hello", headers)


async def _walk(site: HostileSite, requests: list[dict[str, Any]]) -> list[Validators]:
    """Fetch once for each request of a case, each time with what the time before left; what was sent back."""
    site.say("/", Case(requests))
    known, left = Validators(), []
    async with fetching(clock=lambda: NOW) as fetcher:
        for _ in requests:
            seen = await fetcher.fetch(Request(url=site.url, validators=known))
            assert isinstance(seen, NotModified if known else Body), seen
            known = seen.validators
            left.append(known)
    return left


async def test_F48_every_case_that_validates_a_stored_answer(suites: dict[str, list[dict[str, Any]]]) -> None:
    cases = [
        case
        for tests in suites.values()
        for case in tests
        if case["id"] != UNREADABLE and any(each.get("expected_type") in VALIDATED for each in case["requests"])
    ]
    assert len(cases) == 31
    for case in cases:
        with HostileSite() as site:
            left = await _walk(site, case["requests"])
        expected = Validators()
        for request, after in zip(case["requests"], left, strict=True):
            expected = _validators(_headers(request), expected)
            assert after == expected, case["id"]
        sent = [(asked.if_none_match, asked.if_modified_since) for asked in site.requests]
        assert sent == [(None, None), *((each.etag, each.last_modified) for each in left[:-1])], case["id"]


async def test_F44_F48_stored_validators_go_back_byte_for_byte(suites: dict[str, list[dict[str, Any]]]) -> None:
    cases = [case for name in CONDITIONAL for case in suites[name] if case["id"] != UNREADABLE]
    asked_back = 0
    for case in cases:
        headers = _headers(case["requests"][0])
        with HostileSite() as site:
            (first, *_) = await _walk(site, [case["requests"][0]] * 2)
        assert first == _validators(headers, Validators()), case["id"]
        second = site.requests[1]
        assert (second.if_none_match, second.if_modified_since) == (first.etag, first.last_modified)
        asked_back += bool(first)
    assert (len(cases), asked_back) == (46, 43)  # three answers carry no validator


@pytest.mark.parametrize("status", [100, 102, 103])
async def test_interim_answers_are_passed_over(status: int) -> None:
    interim = f"HTTP/1.1 {status} Wait\r\nLink: </style.css>; rel=preload\r\n\r\n".encode()
    with HostileSite() as site:
        site.say("/", interim * 3 + answer(200, b"final", etag='"1"'))
        site.say("/cut", then_close(interim))
        async with fetching() as fetcher:
            seen = await fetcher.fetch(Request(url=site.url))
            cut = await fetcher.fetch(Request(url=site.at("/cut")))
    assert isinstance(seen, Body)
    assert (seen.data, seen.validators.etag, type(cut).__name__) == (b"final", '"1"', "Failed")
