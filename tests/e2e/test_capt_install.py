"""A Machine of a cluster on a real server: installed from power-off by the default template, and given back wiped."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ironbell.demo.disks import holds, is_blank
from ironbell.demo.run import NODE
from ironbell.lab.files import read_state
from support.servers.captinstallation import MACHINE, CaptMachine, capt_machine, documents
from support.servers.installation import Artefacts, Installation, installation, kill
from support.site.up import BOOT, CORE, WORKFLOWS

pytestmark = [pytest.mark.root, pytest.mark.qemu]

BOOT_S, INSTALL_S, FINISH_S, WIPE_S = 420, 420, 420, 420
MARKER = "9f3c1d60-written-by-the-installed-system"
USER_DATA = f"""\
#cloud-config
write_files:
- path: /var/lib/marker
  content: "{MARKER} PROVIDER_ID"
runcmd:
- sync
"""
STREAM = "stream image"
SECOND = "mill"
SECOND_MARKER = "4be07a52-written-for-the-next-owner"
SECOND_USER_DATA = USER_DATA.replace(MARKER, SECOND_MARKER)
POOLED = "192.168.77.200"
PROFILE: dict[str, Any] = {
    "model": "Namespace*", "cpuCores": 1, "memory": "256Mi", "disks": {"count": 1, "size": "4Gi"}
}  # fmt: skip
"""What the machine is, by the report of its agent."""
TOO_MUCH: tuple[tuple[dict[str, Any], str], ...] = (
    ({"cpuCores": 4096}, "cpuCores is less than 4096"),
    ({"memory": "64Ti"}, "memory is less than 64Ti"),
    ({"disks": {"count": 1, "size": "5Gi"}}, "disks: it has 0 of at least 5Gi, and 1 are required"),
)
"""What it is not, and what is said of it then."""
REFUSED: dict[str, Any] = {"within_s": 30, "what": "refusal"}


async def test_machine_of_a_cluster_is_installed_and_given_back_wiped_though_processes_are_killed(
    tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path
) -> None:
    """The boot services die at boot, the workflow service and core while the image is written, core at the wipe."""
    async with (
        installation(tmp_path, artefacts, firmware="uefi", options=("--identity", "strict")) as seen,
        capt_machine(seen, kubectl_binary, tmp_path) as machine,
    ):
        await machine.apply(*seen.objects())
        await machine.apply(*documents(f"{seen.base_url}/images/{seen.image.name}", USER_DATA))
        await seen.until(lambda: "BootScriptServed" in seen.reasons(), within_s=BOOT_S, what="boot script")
        kill(BOOT, tmp_path)
        await seen.until(lambda: seen.action_state(MACHINE, STREAM) == "RUNNING", within_s=INSTALL_S, what="writing")
        await check_told_as_it_goes(machine)
        kill(BOOT, tmp_path)
        kill(WORKFLOWS, tmp_path)
        kill(CORE, tmp_path)
        await machine.until(lambda: machine.is_ready, within_s=INSTALL_S + FINISH_S, what="TinkerbellMachine ready")
        assert any(text.endswith(" %") for text in machine.said), "how far the image is"
        await check_installed(seen, machine)
        await machine.kubectl.ok("delete", "machine.cluster.x-k8s.io", MACHINE, "--wait=false")
        await machine.until(lambda: seen.state(f"{MACHINE}-wipe") == "RUNNING", within_s=WIPE_S, what="wiping")
        kill(CORE, tmp_path)
        await machine.until(lambda: machine.is_gone, within_s=WIPE_S, what="the machine's end")
        await check_given_back(seen, machine)


async def test_a_server_is_given_back_wiped_and_chosen_for_another_cluster(
    tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path
) -> None:
    """The same agent, image, systemd and cloud-init, without emulation; only the firmware is a stand-in.

    What it was given back with serves the next cluster, whose machine is chosen by what the agent reported.
    """
    async with (
        installation(tmp_path, artefacts, firmware="uefi", kind="namespace") as seen,
        capt_machine(seen, kubectl_binary, tmp_path) as machine,
    ):
        await machine.apply(*seen.objects())
        await machine.apply(*documents(f"{seen.base_url}/images/{seen.image.name}", USER_DATA))
        await machine.until(lambda: machine.is_ready, within_s=INSTALL_S, what="TinkerbellMachine ready")
        assert seen.site.lab.machine(NODE).kind == "namespace"
        await check_told_as_it_goes(machine)
        await check_installed(seen, machine)
        await machine.kubectl.ok("delete", "machine.cluster.x-k8s.io", MACHINE, "--wait=false")
        await machine.until(lambda: machine.is_gone, within_s=WIPE_S, what="the machine's end")
        await check_given_back(seen, machine)
        assert not network_of(seen).exists(), "its network"
        await check_chosen(seen, machine)
        await check_second_life(seen, machine)


async def check_chosen(seen: Installation, machine: CaptMachine) -> None:
    """A server that is held and one whose BMC does not answer come first by name, and are not taken; nor is the one
    that is well, as long as it is too small by what its agent has reported."""
    await others(seen, machine)
    await lab_power(seen, "on")
    machine.said.clear()
    await machine.apply(
        *documents(
            f"{seen.base_url}/images/{seen.image.name}",
            SECOND_USER_DATA,
            name=SECOND,
            cluster={"controlPlaneEndpoint": {"host": "192.168.77.6", "port": 6443}},
            machine={"hardwareRequirements": {"model": "NUC12*"}},
        )
    )
    await machine.until(lambda: says(machine, "not 'NUC12*'", "it is held", "its BMC does not answer"), **REFUSED)
    for wanted, why in TOO_MUCH:
        await require(machine, PROFILE | wanted)
        await machine.until(lambda why=why: says(machine, "none of 3 Hardware fits", why), **REFUSED)  # type: ignore[misc]
    assert not (await machine.get("tinkerbellmachine", f"{SECOND}-1"))["spec"].get("hardwareName")
    await require(machine, PROFILE)


def says(machine: CaptMachine, *reasons: str) -> bool:
    return bool(machine.said) and all(reason in machine.said[-1] for reason in reasons)


async def others(seen: Installation, machine: CaptMachine) -> None:
    """Two more servers of the same kind, one held, one with a BMC that nobody answers for; both before ours by name.
    And ours gets its address from a pool from now on."""
    _, bmc, hardware = seen.objects()
    ours = (await machine.get("hardware", NODE))["metadata"]["annotations"]
    reported = {name: ours[name] for name in ("tinkerbell.org/agent-attributes",)}
    for name, number, more in (("a-held", 241, {"ironbell.dev/hold": "it is being repaired"}), ("b-silent", 242, {})):
        spec = json.loads(json.dumps(hardware["spec"]))
        mac = f"52:54:00:00:0b:{number:02x}"
        spec["interfaces"][0]["dhcp"] |= {"mac": mac, "hostname": name}
        spec["interfaces"][0]["dhcp"]["ip"]["address"] = f"192.168.77.{number}"
        spec["metadata"]["instance"] = {"id": mac, "hostname": name}
        if more:
            del spec["bmcRef"]
        else:
            spec["bmcRef"]["name"] = name
        meta = {"name": name, "namespace": "default", "annotations": reported | more}
        await machine.apply({**hardware, "metadata": meta, "spec": spec})
    options = {"preferredOrder": ["gofish"], "redfish": {"port": 9}}
    connection = {**bmc["spec"]["connection"], "providerOptions": options}
    meta = {"name": "b-silent", "namespace": "default"}
    await machine.apply({**bmc, "metadata": meta, "spec": {"connection": connection}})
    asked = ("machine.bmc.tinkerbell.org/b-silent", "--for=condition=Contactable=False", "--timeout=50s")
    await machine.kubectl.ok("wait", *asked)
    meta = {"name": "rack", "namespace": "default"}
    pool = {"addresses": [f"{POOLED}-192.168.77.210"], "prefix": 24, "gateway": seen.site.lab.gateway}
    kind = {"apiVersion": "ipam.cluster.x-k8s.io/v1alpha2", "kind": "InClusterIPPool"}
    await machine.apply({**kind, "metadata": meta, "spec": pool})
    paths = ("/spec/interfaces/0/dhcp/ip", "/spec/metadata/instance/ips")
    gone = json.dumps([{"op": "remove", "path": path} for path in paths])
    await machine.kubectl.ok("patch", "hardware", NODE, "--type=json", "-p", gone)
    await machine.kubectl.ok("annotate", "hardware", NODE, "ironbell.dev/address-pool=rack")
    given = f"--for=jsonpath={{.spec.interfaces[0].dhcp.ip.address}}={POOLED}"
    await machine.kubectl.ok("wait", "hardware", NODE, given, "--timeout=20s")


async def require(machine: CaptMachine, profile: dict[str, Any]) -> None:
    patch = json.dumps([{"op": "replace", "path": "/spec/hardwareRequirements", "value": profile}])
    await machine.kubectl.ok("patch", "tinkerbellmachine", f"{SECOND}-1", "--type=json", "-p", patch)


async def check_second_life(seen: Installation, machine: CaptMachine) -> None:
    """Another cluster has the server, with what is its own, an address among it; that too is given back."""
    await machine.until(lambda: machine.is_ready, within_s=INSTALL_S, what="the second machine ready")
    obj = await machine.get("tinkerbellmachine", f"{SECOND}-1")
    assert obj["spec"]["hardwareName"] == NODE
    assert obj["status"]["addresses"][0]["address"] == POOLED
    shown = subprocess.run(["ip", "-n", network_of(seen).name, "-br", "address"], capture_output=True, text=True)
    assert f" {POOLED}/24" in shown.stdout, shown
    # it was on: it is switched off, told to boot from the network, and switched on
    off_and_on = ["machine stopped off", "boot override Pxe", "machine powered on"]
    assert lab_told(seen)[-5:] == [*off_and_on, "machine stopped reboot", "machine powered on"]
    written = f"{SECOND_MARKER} {obj['spec']['providerID']}".encode()
    await seen.until(lambda: holds(seen.disk, written), within_s=FINISH_S, what="the second system's file")
    assert not holds(seen.disk, MARKER.encode()), "what the first owner's system wrote"
    await machine.kubectl.ok("annotate", "hardware", NODE, "ironbell.dev/address-pool-")
    await machine.kubectl.ok("delete", "machine.cluster.x-k8s.io", f"{SECOND}-1", "--wait=false")
    await machine.until(
        lambda: seen.state(f"{SECOND}-1-wipe") == "RUNNING" or machine.is_gone, within_s=WIPE_S, what="wiping"
    )
    claims = await machine.get("ipaddressclaims")
    assert machine.is_gone or claims["items"], "not while somebody has the server"
    await machine.until(lambda: machine.is_gone, within_s=WIPE_S, what="the second machine's end")
    await machine.kubectl.ok("wait", "ipaddresses,ipaddressclaims", "--all", "--for=delete", "--timeout=20s")
    hardware = await machine.get("hardware", NODE)
    assert "ip" not in hardware["spec"]["interfaces"][0]["dhcp"]
    certificate = json.loads(hardware["metadata"]["annotations"]["ironbell.dev/wiped"])
    assert (certificate["machine"], certificate["wiped"]) == (f"default/{SECOND}-1", True)
    assert [one["complete"] for one in certificate["results"]] == [True]
    history = json.loads(hardware["metadata"]["annotations"]["ironbell.dev/history"])
    done = [f"{SECOND}-1-wipe", f"{SECOND}-1", f"{MACHINE}-wipe", MACHINE]
    assert [(one["workflow"], one["state"]) for one in history] == [(name, "SUCCESS") for name in done]
    assert not holds(seen.disk, SECOND_MARKER.encode())
    assert is_blank(seen.disk)
    for name in ("a-held", "b-silent"):
        assert "ironbell.dev/claimed-by" not in (await machine.get("hardware", name))["metadata"]["annotations"]


async def lab_power(seen: Installation, what: str) -> None:
    """By hand, behind the back of everybody."""
    command = ["-m", "ironbell.cli.main", "lab", "power", "--data-dir", str(seen.site.data_dir), NODE, what]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0


def lab_told(seen: Installation) -> list[str]:
    """What the machine did, and what its BMC was told, in order."""
    found = []
    for line in seen.site.log.read_text(errors="replace").splitlines():
        if '"process":"lab"' in line and f'"machine":"{NODE}"' in line:
            entry = json.loads(line)
            found.append(" ".join([entry["event"], entry.get("target") or entry.get("reason") or ""]).strip())
    return found


def network_of(seen: Installation) -> Path:
    """The machine's network namespace, which is there while it is switched on."""
    return Path("/run/netns", f"{Path(seen.site.lab.network_namespace).name}-0")


async def check_told_as_it_goes(machine: CaptMachine) -> None:
    """Which action is at work, to whoever looks at the TinkerbellMachine or at the Machine.

    What was told was written down: a machine may be done with an action before anybody asks.
    """
    told = f"action 1 of 6: {STREAM}"
    await machine.until(
        lambda: any(text.startswith(told) for text in machine.said), within_s=INSTALL_S, what="the action told"
    )
    await machine.until(
        lambda: any("action " in text and " of 6: " in text for text in machine.passed_on),
        within_s=INSTALL_S,
        what="an action told of the Machine",
    )
    assert "MESSAGE" in await machine.kubectl.ok("get", "tinkerbellmachine", MACHINE)


async def check_installed(seen: Installation, machine: CaptMachine) -> None:
    assert "InstalledSystemUp" in seen.reasons()
    obj = await machine.get("tinkerbellmachine", MACHINE)
    assert obj["spec"]["providerID"] == f"tinkerbell://default/{NODE}"
    assert obj["status"]["instanceState"] == "Running"
    owner = await machine.get("machine.cluster.x-k8s.io", MACHINE)
    assert owner["spec"]["providerID"] == obj["spec"]["providerID"]
    assert owner["status"]["initialization"]["infrastructureProvisioned"]
    assert owner["status"]["addresses"][0]["address"] == seen.site.lab.machine(NODE).address
    told = [text for text in machine.said if text.startswith("action ")]
    assert any(text.startswith(f"action 1 of 6: {STREAM}") for text in told), machine.said
    hardware = await machine.get("hardware", NODE)
    assert hardware["metadata"]["annotations"]["ironbell.dev/claimed-by"].startswith(
        f"TinkerbellMachine default/{MACHINE}"
    )
    partitions = subprocess.run(["sfdisk", "-d", str(seen.disk)], capture_output=True, text=True, check=True).stdout
    assert partitions.count("start=") == 3
    written = f"{MARKER} {obj['spec']['providerID']}".encode()
    await seen.until(lambda: holds(seen.disk, written), within_s=FINISH_S, what="the installed system's file")


async def check_given_back(seen: Installation, machine: CaptMachine) -> None:
    hardware = await machine.get("hardware", NODE)
    annotations = hardware["metadata"]["annotations"]
    certificate = json.loads(annotations["ironbell.dev/wiped"])
    assert certificate["wiped"] is True, certificate
    assert certificate["machine"] == f"default/{MACHINE}"
    assert certificate["disks"] == ["/dev/vda"]
    if seen.site.lab.machine(NODE).kind == "qemu":
        assert f"serial {seen.serials[0]}) by discard" in certificate["message"]
    left = {"ironbell.dev/claimed-by", "ironbell.dev/hold", "v1alpha1.tinkerbell.org/provisioned"} & set(annotations)
    assert not left
    # what the inventory tells stays
    assert not [name for name in hardware["metadata"].get("labels", {}) if not name.startswith("ironbell.dev/")]
    assert not hardware["metadata"].get("finalizers")
    assert "userData" not in hardware["spec"]
    assert not hardware["spec"]["interfaces"][0]["netboot"]["allowPXE"]
    assert (await machine.get("workflows,templates"))["items"] == []
    assert read_state(seen.site.data_dir).machine(NODE).power == "Off"
    assert not holds(seen.disk, MARKER.encode()), "what the installed system wrote"
    assert is_blank(seen.disk)
    assert subprocess.run(["sfdisk", "-d", str(seen.disk)], capture_output=True).returncode != 0
    assert subprocess.run(["blkid", "-p", str(seen.disk)], capture_output=True).returncode == 2, "no signature"
