"""The section `telemetry`: where spans are sent."""

from dataclasses import dataclass

from afresh.config import forms
from afresh.config.spec import number, text


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Spans for OpenTelemetry: nothing unless an address is set, here or as `OTEL_EXPORTER_OTLP_ENDPOINT`."""

    endpoint: str | None = text(
        None,
        "the collector that spans are sent to by OTLP over HTTP, as `http://localhost:4318`; null: what "
        "`OTEL_EXPORTER_OTLP_ENDPOINT` says, or nothing is sent ([operations.md](operations.md))",
        optional=True,
        form=forms.api_url,
    )
    looks: float = number(0.01, "the share of looks at pages that are told as spans", 0, 1)
