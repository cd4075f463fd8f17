"""Settings: one typed tree, read once, with defaults < file < environment < flags."""

from afresh.config.ai import AiSettings
from afresh.config.describe import Told, describe, secret_values, tell
from afresh.config.embedding import EmbeddingSettings
from afresh.config.kb import KbSettings
from afresh.config.kb_paths import KbPaths, kb_paths
from afresh.config.layers import find_file, load, usual_places
from afresh.config.tree import (
    Config,
    CrawlSettings,
    LogSettings,
    NetworkSettings,
    PolicySettings,
    StorageSettings,
    StoreSettings,
)

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
    "StorageSettings",
    "StoreSettings",
    "Told",
    "describe",
    "find_file",
    "kb_paths",
    "load",
    "secret_values",
    "tell",
    "usual_places",
]
