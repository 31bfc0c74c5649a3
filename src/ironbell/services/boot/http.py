"""Netboot over HTTP: scripts, iPXE binaries and artefacts.

Responses come from memory or from the kernel's `sendfile`. A machine is identified by the MAC in the path, else by its
address; the netboot plan decides what it gets. An unknown machine gets 404 with a message that distinguishes a wrong
URL from a missing Hardware; a machine that may not netboot gets a script that boots its disk.

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
    """The handlers and the sources of their responses.

    `artefacts` maps a URL folder (such as `osie`) to a folder on disk. `advertise` is our address in scripts; empty
    means the address at which the request arrived.
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
    """Issues the token of each boot; None if boots get no tokens."""
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
            raise _missing_file("script", f"the only script here is {SCRIPT_NAME}")
        mac = normal_mac(elements[-2]) if len(elements) > 1 else ""
        peer = request.remote or ""
        lookup = self.directory.by_mac(mac) if mac else self.directory.by_ip(peer)
        if lookup is None and self.serve_unknown:
            plan = plan_for_unknown(self.settings(), address=self._address(request))
            _served.labels("script", "unknown served").inc()
            return _script(script_for(plan, machine=mac or peer or "a machine without Hardware"))
        match = self._match(lookup, address=mac or peer, peer=peer)
        if match.interface is None:
            raise _missing_file("script", f"{mac or peer} is not an interface of any Hardware")
        plan = netboot_plan(match.hardware, match.interface, self.settings(), address=self._address(request))
        machine = f"{match.hardware.metadata.name} ({plan.mac})"
        rejection = ""
        if self.tokens is not None and request.method == "GET":
            plan, rejection = await self._with_token(self.tokens, plan, match, peer=peer)
        if rejection:
            self._observe(match, BootStage.PROBLEM, rejection)
            _served.labels("script", "refused").inc()
            return _script(boot_from_disk(machine, "the script of this boot was already served"))
        body = script_for(plan, machine=machine)
        message = f"Served the boot script for {plan.mac}." if plan.allowed else f"Booting from disk: {plan.reason}"
        self._observe(match, BootStage.SCRIPT if plan.allowed else BootStage.DISK, message)
        _served.labels("script", "netboot" if plan.allowed else "disk").inc()
        return _script(body)

    async def _with_token(
        self, tokens: BootTokens, plan: NetbootPlan, match: Match, *, peer: str
    ) -> tuple[NetbootPlan, str]:
        """Return the plan with the token of this boot, and the reason why it has none although it needs one."""
        if not isinstance(plan.target, InMemoryOs):
            return plan, ""
        try:
            issued = await tokens.issue(match.hardware, peer=peer)
        except ApiError as error:
            _log.warning("boot token not created", hardware="/".join(match.hardware.key), why=error.message)
            raise web.HTTPServiceUnavailable(text="the boot token was not created; retry\n") from error
        if issued.stranger:
            _served.labels("script", "stranger").inc()
            self.rejections.log(peer, "boot script not served", mac=plan.mac, why=issued.stranger)
            raise web.HTTPForbidden(text="the script of this boot is only served to the machine's own address\n")
        if not issued.token:
            return plan, issued.rejection
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
            raise _missing_file("binary", f"no iPXE binary of that name: {path.rsplit('/', 1)[-1]}") from error
        elements = path.split("/")
        match = self.directory.by_mac(elements[-2]) if len(elements) > 1 else self.directory.by_ip(request.remote or "")
        if isinstance(match, Match):
            self._observe(match, BootStage.BINARY, f"{binary_name(path)} over HTTP ({len(body)} bytes)")
        _served.labels("binary", "ok").inc()
        return web.Response(body=body, content_type="application/octet-stream")

    async def artefact(self, request: web.Request) -> web.StreamResponse:
        """Serve files of the artefact folders, with Range and conditional requests."""
        name = request.path.split("/", 2)[1]
        file = confined(self.artefacts[name], request.match_info["path"])
        if file is None:
            reason = await asyncio.to_thread(_missing_reason, self.artefacts[name], request.match_info["path"])
            self._missing.log(request.remote or "", "boot file not served", path=request.path, why=reason)
            raise _missing_file("artefact", f"no such file: {request.path}")
        match, stage = self.directory.by_ip(request.remote or ""), _artefact_stage(file.name)
        if isinstance(match, Match) and stage is not None and "Range" not in request.headers:
            self._observe(match, stage, f"{file.name} over HTTP ({file.stat().st_size} bytes)")
        _served.labels("artefact", "ok").inc()
        return KernelFileResponse(file, chunk_size=1 << 20)

    def _address(self, request: web.Request) -> str:
        if self.advertise:
            return self.advertise
        local = request.transport.get_extra_info("sockname") if request.transport else None
        return str(local[0]) if local else request.host.rsplit(":", 1)[0]

    def _match(self, lookup: Lookup, *, address: str, peer: str) -> Match:
        if isinstance(lookup, Ambiguous):
            _served.labels("script", "ambiguous").inc()
            self.rejections.log(peer, "machine not served", address=address, why=lookup.message)
            raise web.HTTPConflict(text=lookup.message + "\n")
        if lookup is None:
            _served.labels("script", "unknown").inc()
            self.rejections.log(peer, "machine not served", address=address, why="no Hardware has this address")
            raise web.HTTPNotFound(text=f"no Hardware has the address {address}\n")
        return lookup

    def _observe(self, match: Match, stage: BootStage, message: str) -> None:
        self.observer(BootEvent(stage, *match.hardware.key, message))


def _script(body: str) -> web.Response:
    return web.Response(text=body, content_type="text/plain", headers={"Cache-Control": "no-store"})


def confined(folder: Path, path: str) -> Path | None:
    """Return the regular file below `folder` that `path` names, or None if it does not exist or is outside.

    Symbolic links are not followed. No absolute path is formed: the process may not be able to read the folders above.
    An element `.`, as in apt's URLs of a folder with packages, is ignored.
    """
    file = folder
    try:
        for element in (element for element in path.split("/") if element != "."):
            file = file / element
            if element in {"", ".."} or "\0" in element or file.is_symlink():
                return None
        return file if file.is_file() else None
    except (OSError, ValueError):
        return None


def _missing_reason(folder: Path, path: str) -> str:
    """The message about an artefact that does not exist, with the files directly in its folder."""
    try:
        names = sorted(file.name for file in folder.iterdir() if file.is_file())
    except OSError:
        names = []
    return NotServedError(path, names).message


def _artefact_stage(name: str) -> BootStage | None:
    if name.startswith("vmlinuz"):
        return BootStage.KERNEL
    return BootStage.INITRD if name.startswith("initramfs") else None


def _missing_file(route: str, message: str) -> web.HTTPNotFound:
    _served.labels(route, "missing").inc()
    return web.HTTPNotFound(text=message + "\n")
