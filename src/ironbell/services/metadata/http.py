"""The metadata service over HTTP: each machine reads its own data, by its source address, and no other machine's.

If a machine is identified by its token (`contract.servers.identity`), the path begins with the token that was written
to its disk when it was installed: a client that only has its address gets the same response as any other client.

If the site allows it, the path may begin with `/tootles/instanceID/ID`, for machines behind NAT; never for a machine
that is identified by its token, because such a path has none.

Directories need no lookup. Leaves return 404 for an unknown address, with a message and no data, and 409 if two
Hardware have it. `provisioner.user_data` has the rules for serving documents. Every read of user data is reported, so
that a boot can be followed to its last step.

Source: tinkerbell/tinkerbell: tootles (routes and status codes).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
import structlog
from aiohttp import web
from prometheus_client import Counter

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import Clock, SystemClock
from ironbell.base.rejections import Rejections
from ironbell.codec.hostnetwork import BONDS, HostNetworkError
from ironbell.contract.servers import boot_token
from ironbell.contract.servers.boot_progress import BootEvent, BootObserver, BootStage, unobserved
from ironbell.contract.servers.boot_token import Identity
from ironbell.contract.servers.directory import Ambiguous, HardwareDirectory, Match
from ironbell.contract.servers.identity import metadata_needs_token
from ironbell.provisioner.user_data import FindWorkflow, Later, Withhold, kind_of, service_of
from ironbell.services.metadata import ec2, nocloud
from ironbell.services.metadata.reports import MAX_BODY_BYTES, ReportError, parse_report

_log = structlog.get_logger()
_served = Counter("ironbell_metadata_requests_total", "Metadata requests.", ["frontend", "result"])

BODY_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class MetadataHttp:
    """The handlers."""

    directory: HardwareDirectory
    find_workflow: FindWorkflow
    """Finds the Workflow that shows whether an installation is complete."""
    observer: BootObserver = unobserved
    identity: Identity = Identity.COMPAT
    clock: Clock = field(default_factory=SystemClock)
    rejections: Rejections = field(default_factory=Rejections)
    by_instance_id: bool = False
    """Whether the instance id in the path also identifies a machine, as behind NAT; then any client that knows the id
    reads its user data."""

    def routes(self) -> list[web.RouteDef]:
        """Routes to mount at the root of the machine-facing HTTP port; each also below a token."""
        return [
            *(route for base in ("", "/t/{token}") for route in self._below(base)),
            *self._ec2("/tootles/instanceID/{instance}"),
        ]

    def _below(self, base: str) -> list[web.RouteDef]:
        return [
            *self._ec2(base),
            web.get(f"{base}/metadata", self.storage),
            web.get(f"{base}/nocloud/{{name}}", self.nocloud),
            web.post(f"{base}/reports/cloud-init", self.report),
        ]

    def _ec2(self, base: str) -> list[web.RouteDef]:
        root = f"{base}/{ec2.API_VERSION}"
        return [web.get(root, self.ec2), web.get(f"{root}/{{path:.*}}", self.ec2)]

    async def ec2(self, request: web.Request) -> web.Response:
        """`/2009-04-04/...`, also below `/tootles/instanceID/ID`."""
        if "instance" in request.match_info and not self.by_instance_id:
            _served.labels("ec2", "missing").inc()
            raise web.HTTPNotFound(
                text="Metadata by instance id is disabled: start the server with --metadata-by-instance-id.\n"
            )
        path = request.match_info.get("path", "")
        names = ec2.listing(path)
        if names is not None:
            return web.Response(text=names)
        hardware = self._hardware(request, "ec2")
        text = ec2.value(hardware, path)
        if text is None:
            _served.labels("ec2", "missing").inc()
            raise web.HTTPNotFound(text=f"no metadata at {path}\n")
        name = path.strip("/")
        if reason := self._withheld_reason(hardware, name, "ec2"):
            raise web.HTTPNotFound(text=f"{reason}\n")
        self._served(hardware, "ec2", name == "user-data")
        return web.Response(text=text)

    async def nocloud(self, request: web.Request) -> web.Response:
        """`/nocloud/{meta-data,user-data,vendor-data,network-config}`."""
        name = request.match_info["name"]
        if name not in nocloud.FILES:
            raise web.HTTPNotFound(text=f"no NoCloud file {name}; there are {', '.join(nocloud.FILES)}\n")
        hardware = self._hardware(request, "nocloud")
        try:
            # Without user data there is no seed for cloud-init: a withheld document is served empty.
            text = "" if self._withheld_reason(hardware, name, "nocloud") else nocloud.document(hardware, name)
        except HostNetworkError as error:
            raise self._no_network(hardware, error) from error
        if not text and name == "network-config":
            raise web.HTTPNotFound(text="The Hardware has no static address: set spec.interfaces[].dhcp.ip.\n")
        self._served(hardware, "nocloud", name == "user-data")
        return web.Response(text=text)

    def _no_network(self, hardware: Hardware, error: HostNetworkError) -> web.HTTPNotFound:
        """Record why there is no network configuration. The system uses DHCP, which may be enough to log in."""
        _served.labels("nocloud", "invalid").inc()
        self.rejections.log("/".join(hardware.key), "network-config not served", why=str(error))
        self._observe(hardware, BootStage.PROBLEM, f"network-config is not served, so the system uses DHCP: {error}")
        return web.HTTPNotFound(text=f"{error} Correct spec.interfaces or the annotation {BONDS} of the Hardware.\n")

    async def storage(self, request: web.Request) -> web.Response:
        """`/metadata`, for the action `rootio`."""
        hardware = self._hardware(request, "storage")
        if reason := self._withheld_reason(hardware, "storage", "storage"):
            raise web.HTTPNotFound(text=f"{reason}\n")
        _served.labels("storage", "ok").inc()
        return web.Response(body=msgspec.json.encode(ec2.storage_document(hardware)), content_type="application/json")

    async def report(self, request: web.Request) -> web.Response:
        """`POST /reports/cloud-init`: the installed system reports its progress."""
        hardware = self._hardware(request, "report")
        try:
            report = parse_report(await _body(request))
        except ReportError as error:
            _served.labels("report", "invalid").inc()
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        _served.labels("report", "ok").inc()
        if report.ok is False:
            stage = BootStage.INSTALLED_WITH_ERRORS if report.is_final else BootStage.PROBLEM
            message = f"cloud-init failed in {report.stage}: {report.message or 'no reason reported'}"
            failed = report.stage if report.fails_bootstrap else ""
            self.observer(BootEvent(stage, *hardware.key, message, failed, report.output))
        elif report.is_final:
            self._observe(hardware, BootStage.INSTALLED, f"cloud-init finished: {report.message}")
        else:
            _log.info("cloud-init", hardware="/".join(hardware.key), stage=report.stage, ok=report.ok)
        return web.Response(text="ok\n")

    def _hardware(self, request: web.Request, frontend: str) -> Hardware:
        address = request.remote or ""
        instance = request.match_info.get("instance", "")
        lookup = self.directory.by_instance_id(instance) if instance else self.directory.by_ip(address)
        if isinstance(lookup, Match) and self._is_identified(lookup.hardware, request, frontend):
            return lookup.hardware
        identity = f'instance id "{instance}"' if instance else f"address {address}"
        if isinstance(lookup, Ambiguous):
            _served.labels(frontend, "ambiguous").inc()
            self.rejections.log(address, "metadata not served", why=lookup.message)
            raise web.HTTPConflict(text=f"several Hardware have the {identity}; no metadata is served\n")
        if lookup is None:
            _served.labels(frontend, "unknown").inc()
            raise web.HTTPNotFound(text=f"no Hardware has the {identity}\n")
        _served.labels(frontend, "stranger").inc()
        reason = f"Hardware {lookup.hardware.metadata.name} is identified by its token, and the request has another one"
        self.rejections.log(address, "metadata not served", why=reason)
        raise web.HTTPNotFound(text="metadata is only served with the token of this machine's installation\n")

    def _is_identified(self, hardware: Hardware, request: web.Request, frontend: str) -> bool:
        """Return whether the client is the system that was installed on this Hardware. The storage layout, which has no
        secrets, needs no token, because the in-memory OS has none. The placeholder means that the agent had none."""
        token = request.match_info.get("token", "").replace(boot_token.PLACEHOLDER, "")
        if not token and (frontend == "storage" or not metadata_needs_token(hardware, self.identity)):
            return True
        return boot_token.admits_metadata(hardware, token, self.clock.now())

    def _withheld_reason(self, hardware: Hardware, name: str, frontend: str) -> str:
        """The reason why a document is not served; empty if it is.

        Raises:
            HTTPServiceUnavailable: it is not served yet.
        """
        match service_of(hardware, kind_of(name), self.find_workflow):
            case Withhold(reason):
                _served.labels(frontend, "withdrawn").inc()
                return reason
            case Later(reason):
                _served.labels(frontend, "early").inc()
                self.rejections.log("/".join(hardware.key), f"{name} not served", why=reason)
                raise web.HTTPServiceUnavailable(text=f"{reason}\n", headers={"Retry-After": "5"})
            case _:
                return ""

    def _served(self, hardware: Hardware, frontend: str, user_data: bool) -> None:
        _served.labels(frontend, "ok").inc()
        if user_data:
            self._observe(hardware, BootStage.METADATA, f"user data read ({frontend})")

    def _observe(self, hardware: Hardware, stage: BootStage, message: str) -> None:
        self.observer(BootEvent(stage, *hardware.key, message))


async def _body(request: web.Request) -> bytes:
    """Read the whole body of a report."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for piece in request.content.iter_any():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise ReportError(f"a report has at most {MAX_BODY_BYTES} bytes")
    except TimeoutError as error:
        _served.labels("report", "invalid").inc()
        raise web.HTTPRequestTimeout(text=f"no report was received within {BODY_TIMEOUT_S:g} s\n") from error
    return bytes(body)
