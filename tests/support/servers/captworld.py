"""Servers and machines for the provider's tests."""

from typing import Any

import msgspec

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine, TinkerbellMachineSpec
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.contract.servers.node_images import ImageSource

EVERY_VERSION = ImageSource(url="http://192.0.2.1:7080/images")
"""Images that a site with simulated servers has."""


def server(name: str, *, namespace: str = "default", **changes: Any) -> Hardware:
    """Hardware that can be installed; `labels`, `annotations` and whole parts of the spec may be given."""
    number = sum(name.encode()) % 250 + 1
    spec = {
        "interfaces": [{"dhcp": {"mac": f"02:00:00:00:00:{number:02x}", "ip": {"address": f"192.0.2.{number}"}}}],
        "disks": [{"device": "/dev/sda"}],
        "metadata": {"instance": {"id": f"instance-{name}"}},
        **changes.get("spec", {}),
    }
    metadata = {
        "namespace": namespace,
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "labels": changes.get("labels", {}),
        "annotations": changes.get("annotations", {}),
        "finalizers": changes.get("finalizers", []),
    }
    if changes.get("deleting"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return HARDWARE.convert({"metadata": metadata, "spec": spec, "status": changes.get("status", {})})


def wanted(**fields: Any) -> TinkerbellMachineSpec:
    """A machine's spec from its JSON fields."""
    return msgspec.convert(fields, TinkerbellMachineSpec)


def machine(name: str = "m", **fields: Any) -> TinkerbellMachine:
    """A TinkerbellMachine with this spec."""
    return TINKERBELL_MACHINE.convert(
        {
            "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
            "spec": fields,
        }
    )
