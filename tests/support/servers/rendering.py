"""Rendering in the test's own process: for worlds without an event loop, and for replays on a virtual clock."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.controllers.tink.render import Rendered
from ironbell.controllers.tink.rendering.engine import TemplateEngine

T = TypeVar("T")


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise AssertionError("it waits")


class InProcess:
    """Satisfies `controllers.tink.render.Renderer`."""

    def __init__(self) -> None:
        self._engine = TemplateEngine()

    async def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered:
        return self._engine.workflow(template, hardware, name=name, variables=variables)

    async def media_url(self, text: str, hardware: Hardware) -> str:
        return self._engine.media_url(text, hardware)

    async def parse(self, text: str, namespace: str) -> None:
        self._engine.parse(text)
