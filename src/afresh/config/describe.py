"""The settings told to people and scripts: the whole tree, secrets masked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from afresh.config import sinks
from afresh.config.forms import mask, password_of
from afresh.config.spec import Spec
from afresh.config.tree import SECTIONS, Config, settings


@dataclass(frozen=True, slots=True)
class Told:
    """One setting with its present value and the layer it came from."""

    key: str
    value: object
    origin: str
    spec: Spec


def tell(config: Config) -> Iterator[Told]:
    """Every setting in the order of the tree."""
    for (section, key), spec in settings().items():
        value = getattr(getattr(config, section), key)
        dotted = f"{section}.{key}"
        yield Told(dotted, _masked(value, spec), config.origins.get(dotted, "default"), spec)
    for name, store in config.sinks.items():
        for key, spec in sinks.specs().items():
            dotted = f"{sinks.SECTION}.{name}.{key}"
            value = _masked(getattr(store, key), spec)
            yield Told(dotted, value, config.origins.get(dotted, "default"), spec)


def describe(config: Config) -> dict[str, dict[str, Any]]:
    """The whole tree as plain values, secrets masked."""
    tree: dict[str, dict[str, Any]] = {section: {} for section in (*SECTIONS, sinks.SECTION)}
    for told in tell(config):
        section, _, key = told.key.partition(".")
        value = list(told.value) if isinstance(told.value, tuple) else told.value
        if section == sinks.SECTION:
            name, _, key = key.partition(".")
            tree[section].setdefault(name, {})[key] = value
        else:
            tree[section][key] = value
    return tree


def _masked(value: object, spec: Spec) -> object:
    return "***" if spec.secret and value else mask(value)


def secret_values(config: Config) -> tuple[str, ...]:
    """Every secret that the settings hold, for whoever has to keep them out of what is written."""
    values = [(getattr(getattr(config, section), key), spec) for (section, key), spec in settings().items()]
    for store in config.sinks.values():
        values += [(getattr(store, key), spec) for key, spec in sinks.specs().items()]
    found = (str(value) if spec.secret and value else password_of(value) for value, spec in values)
    return tuple(secret for secret in found if secret)
