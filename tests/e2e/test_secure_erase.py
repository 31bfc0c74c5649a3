"""A disk that can erase itself does so: NVMe on a QEMU machine, by the in-memory OS's own programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ironbell.api.tinkerbell import HARDWARE
from ironbell.demo.disks import is_blank
from ironbell.demo.run import NODE
from support.network.machine import action, template
from support.servers.installation import Artefacts, installation

pytestmark = [pytest.mark.root, pytest.mark.qemu, pytest.mark.soak]

BOOT_S = 420


async def test_nvme_disk_is_formatted_by_itself(tmp_path: Path, artefacts: Artefacts) -> None:
    async with installation(tmp_path, artefacts, firmware="bios", bus="nvme") as seen:
        with seen.disk.open("r+b") as file:
            os.pwrite(file.fileno(), b"somebody's data " * 65536, 1 << 30)
        objects = seen.objects()
        for document in objects:
            if document["kind"] == "Hardware":
                document["spec"]["disks"] = [{"device": "/dev/nvme0n1"}]
        wipe = action("erase", "wipe", timeout=300, DEST_DISK="/dev/nvme0n1", WIPE_METHOD="secure")
        flow = {
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": "erase", "namespace": "default"},
            "spec": {
                "templateRef": "erase",
                "hardwareRef": NODE,
                "hardwareMap": {"device_1": seen.site.lab.machine(NODE).mac},
                "bootOptions": {"toggleAllowNetboot": True, "bootMode": "netboot"},
            },
        }
        await seen.apply(*objects, template("erase", wipe), flow)
        await seen.until(lambda: seen.state("erase") in {"SUCCESS", "FAILED"}, within_s=BOOT_S, what="erase")
        workflow = seen.workflow("erase")
        assert workflow is not None
        (told,) = [done.message for task in workflow.status.tasks for done in task.actions]
        assert f"serial {seen.serials[0]}) by NVMe format" in told, told
        assert is_blank(seen.disk)
        attributes = (await seen.client.get(HARDWARE, "default", NODE)).metadata.annotations
        assert "nvme0n1" in json.dumps(attributes)
