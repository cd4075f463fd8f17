"""Signatures of webhooks, and which push concerns which source."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from afresh.notify.incoming import BadMessage, Push, concerns_git, concerns_github, read_push, read_urls
from afresh.notify.signatures import github_signed, sign, signed
from afresh.sources.git.address import parse_git
from afresh.sources.github.address import github_address

WEB = "https://github.com"


def test_F100_the_rows_of_github_signatures(shared: Path) -> None:
    text = (shared / "data/standards/webhook_signature.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == 13
    for row in rows:
        accepted = github_signed(row["secret"], row["body"].encode(), row["header"])
        assert accepted is (row["accept"] is True), row["name"]


def test_F100_a_message_is_signed_with_its_id_and_time() -> None:
    secret, message = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    at, body = 1_614_265_330, b'{"test": 2432232314}'
    signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="  # as standardwebhooks.com has it
    assert sign(secret, message, at, body) == signature
    now = datetime.fromtimestamp(at, UTC)

    def accepted(**wrong: object) -> bool:
        given = {"secret": secret, "message_id": message, "timestamp": str(at), "body": body, "header": signature}
        return signed(**{**given, "now": now, **wrong})  # type: ignore[arg-type]

    assert accepted()
    assert accepted(header=f"v1,AAAA {signature}")
    assert accepted(now=now + timedelta(seconds=300))
    for wrong in (
        {"now": now + timedelta(seconds=301)},
        {"now": now - timedelta(seconds=301)},
        {"body": body + b" "},
        {"message_id": "msg_other"},
        {"message_id": None},
        {"timestamp": str(at + 1)},
        {"timestamp": "soon"},
        {"timestamp": None},
        {"header": None},
        {"header": signature.removeprefix("v1,")},
        {"header": "é"},
        {"secret": ""},
        {"secret": "other"},
    ):
        assert not accepted(**wrong), wrong


def push(ref: str = "refs/heads/main", *paths: str, forced: bool = False, event: str = "push") -> Push:
    repository = {
        "html_url": f"{WEB}/octo/docs",
        "clone_url": f"{WEB}/octo/docs.git",
        "ssh_url": "git@github.com:octo/docs.git",
        "default_branch": "main",
    }
    commits = [{"added": [], "modified": [path], "removed": []} for path in paths]
    return read_push({"ref": ref, "repository": repository, "commits": commits, "forced": forced}, event)


@pytest.mark.parametrize(
    ("typed", "pushed", "concerned"),
    [
        ("octo/docs", push(), True),
        ("octo/docs", push("refs/heads/dev"), False),
        ("octo/docs", push("refs/tags/main"), False),
        ("octo/docs@v1", push("refs/tags/v1"), True),
        ("octo/docs@v1", push(), False),
        (f"{WEB}/octo/docs/tree/main/guide", push("refs/heads/main", "guide/a.md"), True),
        (f"{WEB}/octo/docs/tree/main/guide", push("refs/heads/main", "guides/a.md"), False),
        (f"{WEB}/octo/docs/tree/main/guide", push("refs/heads/main", "x", forced=True), True),
        (f"{WEB}/octo/docs/tree/a/b/guide", push("refs/heads/a/b", "guide/x.md"), True),
        (f"{WEB}/octo/docs/wiki", push(), False),
        (f"{WEB}/octo/docs/wiki", push(event="gollum"), True),
        ("octo/docs", push(event="gollum"), True),
        ("octo/docs@v1", push(event="gollum"), False),
    ],
)
def test_F100_a_push_concerns_the_branch_and_folder_that_is_read(typed: str, pushed: Push, concerned: bool) -> None:
    address = github_address(typed, [WEB])
    assert address is not None
    assert concerns_github(pushed, address) is concerned


def test_F100_a_push_concerns_the_same_repository_through_git() -> None:
    for typed in (
        "git+https://github.com/Octo/docs",
        "git@github.com:octo/docs.git",
        "git+https://github.com/octo/docs@main",
    ):
        assert concerns_git(push(), parse_git(typed)), typed
    for typed in (
        "git+https://github.com/octo/other",
        "git+https://evil.example/octo/docs",
        "git@github.com:octo/docs.git@v2",
    ):
        assert not concerns_git(push(), parse_git(typed)), typed
    folder = parse_git("git+https://github.com/octo/docs#guide")
    assert concerns_git(push("refs/heads/main", "guide/a.md"), folder)
    assert not concerns_git(push("refs/heads/main", "b.md"), folder)


def test_F100_messages_that_are_not_what_they_should_be() -> None:
    body: object
    for body in (
        None,
        [],
        {},
        {"repository": []},
        {"repository": {"html_url": 1}},
        {"repository": {"html_url": "/etc"}},
    ):
        with pytest.raises(BadMessage):
            read_push(body, "push")
    for body in (
        None,
        {},
        {"urls": []},
        {"urls": "x"},
        {"urls": [1]},
        {"urls": ["x"] * 1_001},
        {"urls": ["x" * 2_001]},
    ):
        with pytest.raises(BadMessage):
            read_urls(body)
    assert read_urls({"urls": ["b", "a", "b"]}) == ["b", "a"]
