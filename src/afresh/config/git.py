"""Settings of git repositories."""

from dataclasses import dataclass, field

from afresh.config import forms
from afresh.config.spec import Spec, number, text, whole


def default_cache_dir() -> str:
    """The user's folder for what can be made again; a temporary one if this user has no home."""
    import tempfile
    from pathlib import Path

    import platformdirs

    try:
        folder = Path(platformdirs.user_cache_dir("afresh", appauthor=False))
    except RuntimeError:
        folder = Path(tempfile.gettempdir()) / "afresh"
    return str(folder / "git")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSettings:
    """How git repositories are read; which of their files, section `files` says."""

    cache_dir: str | None = text(
        None,
        "the folder of clones, which are kept between runs; null: in the user's cache folder",
        optional=True,
        form=forms.file,
    )
    cache_max_bytes: int = whole(
        2_147_483_648, "clones above this size in all are removed, the longest unused first", 0, 2**50
    )
    timeout_seconds: float = number(600.0, "the longest one fetch may take", 1, 86_400)
    max_fetch_bytes: int = whole(2_147_483_648, "the most that one fetch may bring", 1_000, 2**50)
    credential_helper: str | None = text(
        None,
        "the credential helper that git asks for user name and password, such as `store`, `osxkeychain` or "
        "`!gh auth git-credential`; null: none",
        optional=True,
        operator=True,
        form=forms.name,
    )
    token: str | None = field(
        default=None,
        repr=False,
        metadata={
            "spec": Spec(
                kind="text",
                doc="a token for https, sent to `git.token_host` alone; null: none",
                optional=True,
                secret=True,
                form=forms.key,
            )
        },
    )
    token_host: str | None = text(
        None,
        "the host that `git.token` is for, such as github.com; null: it is not sent",
        optional=True,
        operator=True,
        form=forms.name,
    )
