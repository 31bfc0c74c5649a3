"""A machine is installed on a real API server by components in processes of their own, while leaders are killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.lab.faults import IMAGE_MIB, OURS, Image, make_image, make_osie
from support.network.forward import forwarded
from support.network.machine import NetMachine, net_machine, template, workflow
from support.network.namespaces import Lan
from support.network.redfish import Service
from support.network.redfish import service as service  # noqa: PLC0414 - a fixture
from support.site.components import FAST_LEASE, OnCluster, Process
from support.site.up import Seen, seen
from support.waiting import eventually

pytestmark = pytest.mark.root

NAME = "replicated"


@asynccontextmanager
async def network() -> AsyncIterator[Lan]:
    made = Lan(f"{OURS}/24")
    try:
        yield made
    finally:
        await asyncio.to_thread(made.close)


def bmc(service: Service, machine: NetMachine) -> list[dict[str, Any]]:
    """The machine's Hardware, with its BMC and the Secret."""
    connection = {
        "host": "127.0.0.1",
        "port": 623,
        "insecureTLS": False,
        "authSecretRef": {"name": "bmc", "namespace": "default"},
        "providerOptions": {"redfish": {"port": service.port}},
    }
    hardware = machine.hardware()
    reference = {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": machine.name}
    hardware["spec"]["bmcRef"] = reference
    secret = {"username": "admin", "password": service.password, "ca.crt": service.authority}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": named("bmc"), "stringData": secret},
        {
            "apiVersion": "bmc.tinkerbell.org/v1alpha1",
            "kind": "Machine",
            "metadata": named(machine.name),
            "spec": {"connection": connection},
        },
        hardware,
    ]


def named(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default"}


def leader(replicas: list[Process]) -> Process:
    """Who holds the Lease."""
    return eventually(lambda: next((process for process in replicas if process.is_running and process.leads), None))


async def test_leaders_die_in_the_middle_and_the_machine_is_switched_on_once(
    on_cluster: OnCluster, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "images").mkdir()
    image = await asyncio.to_thread(make_image, tmp_path / "images", size_mib=IMAGE_MIB)
    osie = await asyncio.to_thread(make_osie, tmp_path)
    async with AsyncExitStack() as stack:
        lan = await stack.enter_async_context(network())
        port = urlsplit(on_cluster.api.server).port or 0
        stack.enter_context(forwarded(port, lan.site))
        machine = stack.enter_context(net_machine(lan, tmp_path, name="m1", number=10, disk_mib=IMAGE_MIB + 32))
        served = ("--osie-dir", str(osie), "--artefacts", f"images={tmp_path / 'images'}")
        wire = ("--interface", "br0", "--force", "--data-dir", str(tmp_path / "wire"), *served)
        starting = [asyncio.to_thread(on_cluster.run, "wire", *wire, namespace=lan.site)]
        words = ["tink-controller", "rufio"] * 2
        starting += [asyncio.to_thread(on_cluster.run, word, *FAST_LEASE) for word in words]
        _wire, tink, rufio, tink_too, rufio_too = await asyncio.gather(*starting)
        watching = await stack.enter_async_context(seen(on_cluster))  # type: ignore[arg-type]
        await install(watching, service, machine, image, tinks=[tink, tink_too], rufios=[rufio, rufio_too])


def writing(watching: Seen) -> bool:
    return watching.action_state(NAME, "write the image") == "RUNNING"


async def install(
    watching: Seen,
    service: Service,
    machine: NetMachine,
    image: Image,
    *,
    tinks: list[Process],
    rufios: list[Process],
) -> None:
    await watching.apply(
        *bmc(service, machine),
        template(NAME, image.write(machine.disk)),
    )
    flow = workflow(NAME, machine)
    flow["spec"]["bootOptions"] = {"toggleAllowNetboot": True, "bootMode": "netboot"}
    await watching.apply(flow)
    await watching.until(lambda: service.resets, within_s=30, what="the machine is switched on")
    (await asyncio.to_thread(leader, rufios)).kill()
    await watching.until(lambda: watching.state(NAME) == "PENDING", within_s=30, what="the job is done")
    boot = await asyncio.to_thread(machine.netboot)
    assert not boot.from_disk
    assert boot.arguments["grpc_authority"] == f"{OURS}:42113"
    machine.start_agent()
    await watching.until(
        lambda: watching.action_state(NAME, "write the image") == "RUNNING", within_s=30, what="writing"
    )
    (await asyncio.to_thread(leader, tinks)).kill()
    await watching.until(lambda: watching.state(NAME) in {"SUCCESS", "FAILED"}, within_s=60, what="end of the workflow")
    assert watching.state(NAME) == "SUCCESS", watching.outcome(NAME)
    assert image.is_on(machine.disk)
    await watching.until(lambda: not watching.allows_pxe(machine.name), within_s=10, what="netboot taken back")
    assert service.resets == ["On"]
    assert "write the image | " in await asyncio.to_thread(watching.site.logs, NAME)
    assert {"DHCPLeased", "BootScriptServed", "KernelServed", "InitrdServed"} <= watching.reasons("Hardware", "m1")
