"""BMC controllers, real Redfish driver, virtual BMC behind TLS: what goes wrong is said, and passes by itself."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from ironbell.api.bmc.job import JOB, Job
from ironbell.api.bmc.machine import MACHINE, Machine
from ironbell.api.core import SECRET
from ironbell.api.crd.document import crd_document
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.app.registry import KINDS
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.rufio.connect import connect
from ironbell.controllers.rufio.controllers import controllers
from ironbell.kube.client import Client
from ironbell.kube.manager.manager import Manager
from ironbell.kube.testing import running
from ironbell.lab import redfish
from ironbell.lab.certificates import create_certificates
from ironbell.lab.files import LabFolder
from ironbell.lab.machine import BootOverride, PowerState
from ironbell.lab.redfish import Fault, VirtualBmc
from support.waiting import until


@dataclass
class StandIn:
    """A machine that only has a power state."""

    power: PowerState = PowerState.ON
    override: BootOverride = field(default_factory=BootOverride)
    resets: list[str] = field(default_factory=list)
    description: Any = field(
        default_factory=lambda: SimpleNamespace(name="m1", uuid="0" * 32, memory=1024, cpus=1, firmware="uefi")
    )


def _resets() -> dict[str, Any]:
    def reset(name: str, power: PowerState) -> Any:
        async def act(machine: StandIn) -> None:
            machine.resets.append(name)
            machine.power = power

        return act

    wanted = {"On": PowerState.ON, "ForceOff": PowerState.OFF, "ForceRestart": PowerState.ON}
    return {name: reset(name, power) for name, power in wanted.items()}


@dataclass
class Site:
    """What a test sees."""

    client: Client
    manager: Manager
    bmc: VirtualBmc
    machine: StandIn
    port: int
    authority: str

    async def add(self, *, insecure: bool = True, password: str = "right", authority: bool = False) -> None:  # noqa: S107
        data = {"username": "admin", "password": password, **({"ca.crt": self.authority} if authority else {})}
        await self.client.create(SECRET, {"metadata": _named("s1"), "stringData": data})
        connection = {
            "host": "127.0.0.1",
            "insecureTLS": insecure,
            "authSecretRef": {"name": "s1", "namespace": "default"},
            "providerOptions": {"redfish": {"port": self.port}},
        }
        await self.client.create(MACHINE, {"metadata": _named("bmc1"), "spec": {"connection": connection}})

    async def job(self, *actions: dict[str, Any]) -> None:
        spec = {"machineRef": {"name": "bmc1", "namespace": "default"}, "tasks": list(actions)}
        await self.client.create(JOB, {"metadata": _named("j1"), "spec": spec})

    def says(self, status: str, words: str = "") -> Callable[[], bool]:
        def look() -> bool:
            found: Machine | None = self.manager.informers.of(MACHINE).store.get(("default", "bmc1"))
            return found is not None and any(c.status == status and words in c.message for c in found.status.conditions)

        return look

    def ended(self, kind: str) -> Callable[[], bool]:
        def look() -> bool:
            found: Job | None = self.manager.informers.of(JOB).store.get(("default", "j1"))
            return found is not None and any(c.type == kind and c.status == "True" for c in found.status.conditions)

        return look


def _named(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default"}


@asynccontextmanager
async def _serving(bmc: VirtualBmc, folder: LabFolder) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder.certificate, folder.key)
    runner = web.AppRunner(bmc.application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setattr(redfish, "_RESETS", _resets())
    folder = LabFolder(tmp_path)
    create_certificates(folder)
    machine = StandIn()
    bmc = VirtualBmc("admin", "right", machine)  # type: ignore[arg-type]
    clock = SystemClock()
    definitions = [crd_document(kind) for kind in KINDS]
    async with (
        _serving(bmc, folder) as port,
        ApiServer.open(None, clock=clock, randomness=SystemRandomness(), definitions=definitions) as server,
    ):
        api = server.client(ADMIN)
        access = BmcAccess(api, connect)
        async with running(api, *controllers(access, clock, lambda _name: None)) as manager:
            yield Site(Client(api), manager, bmc, machine, port, folder.authority.read_text())
        await access.close()
        assert bmc.sessions == {}


async def test_a_boot_job_is_done_in_order(site: Site) -> None:
    await site.add()
    await site.job({"powerAction": "off"}, {"bootDevice": {"device": "pxe", "efiBoot": True}}, {"powerAction": "on"})
    await until(site.ended("Completed"))
    assert site.machine.resets == ["ForceOff", "On"]
    assert (site.machine.override.target.value, site.machine.override.enabled) == ("Pxe", "Once")
    await until(site.says("True"))


async def test_an_unreachable_bmc_is_said_and_seen_again_when_it_is_back(site: Site) -> None:
    site.bmc.faults.current = Fault.UNREACHABLE
    await site.add()
    await until(site.says("False", "BMCUnreachable"))
    site.bmc.faults.current = Fault.NONE
    await until(site.says("True"))


async def test_a_job_waits_for_a_bmc_that_is_busy(site: Site) -> None:
    site.bmc.faults.current = Fault.BUSY
    await site.add()
    await site.job({"powerAction": "cycle"})
    await until(site.says("False", "BMCUnreachable"))
    site.bmc.faults.current = Fault.NONE
    await until(site.ended("Completed"))
    assert site.machine.resets == ["ForceRestart"]


async def test_a_wrong_password_is_said_and_its_correction_is_enough(site: Site) -> None:
    await site.add(password="wrong")
    await until(site.says("False", "BMCAuthenticationFailed"))
    await site.client.merge_patch(SECRET, "default", "s1", body={"stringData": {"password": "right"}})
    await until(site.says("True"))


async def test_an_untrusted_certificate_is_said_with_its_remedies(site: Site) -> None:
    await site.add(insecure=False)
    await until(site.says("False", "BMCCertificateUntrusted"))
    await until(site.says("False", "insecureTLS"))
    await site.client.merge_patch(SECRET, "default", "s1", body={"stringData": {"ca.crt": site.authority}})
    await until(site.says("True"))


async def test_a_certificate_of_a_known_authority_is_accepted(site: Site) -> None:
    await site.add(insecure=False, authority=True)
    await until(site.says("True"))
