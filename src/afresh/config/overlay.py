"""Partial settings of one source laid over the tree."""

from collections.abc import Iterable, Mapping
from functools import cache

from afresh.config.agree import settle
from afresh.config.environment import read_text
from afresh.config.spec import Spec, WrongValue, nearest
from afresh.config.tree import Config, replaced, settings
from afresh.errors import ConfigError

# What a source's rules and policy call a setting, where that differs from its key in the tree.
SHORT_NAMES = {
    "max_params": "max_url_params",
    "max_components": "max_path_components",
    "delay": "delay_seconds",
}
PER_SOURCE = ("crawl", "files", "policy", "storage", "links")


def overlay(config: Config, partials: Iterable[Mapping[str, object]]) -> Config:
    """The tree with each partial's keys replaced; a later partial wins."""
    places = per_source()
    values: dict[tuple[str, str], object] = {}
    for partial in partials:
        for name, value in partial.items():
            section, key, spec = _place(name, places)
            values[section, key] = _checked(name, value, spec)
    given = {".".join(place) for place in values} | set(config.origins)
    return settle(replaced(config, values), given)


def own_settings(stored: Mapping[str, object]) -> dict[str, object]:
    """What a source's row may set: what an older afresh let it have of the operator's is left out."""
    return {name: value for name, value in stored.items() if name not in operator_only()}


@cache
def operator_only() -> frozenset[str]:
    """The keys of settings that no source has of its own, because they name a path, a key or a program."""
    keys = {
        key for (section, key), spec in settings().items() if section in PER_SOURCE and spec.is_operator_only
    }
    return frozenset(keys)


@cache
def per_source() -> Mapping[str, tuple[str, str, Spec]]:
    """The settings a source may have of its own, by every name they go by."""
    places = {
        key: (section, key, spec)
        for (section, key), spec in settings().items()
        if section in PER_SOURCE and not spec.is_operator_only
    }
    return places | {short: places[key] for short, key in SHORT_NAMES.items()}


def typed(name: str, text: str) -> object:
    """The value of a source's own setting, as somebody typed it."""
    _, _, spec = _place(name, per_source())
    try:
        return read_text(text, spec)
    except WrongValue as wrong:
        raise ConfigError(f"{name}: {wrong}") from None


def check_names(names: Iterable[str]) -> None:
    """ConfigError, if a source cannot have settings of these names."""
    for name in names:
        _place(name, per_source())


def _place(name: str, places: Mapping[str, tuple[str, str, Spec]]) -> tuple[str, str, Spec]:
    if name in places:
        return places[name]
    if name in operator_only():
        raise ConfigError(
            f"{name}: only the operator may set this, in the settings file or the environment: leave it out"
        )
    raise ConfigError(f"unknown rule {name}{nearest(name, list(places))}")


def _checked(name: str, value: object, spec: Spec) -> object:
    try:
        return spec.accept(value)
    except WrongValue as wrong:
        raise ConfigError(f"{name}: {wrong}") from None
