"""Turns what machines were served into log lines and Events on their Hardware, and remembers the last step there.

The wire's servers call it from the event loop; nothing here waits. When an installed system reports that it is up,
the moment is also kept as an annotation of the Hardware, since Events expire.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

import structlog

from ironbell.api.client import ApiError
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.clock import Clock, rfc3339
from ironbell.codec.dhcp import MessageType
from ironbell.contract.boot_progress import BootEvent, BootStage
from ironbell.contract.directory import HardwareDirectory, Match
from ironbell.kube.client import Client
from ironbell.kube.decision import Emit
from ironbell.kube.events import EventRecorder
from ironbell.services.dhcp.answers import Reply
from ironbell.services.dhcp.problems import Problem

_log = structlog.get_logger()

INSTALLED_ANNOTATION = "ironbell.dev/installed-system-up"
WRITE_TIMEOUT_S = 10.0
WRITE_PAUSE_S = 1.0


@dataclass
class BootRecorder:
    """The observer of all servers in `wire`. `run` writes annotations until cancelled."""

    directory: HardwareDirectory
    events: EventRecorder
    client: Client
    clock: Clock
    _installed: asyncio.Queue[tuple[str, str, str | None]] = field(default_factory=lambda: asyncio.Queue(1000))

    def __call__(self, event: BootEvent) -> None:
        log = _log.warning if event.is_warning else _log.info
        log("boot", hardware=f"{event.namespace}/{event.name}", stage=event.stage.value, message=event.message)
        self._emit(event.namespace, event.name, event.stage.value, event.message, warning=event.is_warning)
        if event.stage is BootStage.INSTALLED:
            self._note(event, rfc3339(self.clock.now()))
        elif event.stage is BootStage.SCRIPT and self._says_installed(event):
            # the machine is on its way into the in-memory OS: what was installed is about to go
            self._note(event, None)

    def on_dhcp_reply(self, reply: Reply) -> None:
        """A lease, or a netboot that was refused. Offers are only logged by the server."""
        if not reply.hardware or reply.kind is not MessageType.ACK:
            return
        namespace, _, name = reply.hardware.partition("/")
        address = reply.packet.yiaddr
        if reply.refusal:
            message = f"{address} leased; netboot refused: {reply.refusal}"
            self(BootEvent(BootStage.REFUSED, namespace, name, message))
        else:
            extra = f", boot file {reply.boot_file}" if reply.boot_file else ""
            self(BootEvent(BootStage.LEASE, namespace, name, f"{address} leased{extra}"))

    def on_dhcp_problem(self, problem: Problem) -> None:
        """Something that keeps Hardware from being served."""
        for hardware in problem.hardware:
            namespace, _, name = hardware.partition("/")
            self._emit(namespace, name, problem.reason, problem.message, warning=True)

    def on_tftp(self, address: str, path: str, size: int) -> None:
        """A file went out over TFTP."""
        found = self.directory.by_ip(address)
        if isinstance(found, Match):
            meta = found.hardware.metadata
            name = path.rsplit("/", 1)[-1]
            self(BootEvent(BootStage.BINARY, meta.namespace, meta.name, f"{name} over TFTP ({size} bytes)"))

    def _note(self, event: BootEvent, moment: str | None) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._installed.put_nowait((event.namespace, event.name, moment))

    def _says_installed(self, event: BootEvent) -> bool:
        found = self.directory.get(event.namespace, event.name)
        return found is not None and INSTALLED_ANNOTATION in found.metadata.annotations

    async def run(self) -> None:
        """Keep the annotations; a write that fails is tried until it goes through or the Hardware is gone."""
        while True:
            namespace, name, moment = await self._installed.get()
            body = {"metadata": {"annotations": {INSTALLED_ANNOTATION: moment}}}
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await self.client.merge_patch(HARDWARE, namespace, name, body=body)
            except (ApiError, TimeoutError) as error:
                if not (isinstance(error, ApiError) and error.code == 404):
                    _log.warning("report not stored", hardware=f"{namespace}/{name}", why=str(error))
                    with contextlib.suppress(asyncio.QueueFull):
                        self._installed.put_nowait((namespace, name, moment))
                    await asyncio.sleep(WRITE_PAUSE_S)

    def _emit(self, namespace: str, name: str, reason: str, message: str, *, warning: bool) -> None:
        uid = self.directory.uid_of(namespace, name)
        kind = "Warning" if warning else "Normal"
        self.events.emit(Emit(HARDWARE, namespace, name, uid, reason=reason, message=message, type=kind))
