"""Define the settings of the server, access, logs, telemetry, sinks, webhooks and notifications."""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from afresh.config import forms
from afresh.config.spec import InvalidValue, SettingSpec, flag, number, suggest_nearest, text, texts, whole
from afresh.dataclass import dataclass, fields
from afresh.model.labels import is_among
from afresh.plugins import SINKS as PLUGIN_SINKS
from afresh.plugins import SOURCES as PLUGIN_SOURCES
from afresh.plugins import installed_plugins, load_plugin
from afresh.ports import SinkKind

EVENTS = ("run.finished", "run.braked", "page.new", "page.changed", "page.deleted", "page.moved")
_ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
NEEDED = {"folder": ("path",), "gemini": ("store",), "openai": ("store",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """The conditions for requests that the server accepts: host names, origins, tokens and limits."""

    hosts: tuple[str, ...] = texts(
        "host names of the server besides those of this machine; requests for other names are refused, to "
        "prevent DNS rebinding",
        form=forms.host_name,
    )
    origins: tuple[str, ...] = texts(
        "other sites whose pages may call the server from a browser, such as `https://docs.example.org`",
        form=forms.origin,
    )
    credentials_for: tuple[str, ...] = texts(
        "repositories for which callers of the server and agents may use your credentials (`github.token`, `gh`, "
        "`git.token`, `git.credential_helper`, ssh): hosts, owners or repositories, such as `git.internal` or "
        "`github.com/acme`; others are read without credentials (docs/howto/tokens.md)",
        form=forms.repository_place,
    )
    loopback_open: bool = flag(False, "need no token for requests from this machine, even if there are tokens")
    requests_per_second: float = number(
        50.0, "maximum requests per second of one token, or of one peer (IP address) without a token", 0.01, 100_000
    )
    burst: int = whole(
        500, "requests that may come at once before `access.requests_per_second` limits them", 1, 1_000_000
    )
    max_body_bytes: int = whole(1_048_576, "maximum size of a request body", 1_024, 1_073_741_824)
    header_seconds: float = number(10.0, "maximum time to receive the header of a request", 0.1, 3_600)
    body_seconds: float = number(30.0, "maximum time to receive the body of a request", 0.1, 3_600)
    connections_per_peer: int = whole(
        250,
        "maximum connections of one peer, which is an IPv4 address or an IPv6 /64 network; of connections from this "
        "machine, only those that have not sent a request yet count, because a reverse proxy may serve many clients",
        1,
        1_000_000,
    )
    max_connections: int = whole(1_000, "maximum connections; further ones get 503", 1, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The address on which `afresh serve` listens, and the folders that its callers may add."""

    host: str = text("127.0.0.1", "the address to listen on", operator=True, form=forms.name)
    port: int = whole(8000, "the port to listen on; 0: any free port", 0, 65_535)
    allowed_roots: tuple[str, ...] = texts(
        "folders of this machine that callers may add as sources, with everything in them; empty: only URLs",
        form=forms.file,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    file: str | None = text(None, "the log file, one line per event; null: none (short: `AFRESH_LOG`)", form=forms.file)
    level: str = text("info", "the lowest level that is logged", choices=("debug", "info", "warning", "error"))
    format: str = text("text", "one line of text, or one JSON object, per event", choices=("text", "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """OpenTelemetry spans, which are sent only if an endpoint is set here or by `OTEL_EXPORTER_OTLP_ENDPOINT`."""

    endpoint: str | None = text(
        None,
        "the collector of spans (OTLP over HTTP), such as `http://localhost:4318`; null: that of "
        "`OTEL_EXPORTER_OTLP_ENDPOINT`, if set (docs/howto/deploy.md)",
        form=forms.api_url,
    )
    looks: float = number(0.01, "the share of page fetches that are recorded as spans", 0, 1)


@dataclass(frozen=True, slots=True)
class NamedSection:
    """A section that contains named entries, such as `sinks` and `webhooks`."""

    name: str
    kind_of: Callable[[str], type[Any]]  # returns the settings class of a named entry
    check: Callable[[str, Mapping[str, Any]], None]  # raises InvalidValue for an incomplete entry
    agree: Callable[[Mapping[str, Any]], None] | None = None  # raises InvalidValue if entries conflict

    def specs(self, name: str = "") -> dict[str, SettingSpec]:
        return {item.name: item.metadata["spec"] for item in fields(self.kind_of(name))}

    def spec_of(self, dotted: str) -> SettingSpec:
        name, _, key = dotted.rpartition(".")
        if not _ENTRY_NAME.fullmatch(name):
            expected = "expected a name of lowercase letters, digits, - and _, with its settings below it"
            raise InvalidValue(f"{self.name}.{name or key}: {expected}")
        specs = self.specs(name)
        if key not in specs:
            raise InvalidValue(f"unknown key {self.name}.{dotted}{suggest_nearest(key, list(specs))}")
        return specs[key]

    def from_variable(self, rest: str, names: Iterable[str]) -> str:
        """Convert the end of a variable's name, such as `MY_SINK__PATH`, to `my-sink.path` if `names` has `my-sink`."""
        name, _, key = rest.lower().rpartition("__")
        known = {each.replace("-", "_"): each for each in names}
        return f"{known.get(name, name)}.{key}"

    def built(self, values: Mapping[str, object]) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """One external store to which pages are uploaded."""

    kind: str = text(
        None,
        "its kind: `folder` (Markdown files), `gemini` (Gemini File Search) or `openai` "
        "(a vector store of OpenAI or a compatible server)",
        choices=tuple(NEEDED),
        optional=False,
        plugins=PLUGIN_SINKS,
    )
    sources: tuple[str, ...] = texts("the sources that it contains, as NAME or NAME@VERSION; empty: all")
    replace: str = text(
        "delete_first",
        "how a changed page is replaced: `delete_first`, or `upload_first`, which keeps the old document until the new "
        "one can be searched",
        choices=("delete_first", "upload_first"),
    )
    path: str | None = text(
        None, "for kind `folder`: the path of the folder, relative to the settings file", form=forms.file
    )
    store: str | None = text(None, "for kinds `gemini` and `openai`: the name or id of the store", form=forms.name)
    api_key: str | None = forms.secret_text(
        None, "the key of its API; better in the environment, as `AFRESH_SINKS__NAME__API_KEY`"
    )
    base_url: str | None = text(None, "the URL of its API; null: the vendor's", form=forms.api_url)
    api_version: str | None = text(None, "the version of its API; null: the default", form=forms.name)
    at_once: int = whole(10, "concurrent uploads", 1, 100)
    wait_seconds: float = number(60.0, "how long `sync` waits for documents that the store still processes", 0, 86_400)
    deadline_seconds: float = number(
        1800.0,
        "how long the store may process a document; after that it counts as stuck, and the next sync uploads it again",
        1,
        2_592_000,
    )
    recheck_seconds: float = number(
        600.0,
        "wait after the store reports FAILED for a document; if it then reports FAILED again, the document is "
        "uploaded again",
        0,
        86_400,
    )

    @property
    def place(self) -> str:
        """Return a text that identifies the external store."""
        return " ".join(filter(None, (self.kind, self.path, self.base_url, self.store)))


def _check_places(sinks: Mapping[str, Any]) -> None:
    """Raise InvalidValue if two sinks share a store or folder, because each would delete the documents of the other."""
    for (one, first), (two, second) in combinations(sinks.items(), 2):
        same = first.place == second.place
        if first.kind == second.kind == "folder":
            outer, inner = (Path(str(each.path)).expanduser().resolve() for each in (first, second))
            same = outer.is_relative_to(inner) or inner.is_relative_to(outer)
        if same:
            raise InvalidValue(
                f"sinks.{two} and sinks.{one} are the same place, or one is inside the other: use separate places"
            )


def _check_sink(name: str, given: Mapping[str, Any]) -> None:
    if (kind := given.get("kind")) is None:
        raise InvalidValue(f"sinks.{name}.kind is missing: one of {', '.join(NEEDED)}")
    plugin = None if kind in NEEDED else load_plugin(PLUGIN_SINKS, kind, SinkKind)
    for key in NEEDED.get(kind, plugin.needs if plugin else ()):
        if not given.get(key):
            raise InvalidValue(f"sinks.{name}.{key} is missing: kind: {kind} needs it")


SINKS = NamedSection("sinks", lambda name: SinkSettings, _check_sink, _check_places)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSettings:
    """The settings of a plug-in that declares none."""


def _plugin_settings(name: str) -> type[Any]:
    installed = installed_plugins(PLUGIN_SOURCES)
    found = load_plugin(PLUGIN_SOURCES, name, object) if name in installed else None
    section: type[Any] | None = getattr(found, "settings", None) if name else NoSettings
    if section is None:
        known = ", ".join(installed) or "none"
        raise InvalidValue(f"plugins.{name}: there is no plug-in of this name with settings; installed: {known}")
    return section


PLUGINS = NamedSection("plugins", _plugin_settings, lambda name, given: None)

GITHUB = "github"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """One webhook: outgoing if it has a URL, else incoming."""

    secret: str = forms.secret_text(
        "",
        "the secret that signs its messages; better in the environment, as `AFRESH_WEBHOOKS__NAME__SECRET`",
        form=forms.secret,
    )
    url: str | None = text(
        None,
        "the URL to which messages are sent; null: an incoming webhook, which receives messages at "
        "`/api/v1/webhooks/NAME`; the one named `github` expects GitHub's format (docs/howto/webhooks.md)",
        form=forms.api_url,
    )
    events: tuple[str, ...] = texts(
        f"the events that an outgoing webhook sends: {', '.join(f'`{name}`' for name in EVENTS)}; empty: all",
        choices=EVENTS,
    )
    sources: tuple[str, ...] = texts("the sources that it concerns, as NAME or NAME@VERSION; empty: all")

    def concerns(self, label: str) -> bool:
        return is_among(label, self.sources)


def _check_webhook(name: str, given: Mapping[str, Any]) -> None:
    if not given.get("secret"):
        raise InvalidValue(f"webhooks.{name}.secret is missing: messages must be signed")
    if name == GITHUB and given.get("url"):
        raise InvalidValue("webhooks.github receives messages from GitHub: give an outgoing webhook another name")


WEBHOOKS = NamedSection("webhooks", lambda name: WebhookSettings, _check_webhook)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """One service through which people are notified."""

    url: str = forms.secret_text(
        "",
        "where people are notified, in the format of apprise: `slack://…`, `mailtos://…`, `ntfys://…`; it is a secret, "
        "better in the environment, as `AFRESH_NOTIFY__NAME__URL` (docs/howto/notifications.md)",
        form=forms.service,
    )
    events: tuple[str, ...] = texts(
        f"the events that are sent: {', '.join(f'`{name}`' for name in EVENTS)}; empty: all", choices=EVENTS
    )
    sources: tuple[str, ...] = texts("the sources that it concerns, as NAME or NAME@VERSION; empty: all")


def _check_notify(name: str, given: Mapping[str, Any]) -> None:
    if not given.get("url"):
        raise InvalidValue(f"notify.{name}.url is missing: set the URL of a service in the format of apprise")


NOTIFY = NamedSection("notify", lambda name: NotifySettings, _check_notify)
