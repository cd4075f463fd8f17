"""Record spans and send them to an OpenTelemetry collector; without one, spans do nothing."""

import logging
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from afresh import __version__
from afresh.config import Config
from afresh.errors import ConfigError
from afresh.text.redact import mask_secrets, one_line

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger(__name__)

Value = str | int | float | bool

VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
TIMEOUT = "OTEL_EXPORTER_OTLP_TIMEOUT"
SECONDS = 3.0  # time limit for sending the last spans at the end of a command
INSTALL = "pip install 'afresh[otel]'"
MAX_VALUE_CHARS = 1_000  # length of one value


@contextmanager
def export_spans(config: Config) -> Iterator[None]:
    """Record spans in this context if the settings or the environment name a collector."""
    endpoint = config.telemetry.endpoint
    off = [os.environ.get(name, "").strip().lower() for name in ("OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED")]
    if not (endpoint or any(map(os.environ.get, VARIABLES))) or off[0] == "none" or off[1] == "true":
        yield
        return
    try:
        exporter = _exporter(endpoint)
    except ModuleNotFoundError as missing:
        if endpoint:
            raise ConfigError(f"telemetry.endpoint needs OpenTelemetry: {INSTALL}") from missing
        log.info(
            "the environment variable %s names a collector, but OpenTelemetry is missing, so no spans are sent: %s",
            VARIABLES[1],
            INSTALL,
        )
        yield
        return
    with record_spans(exporter, config.telemetry.looks):
        yield


@contextmanager
def record_spans(exporter: "SpanExporter", share: float) -> Iterator[None]:
    """Record spans in this context and send them with `exporter`; record only the fraction `share` of page checks."""
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {"service.name": "afresh"} if not os.environ.get("OTEL_SERVICE_NAME") else {}
    resource = Resource.create({**named, "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)  # also for spans of libraries, such as MCP
    _recorders[:] = [Spans(provider.get_tracer("afresh", __version__), share)]
    try:
        yield
    finally:
        _recorders.clear()
        provider.shutdown()


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


class Spans:
    def __init__(self, tracer: "Tracer", share: float) -> None:
        self._tracer = tracer
        self._share = share

    def picks(self) -> bool:
        return random.random() < self._share  # noqa: S311

    @contextmanager
    def span(
        self, name: str, attributes: Mapping[str, Value], caller: Mapping[str, str] | None = None
    ) -> Iterator["OpenSpan"]:
        """Open a span, below the one that the headers `caller` name, if any; of an error, record only the type."""
        from opentelemetry import propagate
        from opentelemetry.trace import SpanKind, Status, StatusCode

        with self._tracer.start_as_current_span(
            name,
            context=None if caller is None else propagate.extract(caller),
            kind=SpanKind.INTERNAL if caller is None else SpanKind.SERVER,
            attributes=_safe(attributes),
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
    def __init__(self, span: "Span") -> None:
        self._span = span

    def add(self, attributes: Mapping[str, Value]) -> None:
        self._span.set_attributes(_safe(attributes))

    def rename(self, name: str, *, failed: bool = False) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.update_name(name)
        if failed:
            self._span.set_status(Status(StatusCode.ERROR))


def _safe(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {
        name: mask_secrets(one_line(value))[:MAX_VALUE_CHARS] if isinstance(value, str) else value
        for name, value in attributes.items()
    }


class SpanNotes(Protocol):
    def add(self, attributes: Mapping[str, Value]) -> None: ...

    def rename(self, name: str, *, failed: bool = False) -> None: ...


class _NullSpan:
    def __enter__(self) -> SpanNotes:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def add(self, attributes: Mapping[str, Value]) -> None:
        pass

    def rename(self, name: str, *, failed: bool = False) -> None:
        pass


NULL_SPAN = _NullSpan()

_recorders: list[Spans] = []  # empty, or contains the current recorder


def get_recorder() -> Spans | None:
    return _recorders[0] if _recorders else None


def span(name: str, attributes: Mapping[str, Value]) -> AbstractContextManager[SpanNotes]:
    """Open a span; it is recorded only in the context of `record_spans`."""
    return _recorders[0].span(name, attributes) if _recorders else NULL_SPAN


def sampled_span(name: str, attributes: Mapping[str, Value]) -> AbstractContextManager[SpanNotes]:
    """Open a span for a frequent operation; only a share of these is recorded."""
    return _recorders[0].span(name, attributes) if _recorders and _recorders[0].picks() else NULL_SPAN
