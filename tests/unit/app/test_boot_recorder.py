"""What a boot leaves on its Hardware: the latest word, tried until it is stored or never can be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import structlog

from ironbell.api.client import NotFound, Unavailable
from ironbell.app.wire import boot_recorder
from ironbell.app.wire.boot_recorder import BootRecorder
from ironbell.base.clock import ManualClock
from ironbell.contract.servers.boot_progress import BootEvent, BootStage
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_FAILED, INSTALLED_SYSTEM_UP
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.provisioner.installed_system import SystemFailure, decoded


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
    assert recorder._changes == {}
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


MODULE = "modules-final/config-scripts-user"


def failed(stage: str, *output: str, final: bool = False) -> BootEvent:
    kind = BootStage.INSTALLED_WITH_ERRORS if final else BootStage.PROBLEM
    return BootEvent(kind, "site", "one", f"cloud-init failed in {stage}", stage, output)


class Store(Client):
    """Keeps all annotations as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.annotations: dict[str, str | None] = {}

    async def merge_patch(self, _kind: Any, _namespace: str, _name: str, *, body: dict[str, Any]) -> None:
        self.annotations |= body["metadata"]["annotations"]
        self.done.set()


async def test_the_first_failure_is_kept_with_the_output_that_comes_later() -> None:
    client = Store()
    await told(client, failed(MODULE), failed("modules-final", final=True), failed("modules-final", "why", final=True))
    kept = decoded(client.annotations[INSTALLED_SYSTEM_FAILED] or "")
    assert kept == SystemFailure("2026-01-01T00:00:00Z", MODULE, f"cloud-init failed in {MODULE}", ["why"])
    assert INSTALLED_SYSTEM_UP not in client.annotations


async def test_a_problem_of_a_boot_that_succeeded_before_is_no_failed_bootstrap() -> None:
    client = Store()
    seen = await told(client, UP, failed(MODULE))
    assert INSTALLED_SYSTEM_FAILED not in client.annotations
    assert seen.reasons == ["InstalledSystemUp", "BootProblem"]


async def test_a_new_installation_forgets_what_the_system_before_reported() -> None:
    client = Store()
    script = BootEvent(BootStage.SCRIPT, "site", "one", "boot script")
    await told(client, failed(MODULE, "why"), script)
    assert client.annotations == {INSTALLED_SYSTEM_FAILED: None}


async def test_a_flood_of_reports_is_a_few_lines_in_our_log() -> None:
    recorder = BootRecorder(HardwareDirectory(), Events(), Client(), ManualClock())  # type: ignore[arg-type]
    with structlog.testing.capture_logs() as logged:
        for number in range(1000):
            recorder(BootEvent(BootStage.PROBLEM, "site", "one", f"cloud-init failed {number} times"))
        recorder(BootEvent(BootStage.LEASE, "site", "one", "192.0.2.1 leased"))
    assert len(logged) == 21
    assert logged[-1]["stage"] == BootStage.LEASE.value
