"""The settings of summaries: what they may be together, and that the key is told to nobody."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from afresh.config import Config, describe, load, secret_values
from afresh.errors import ConfigError

KEY = "sk-hush-0123456789"


def settings(tmp_path: Path, text: str, env: Mapping[str, str] | None = None) -> Config:
    (tmp_path / "afresh.yaml").write_text(f"ai:\n{text}", encoding="utf-8")
    return load(None, env or {}, {}, tmp_path)


def test_summaries_are_made_offline_by_default() -> None:
    ai = Config().ai
    assert (ai.provider, ai.address, ai.max_summary_chars, ai.budget_per_run) == ("none", None, 400, 1_000)


def test_P19_the_key_of_summaries_is_never_displayed(tmp_path: Path) -> None:
    text = "  provider: openai\n  model: small\n"
    config = settings(tmp_path, text, {"AFRESH_AI__API_KEY": KEY})
    assert config.ai.api_key == KEY
    assert config.ai.address == "https://api.openai.com/v1"
    assert describe(config)["ai"]["api_key"] == "***"
    assert secret_values(config) == (KEY,)
    assert KEY not in repr(config)
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, text, {"AFRESH_AI__API_KEY": f"{KEY} \u00fc"})
    assert KEY not in str(caught.value)


def test_a_server_of_ones_own_needs_no_key(tmp_path: Path) -> None:
    text = "  provider: openai\n  model: small\n  base_url: http://localhost:11434/v1/\n"
    assert settings(tmp_path, text).ai.address == "http://localhost:11434/v1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  provider: openai\n  api_key: k\n", "ai.model"),
        ("  provider: openai\n  model: small\n", "AFRESH_AI__API_KEY"),
        ("  provider: opnai\n", "did you mean openai?"),
        ("  max_summary_chars: 10\n", "from 40 to 10000"),
        ("  budget_per_run: -1\n", "ai.budget_per_run"),
        ("  base_url: http://me:hush@h.example/v1\n", "ai.base_url"),
    ],
)
def test_impossible_combinations_are_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, text)
    assert words in str(caught.value)
    assert "hush" not in str(caught.value)
