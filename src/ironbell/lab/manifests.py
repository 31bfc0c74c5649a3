"""A lab's machines as the objects that a person would write for them: Secret, bmc Machine, Hardware. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any

from ironbell.contract.servers.directory import DISK_SERIAL, MACHINE_UUID
from ironbell.lab.files import LabState, MachineState
from ironbell.provisioner.bmc_address import CONFIRMED, address_text

Document = dict[str, Any]


def manifests(
    lab: LabState, passwords: Mapping[str, str], *, namespace: str = "default", insecure_tls: bool = True
) -> list[Document]:
    """The objects of all machines. `passwords` is by machine name."""
    return [
        document
        for machine in lab.machines
        for document in (
            _secret(machine, passwords[machine.name], namespace),
            _bmc(machine, namespace, insecure_tls=insecure_tls),
            _hardware(lab, machine, namespace),
        )
    ]


def _meta(name: str, namespace: str) -> Document:
    return {"name": name, "namespace": namespace}


def _secret(machine: MachineState, password: str, namespace: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _meta(f"{machine.name}-bmc", namespace),
        "type": "Opaque",
        "stringData": {"username": machine.bmc_user, "password": password},
    }


def _bmc(machine: MachineState, namespace: str, *, insecure_tls: bool) -> Document:
    return {
        "apiVersion": "bmc.tinkerbell.org/v1alpha1",
        "kind": "Machine",
        "metadata": {
            **_meta(machine.name, namespace),
            # a restarted lab may have its BMCs at other ports
            "annotations": {CONFIRMED: address_text(machine.bmc_host, machine.bmc_port)},
        },
        "spec": {
            "connection": {
                "host": machine.bmc_host,
                "authSecretRef": {"name": f"{machine.name}-bmc", "namespace": namespace},
                "insecureTLS": insecure_tls,
                "providerOptions": {"preferredOrder": ["gofish"], "redfish": {"port": machine.bmc_port}},
            }
        },
    }


def _hardware(lab: LabState, machine: MachineState, namespace: str) -> Document:
    netmask = _netmask(lab.subnet)
    return {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": {
            **_meta(machine.name, namespace),
            "annotations": {
                MACHINE_UUID: machine.uuid,
                DISK_SERIAL: machine.disk_serial,
            },
        },
        "spec": {
            "bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": machine.name},
            "disks": [{"device": "/dev/vda"}],
            "interfaces": [
                {
                    "dhcp": {
                        "mac": machine.mac,
                        "hostname": machine.name,
                        "arch": "x86_64",
                        "uefi": machine.firmware == "uefi",
                        "lease_time": 86400,
                        "ip": {"address": machine.address, "netmask": netmask, "gateway": lab.gateway},
                    },
                    "netboot": {"allowPXE": False},
                }
            ],
            "metadata": {
                "facility": {"facility_code": "lab"},
                "instance": {
                    "id": machine.mac,
                    "hostname": machine.name,
                    "ips": [{"address": machine.address, "netmask": netmask, "gateway": lab.gateway, "family": 4}],
                },
            },
        },
    }


def _netmask(subnet: str) -> str:
    return str(IPv4Network(subnet).netmask)
