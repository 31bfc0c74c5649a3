"""What a boot leaves on its Hardware: the latest word, tried until it is stored or never can be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ironbell.api.client import NotFound, Unavailable
from ironbell.app import boot_recorder
from ironbell.app.boot_recorder import BootRecorder
from ironbell.base.clock import ManualClock
from ironbell.contract.boot_progress import BootEvent, BootStage
from ironbell.contract.directory import HardwareDirectory
from ironbell.provisioner.installed_system import INSTALLED_SYSTEM_UP


class Events:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def emit(self, event: Any) -> None:
        self.reasons.append(event.reason)


class Client:
    """Answers with what it was told to, then stores."""

    def __init__(self, *answers: Exception) -> None:
        self.answers = list(answers)
        self.stored: list[str | None] = []
        self.done = asyncio.Event()

    async def merge_patch(self, _kind: Any, _namespace: str, _name: str, *, body: dict[str, Any]) -> None:
        if self.answers:
            answer = self.answers.pop(0)
            if not self.answers and isinstance(answer, NotFound):
                self.done.set()
            raise answer
        self.stored.append(body["metadata"]["annotations"][INSTALLED_SYSTEM_UP])
        self.done.set()


async def told(client: Client, *events: BootEvent) -> Events:
    seen = Events()
    recorder = BootRecorder(HardwareDirectory(), seen, client, ManualClock())  # type: ignore[arg-type]
    for event in events:
        recorder(event)
    task = asyncio.create_task(recorder.run())
    async with asyncio.timeout(5):
        await client.done.wait()
    await asyncio.sleep(0)
    assert recorder._installed == {}
    task.cancel()
    return seen


UP = BootEvent(BootStage.INSTALLED, "site", "one", "up")


async def test_moment_is_kept_though_the_api_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot_recorder, "WRITE_PAUSE_S", 0.01)
    client = Client(Unavailable("away"), Unavailable("away"))
    seen = await told(client, UP)
    assert client.stored == ["2026-01-01T00:00:00Z"]
    assert seen.reasons == ["InstalledSystemUp"]


async def test_hardware_that_is_gone_is_not_asked_for_ever() -> None:
    client = Client(NotFound("gone"))
    await told(client, UP)
    assert client.stored == []
