"""Turns boot progress of machines into log lines and Events on their Hardware, and records the last step there.

The boot services call it from the event loop; nothing here waits. When an installed system reports that it is up,
the moment is also kept as an annotation of the Hardware, since Events expire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from ironbell.api.client import ApiError
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.repeats import Repeats
from ironbell.codec.dhcp import MessageType
from ironbell.contract.servers.boot_progress import BootEvent, BootStage
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_FAILED, INSTALLED_SYSTEM_UP
from ironbell.contract.servers.directory import HardwareDirectory, Match
from ironbell.kube.client import Client
from ironbell.kube.decision import Emit
from ironbell.kube.manager.events import EventRecorder
from ironbell.provisioner.installed_system import SystemFailure, decoded, encoded
from ironbell.services.dhcp.answers import Problem, Reply

_log = structlog.get_logger()

WRITE_TIMEOUT_S = 10.0
WRITE_PAUSE_S = 1.0
FINAL_CODES = {400, 403, 404, 422}
"""Responses that another attempt would get again."""


@dataclass
class BootRecorder:
    """The observer of all boot services. `run` writes annotations until cancelled."""

    directory: HardwareDirectory
    events: EventRecorder
    client: Client
    clock: Clock
    _changes: dict[tuple[str, str], dict[str, str | None]] = field(default_factory=dict)
    """Annotations to store, by namespace and name; None removes one."""
    _has_changes: asyncio.Event = field(default_factory=asyncio.Event)
    _repeats: Repeats = field(default_factory=Repeats)

    def __call__(self, event: BootEvent) -> None:
        self._log(event)
        self._emit(event.namespace, event.name, event.stage.value, event.message, warning=event.is_warning)
        if event.stage is BootStage.INSTALLED:
            self._record(event, {INSTALLED_SYSTEM_UP: rfc3339(self.clock.now())})
        elif event.failed:
            self._record_failure(event)
        elif event.stage is BootStage.SCRIPT and (reported := self._reported(event)):
            # the machine boots the in-memory OS: the installed system is about to be replaced
            self._record(event, dict.fromkeys(reported))

    def _log(self, event: BootEvent) -> None:
        hardware, stage = f"{event.namespace}/{event.name}", event.stage.value
        skipped = self._repeats.skipped((hardware, stage), self.clock.monotonic())
        if skipped is not None:
            log, more = _log.warning if event.is_warning else _log.info, {"skipped": skipped} if skipped else {}
            log("boot", hardware=hardware, stage=stage, message=event.message, **more)

    def on_dhcp_reply(self, reply: Reply) -> None:
        """Record a lease, or a rejected netboot. Offers are only logged by the server."""
        if not reply.hardware or reply.kind is not MessageType.ACK:
            return
        namespace, _, name = reply.hardware.partition("/")
        address = reply.packet.yiaddr
        if reply.rejection:
            message = f"{address} leased; netboot rejected: {reply.rejection}"
            self(BootEvent(BootStage.REJECTED, namespace, name, message))
        else:
            extra = f", boot file {reply.boot_file}" if reply.boot_file else ""
            self(BootEvent(BootStage.LEASE, namespace, name, f"{address} leased{extra}"))

    def on_dhcp_problem(self, problem: Problem) -> None:
        """Report something that keeps Hardware from being served."""
        for hardware in problem.hardware:
            namespace, _, name = hardware.partition("/")
            self._emit(namespace, name, problem.reason, problem.message, warning=True)

    def on_tftp(self, address: str, path: str, size: int) -> None:
        """Record a file that was sent over TFTP."""
        match = self.directory.by_ip(address)
        if isinstance(match, Match):
            meta = match.hardware.metadata
            name = path.rsplit("/", 1)[-1]
            self(BootEvent(BootStage.BINARY, meta.namespace, meta.name, f"{name} over TFTP ({size} bytes)"))

    def _record(self, event: BootEvent, annotations: Mapping[str, str | None]) -> None:
        self._changes.setdefault((event.namespace, event.name), {}).update(annotations)
        self._has_changes.set()

    def _record_failure(self, event: BootEvent) -> None:
        """Record the failure of a system that was never up. A failure at a later boot does not concern its
        bootstrap."""
        known = self._known(event)
        if known.get(INSTALLED_SYSTEM_UP):
            return
        new = SystemFailure(rfc3339(self.clock.now()), event.failed, event.message, list(event.output))
        old = decoded(known.get(INSTALLED_SYSTEM_FAILED) or "")
        self._record(event, {INSTALLED_SYSTEM_FAILED: encoded(old.merged(new) if old is not None else new)})

    def _reported(self, event: BootEvent) -> list[str]:
        """Names of the annotations about the installed system that are set."""
        known = self._known(event)
        return [name for name in (INSTALLED_SYSTEM_UP, INSTALLED_SYSTEM_FAILED) if known.get(name)]

    def _known(self, event: BootEvent) -> Mapping[str, str | None]:
        """The annotations after everything is stored."""
        hardware = self.directory.get(event.namespace, event.name)
        stored = hardware.metadata.annotations if hardware is not None else {}
        return {**stored, **self._changes.get((event.namespace, event.name), {})}

    async def run(self) -> None:
        """Store the annotations: the latest of each Hardware, until they are stored or never can be."""
        while True:
            await self._has_changes.wait()
            self._has_changes.clear()
            for key, change in list(self._changes.items()):
                annotations = dict(change)
                if await self._store(key, annotations):
                    self._stored(key, annotations)
            if self._changes:
                await asyncio.sleep(WRITE_PAUSE_S)
                self._has_changes.set()

    def _stored(self, key: tuple[str, str], annotations: Mapping[str, str | None]) -> None:
        """Forget stored annotations, unless they have changed since."""
        left = {name: value for name, value in self._changes[key].items() if annotations.get(name, "") != value}
        if left:
            self._changes[key] = left
        else:
            del self._changes[key]

    async def _store(self, key: tuple[str, str], annotations: Mapping[str, str | None]) -> bool:
        """Return whether the annotations need no further attempt."""
        body = {"metadata": {"annotations": annotations}}
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await self.client.merge_patch(HARDWARE, *key, body=body)
        except (ApiError, TimeoutError) as error:
            _log.warning("report not stored", hardware="/".join(key), why=str(error) or "no answer")
            return isinstance(error, ApiError) and error.code in FINAL_CODES
        return True

    def _emit(self, namespace: str, name: str, reason: str, message: str, *, warning: bool) -> None:
        uid = self.directory.uid_of(namespace, name)
        kind = "Warning" if warning else "Normal"
        self.events.emit(Emit(HARDWARE, namespace, name, uid, reason=reason, message=message, type=kind))
