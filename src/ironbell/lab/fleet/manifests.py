"""The objects of simulated servers, as a person would write them: Secret, bmc Machine, Hardware. Pure."""

from __future__ import annotations

from typing import Any

from ironbell.contract.servers.directory import DISK_SERIAL, MACHINE_UUID
from ironbell.lab.fleet.catalogue import NETMASK, Server
from ironbell.provisioner.bmc_address import CONFIRMED, address_text

Document = dict[str, Any]


def secret(server: Server, namespace: str, user: str, password: str) -> Document:
    """Credentials of the BMC."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{server.name}-bmc", "namespace": namespace},
        "type": "Opaque",
        "stringData": {"username": user, "password": password},
    }


def bmc_machine(server: Server, namespace: str, port: int) -> Document:
    """The server's BMC. Its certificate is of an unknown authority."""
    return {
        "apiVersion": "bmc.tinkerbell.org/v1alpha1",
        "kind": "Machine",
        # a restarted fleet may have its BMCs at another port
        "metadata": {
            "name": server.name,
            "namespace": namespace,
            "annotations": {CONFIRMED: address_text(server.bmc_address, port)},
        },
        "spec": {
            "connection": {
                "host": server.bmc_address,
                "authSecretRef": {"name": f"{server.name}-bmc", "namespace": namespace},
                "insecureTLS": True,
                "providerOptions": {"preferredOrder": ["gofish"], "redfish": {"port": port}},
            }
        },
    }


def hardware(server: Server, namespace: str) -> Document:
    """The server. Its parts are reported by its BMC and by its agent."""
    ip = {"address": server.address, "netmask": NETMASK, "gateway": "127.0.0.1"}
    return {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": {
            "name": server.name,
            "namespace": namespace,
            "labels": {"rack": server.rack, "row": server.row},
            "annotations": {
                MACHINE_UUID: server.uuid,
                DISK_SERIAL: ",".join(disk.serial for disk in server.disks),
            },
        },
        "spec": {
            "bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": server.name},
            "disks": [{"device": disk.device} for disk in server.disks],
            "interfaces": [
                {
                    "dhcp": {
                        "mac": server.mac,
                        "hostname": server.name,
                        "arch": "x86_64",
                        "uefi": True,
                        "lease_time": 86400,
                        "ip": ip,
                    },
                    "netboot": {"allowPXE": False},
                }
            ],
            "metadata": {
                "facility": {"facility_code": "simulation"},
                "instance": {"id": server.mac, "hostname": server.name, "ips": [{**ip, "family": 4}]},
            },
        },
    }
