"""`afresh token`: made once, shown once, hashed at rest."""

import json
from pathlib import Path

import pytest
from tests.fakes.state import rows

from afresh.access.permissions import digest_of
from afresh.cli import main
from afresh.cli.serve_commands import exposure


def test_F102_a_token_is_displayed_once_kept_as_a_hash_and_can_be_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "afresh.db"

    def call(*words: str, code: int = 0) -> str:
        assert main(["token", *words, "--store", f"sqlite:///{store}"]) == code
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    made = json.loads(call("create", "--scope", "read", "--expires", "90d", "--name", "ag\x1bents", "--json"))
    assert len(made["token"]) > 43
    assert made["scope"] == "read"
    assert made["token"].encode() not in store.read_bytes()
    assert rows(store, "select digest, name from tokens") == [(digest_of(made["token"]), "ag\\x1bents")]

    printed = call("create", "--scope", "write").strip()  # stdout is just the token, to be piped
    assert printed.startswith("afresh_")
    assert printed != made["token"]
    (first, second) = json.loads(call("list", "--json"))
    assert (first["state"], second["state"], second["expires_at"]) == ("good", "good", None)
    assert made["token"] not in call("list")

    call("revoke", str(made["id"]))
    assert json.loads(call("list", "--json"))[0]["state"] == "revoked"
    assert "no token 99" in call("revoke", "99", code=2)
    assert "nosuch" in call("create", "--scope", "read", "--source", "nosuch", code=2)
    assert "90 days" in call("create", "--scope", "read", "--expires", "90 days", code=2)
    assert "--scope" in call("create", code=2)


def test_U5_the_first_token_says_that_the_browser_needs_a_login(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = []
    for _ in range(2):
        assert main(["token", "create", "--scope", "read", "--store", f"sqlite:///{tmp_path / 'a.db'}"]) == 0
        message.append(" ".join(capsys.readouterr().err.split()))
    assert "To use the web interface, sign in with this token" in message[0]
    assert "access.loopback_open" in message[0]
    assert "login" not in message[1]


@pytest.mark.parametrize(
    ("host", "has_tokens", "named"),
    [
        ("127.0.0.1", False, []),
        ("::1", True, []),
        ("0.0.0.0", True, ["TLS"]),
        ("::", False, ["TLS", "afresh token create"]),
        ("192.168.1.4", False, ["TLS", "afresh token create"]),
    ],
)
def test_S8_a_server_that_others_reach_warns_and_names_the_fix(host: str, has_tokens: bool, named: list[str]) -> None:
    warnings = exposure(host, has_tokens=has_tokens)
    assert [word in warning for word, warning in zip(named, warnings, strict=True)] == [True] * len(named)
