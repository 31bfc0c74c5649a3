"""The HTTP side of netboot: scripts, iPXE binaries and artefacts.

Everything is answered from memory or by the kernel's `sendfile`. A machine is found by the MAC in the path, else by
its address; what it gets is the netboot plan's decision. Unknown machines get 404 with a sentence, so that a wrong
URL and a missing Hardware can be told apart; a machine that may not netboot gets a script that boots its disk.

Source: tinkerbell/tinkerbell: smee/internal/ipxe, pkg/http (routes and status codes).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog
from aiohttp import web
from prometheus_client import Counter

from ironbell.api.client import ApiError
from ironbell.base.rejections import Rejections
from ironbell.contract.servers import boot_token
from ironbell.contract.servers.boot_files import NotServedError
from ironbell.contract.servers.boot_progress import BootEvent, BootObserver, BootStage, unobserved
from ironbell.contract.servers.directory import Ambiguous, HardwareDirectory, Lookup, Match, normal_mac
from ironbell.contract.servers.netboot import InMemoryOs, NetbootPlan, NetbootSettings, netboot_plan, plan_for_unknown
from ironbell.services.boot.binaries import IpxeBinaries, binary_name
from ironbell.services.boot.script import boot_from_disk, script_for
from ironbell.services.boot.sendfile import KernelFileResponse
from ironbell.services.boot.tokens import BootTokens

_log = structlog.get_logger()
_served = Counter("ironbell_boot_http_requests_total", "Boot requests over HTTP.", ["route", "result"])

SCRIPT_NAME = "auto.ipxe"


@dataclass(frozen=True)
class BootHttp:
    """The handlers and what they answer from.

    `artefacts` maps a URL folder (such as `osie`) to a folder on disk. `advertise` overrides the address that goes
    into scripts; empty means the address that the request came in on.
    """

    directory: HardwareDirectory
    settings: Callable[[], NetbootSettings]
    binaries: IpxeBinaries
    artefacts: dict[str, Path] = field(default_factory=dict)
    advertise: str = ""
    observer: BootObserver = unobserved
    serve_unknown: bool = False
    """Boot machines without Hardware into the in-memory OS (DHCP mode auto-proxy)."""
    tokens: BootTokens | None = None
    """Gives each boot its token; None where no boot gets one."""
    rejections: Rejections = field(default_factory=Rejections)
    _missing: Rejections = field(default_factory=lambda: Rejections(level=logging.INFO))

    def routes(self) -> list[web.RouteDef]:
        """Routes to mount at the root of the machine-facing HTTP port."""
        return [
            web.get("/ipxe/script/{path:.+}", self.script),
            web.get("/ipxe/binary/{path:.+}", self.binary),
            *(web.get(f"/{name}/{{path:.+}}", self.artefact) for name in self.artefacts),
        ]

    async def script(self, request: web.Request) -> web.StreamResponse:
        """`/ipxe/script/[MAC/]auto.ipxe`."""
        elements = request.match_info["path"].split("/")
        if elements[-1] != SCRIPT_NAME:
            raise _not_found("script", f"the only script here is {SCRIPT_NAME}")
        mac = normal_mac(elements[-2]) if len(elements) > 1 else ""
        found = self.directory.by_mac(mac) if mac else self.directory.by_ip(request.remote or "")
        if found is None and self.serve_unknown:
            plan = plan_for_unknown(self.settings(), address=self._address(request))
            _served.labels("script", "unknown served").inc()
            return _script(script_for(plan, machine=mac or request.remote or "a machine without Hardware"))
        match = self._one(found, who=mac or request.remote or "", peer=request.remote or "")
        if match.interface is None:
            raise _not_found("script", f"{mac or request.remote} is not an interface of any Hardware")
        plan = netboot_plan(match.hardware, match.interface, self.settings(), address=self._address(request))
        machine = f"{match.hardware.metadata.name} ({plan.mac})"
        refusal = ""
        if self.tokens is not None and request.method == "GET":
            plan, refusal = await self._with_token(self.tokens, plan, match, peer=request.remote or "")
        if refusal:
            self._observe(match, BootStage.PROBLEM, refusal)
            _served.labels("script", "refused").inc()
            return _script(boot_from_disk(machine, "this boot's script was given out already"))
        body = script_for(plan, machine=machine)
        self._observe(
            match,
            BootStage.SCRIPT if plan.allowed else BootStage.DISK,
            f"Served the boot script for {plan.mac}." if plan.allowed else f"Booting from disk: {plan.reason}",
        )
        _served.labels("script", "netboot" if plan.allowed else "disk").inc()
        return _script(body)

    async def _with_token(
        self, tokens: BootTokens, plan: NetbootPlan, match: Match, *, peer: str
    ) -> tuple[NetbootPlan, str]:
        """The plan with the token of this boot in it, and why there is none where there should be one."""
        if not isinstance(plan.target, InMemoryOs):
            return plan, ""
        try:
            issued = await tokens.issue(match.hardware, peer=peer)
        except ApiError as error:
            _log.warning("boot token not made", hardware="/".join(match.hardware.key), why=error.message)
            raise web.HTTPServiceUnavailable(text="the boot token was not created; retry\n") from error
        if issued.stranger:
            _served.labels("script", "stranger").inc()
            self.rejections.log(peer, "boot script not given", who=plan.mac, why=issued.stranger)
            raise web.HTTPForbidden(text="the script of this boot is for the machine's own address\n")
        if not issued.token:
            return plan, issued.refusal
        argument = f"{boot_token.KERNEL_ARGUMENT}={issued.token}"
        arguments = (*plan.target.kernel_arguments, argument)
        return replace(plan, target=replace(plan.target, kernel_arguments=arguments)), ""

    async def binary(self, request: web.Request) -> web.StreamResponse:
        """`/ipxe/binary/[MAC/]NAME`."""
        path = request.match_info["path"]
        try:
            body = await asyncio.to_thread(self.binaries.read, path)
        except NotServedError as error:
            self._missing.log(request.remote or "", "boot file not served", path=request.path, why=error.message)
            raise _not_found("binary", f"no iPXE binary of that name: {path.rsplit('/', 1)[-1]}") from error
        elements = path.split("/")
        found = self.directory.by_mac(elements[-2]) if len(elements) > 1 else self.directory.by_ip(request.remote or "")
        if isinstance(found, Match):
            self._observe(found, BootStage.BINARY, f"{binary_name(path)} over HTTP ({len(body)} bytes)")
        _served.labels("binary", "ok").inc()
        return web.Response(body=body, content_type="application/octet-stream")

    async def artefact(self, request: web.Request) -> web.StreamResponse:
        """Files of the artefact folders, with Range and conditional requests."""
        name = request.path.split("/", 2)[1]
        file = confined(self.artefacts[name], request.match_info["path"])
        if file is None:
            why = await asyncio.to_thread(_why_missing, self.artefacts[name], request.match_info["path"])
            self._missing.log(request.remote or "", "boot file not served", path=request.path, why=why)
            raise _not_found("artefact", f"no such file: {request.path}")
        found = self.directory.by_ip(request.remote or "")
        if isinstance(found, Match) and "Range" not in request.headers:
            stage = _artefact_stage(file.name)
            if stage is not None:
                self._observe(found, stage, f"{file.name} over HTTP ({file.stat().st_size} bytes)")
        _served.labels("artefact", "ok").inc()
        return KernelFileResponse(file, chunk_size=1 << 20)

    def _address(self, request: web.Request) -> str:
        if self.advertise:
            return self.advertise
        local = request.transport.get_extra_info("sockname") if request.transport else None
        return str(local[0]) if local else request.host.rsplit(":", 1)[0]

    def _one(self, found: Lookup, *, who: str, peer: str) -> Match:
        if isinstance(found, Ambiguous):
            _served.labels("script", "ambiguous").inc()
            self.rejections.log(peer, "machine not served", who=who, why=found.message)
            raise web.HTTPConflict(text=found.message + "\n")
        if found is None:
            _served.labels("script", "unknown").inc()
            self.rejections.log(peer, "machine not served", who=who, why="no Hardware has this address")
            raise web.HTTPNotFound(text=f"no Hardware has the address {who}\n")
        return found

    def _observe(self, match: Match, stage: BootStage, message: str) -> None:
        self.observer(BootEvent(stage, match.hardware.metadata.namespace, match.hardware.metadata.name, message))


def _script(body: str) -> web.Response:
    return web.Response(text=body, content_type="text/plain", headers={"Cache-Control": "no-store"})


def confined(folder: Path, path: str) -> Path | None:
    """The regular file below `folder` that `path` names, or None when there is none or it would lead outside.

    Symbolic links are not followed. No absolute path is formed: the process may not be able to read the folders above.
    A part `.` is nothing, as in the addresses that apt forms of a folder with packages.
    """
    file = folder
    try:
        for part in path.split("/"):
            if part == ".":
                continue
            if part in {"", ".."} or "\0" in part:
                return None
            file = file / part
            if file.is_symlink():
                return None
        return file if file.is_file() else None
    except (OSError, ValueError):
        return None


def _why_missing(folder: Path, path: str) -> str:
    """The message about an artefact that does not exist, with the files that are in the top of its folder."""
    try:
        names = sorted(file.name for file in folder.iterdir() if file.is_file())
    except OSError:
        names = []
    return NotServedError(path, names).message


def _artefact_stage(name: str) -> BootStage | None:
    if name.startswith("vmlinuz"):
        return BootStage.KERNEL
    if name.startswith("initramfs"):
        return BootStage.INITRD
    return None


def _not_found(route: str, message: str) -> web.HTTPNotFound:
    _served.labels(route, "missing").inc()
    return web.HTTPNotFound(text=message + "\n")
