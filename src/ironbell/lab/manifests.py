"""Virtual and simulated servers as the objects that a person would write: Secret, bmc Machine, Hardware. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from ironbell.contract.servers.directory import DISK_SERIAL, MACHINE_UUID
from ironbell.lab.files import LabState
from ironbell.provisioner.bmc_address import CONFIRMED, address_text

Document = dict[str, Any]


def manifests(
    lab: LabState, passwords: Mapping[str, str], *, namespace: str = "default", insecure_tls: bool = True
) -> list[Document]:
    """The objects of all machines of a lab. `passwords` is by machine name."""
    netmask = str(IPv4Network(lab.subnet).netmask)
    return [
        document
        for machine in lab.machines
        for document in (
            secret(machine.name, namespace, machine.bmc_user, passwords[machine.name]),
            bmc_machine(machine.name, namespace, machine.bmc_host, machine.bmc_port, insecure_tls=insecure_tls),
            hardware(
                machine.name,
                namespace,
                facility="lab",
                mac=machine.mac,
                uefi=machine.firmware == "uefi",
                ip={"address": machine.address, "netmask": netmask, "gateway": lab.gateway},
                disks=["/dev/vda"],
                annotations={MACHINE_UUID: machine.uuid, DISK_SERIAL: machine.disk_serial},
            ),
        )
    ]


def secret(name: str, namespace: str, user: str, password: str) -> Document:
    """Credentials of a server's BMC."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-bmc", "namespace": namespace},
        "type": "Opaque",
        "stringData": {"username": user, "password": password},
    }


def bmc_machine(name: str, namespace: str, host: str, port: int, *, insecure_tls: bool = True) -> Document:
    """A server's BMC. Its address is confirmed: a restarted lab may have its BMCs at other ports."""
    return {
        "apiVersion": "bmc.tinkerbell.org/v1alpha1",
        "kind": "Machine",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {CONFIRMED: address_text(host, port)},
        },
        "spec": {
            "connection": {
                "host": host,
                "authSecretRef": {"name": f"{name}-bmc", "namespace": namespace},
                "insecureTLS": insecure_tls,
                "providerOptions": {"preferredOrder": ["gofish"], "redfish": {"port": port}},
            }
        },
    }


def hardware(
    name: str,
    namespace: str,
    *,
    facility: str,
    mac: str,
    uefi: bool,
    ip: Mapping[str, str],
    disks: Sequence[str],
    annotations: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
) -> Document:
    """A server. Its parts are reported by its BMC and by its agent."""
    return {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": {
            "name": name,
            "namespace": namespace,
            **({"labels": labels} if labels else {}),
            "annotations": annotations,
        },
        "spec": {
            "bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": name},
            "disks": [{"device": device} for device in disks],
            "interfaces": [
                {
                    "dhcp": {
                        "mac": mac,
                        "hostname": name,
                        "arch": "x86_64",
                        "uefi": uefi,
                        "lease_time": 86400,
                        "ip": ip,
                    },
                    "netboot": {"allowPXE": False},
                }
            ],
            "metadata": {
                "facility": {"facility_code": facility},
                "instance": {"id": mac, "hostname": name, "ips": [{**ip, "family": 4}]},
            },
        },
    }
