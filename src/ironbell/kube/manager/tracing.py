"""Traces: a span per reconcile with what was decided, where OpenTelemetry is installed (extra `otel`).

Without it, or before `start_tracing`, spans cost nothing. Their destination is set by OpenTelemetry's own
variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, ...). Contents of objects are never in a span.

Source: opentelemetry.io: specs/otel/configuration/sdk-environment-variables.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from ironbell.kube.decision import Action, Decision, Effect, Emit, Key

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Span(Protocol):
    """The part of OpenTelemetry's span that is used."""

    def set_attribute(self, key: str, value: Any) -> None: ...


class Tracer(Protocol):
    """The part of OpenTelemetry's tracer that is used."""

    def start_as_current_span(self, name: str, *, attributes: dict[str, Any]) -> AbstractContextManager[Span]: ...


class _Nowhere:
    def set_attribute(self, key: str, value: Any) -> None:
        """Forget it."""


_NOWHERE = _Nowhere()
_tracer: Tracer | None = None


def use_tracer(tracer: Tracer | None) -> None:
    """Send spans there from now on; None for nowhere."""
    global _tracer  # noqa: PLW0603 - one per process, as OpenTelemetry's own
    _tracer = tracer


def start_tracing(service: str) -> bool:
    """Send spans to the destination in the environment, if it is set and OpenTelemetry is installed; return whether."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return False
    try:
        trace, sdk, resources, export, otlp = (
            importlib.import_module(f"opentelemetry.{name}")
            for name in (
                "trace", "sdk.trace", "sdk.resources", "sdk.trace.export", "exporter.otlp.proto.http.trace_exporter"
            )
        )  # fmt: skip
    except ImportError:
        return False
    os.environ.setdefault("OTEL_SERVICE_NAME", service)
    provider = sdk.TracerProvider(resource=resources.Resource.create())
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    use_tracer(trace.get_tracer("ironbell"))
    return True


@contextmanager
def reconcile_span(controller: str, key: Key) -> Iterator[Span]:
    """The span of one reconcile; an error that leaves the block is recorded by the tracer."""
    if _tracer is None:
        yield _NOWHERE
        return
    about = {"ironbell.controller": controller, "k8s.namespace.name": key[0], "ironbell.object": key[1]}
    with _tracer.start_as_current_span(f"reconcile {controller}", attributes=about) as span:
        yield span


def record_decision(span: Span, decision: Decision) -> None:
    """Record a summary of a decision."""
    if span is _NOWHERE:
        return
    span.set_attribute("ironbell.actions", [_summary(action) for action in decision.actions])
    span.set_attribute("ironbell.questions", [type(need.query).__name__ for need in decision.needs])
    if decision.waiting is not None:
        span.set_attribute("ironbell.waiting", decision.waiting.reason)


def _summary(action: Action) -> str:
    if isinstance(action, Effect):
        return f"effect {action.performer}"
    if isinstance(action, Emit):
        return f"event {action.reason}"
    return f"{type(action).__name__} {action.kind}"
