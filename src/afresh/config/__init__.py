"""Settings: one typed tree, loaded once from defaults, file, environment and flags, in this order."""

from afresh.config.kb import KbPaths, KbSettings, kb_paths
from afresh.config.layers import find_file, load, usual_places
from afresh.config.models import AiSettings, EmbeddingSettings
from afresh.config.server import LogSettings
from afresh.config.sources import CrawlSettings, NetworkSettings, PolicySettings, StorageSettings
from afresh.config.tree import Config, SettingValue, StoreSettings, describe, secret_values, tell

__all__ = [
    "AiSettings",
    "Config",
    "CrawlSettings",
    "EmbeddingSettings",
    "KbPaths",
    "KbSettings",
    "LogSettings",
    "NetworkSettings",
    "PolicySettings",
    "SettingValue",
    "StorageSettings",
    "StoreSettings",
    "describe",
    "find_file",
    "kb_paths",
    "load",
    "secret_values",
    "tell",
    "usual_places",
]
