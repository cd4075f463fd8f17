"""Settings that depend on each other: defaults give way, contradictions are refused."""

from collections.abc import Container

from afresh.config.spec import plain
from afresh.config.tree import Config, replaced
from afresh.core.errors import ConfigError


def settle(config: Config, given: Container[str]) -> Config:
    """The tree with defaults bent to what was given; two given values that contradict are an error."""
    policy = config.policy
    if policy.heartbeat_seconds * 2 > policy.lease_seconds:
        if "policy.heartbeat_seconds" in given:
            raise ConfigError(
                f"policy.heartbeat_seconds ({plain(policy.heartbeat_seconds)}) must be at most half of "
                f"policy.lease_seconds ({plain(policy.lease_seconds)}), or workers would lose their pages"
            )
        config = replaced(config, {("policy", "heartbeat_seconds"): policy.lease_seconds / 6})
    if policy.backoff_base_seconds > policy.backoff_max_seconds:
        if "policy.backoff_base_seconds" in given:
            raise ConfigError(
                f"policy.backoff_base_seconds ({plain(policy.backoff_base_seconds)}) must be at most "
                f"policy.backoff_max_seconds ({plain(policy.backoff_max_seconds)})"
            )
        config = replaced(config, {("policy", "backoff_base_seconds"): policy.backoff_max_seconds})
    return config
