"""The section `github`: where GitHub is, and as whom it is asked."""

from dataclasses import dataclass, field

from afresh.config import forms
from afresh.config.spec import Spec, flag, text

API_URL = "https://api.github.com"
RAW_URL = "https://raw.githubusercontent.com"
WEB_URL = "https://github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubSettings:
    """Where repositories are read; an Enterprise server has its own three addresses."""

    web_url: str = text(
        WEB_URL,
        "where repositories have their pages; its host may be a private one, as those of the two below",
        form=forms.api_url,
    )
    api_url: str = text(
        API_URL, "where its REST API is; Enterprise: `https://HOST/api/v3`", form=forms.api_url
    )
    raw_url: str = text(
        RAW_URL, "where its raw files are; Enterprise: `https://HOST/raw`", form=forms.api_url
    )
    token: str | None = field(
        default=None,
        repr=False,
        metadata={
            "spec": Spec(
                kind="text",
                doc="the token that the API is asked with; null: GITHUB_TOKEN, GH_TOKEN, or what `gh` has",
                optional=True,
                secret=True,
                form=forms.key,
            )
        },
    )
    wiki: bool = flag(True, "also read the wiki of a repository that is read as a whole")

    @property
    def web_urls(self) -> tuple[str, ...]:
        """The servers whose repositories are known: the one that is set, and the public one."""
        return tuple(dict.fromkeys((self.web_url, WEB_URL)))
