"""From power-off to an installed operating system that reports, by a plain Workflow: real firmware, packets and disk.

`test_capt_install` does it with UEFI for a Machine of a cluster, as long as nobody asks for the long tests.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.tinkerbell import HARDWARE
from ironbell.demo.run import NODE
from ironbell.lab.files import read_state
from support.servers.clusterinstallation import cluster_installation
from support.servers.installation import Artefacts, Installation, installation, kill
from support.site.components import OnCluster
from support.site.up import BOOT, CORE, WORKFLOWS

pytestmark = [pytest.mark.root, pytest.mark.qemu]

WORKFLOW = f"install-{NODE}"
WRITE = "write the image"
BOOT_S, INSTALL_S, FINISH_S = 420, 420, 420


async def check_installed(seen: Installation) -> None:
    assert seen.state(WORKFLOW) == "SUCCESS"
    assert {"DHCPLeased", "BootScriptServed", "KernelServed", "InitrdServed", "MetadataServed"} <= seen.reasons()
    partitions = subprocess.run(["sfdisk", "-d", str(seen.disk)], capture_output=True, text=True, check=True).stdout
    assert partitions.count("start=") == 3
    await seen.until(lambda: "login:" in seen.console, within_s=FINISH_S, what="login prompt on the console")


@pytest.mark.soak
async def test_uefi_machine_is_installed_though_every_process_is_killed(tmp_path: Path, artefacts: Artefacts) -> None:
    """All die while the image is written, the boot services once more at boot: the disk is right all the same."""
    async with installation(tmp_path, artefacts, firmware="uefi") as seen:
        await seen.apply(*seen.objects(), *seen.install())
        await seen.until(lambda: "BootScriptServed" in seen.reasons(), within_s=BOOT_S, what="boot script")
        kill(BOOT, tmp_path)
        await seen.until(lambda: seen.action_state(WORKFLOW, WRITE) == "RUNNING", within_s=INSTALL_S, what="writing")
        kill(BOOT, tmp_path)
        kill(WORKFLOWS, tmp_path)
        kill(CORE, tmp_path)
        await seen.until(lambda: seen.action_state(WORKFLOW, WRITE) == "SUCCESS", within_s=INSTALL_S, what="image")
        await seen.until(lambda: "InstalledSystemUp" in seen.reasons(), within_s=FINISH_S, what="cloud-init's report")
        await seen.until(lambda: seen.state(WORKFLOW) == "SUCCESS", within_s=60, what="end of the workflow")
        await check_installed(seen)
        hardware = await seen.client.get(HARDWARE, "default", NODE)
        assert hardware.spec.interfaces[0].netboot is not None
        assert not hardware.spec.interfaces[0].netboot.allow_pxe
        assert "ironbell.dev/installed-system-up" in hardware.metadata.annotations


async def install_and_check(seen: Installation) -> None:
    await seen.apply(*seen.objects(), *seen.install())
    await seen.until(
        lambda: "InstalledSystemUp" in seen.reasons(), within_s=BOOT_S + INSTALL_S + FINISH_S, what="installed"
    )
    await seen.until(lambda: seen.state(WORKFLOW) == "SUCCESS", within_s=60, what="end of the workflow")
    await check_installed(seen)


async def test_bios_machine_is_installed_on_a_real_api_server(
    on_cluster: OnCluster, tmp_path: Path, artefacts: Artefacts
) -> None:
    """Every component is a process with the token of its own ServiceAccount; the audit log is looked at afterwards."""
    async with cluster_installation(on_cluster, tmp_path, artefacts, firmware="bios") as seen:
        await install_and_check(seen)


@pytest.mark.soak
async def test_uefi_machine_is_installed_on_a_real_api_server_though_leaders_die_every_20_s(
    on_cluster: OnCluster, tmp_path: Path, artefacts: Artefacts
) -> None:
    async with cluster_installation(on_cluster, tmp_path, artefacts, firmware="uefi", replicas=2) as seen:
        await install_and_check(seen)
        assert read_state(tmp_path).machine(NODE).starts == 2  # switched on once, and the last action


@pytest.mark.soak
async def test_bios_machine_is_installed(tmp_path: Path, artefacts: Artefacts) -> None:
    async with installation(tmp_path, artefacts, firmware="bios") as seen:
        await install_and_check(seen)


@pytest.mark.soak
async def test_power_cycle_in_the_middle_fails_the_workflow_with_the_reason(
    tmp_path: Path, artefacts: Artefacts
) -> None:
    async with installation(tmp_path, artefacts, firmware="uefi") as seen:
        await seen.apply(*seen.objects(), *seen.install())
        await seen.until(lambda: seen.action_state(WORKFLOW, WRITE) == "RUNNING", within_s=BOOT_S, what="writing")
        await seen.apply(power_cycle_into_network())
        await seen.until(lambda: seen.state(WORKFLOW) == "FAILED", within_s=BOOT_S, what="failure")
        await seen.until(lambda: "reboot" in seen.message(WORKFLOW), within_s=30, what="the reason")


@pytest.mark.soak
async def test_power_cycle_in_the_middle_begins_again_where_the_workflow_says_so(
    tmp_path: Path, artefacts: Artefacts
) -> None:
    async with installation(tmp_path, artefacts, firmware="uefi") as seen:
        template, workflow = seen.install()
        workflow["metadata"]["annotations"] = {"ironbell.dev/on-reboot": "restart"}
        await seen.apply(*seen.objects(), template, workflow)
        await seen.until(lambda: seen.action_state(WORKFLOW, WRITE) == "RUNNING", within_s=BOOT_S, what="writing")
        await seen.apply(power_cycle_into_network())
        await seen.until(
            lambda: "InstalledSystemUp" in seen.reasons(), within_s=BOOT_S + INSTALL_S + FINISH_S, what="installed"
        )
        await check_installed(seen)


def power_cycle_into_network() -> dict[str, Any]:
    """A Job that interrupts the machine and has it boot over the network again."""
    return {
        "apiVersion": "bmc.tinkerbell.org/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "interrupt", "namespace": "default"},
        "spec": {
            "machineRef": {"name": NODE, "namespace": "default"},
            "tasks": [
                {"oneTimeBootDeviceAction": {"device": ["pxe"], "efiBoot": True}},
                {"powerAction": "cycle"},
            ],
        },
    }
