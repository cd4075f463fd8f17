"""Settings of the server, access, logs, telemetry, sinks, webhooks and notifications."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any

from afresh.config import forms
from afresh.config.forms import EVENTS
from afresh.config.spec import InvalidValue, SettingSpec, flag, nearest, number, text, texts, whole
from afresh.model.labels import is_among
from afresh.plugins import SINKS as PLUGIN_SINKS
from afresh.plugins import SOURCES as PLUGIN_SOURCES
from afresh.plugins import installed_plugins, load_plugin
from afresh.ports import SinkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Who may ask the server, by which name, and how much of it."""

    hosts: tuple[str, ...] = texts(
        "names that the server is called by, besides those of this machine; whoever comes by another one is "
        "sent away, as a page that turns its own name against this server is",
        form=forms.host_name,
    )
    origins: tuple[str, ...] = texts(
        "other sites whose pages may ask from within a browser, as `https://docs.example.org`",
        form=forms.origin,
    )
    credentials_for: tuple[str, ...] = texts(
        "repositories that callers of the server and agents may have read with your keys (`github.token`, "
        "`gh`, `git.token`, `git.credential_helper`, ssh): hosts, owners or repositories, as `git.internal` "
        "or `github.com/acme`; others that they add are read as everybody may (docs/howto/tokens.md)",
        form=forms.repository_place,
    )
    loopback_open: bool = flag(False, "ask for no token on this machine itself, although there are tokens")
    requests_per_second: float = number(
        50.0, "requests of one token, or one unknown peer, that are answered in the long run", 0.01, 100_000
    )
    burst: int = whole(500, "how many of them may come at once", 1, 1_000_000)
    max_body_bytes: int = whole(1_048_576, "the largest body of a request", 1_024, 1_073_741_824)
    header_seconds: float = number(10.0, "the longest the head of a request may take", 0.1, 3_600)
    body_seconds: float = number(30.0, "the longest the body of a request may take", 0.1, 3_600)
    connections_per_peer: int = whole(
        250,
        "connections of one peer at a time, an IPv6 peer being its /64; of this machine itself, where a "
        "reverse proxy may be, only those count that have not asked for anything",
        1,
        1_000_000,
    )
    max_connections: int = whole(1_000, "connections at a time; more are told to come later", 1, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where `afresh serve` listens, and what those who call it may name."""

    host: str = text("127.0.0.1", "the address that is listened at", operator=True, form=forms.name)
    port: int = whole(8000, "the port that is listened at; 0: any that is free", 0, 65_535)
    allowed_roots: tuple[str, ...] = texts(
        "folders of this machine that a caller may name as a source, with all that is in them; none: only "
        "what is on the web",
        form=forms.file,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What is written down about the work itself."""

    file: str | None = text(
        None, "a file that gets a line for every event; null: none (`AFRESH_LOG` for short)", form=forms.file
    )
    level: str = text(
        "info", "the least that goes into the file", choices=("debug", "info", "warning", "error")
    )
    format: str = text("text", "a line of text, or one JSON object, per event", choices=("text", "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Spans for OpenTelemetry: nothing unless an address is set, here or as `OTEL_EXPORTER_OTLP_ENDPOINT`."""

    endpoint: str | None = text(
        None,
        "the collector that spans are sent to by OTLP over HTTP, as `http://localhost:4318`; null: what "
        "`OTEL_EXPORTER_OTLP_ENDPOINT` says, or nothing is sent (docs/howto/deploy.md)",
        form=forms.api_url,
    )
    looks: float = number(0.01, "the share of looks at pages that are told as spans", 0, 1)


_ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class NamedSection:
    """A section of named entries of the same kind."""

    name: str
    kind_of: Callable[[str], type[Any]]  # returns the class of a named entry
    check: Callable[[str, Mapping[str, Any]], None]  # raises InvalidValue for an incomplete entry
    agree: Callable[[Mapping[str, Any]], None] | None = None  # raises InvalidValue for conflicts

    def specs(self, name: str = "") -> dict[str, SettingSpec]:
        """Return the settings of an entry."""
        return {item.name: item.metadata["spec"] for item in fields(self.kind_of(name))}

    def spec_of(self, dotted: str) -> SettingSpec:
        """Return the spec of the setting `NAME.key`."""
        name, _, key = dotted.rpartition(".")
        if not _ENTRY_NAME.fullmatch(name):
            wanted = "expected a name of small letters, digits, - and _, its settings below"
            raise InvalidValue(f"{self.name}.{name or key}: {wanted}")
        specs = self.specs(name)
        if key not in specs:
            raise InvalidValue(f"unknown key {self.name}.{dotted}{nearest(key, list(specs))}")
        return specs[key]

    def from_variable(self, rest: str, names: Iterable[str]) -> str:
        """Return `NAME.key` for the rest of a variable, `NAME__KEY`; known names may contain a hyphen."""
        name, _, key = rest.lower().rpartition("__")
        known = {each.replace("-", "_"): each for each in names}
        return f"{known.get(name, name)}.{key}"

    def built(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Return the entries that settings `NAME.key` describe."""
        by_name: dict[str, dict[str, Any]] = {}
        for dotted, value in values.items():
            name, _, key = dotted.rpartition(".")
            by_name.setdefault(name, {})[key] = value
        for name, given in by_name.items():
            self.check(name, given)
        entries = {name: self.kind_of(name)(**given) for name, given in by_name.items()}
        if self.agree is not None:
            self.agree(entries)
        return entries


NEEDED = {"folder": ("path",), "gemini": ("store",), "openai": ("store",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """One external store."""

    kind: str = text(
        None,
        "what it is: `folder` (Markdown files), `gemini` (Gemini File Search) or `openai` "
        "(a vector store of OpenAI or a compatible server)",
        choices=tuple(NEEDED),
        optional=False,
        plugins=PLUGIN_SINKS,
    )
    sources: tuple[str, ...] = texts("which sources it holds, as NAME or NAME@VERSION; none: all of them")
    replace: str = text(
        "delete_first",
        "how a changed page gets there: `delete_first`, or `upload_first`, which keeps the old document "
        "until the new one can be searched",
        choices=("delete_first", "upload_first"),
    )
    path: str | None = text(
        None, "of a `folder`: where it is, as seen from the settings file", form=forms.file
    )
    store: str | None = text(None, "of `gemini` and `openai`: the name or id of the store", form=forms.name)
    api_key: str | None = forms.secret_text(
        None, "the key of its API; better in the environment, as `AFRESH_SINKS__NAME__API_KEY`"
    )
    base_url: str | None = text(None, "where its API is; null: where the vendor has it", form=forms.api_url)
    api_version: str | None = text(None, "the version of its API; null: the usual one", form=forms.name)
    at_once: int = whole(10, "uploads side by side", 1, 100)
    wait_seconds: float = number(60.0, "how long `sync` waits for what the store still processes", 0, 86_400)
    deadline_seconds: float = number(
        1800.0,
        "how long the store may process a document; then it is shown as stuck, and the next sync deletes it "
        "and uploads it again",
        1,
        2_592_000,
    )
    recheck_seconds: float = number(
        600.0, "how long after FAILED a document is looked at again before it is uploaded again", 0, 86_400
    )

    @property
    def place(self) -> str:
        """Return what distinguishes this remote store from others."""
        return " ".join(filter(None, (self.kind, self.path, self.base_url, self.store)))


def _check_places(sinks: Mapping[str, Any]) -> None:
    """Refuse two stores in one place: each would treat the documents of the other as orphans."""
    for (one, first), (two, second) in combinations(sinks.items(), 2):
        same = first.place == second.place
        if first.kind == second.kind == "folder":
            outer, inner = (Path(str(each.path)).expanduser().resolve() for each in (first, second))
            same = outer.is_relative_to(inner) or inner.is_relative_to(outer)
        if same:
            raise InvalidValue(f"sinks.{two} is the same place as sinks.{one}, or within it")


def _check_sink(name: str, given: Mapping[str, Any]) -> None:
    kind = given.get("kind")
    if kind is None:
        raise InvalidValue(f"sinks.{name}.kind is missing: one of {', '.join(NEEDED)}")
    plugin = None if kind in NEEDED else load_plugin(PLUGIN_SINKS, kind, SinkKind)
    for key in NEEDED.get(kind, plugin.needs if plugin else ()):
        if not given.get(key):
            raise InvalidValue(f"sinks.{name}.{key} is missing: kind: {kind} needs it")


SINKS = NamedSection("sinks", lambda name: SinkSettings, _check_sink, _check_places)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSettings:
    """The settings of plugins, which are known only once they are installed."""


def _plugin_settings(name: str) -> type[Any]:
    """Return the settings class that the source kind of a plugin declares."""
    installed = installed_plugins(PLUGIN_SOURCES)
    found = load_plugin(PLUGIN_SOURCES, name, object) if name in installed else None
    section: type[Any] | None = getattr(found, "settings", None) if name else NoSettings
    if section is None:
        known = ", ".join(installed) or "none"
        raise InvalidValue(f"plugins.{name}: no such plug-in with settings; source kinds installed: {known}")
    return section


PLUGINS = NamedSection("plugins", _plugin_settings, lambda name, given: None)


GITHUB = "github"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """One webhook: in where it has no address, out where it has one."""

    secret: str = forms.secret_text(
        "",
        "what its messages are signed with; better in the environment, as `AFRESH_WEBHOOKS__NAME__SECRET`",
        form=forms.secret,
    )
    url: str | None = text(
        None,
        "where messages are sent; null: they are taken at `/api/v1/webhooks/NAME`, those of `github` in its "
        "own form (docs/howto/webhooks.md)",
        form=forms.api_url,
    )
    events: tuple[str, ...] = texts(
        f"of one that sends: what it tells, of {', '.join(f'`{name}`' for name in EVENTS)}; none: all",
        form=forms.event,
    )
    sources: tuple[str, ...] = texts("which sources it is for, as NAME or NAME@VERSION; none: all of them")

    def concerns(self, label: str) -> bool:
        """Return whether it is for a source."""
        return is_among(label, self.sources)


def _check_webhook(name: str, given: Mapping[str, Any]) -> None:
    if not given.get("secret"):
        raise InvalidValue(f"webhooks.{name}.secret is missing: messages without a signature prove nothing")
    if name == GITHUB and given.get("url"):
        raise InvalidValue(
            "webhooks.github is what GitHub sends: name the one that sends to others otherwise"
        )


WEBHOOKS = NamedSection("webhooks", lambda name: WebhookSettings, _check_webhook)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """One place where people are told."""

    url: str = forms.secret_text(
        "",
        "where people are told, as apprise writes it: `slack://…`, `mailtos://…`, `ntfys://…`; "
        "it is kept secret, better in the environment, as `AFRESH_NOTIFY__NAME__URL` "
        "(docs/howto/notifications.md)",
        form=forms.service,
    )
    events: tuple[str, ...] = texts(
        f"what is told, of {', '.join(f'`{name}`' for name in EVENTS)}; none: all", form=forms.event
    )
    sources: tuple[str, ...] = texts("of which sources, as NAME or NAME@VERSION; none: of all of them")


def _check_notify(name: str, given: Mapping[str, Any]) -> None:
    if not given.get("url"):
        raise InvalidValue(f"notify.{name}.url is missing: where are people told?")


NOTIFY = NamedSection("notify", lambda name: NotifySettings, _check_notify)
