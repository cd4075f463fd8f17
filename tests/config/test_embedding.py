"""The settings of the model: what they may be together, and that the key is told to nobody."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from afresh.config import Config, describe, load, secret_values
from afresh.errors import ConfigError

KEY = "sk-hush-0123456789"


def settings(tmp_path: Path, text: str, env: Mapping[str, str] | None = None) -> Config:
    (tmp_path / "afresh.yaml").write_text(f"embedding:\n{text}", encoding="utf-8")
    return load(None, env or {}, {}, tmp_path)


def test_the_embedded_model_is_the_default() -> None:
    embedding = Config().embedding
    assert (embedding.provider, embedding.named_model, embedding.address) == ("local", "fast", None)


def test_P19_the_key_is_never_displayed(tmp_path: Path) -> None:
    text = "  provider: openai\n  model: small\n"
    config = settings(tmp_path, text, {"AFRESH_EMBEDDING__API_KEY": KEY})
    assert config.embedding.api_key == KEY
    assert describe(config)["embedding"]["api_key"] == "***"
    assert secret_values(config) == (KEY,)
    assert KEY not in repr(config)
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, text, {"AFRESH_EMBEDDING__API_KEY": f"{KEY} \u00fc"})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  model: qualty\n", "did you mean quality?"),
        ("  provider: openai\n  api_key: k\n", "needs a model"),
        ("  provider: openai\n  model: small\n", "AFRESH_EMBEDDING__API_KEY"),
        ("  provider: gemini\n", "AFRESH_EMBEDDING__API_KEY"),
        ("  dimensions: 64\n", "have a fixed size"),
        ("  provider: fastembed\n  dimensions: 64\n", "have a fixed size"),
        ("  provider: opnai\n", "did you mean openai?"),
        ('  model: " small"\n', "without blanks"),
    ],
)
def test_impossible_combinations_are_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match="embedding") as caught:
        settings(tmp_path, text)
    assert words in str(caught.value)


def test_a_server_of_ones_own_needs_no_key(tmp_path: Path) -> None:
    text = "  provider: openai\n  model: small\n  base_url: http://localhost:8080/v1/\n"
    assert settings(tmp_path, text).embedding.address == "http://localhost:8080/v1"
    assert settings(tmp_path, "  provider: gemini\n  api_key: k\n").embedding.named_model == "gemini-embedding-001"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.org/v1",
        "http://10.0.0.7:11434/v1",
        "http://[::1]:8080/v1",
        "http://models_1.internal/",
        "https://h.example/accounts/a-b/v1beta",
    ],
)
def test_addresses_of_apis(tmp_path: Path, url: str) -> None:
    text = f'  provider: openai\n  model: m\n  base_url: "{url}"\n'
    assert settings(tmp_path, text).embedding.address == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "api.example.org/v1",
        "ftp://h.example/",
        "http://",
        "http://h.example:0/",
        "http://h.example:99999/",
        "http://me:hush@h.example/v1",
        "http://h.example/v1?key=hush",
        "http://h.example/v1#part",
        "http://h example/",
        "http://h.example\\\\@evil/",
        "http://ü.example/",
    ],
)
def test_what_is_no_address_of_an_api_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"embedding\.base_url") as caught:
        settings(tmp_path, f'  provider: openai\n  model: m\n  base_url: "{url}"\n')
    assert "hush" not in str(caught.value)
