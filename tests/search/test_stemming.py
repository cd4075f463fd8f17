"""Words are stemmed alike with PyStemmer and without it."""

import sys
from pathlib import Path

import pytest

from afresh.search.stemming import _CONFIGS, all_stop_words, snowball, words_in

ENDINGS = ("", "s", "ing", "ed", "ungen", "aciones", "ement", "lerin", "issa", "ами", "ого", "ές")
TEXTS = sorted((Path(__file__).resolve().parents[1] / "data" / "languages").iterdir())


@pytest.mark.slow
def test_the_stemmer_in_python_gives_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"", "s", *all_stop_words(), *(word for path in TEXTS for word in words_in(path.read_text("utf-8")))}
    words = sorted(word + ending for word in found for ending in ENDINGS)
    assert len(words) > 10_000
    for algorithm in sorted({*_CONFIGS.values(), "porter"}):
        ours = snowball.__wrapped__(algorithm)(words)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "Stemmer", None)
            patch.delitem(sys.modules, "snowballstemmer", raising=False)  # it would use PyStemmer, too
            pure = snowball.__wrapped__(algorithm)
            assert type(pure.__self__).__module__.startswith("snowballstemmer."), algorithm  # type: ignore[attr-defined]
            assert pure(words) == ours, algorithm
