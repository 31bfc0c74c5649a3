"""A Machine of a cluster on a real server: installed from power-off by the default template, and given back wiped."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ironbell.demo.disks import holds, is_blank
from ironbell.demo.run import NODE
from ironbell.lab.state import read_state
from support.captinstallation import MACHINE, CaptMachine, capt_machine, documents
from support.installation import Artefacts, Installation, installation, kill
from support.site import CORE, WIRE

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


async def test_machine_of_a_cluster_is_installed_and_given_back_wiped_though_processes_are_killed(
    tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path
) -> None:
    """core and wire die while the image is written, wire once more at boot, core while the disk is wiped."""
    async with (
        installation(tmp_path, artefacts, firmware="uefi", options=("--identity", "strict")) as seen,
        capt_machine(seen, kubectl_binary, tmp_path) as machine,
    ):
        await machine.apply(*seen.objects())
        await machine.apply(*documents(f"{seen.base_url}/images/{seen.image.name}", USER_DATA))
        await seen.until(lambda: "BootScriptServed" in seen.reasons(), within_s=BOOT_S, what="boot script")
        kill(WIRE, tmp_path)
        await seen.until(lambda: seen.action_state(MACHINE, STREAM) == "RUNNING", within_s=INSTALL_S, what="writing")
        await check_told_as_it_goes(machine)
        kill(WIRE, tmp_path)
        kill(CORE, tmp_path)
        await machine.until(lambda: machine.is_ready, within_s=INSTALL_S + FINISH_S, what="TinkerbellMachine ready")
        assert any(text.endswith(" %") for text in machine.said), "how far the image is"
        await check_installed(seen, machine)
        await machine.kubectl.ok("delete", "machine.cluster.x-k8s.io", MACHINE, "--wait=false")
        await machine.until(lambda: seen.state(f"{MACHINE}-wipe") == "RUNNING", within_s=WIPE_S, what="wiping")
        kill(CORE, tmp_path)
        await machine.until(lambda: machine.is_gone, within_s=WIPE_S, what="the machine's end")
        await check_given_back(seen, machine)


async def test_machine_made_of_namespaces_is_installed_and_given_back_wiped(
    tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path
) -> None:
    """The same agent, image, systemd and cloud-init, without emulation; only the firmware is a stand-in."""
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
        assert not Path("/run/netns", f"{Path(seen.site.lab.network_namespace).name}-0").exists(), "its network"


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
