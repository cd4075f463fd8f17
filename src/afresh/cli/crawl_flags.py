"""The flags of `crawl`: what each means for a source's rules and policy, and how a wrong one is refused."""

import re
from collections.abc import Mapping
from enum import Enum

import click

from afresh.cli.session import Session
from afresh.errors import ConfigError, UsageError
from afresh.links.score import KeywordError, parse_keywords

# The flags by the names that a source's rules and policy have for them.
FLAGS = {
    "scope": "--scope",
    "include": "--include",
    "exclude": "--exclude",
    "max_depth": "--max-depth",
    "max_pages": "--max-pages",
    "max_params": "--max-params",
    "max_components": "--max-components",
    "max_per_pattern": "--max-per-pattern",
    "concurrency": "--concurrency",
    "delay_seconds": "--delay",
    "render": "--render",
    "order": "--crawl-order",
    "keywords": "--keywords",
    "respect_robots": "--robots",
    "body": "--storage-body",
    "ignore": "--ignore",
    "hidden": "--hidden",
    "symlinks": "--symlinks",
    "verify": "--verify",
    "schedule": "--set",
    "time_zone": "--time-zone",
}
RULES = (
    *("scope", "include", "exclude"),
    *("max_depth", "max_pages", "max_params", "max_components", "max_per_pattern"),
)


class NoLimit(Enum):
    """What `none` means for a limit; None would mean that the flag was not given."""

    TYPED = "none"


def limit(typed: str) -> int | NoLimit:
    """A whole number, or `none` for no limit."""
    if typed.strip().lower() in {"none", "null"}:
        return NoLimit.TYPED
    try:
        return int(typed)
    except ValueError:
        raise click.BadParameter(f"{typed!r} is not a valid integer; none lifts the limit") from None


def keywords(typed: str) -> dict[str, float]:
    """Keywords with their weights; nothing clears them."""
    try:
        return parse_keywords(typed)
    except KeywordError as wrong:
        raise click.BadParameter(str(wrong)) from None


def given(flags: Mapping[str, object]) -> dict[str, object]:
    """Only the flags that were typed; an empty pattern clears the list, `none` lifts the limit."""
    typed = {key: value for key, value in flags.items() if value is not None and value != ()}
    return {key: _meant(value) for key, value in typed.items()}


def _meant(value: object) -> object:
    if isinstance(value, tuple):
        return [pattern for pattern in value if pattern.strip()]
    return None if value is NoLimit.TYPED else value


def split(own: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """The rules and the policy among the flags."""
    rules = {key: value for key, value in own.items() if key in RULES}
    return rules, {key: value for key, value in own.items() if key not in RULES}


def check_flags(session: Session, own: Mapping[str, object]) -> None:
    """Refuses a wrong flag by the name that was typed, before anything is opened."""
    for key, value in own.items():
        try:
            session.config.with_overrides({key: value})
        except ConfigError as wrong:
            raise UsageError(str(wrong).replace(f"{key}:", f"{FLAGS[key]}:", 1)) from None


def check_label(name: str | None, version: str | None) -> None:
    """Refuses a name or a version that could not be typed again as NAME@VERSION."""
    if name is not None and not name.strip():
        raise UsageError("--name: expected a name such as react, got nothing; leave it out to have one made")
    if version is not None and not version:
        raise UsageError(
            "--version: expected a version such as 19, got nothing; leave it out if there is none"
        )
    if version is not None and (re.search(r"[\s@]", version) or not version.isprintable()):
        raise UsageError(f"--version: expected a version without blanks and @, such as 19, got {version!r}")
