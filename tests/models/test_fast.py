"""The fast built-in model: its files, its tokens, and its vectors."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import EmbedderUnavailable
from afresh.models import fast
from afresh.models.choose import FAST, check_installed
from afresh.models.fast import DIMENSION, FOLDER, MAX_WORD_CHARS, TOKENS, UNKNOWN_ROWS, VECTORS, FastModel, WordPieces
from afresh.models.local import MAX_TEXT_CHARS

MAX_BYTES = 10_000_000
MARKDOWN = '# Locks { #locks }\n\nSee [the *lock* table](https://h.example/a_b?c=d "t") and `pg_locks`.\n\n| a | b |'
SMALL = WordPieces(["lock", "##s", "##ed", "table", "pg", "a", "b", "事", "get", "http", "server"])


@pytest.fixture(scope="module")
def model() -> FastModel:
    return FastModel()


def test_the_files_are_small_and_their_checksum_is_pinned() -> None:
    files = {file.name: file.stat().st_size for file in FOLDER.iterdir()}
    assert files.keys() == {TOKENS, VECTORS}
    assert sum(files.values()) <= MAX_BYTES
    tokens, rows = fast.load_files()
    assert len(set(tokens)) == len(tokens) == len(rows) - UNKNOWN_ROWS
    assert isinstance(rows, np.memmap), "processes share the pages"
    assert np.isfinite(rows["scale"]).all()
    assert rows["scale"].min() >= 0


def test_known_words_are_split_into_their_largest_pieces() -> None:
    assert SMALL.numbers("Locks locked TABLE") == [0, 1, 0, 2, 3]
    assert SMALL.numbers("**pg_locks**, (table)…") == [4, 0, 1, 3]
    assert SMALL.numbers("getHTTPServer") == [8, 9, 10]
    assert SMALL.numbers("Täblé") == SMALL.numbers("table") == [3]
    assert SMALL.numbers("a事b事") == [5, 7, 6, 7]
    assert SMALL.numbers(" \n … -- __ ") == []


def test_characters_without_a_token_share_rows_of_their_own() -> None:
    first, second = SMALL.numbers("務"), SMALL.numbers("待")
    assert len(first) == len(second) == 1
    assert first != second
    assert 11 <= first[0] < 11 + UNKNOWN_ROWS
    assert SMALL.numbers("務") == first


def test_a_word_is_read_up_to_its_cap() -> None:
    assert SMALL.numbers("s" * 10_000) == SMALL.numbers("s" * MAX_WORD_CHARS)
    assert len(SMALL.numbers("事" * 1_000)) == 1_000, "a script without blanks is read by character"


@given(st.text())
def test_any_text_has_the_same_tokens_each_time(text: str) -> None:
    fresh = WordPieces(["lock", "##s", "a"])
    found = fresh.numbers(text)
    assert fresh.numbers(text) == found == WordPieces(["lock", "##s", "a"]).numbers(text)
    assert all(0 <= number < 3 + UNKNOWN_ROWS for number in found)


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_beside_other_text_has_the_same_tokens(text: str) -> None:
    """ASCII text goes another way, which is quicker."""
    assert SMALL.numbers(text + " 事") == [*SMALL.numbers(text), 7]


@given(st.text(max_size=200), st.text(max_size=200))
def test_words_are_read_one_by_one(one: str, other: str) -> None:
    assert SMALL.numbers(f"{one} {other}") == SMALL.numbers(one) + SMALL.numbers(other)


@pytest.mark.parametrize("unit", ["x", "aB", "##", "\u0301", "\ufdfa", "事", "é", "x ", "{ ", "](", "http:"])
def test_hostile_text_takes_linear_work(unit: str, model: FastModel) -> None:
    text = (unit * MAX_TEXT_CHARS)[:MAX_TEXT_CHARS]
    began = time.process_time()
    assert len(model.tokens(text * 100)) <= fast._MAX_TOKENS
    assert time.process_time() - began < 1.0, "milliseconds where nothing else runs"


def test_words_are_forgotten_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_MAX_CACHED", 5)
    pieces = WordPieces(["lock"])
    for at in range(20):
        pieces.numbers(f"word{at} other{at} {'x' * 500}{at}")
    assert 0 < len(pieces._cached) <= 5
    assert max(map(len, pieces._cached)) <= MAX_WORD_CHARS


def test_the_pooling_is_the_one_its_version_names(model: FastModel) -> None:
    """By the book: w = 1 + 2·exp(-i/48) by place, summed per token, to the power of 0.75."""
    _, rows = fast.load_files()
    weights: dict[int, float] = {}
    for at, token in enumerate(model.tokens(MARKDOWN)):
        weights[token] = weights.get(token, 0.0) + 1 + 2 * np.exp(-at / 48)
    expected = sum(weight**0.75 * rows[token]["scale"] * rows[token]["vector"] for token, weight in weights.items())
    assert np.allclose(model.rows([MARKDOWN])[0], expected / np.linalg.norm(expected), atol=1e-5)
    assert fast.VERSION == 1, "a pooling that changes gets a new number, so that vectors do not mix"


def test_targets_of_links_and_marks_are_left_out(model: FastModel) -> None:
    assert model.tokens(MARKDOWN) == model.tokens("Locks See the lock table and pg locks. a b")


def test_a_batch_has_the_vectors_of_its_texts(model: FastModel) -> None:
    texts = [MARKDOWN, "", "事务 等待 锁", "naïve café", *(f"page {at} about locks {'x' * at}" for at in range(80))]
    together = model.rows(texts)
    assert together.shape == (len(texts), DIMENSION)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    alone = np.concatenate([model.rows([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-6)
    assert np.array_equal(together, FastModel().rows(texts))


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("How do I sign in?", "Authentication and login", "Baking bread at home"),
        ("delete a row", "Remove records from a table", "Configure the network proxy"),
        ("lift of a wing", "Aerodynamic forces on an aircraft", "Payment of local taxes"),
    ],
)
def test_similar_meanings_are_near(query: str, near: str, far: str, model: FastModel) -> None:
    asked, one, other = model.rows([query, near, far])
    assert asked @ one > asked @ other + 0.1


@pytest.mark.parametrize("name", [TOKENS, VECTORS])
def test_F93_missing_or_other_files_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(fast, "FOLDER", tmp_path)
    FastModel()
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-300] + bytes(300))
    with pytest.raises(EmbedderUnavailable, match="differs from the tested version: install afresh again"):
        FastModel()
    for broken in (b"", whole[:50], b"\xff" + whole[1:], whole[:-300]):
        (tmp_path / name).write_bytes(broken)
        with pytest.raises(EmbedderUnavailable, match="install afresh again"):
            FastModel()
    (tmp_path / name).unlink()
    with pytest.raises(EmbedderUnavailable, match="cannot be read"):
        FastModel()
    with pytest.raises(EmbedderUnavailable, match="not installed"):
        check_installed(FAST)


_ALONE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tokenizers", "safetensors", "wordllama", "onnxruntime"):
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
from afresh.config.models import EmbeddingSettings
from afresh.models.choose import choose_embedders
chosen = choose_embedders(EmbeddingSettings(), None, None)
assert chosen.wanted is not None and chosen.notes == (), chosen
print(chosen.wanted.rows(["a text"]).shape)
"""


def test_nothing_but_numpy_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (f"(1, {DIMENSION})", "")
