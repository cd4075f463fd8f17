"""The tree of settings, and how to show it: secrets masked, each value with its origin."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from afresh.config import forms
from afresh.config.forms import mask, password_of
from afresh.config.kb import KbSettings
from afresh.config.models import AiSettings, EmbeddingSettings, LinksSettings
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
from afresh.config.sources import (
    BrowserSettings,
    CrawlSettings,
    FilesSettings,
    GithubSettings,
    GitSettings,
    NetworkSettings,
    PolicySettings,
    RetentionSettings,
    StorageSettings,
)
from afresh.config.spec import SettingSpec, nearest


def default_store_url() -> str:
    """Return a SQLite file in the data folder of the user; an empty text without a home folder."""
    import platformdirs

    try:
        folder = Path(platformdirs.user_data_dir("afresh", appauthor=False))
    except RuntimeError:
        return ""
    return f"sqlite:///{(folder / 'afresh.db').as_posix()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where everything is kept."""

    url: str = field(
        default_factory=default_store_url,
        repr=False,  # may contain a password
        metadata={
            "spec": SettingSpec(
                kind="text",
                doc="where everything is kept: `sqlite:///FILE`, three slashes and then the path, "
                "or `postgresql://USER@HOST/DATABASE`",
                form=forms.store_url,
            )
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings, read once; each part of afresh is handed its own section."""

    store: StoreSettings = field(default_factory=StoreSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    crawl: CrawlSettings = field(default_factory=CrawlSettings)
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    files: FilesSettings = field(default_factory=FilesSettings)
    git: GitSettings = field(default_factory=GitSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    ai: AiSettings = field(default_factory=AiSettings)
    links: LinksSettings = field(default_factory=LinksSettings)
    github: GithubSettings = field(default_factory=GithubSettings)
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
        """Return a copy with the rules and policy of a source applied."""
        from afresh.config.layers import overlay

        return overlay(self, partials)


SECTIONS: dict[str, Any] = {
    item.name: item.default_factory for item in fields(Config) if is_dataclass(item.default_factory)
}
NAMED = {section.name: section for section in (SINKS, WEBHOOKS, NOTIFY, PLUGINS)}

Place = tuple[str, str]  # section and key, or section and `NAME.key` of a named entry


@dataclass(slots=True)
class LayerValues:
    """The values of one layer, and the origin of each."""

    values: dict[Place, object] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, place: Place, value: object, origin: str) -> None:
        """Add one value."""
        self.values[place] = value
        self.origins[".".join(place)] = origin

    def __or__(self, later: "LayerValues") -> "LayerValues":
        return LayerValues(self.values | later.values, self.origins | later.origins)


@cache
def settings() -> Mapping[Place, SettingSpec]:
    """Return every setting with its spec, in the order of the tree."""
    return {
        (name, item.name): item.metadata["spec"] for name, kind in SECTIONS.items() for item in fields(kind)
    }


def suggestion(dotted: str) -> str:
    """Return `; did you mean crawl.concurrency?` for a misspelled key or one in the wrong section."""
    key = dotted.rpartition(".")[2]
    if same := next((place for place in settings() if place[1] == key), None):
        return f"; did you mean {'.'.join(same)}?"
    sections = [] if "." in dotted else [*SECTIONS, *NAMED]
    return nearest(dotted, [*map(".".join, settings()), *sections])


def replaced(config: Config, values: Mapping[Place, object]) -> Config:
    """Return a copy of the tree with the given values, which are already checked."""
    changed: dict[str, Any] = {}
    for name in dict.fromkeys(section for section, _ in values):
        own = {key: value for (section, key), value in values.items() if section == name}
        named = NAMED.get(name)
        changed[name] = named.built(own) if named else replace(getattr(config, name), **own)
    return replace(config, **changed)


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting with its value and the layer it came from."""

    key: str
    value: object
    origin: str
    spec: SettingSpec


def _leaves(config: Config) -> Iterator[tuple[str, Any, SettingSpec]]:
    for (section, key), spec in settings().items():
        yield f"{section}.{key}", getattr(getattr(config, section), key), spec
    for section, named in NAMED.items():
        for name, entry in getattr(config, section).items():
            for key, spec in named.specs(name).items():
                yield f"{section}.{name}.{key}", getattr(entry, key), spec


def tell(config: Config) -> Iterator[SettingValue]:
    """Yield every setting in the order of the tree, secrets masked."""
    for dotted, value, spec in _leaves(config):
        shown = "***" if spec.secret and value else mask(value)
        yield SettingValue(dotted, shown, config.origins.get(dotted, "default"), spec)


def describe(config: Config) -> dict[str, dict[str, Any]]:
    """Return the whole tree as plain values, secrets masked."""
    tree: dict[str, dict[str, Any]] = {section: {} for section in (*SECTIONS, *NAMED)}
    if not config.plugins:
        del tree[PLUGINS.name]
    for told in tell(config):
        section, *names, key = told.key.split(".")
        place = tree[section].setdefault(names[0], {}) if names else tree[section]
        place[key] = list(told.value) if isinstance(told.value, tuple) else told.value
    return tree


def secret_values(config: Config) -> tuple[str, ...]:
    """Return all secrets in the settings, to keep them out of logs."""
    found = (
        str(value) if spec.secret and value else password_of(value) for _, value, spec in _leaves(config)
    )
    return tuple(secret for secret in found if secret)
