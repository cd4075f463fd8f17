"""OpenTelemetry: spans of requests, runs and looks for a collector; its packages are imported only then."""

import logging
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from afresh import __version__
from afresh.config import Config
from afresh.errors import ConfigError
from afresh.ops import tracing
from afresh.ops.tracing import Value
from afresh.text.redact import mask_secrets, one_line

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger(__name__)

VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
TIMEOUT = "OTEL_EXPORTER_OTLP_TIMEOUT"
SECONDS = 3.0  # that a collector may keep us waiting at the end of a command
INSTALL = "pip install 'afresh[otel]'"
LONGEST = 1_000  # characters of one value


@contextmanager
def kept(config: Config) -> Iterator[None]:
    """Have spans kept and sent for a while, if the settings or the environment name a collector."""
    endpoint = config.telemetry.endpoint
    if not (endpoint or any(map(os.environ.get, VARIABLES))) or _is_off():
        yield
        return
    try:
        exporter = _exporter(endpoint)
    except ModuleNotFoundError as missing:
        if endpoint:
            raise ConfigError(f"telemetry.endpoint needs OpenTelemetry: {INSTALL}") from missing
        log.info("no spans are sent to what %s names: %s", VARIABLES[1], INSTALL)
        yield
        return
    with recorded(exporter, config.telemetry.looks):
        yield


@contextmanager
def recorded(exporter: "SpanExporter", share: float) -> Iterator[None]:
    """Have spans kept for an exporter, and of looks this share."""
    from opentelemetry import trace

    provider = _provider(exporter)
    trace.set_tracer_provider(provider)  # what libraries tell of MCP goes there too
    tracing.record(Spans(provider.get_tracer("afresh", __version__), share))
    try:
        yield
    finally:
        tracing.record(None)
        provider.shutdown()


def _is_off() -> bool:
    none = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"
    return none or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def _exporter(endpoint: str | None) -> "SpanExporter":
    import requests
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    session = requests.Session()
    session.trust_env, session.max_redirects = False, 0
    return OTLPSpanExporter(
        endpoint=f"{endpoint}/v1/traces" if endpoint else None,
        timeout=None if os.environ.get(TIMEOUT) else SECONDS,
        session=session,
    )


def _provider(exporter: "SpanExporter") -> "TracerProvider":
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {"service.name": "afresh"} if not os.environ.get("OTEL_SERVICE_NAME") else {}
    resource = Resource.create({**named, "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class Spans:
    """Fulfils `traces.Recorder`."""

    def __init__(self, tracer: "Tracer", share: float) -> None:
        self._tracer = tracer
        self._share = share

    def picks(self) -> bool:
        """Whether the next of many is to be kept."""
        return random.random() < self._share  # noqa: S311

    @contextmanager
    def span(
        self, name: str, told: Mapping[str, Value], caller: Mapping[str, str] | None = None
    ) -> Iterator["OpenSpan"]:
        """A span while it is open; of an error only its kind is told."""
        from opentelemetry import propagate
        from opentelemetry.trace import SpanKind, Status, StatusCode

        with self._tracer.start_as_current_span(
            name,
            context=None if caller is None else propagate.extract(caller),
            kind=SpanKind.INTERNAL if caller is None else SpanKind.SERVER,
            attributes=_safe(told),
            record_exception=False,
            set_status_on_exception=False,
        ) as own:
            try:
                yield OpenSpan(own)
            except Exception as error:
                own.set_attribute("error.type", type(error).__name__)
                own.set_status(Status(StatusCode.ERROR))
                raise


class OpenSpan:
    """Fulfils `traces.Note`."""

    def __init__(self, span: "Span") -> None:
        self._span = span

    def add(self, told: Mapping[str, Value]) -> None:
        """Say more of it."""
        self._span.set_attributes(_safe(told))

    def rename(self, name: str, *, failed: bool = False) -> None:
        """Name it by what it turned out to be."""
        from opentelemetry.trace import Status, StatusCode

        self._span.update_name(name)
        if failed:
            self._span.set_status(Status(StatusCode.ERROR))


def _safe(told: Mapping[str, Value]) -> dict[str, Value]:
    return {
        name: mask_secrets(one_line(value))[:LONGEST] if isinstance(value, str) else value
        for name, value in told.items()
    }
