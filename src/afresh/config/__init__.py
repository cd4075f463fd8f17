"""Load the settings once, as a typed tree, from defaults, file, environment and flags; later ones win."""

from afresh.config.kb import kb_paths
from afresh.config.layers import default_files, find_file, load
from afresh.config.models import AiSettings, EmbeddingSettings
from afresh.config.sources import CrawlSettings, NetworkSettings, PolicySettings
from afresh.config.tree import Config, SettingValue, StoreSettings, describe, list_values, secret_values

__all__ = [
    "AiSettings",
    "Config",
    "CrawlSettings",
    "EmbeddingSettings",
    "NetworkSettings",
    "PolicySettings",
    "SettingValue",
    "StoreSettings",
    "default_files",
    "describe",
    "find_file",
    "kb_paths",
    "list_values",
    "load",
    "secret_values",
]
