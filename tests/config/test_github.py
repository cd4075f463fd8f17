"""The section `github`."""

from pathlib import Path

import pytest

from afresh.config import Config, describe, load, secret_values
from afresh.config.sources import GithubSettings
from afresh.errors import ConfigError
from afresh.sources.github.address import PUBLIC_WEB

TOKEN = "ghp_hush"


def settings(tmp_path: Path, env: dict[str, str] | None = None, **flags: object) -> Config:
    return load(None, env or {}, {f"github.{name}": value for name, value in flags.items()}, tmp_path)


def test_the_public_server_is_chosen_unless_another_is_named(tmp_path: Path) -> None:
    github = settings(tmp_path).github
    assert (github.web_url, github.token, github.wiki) == (PUBLIC_WEB, None, True)
    assert github == GithubSettings()
    corp = settings(tmp_path, web_url="https://hub.corp/", api_url="https://hub.corp/api/v3/").github
    assert (corp.web_url, corp.api_url) == ("https://hub.corp", "https://hub.corp/api/v3")


def test_P19_the_token_is_never_displayed(tmp_path: Path) -> None:
    config = settings(tmp_path, {"AFRESH_GITHUB__TOKEN": TOKEN})
    assert config.github.token == TOKEN
    assert describe(config)["github"]["token"] == "***"
    assert secret_values(config) == (TOKEN,)
    assert TOKEN not in repr(config)
    with pytest.raises(ConfigError) as wrong:
        settings(tmp_path, {"AFRESH_GITHUB__TOKEN": f"{TOKEN} \u00fc"})
    assert TOKEN not in str(wrong.value)


@pytest.mark.parametrize("url", ["hub.corp", "https://user:pw@hub.corp", "ftp://hub.corp", "https://h?x=1"])
def test_addresses_are_checked(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="api-url: expected a URL"):
        settings(tmp_path, api_url=url)
