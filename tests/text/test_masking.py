"""What may be told to whom: one line, nothing unseen, no secrets (F111, P19)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.text import redact
from afresh.text.redact import CUT, MAX_MASKED_CHARACTERS, mask_secrets, one_line

HUSH = "hush-9f3a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\r\nc\td", r"a\nb\r\nc\td"),
        ("\x1b[31mred\x1b]0;title\x07", r"\x1b[31mred\x1b]0;title\x07"),
        ("a\u202eb\u2066c\u200fd", r"a\u202eb\u2066c\u200fd"),
        ("\u2028\u2029\x85\x9b31m", r"\u2028\u2029\x85\x9b31m"),
        ("\ud800 \ufeff \x00 \x7f", r"\ud800 \ufeff \x00 \x7f"),
        ("\U000e0041", r"\U000e0041"),
        ("C:\\new stays", "C:\\new stays"),
        ("C:\\new\n", "C:\\\\new\\n"),
        ("Zürich 世界 🎉", "Zürich 世界 🎉"),
    ],
)
def test_F111_what_cannot_be_seen_is_escaped(text: str, expected: str) -> None:
    assert one_line(text) == expected


@given(text=st.text(max_size=30))
def test_F111_any_text_is_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert line.splitlines() in ([], [line])
    line.encode()


@pytest.mark.parametrize(
    "text",
    [
        f"https://me:{HUSH}@docs.example.org/a",
        f"https://{HUSH}@docs.example.org/a",
        f"postgresql://me:{HUSH}@/afresh",
        *(f"postgresql://me:a{odd}{HUSH}@db.internal/afresh" for odd in "/?#@ %"),
        f"postgresql:///afresh?%70assword={HUSH}",
        f"https://docs.example.org/?token={HUSH}&page=2",
        f"https://docs.example.org/?page=2&access_token={HUSH}",
        f"https://docs.example.org/?apiKey={HUSH}",
        f"https://docs.example.org/?api_key={HUSH}#x",
        f"https://docs.example.org/?client-secret={HUSH}",
        f"https://docs.example.org/?PASSWORD={HUSH}",
        f"https://bucket.example.org/a?X-Amz-Signature={HUSH}&X-Amz-Credential={HUSH}",
        f"https://docs.example.org/a?sig={HUSH};auth={HUSH}",
        f"https://docs.example.org/a?%74oken={HUSH}",
        f"https://docs.example.org/a?user[password]={HUSH}",
        f"https://docs.example.org/a?PHPSESSID={HUSH}",
        f"https://docs.example.org/a?token=x\n{HUSH}",
        f"Authorization: Bearer {HUSH}",
        f"authorization: Basic {HUSH}==",
        f"{{'Authorization': 'token {HUSH}'}}",
        f"sent bearer {HUSH}",
        f"Cookie: a=b; session={HUSH}; c=d",
        f"Set-Cookie: sid={HUSH}",
        f'{{"api_key": "{HUSH}"}}',
        f"password={HUSH}",
        f"refresh_token = '{HUSH}'",
    ],
)
def test_F111_P19_secrets_are_masked(text: str) -> None:
    masked = mask_secrets(one_line(text))
    assert HUSH not in masked
    assert "***" in masked


@pytest.mark.parametrize(
    "text",
    [
        "https://docs.example.org/a?page=2&sort=asc&keyword=retry",
        "https://docs.example.org/@scope/package",
        "http://127.0.0.1:8000/@scope/package?q=a@b",
        "postgresql://db.internal:5432/afresh?user=me",
        "the mail of me@example.org",
        '304 by ETag "v1"; page 2 of 3',
        "run ended state=completed",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


def test_P19_each_of_two_addresses_is_masked_by_itself() -> None:
    masked = mask_secrets("postgresql://me:x@a/b copied to postgresql://me:x@c/d")
    assert masked == "postgresql://***@a/b copied to postgresql://***@c/d"


def test_P19_known_secrets_are_masked_wherever_they_stand() -> None:
    assert mask_secrets(f"it said {HUSH}!", (HUSH,)) == "it said ***!"


def test_S7_a_long_text_is_cut_before_it_is_masked_and_no_half_of_a_secret_is_left() -> None:
    for secret in (f"https://me:{HUSH}@x.org/", f"postgresql://me:a {HUSH}@db/x", f"token={HUSH}"):
        for room in range(60):
            text = "x " * ((MAX_MASKED_CHARACTERS - room) // 2) + secret + " tail" * 30_000
            masked = mask_secrets(text)
            assert HUSH[:4] not in masked
            assert len(masked) <= MAX_MASKED_CHARACTERS + 100
            assert masked.endswith(CUT)
    assert mask_secrets("x" * MAX_MASKED_CHARACTERS) == "x" * MAX_MASKED_CHARACTERS


@pytest.mark.parametrize("unit", ["postgres://a:", "postgres://", "://a", "?a=", "token ", "bearer ", "a-token"])
def test_S7_masking_sees_a_bounded_text(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """110 KB in a form kept the event loop for 33 s."""
    seen: list[int] = []
    pairs = redact.mask_pairs

    def counted(text: str) -> str:
        seen.append(len(text))
        return pairs(text)

    monkeypatch.setattr(redact, "mask_pairs", counted)
    mask_secrets(unit * (1_000_000 // len(unit)))
    assert seen
    assert max(seen) <= MAX_MASKED_CHARACTERS + len(CUT)


@pytest.mark.parametrize(
    "text",
    [
        "Missing token. Send `Authorization: Bearer <token>`.",
        "sinks.openai.api_key: expected text",
        "github.token: unknown setting",
        "set AFRESH_GITHUB__TOKEN=<token>",
        "embedding.api_key is missing: set AFRESH_EMBEDDING__API_KEY to a key",
    ],
)
def test_U4_advice_is_not_masked(text: str) -> None:
    assert mask_secrets(text) == text


def _messages() -> Iterator[tuple[str, str]]:
    """Every text in the source that is no docstring; what is filled in is written as a plain word."""
    root = Path(redact.__file__).parents[1]
    for file in sorted(root.rglob("*.py")):
        if "testing" in file.parts or file.name == "masking.py":
            continue
        tree = ast.parse(file.read_text())
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "word" for part in node.values]
                yield file.name, "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                yield file.name, node.value


def test_U4_the_masker_masks_no_help_text_of_our_own() -> None:
    masked = [(file, text) for file, text in _messages() if " " in text and mask_secrets(text) != text]
    assert not masked
