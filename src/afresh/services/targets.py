"""What is meant by what was typed: here, or by somebody who calls the server."""

from collections.abc import Mapping

from afresh.config import Config
from afresh.model.records import Source


class Naming:
    """Targets, addresses and settings as people name them."""

    config: Config

    def recognise(self, target: str) -> tuple[str, str]:
        """The kind and the root of the source that is meant by what was typed."""
        from afresh.sources.detect import recognise

        return recognise(target, self.config.github.web_urls)

    def address(self, typed: str) -> str:
        """The address of a page that is meant by what was typed."""
        from afresh.sources.detect import address

        return address(typed)

    def recognise_from_afar(self, target: str) -> tuple[str, str]:
        """The same for a target that a caller of the server names: files only where the settings allow."""
        from afresh.sources.detect_remote import recognise_from_afar

        roots, github_urls = self.config.server.allowed_roots, self.config.github.web_urls
        return recognise_from_afar(target, roots, github_urls, self.config.access.credentials_for)

    def recognise_on_the_web(self, target: str) -> tuple[str, str]:
        """The same for a target that an agent names: what is on the web alone."""
        from afresh.sources.detect_remote import recognise_on_the_web

        return recognise_on_the_web(target, self.config.github.web_urls)

    def _lends_keys(self, source: Source) -> bool:
        """Whether a source is read with the operator's keys: the operator named it, or lends them for it."""
        from afresh.sources.credentials import lends_keys

        places, github_urls = self.config.access.credentials_for, self.config.github.web_urls
        return source.is_operators or lends_keys(source.kind, source.url, places, github_urls)

    def page_address(self, typed: str) -> str:
        """The address of a page on record that a caller names; UsageError if it is not whole."""
        from afresh.sources.detect_remote import page_address

        return page_address(typed)

    def web_address(self, typed: str) -> str:
        """The address of a page that a caller of the server names; UsageError if it is none of the web."""
        from afresh.sources.detect_remote import web_address

        return web_address(typed)

    def check_settings(self, rules: Mapping[str, object], policy: Mapping[str, object]) -> None:
        """ConfigError, if a source cannot have these settings and no others."""
        self.config.with_overrides(rules, policy)
