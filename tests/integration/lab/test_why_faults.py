"""Ten faults in one simulated site: the first line of `ironbell why` names the cause and the remedy of each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ironbell.agent.actions.context import ActionError
from ironbell.agent.actions.streams.checksum import Checksum
from ironbell.api.bmc import JOB, MACHINE
from ironbell.api.client import PatchType
from ironbell.api.cluster import CLUSTER
from ironbell.api.core import SECRET
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.cli.main import cli
from ironbell.cli.session import connected
from ironbell.operations.discovered import Discovered
from support.fleet.clusters import cluster
from support.ports import free_ports
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import eventually, until

SERVERS = 10
PORT = 16443
WITHIN_S = 60.0
FULL = "the image has 4.3 GB, /dev/nvme0n1 only 1.0 GB"


@dataclass(frozen=True)
class Fault:
    """What is asked about, and what its first line must have: cause, then remedy."""

    target: str
    cause: str
    remedy: str


FAULTS = {
    "wrong BMC password": Fault("hardware/sim-0001", "user name or password", "Secret default/sim-0001-bmc"),
    "two Hardware with one MAC": Fault("hardware/sim-0002", "claimed by several Hardware", "delete that Hardware"),
    "held server": Fault("hardware/sim-0003", "is held", "Remove annotation ironbell.dev/hold"),
    "wrong checksum": Fault("workflow/checksum", "checksum", "Correct the action"),
    "full disk": Fault("workflow/full", FULL, "Correct the action"),
    "template error": Fault("workflow/broken", "nosuchkey", "Correct"),
    "silent agent": Fault("workflow/silent", "has not requested the first action", "Check the server's power"),
    "no server with enough memory": Fault("cluster/large", "memory", "Add Hardware"),
    "address in use": Fault("cluster/taken", "belongs to Cluster default/off", "Set another spec.controlPlaneEndpoint"),
    "API unreachable": Fault("cluster/off", "powered off", "Power it on"),
}

REPORTED: dict[str, tuple[Kind[Any], str, str]] = {
    "wrong BMC password": (MACHINE, "sim-0001", "Contactable"),
    "wrong checksum": (WORKFLOW, "checksum", "Succeeded"),
    "full disk": (WORKFLOW, "full", "Succeeded"),
    "template error": (WORKFLOW, "broken", "Succeeded"),
    "silent agent": (WORKFLOW, "silent", "Succeeded"),
    "no server with enough memory": (CLUSTER, "large", "Available"),
    "address in use": (CLUSTER, "taken", "Available"),
    "API unreachable": (CLUSTER, "off", "Available"),
}
"""The topmost object that is affected, and its condition that has the cause; Hardware has no conditions."""


def _checksum_message() -> str:
    """What the real action reports."""
    try:
        Checksum("IMG_CHECKSUM", "sha256:" + "0" * 64).verify("the image")
    except ActionError as error:
        return str(error)
    raise AssertionError("a wrong check sum was accepted")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder, ports = tmp_path_factory.mktemp("why"), free_ports(2)
    faults = folder / "faults.yaml"
    reports = {"sim-0004": _checksum_message(), "sim-0005": FULL}
    servers = {name: {"action-fails": 1, "action-message": said} for name, said in reports.items()}
    faults.write_text(json.dumps({"servers": servers}))
    options = ("--simulate", str(SERVERS), "--simulate-faults", str(faults))
    served = ("--http-port", str(ports[0]), "--grpc-port", str(ports[1]), "--workflow-http-port", "0")
    site = EmbeddedCluster(folder, (*options, *served))
    try:
        site.start()
        yield site
    finally:
        site.stop()


def condition(kubeconfig: Path, kind: Kind[Any], name: str, type_: str) -> str:
    """The message of a condition, unless that is good."""

    async def read() -> dict[str, Any]:
        async with connected(kubeconfig) as api:
            found: dict[str, Any] = json.loads(await api.get(kind.collection, "default", name))
            return found

    conditions = asyncio.run(read()).get("status", {}).get("conditions", [])
    return "".join(one.get("message", "") for one in conditions if one["type"] == type_ and one["status"] != "True")


def first_line(kubeconfig: Path, target: str) -> str:
    done = CliRunner().invoke(cli, ["why", target, "--kubeconfig", str(kubeconfig)])
    return done.stdout.partition("\n")[0]


def test_the_first_line_names_the_cause_and_the_remedy(site: EmbeddedCluster) -> None:
    asyncio.run(_plant(site.kubeconfig))
    table: dict[str, str] = {}

    def all_named() -> bool:
        for name, fault in FAULTS.items():
            line = table.get(name, "")
            if not (fault.cause in line and fault.remedy in line):
                table[name] = first_line(site.kubeconfig, fault.target)
        return all(fault.cause in table[name] and fault.remedy in table[name] for name, fault in FAULTS.items())

    try:
        eventually(all_named, within_s=WITHIN_S)
    finally:
        print("\n".join(f"{name}: {line}" for name, line in table.items()))


def test_the_conditions_of_the_topmost_object_name_the_cause_once(site: EmbeddedCluster) -> None:
    table: dict[str, str] = {}

    def all_named() -> bool:
        for name, reported in REPORTED.items():
            if table.get(name, "").count(FAULTS[name].cause) != 1:
                table[name] = condition(site.kubeconfig, *reported)
        return all(text.count(FAULTS[name].cause) == 1 for name, text in table.items())

    try:
        eventually(all_named, within_s=WITHIN_S)
    finally:
        print("\n".join(f"{name}: {text}" for name, text in table.items()))


async def _plant(kubeconfig: Path) -> None:
    async with connected(kubeconfig) as api:
        discovered = Discovered(api)

        async def apply(*documents: dict[str, Any]) -> None:
            for document in documents:
                group, _, version = document["apiVersion"].rpartition("/")
                where = await discovered.collection(group, document["kind"], version)
                body = json.dumps({**document, "metadata": {"namespace": "default", **document["metadata"]}}).encode()
                await api.create(where, "default", body)

        async def change(kind: Any, name: str, body: dict[str, Any]) -> None:
            await api.patch(kind.collection, "default", name, json.dumps(body).encode(), patch_type=PatchType.MERGE)

        async def are_recorded() -> bool:
            return len((await api.list(HARDWARE.collection, "default")).items) >= SERVERS

        await until(are_recorded, within_s=WITHIN_S)
        for name in ("sim-0001", "sim-0003", "sim-0004", "sim-0005", "sim-0006"):
            await change(HARDWARE, name, {"metadata": {"annotations": {"ironbell.dev/hold": "kept for the test"}}})
        await apply(*_cluster("off", "127.99.73.1"))
        await apply(*_cluster("taken", "127.99.73.1"))
        large = _cluster("large", "127.99.73.3")
        spec = next(one for one in large if one["kind"] == "TinkerbellMachineTemplate")["spec"]["template"]["spec"]
        spec["hardwareRequirements"] = {"memory": "64Ti"}
        await apply(*large)
        await change(SECRET, "sim-0001-bmc", {"stringData": {"password": "wrong"}})
        await apply(*_install("broken", "sim-0006", data="{{.nosuchkey}}"))
        await apply(*_install("silent", "sim-0006", annotations={"ironbell.dev/agent-timeout": "1"}, boot={}))
        twin = json.loads(await api.get(HARDWARE.collection, "default", "sim-0002"))
        await apply({**_named(HARDWARE, "twin"), "spec": {"interfaces": twin["spec"]["interfaces"]}})
        await _switch_off(api, "off", apply)
        # not before its cluster has a server: it would claim one of these
        for name in ("sim-0004", "sim-0005"):
            await change(HARDWARE, name, {"metadata": {"annotations": {"ironbell.dev/hold": None}}})
        await apply(*_install("checksum", "sim-0004"), *_install("full", "sim-0005"))


async def _switch_off(api: Any, name: str, apply: Any) -> None:
    """Switch off the server of a cluster's control plane once it runs."""

    async def server() -> str:
        for body in (await api.list(HARDWARE.collection, "default")).items:
            metadata = json.loads(body)["metadata"]
            owner = metadata.get("labels", {}).get("v1alpha1.tinkerbell.org/ownerName", "")
            if owner.startswith(f"{name}-") and await _is_reached(api, name):
                return metadata["name"]
        return ""

    reference = {"name": await until(server, within_s=WITHIN_S, every_s=0.5), "namespace": "default"}
    await apply({**_named(JOB, "off"), "spec": {"machineRef": reference, "tasks": [{"powerAction": "off"}]}})


def _cluster(name: str, address: str) -> list[dict[str, Any]]:
    """A cluster whose API is at a port that nothing else on this machine has."""
    documents = cluster(name, address)
    documents[0]["spec"]["controlPlaneEndpoint"]["port"] = PORT
    return documents


async def _is_reached(api: Any, name: str) -> bool:
    """Whether the cluster's API has answered."""
    found = json.loads(await api.get(CLUSTER.collection, "default", name))
    conditions = {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", [])}
    return conditions.get("RemoteConnectionProbe") == conditions.get("ControlPlaneInitialized") == "True"


def _named(kind: Any, name: str) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}


def _install(
    name: str,
    server: str,
    *,
    data: str = "",
    annotations: dict[str, str] | None = None,
    boot: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """A Template with one action, and its Workflow on a server."""
    image = {"IMG_URL": "http://192.0.2.1/x", "DEST_DISK": "/dev/nvme0n1"}
    action = {"name": "write", "image": "quay.io/tinkerbell/actions/image2disk:latest", "timeout": 60}
    task = {"name": "install", "worker": "{{.device_1}}", "actions": [{**action, "environment": image}]}
    text = data or json.dumps({"version": "0.1", "name": name, "global_timeout": 600, "tasks": [task]})
    number = int(server.removeprefix("sim-"))
    options = {"toggleAllowNetboot": True, "bootMode": "netboot"} if boot is None else boot
    mac = f"02:1b:00:00:00:{number:02x}"
    spec = {"templateRef": name, "hardwareRef": server, "hardwareMap": {"device_1": mac}, "bootOptions": options}
    workflow = _named(WORKFLOW, name) | {"spec": spec}
    workflow["metadata"]["annotations"] = annotations or {}
    return [_named(TEMPLATE, name) | {"spec": {"data": text}}, workflow]
