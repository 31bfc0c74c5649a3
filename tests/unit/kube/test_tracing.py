"""A span per reconcile, where there is a tracer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ironbell.base.randomness import SeededRandomness
from ironbell.kube import testing
from ironbell.kube.manager import tracing
from ironbell.kube.testing.example_world import ExampleApi, Plugs
from ironbell.kube.testing.memory import LoopClock
from support.waiting import until


class Recorder:
    """A tracer as OpenTelemetry's, that keeps what it gets."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []

    @contextmanager
    def start_as_current_span(self, name: str, *, attributes: dict[str, Any]) -> Iterator[Any]:
        span = {"name": name, **attributes}
        self.spans.append(span)

        class Span:
            def set_attribute(self, key: str, value: Any) -> None:
                span[key] = value

        yield Span()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    tracing.use_tracer(made)
    yield made
    tracing.use_tracer(None)


async def test_a_span_says_what_was_decided(recorder: Recorder) -> None:
    api, plugs = ExampleApi(LoopClock()), Plugs()
    async with testing.running(api, *plugs.controllers(), clock=LoopClock(), randomness=SeededRandomness(1)):
        await api.add_rack("r", 1)
        await until(lambda: api.rack("r").status.ready == 1)
    racks = [span for span in recorder.spans if span["ironbell.object"] == "r"]
    assert racks
    assert {span["name"] for span in racks} == {"reconcile example-rack"}
    assert any("Create" in action for span in racks for action in span.get("ironbell.actions", []))
    assert any(span.get("ironbell.waiting") == "SlotsNotReady" for span in racks)


def test_without_an_endpoint_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tracing.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert not tracing.start_tracing("test")


def test_without_the_package_an_endpoint_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setenv(tracing.ENDPOINTS[0], "http://127.0.0.1:4318")
    monkeypatch.setattr(tracing.importlib, "import_module", missing)
    assert not tracing.start_tracing("test")
