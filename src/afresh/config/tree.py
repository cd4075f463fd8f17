"""Define the tree of all settings, and list its values with their origin and with secrets masked."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from afresh.config import forms, models, sources
from afresh.config.forms import find_password, mask
from afresh.config.kb import KbSettings
from afresh.config.server import (
    NOTIFY,
    PLUGINS,
    SINKS,
    WEBHOOKS,
    AccessSettings,
    LogSettings,
    NotifySettings,
    ServerSettings,
    SinkSettings,
    TelemetrySettings,
    WebhookSettings,
)
from afresh.config.spec import SettingSpec, suggest_nearest, text
from afresh.dataclass import dataclass, field, fields, is_dataclass, replace
from afresh.text.redact import MASK


def default_store_url() -> str:
    """Return the URL of an SQLite file in the user's data folder; "" if the user has no home folder."""
    folder = forms.user_folder("data")
    return f"sqlite:///{(folder / 'afresh.db').as_posix()}" if folder else ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # the URL may contain a password
class StoreSettings:
    url: str = text(
        default_store_url,
        "the database: `sqlite:///FILE` (three slashes, then the path) or `postgresql://USER@HOST/DATABASE`",
        form=forms.store_url,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings; each part of afresh gets its own section."""

    store: StoreSettings = field(default_factory=StoreSettings)
    network: sources.NetworkSettings = field(default_factory=sources.NetworkSettings)
    crawl: sources.CrawlSettings = field(default_factory=sources.CrawlSettings)
    browser: sources.BrowserSettings = field(default_factory=sources.BrowserSettings)
    files: sources.FilesSettings = field(default_factory=sources.FilesSettings)
    git: sources.GitSettings = field(default_factory=sources.GitSettings)
    policy: sources.PolicySettings = field(default_factory=sources.PolicySettings)
    storage: sources.StorageSettings = field(default_factory=sources.StorageSettings)
    retention: sources.RetentionSettings = field(default_factory=sources.RetentionSettings)
    embedding: models.EmbeddingSettings = field(default_factory=models.EmbeddingSettings)
    ai: models.AiSettings = field(default_factory=models.AiSettings)
    links: models.LinksSettings = field(default_factory=models.LinksSettings)
    github: sources.GithubSettings = field(default_factory=sources.GithubSettings)
    kb: KbSettings = field(default_factory=KbSettings)
    sinks: Mapping[str, SinkSettings] = field(default_factory=dict)
    server: ServerSettings = field(default_factory=ServerSettings)
    webhooks: Mapping[str, WebhookSettings] = field(default_factory=dict)
    notify: Mapping[str, NotifySettings] = field(default_factory=dict)
    plugins: Mapping[str, Any] = field(default_factory=dict)
    access: AccessSettings = field(default_factory=AccessSettings)
    log: LogSettings = field(default_factory=LogSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    file: Path | None = field(default=None, compare=False)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def with_overrides(self, *partials: Mapping[str, object]) -> "Config":
        """Return a copy of the settings in which the values of `partials`, such as those of a source, are set."""
        from afresh.config.layers import apply_overrides

        return apply_overrides(self, partials)


SECTIONS: dict[str, Any] = {
    item.name: item.default_factory for item in fields(Config) if is_dataclass(item.default_factory)
}
NAMED = {section.name: section for section in (SINKS, WEBHOOKS, NOTIFY, PLUGINS)}

Place = tuple[str, str]  # section and key of a setting; for named entries, section and `NAME.key`


@cache
def settings() -> Mapping[Place, SettingSpec]:
    return {(name, item.name): item.metadata["spec"] for name, kind in SECTIONS.items() for item in fields(kind)}


def suggest_key(dotted: str) -> str:
    """Return a suggestion like `; did you mean crawl.concurrency?` for a misspelled key or wrong section; else ""."""
    key = dotted.rpartition(".")[2]
    if same := next((place for place in settings() if place[1] == key), None):
        return f"; did you mean {'.'.join(same)}?"
    sections = [] if "." in dotted else [*SECTIONS, *NAMED]
    return suggest_nearest(dotted, [*map(".".join, settings()), *sections])


def replace_values(config: Config, values: Mapping[Place, object]) -> Config:
    """Return a copy of the settings with these values, which must be checked already."""
    changed: dict[str, Any] = {}
    for name in dict.fromkeys(section for section, _ in values):
        own = {key: value for (section, key), value in values.items() if section == name}
        named = NAMED.get(name)
        changed[name] = named.built(own) if named else replace(getattr(config, name), **own)
    return replace(config, **changed)


@dataclass(frozen=True, slots=True)
class SettingValue:
    key: str
    value: object
    origin: str  # where the value was set: default, file, variable or flag
    spec: SettingSpec


def _leaves(config: Config) -> Iterator[tuple[str, Any, SettingSpec]]:
    for (section, key), spec in settings().items():
        yield f"{section}.{key}", getattr(getattr(config, section), key), spec
    for section, named in NAMED.items():
        for name, entry in getattr(config, section).items():
            for key, spec in named.specs(name).items():
                yield f"{section}.{name}.{key}", getattr(entry, key), spec


def list_values(config: Config) -> Iterator[SettingValue]:
    """Yield every setting in the order of the tree, with secrets masked."""
    for dotted, value, spec in _leaves(config):
        masked = MASK if spec.secret and value else mask(value)
        yield SettingValue(dotted, masked, config.origins.get(dotted, "default"), spec)


def describe(config: Config) -> dict[str, dict[str, Any]]:
    """Return all settings as nested dictionaries of plain values, with secrets masked."""
    tree: dict[str, dict[str, Any]] = {section: {} for section in (*SECTIONS, *NAMED)}
    if not config.plugins:
        del tree[PLUGINS.name]
    for each in list_values(config):
        section, *names, key = each.key.split(".")
        place = tree[section].setdefault(names[0], {}) if names else tree[section]
        place[key] = list(each.value) if isinstance(each.value, tuple) else each.value
    return tree


def secret_values(config: Config) -> tuple[str, ...]:
    """Return all secrets in the settings, so that logs can mask them."""
    found = (str(value) if spec.secret and value else find_password(value) for _, value, spec in _leaves(config))
    return tuple(secret for secret in found if secret)
