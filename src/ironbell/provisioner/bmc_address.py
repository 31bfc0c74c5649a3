"""The address to which a BMC's password may be sent. Pure.

A user who may change a bmc Machine could have its password sent to another machine. Therefore the address with which a
password is first used is recorded on the Machine, and the password is sent to no other address until a user who may
read the Secret confirms it. Both are annotations: `clusterctl move`, pivots and backups copy these, and upstream's
status has no field for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ironbell.api.bmc.connection import Connection
from ironbell.api.bmc.machine import MACHINE, Machine
from ironbell.base.ports import HTTPS_PORT
from ironbell.contract.crossing import USE, Access, mapping_at, may_read_secret, secret_references
from ironbell.contract.servers.bmc_service import service_of
from ironbell.kube.decision import Key

ADDRESS: Final = "ironbell.dev/bmc-address"
"""Annotation on a bmc Machine: the address with which its password is used. The controllers set it."""
CONFIRMED: Final = "ironbell.dev/bmc-address-confirmed"
"""Annotation on a bmc Machine: the address that a user who may read its Secret has confirmed."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The addresses to which the password of a Machine may be sent."""

    machine: Key
    addresses: tuple[str, ...]

    def problem(self, connection: Connection) -> str:
        """The reason why the password must not be sent to this address, with the remedy; empty if it may."""
        address = address_of(connection)
        if address in self.addresses:
            return ""
        return f"{_cause(self.machine, self.addresses[0], address)}; {confirmation(self.machine, address)}"


def has_secret(connection: Connection) -> bool:
    """Return whether a connection sends a secret to the BMC."""
    rpc = connection.provider_options.rpc if connection.provider_options is not None else None
    signs = rpc is not None and rpc.hmac is not None and any(rpc.hmac.secrets.values())
    return signs or (connection.auth_secret_ref is not None and bool(connection.auth_secret_ref.name))


def address_of(connection: Connection) -> str:
    """Host and port to which a password is sent, without the default port."""
    service = service_of(connection)
    return address_text(service.host, service.port)


def address_text(host: str, port: int | None) -> str:
    """Host and port in the recorded form, without the default port."""
    bare = host.lower().removeprefix("[").removesuffix("]").removesuffix(".")
    if port in (None, 0, HTTPS_PORT):
        return bare
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def pin_of(machine: Machine) -> Pin | None:
    """The pin of a Machine; None while no address is recorded, or if it has no password."""
    recorded = machine.metadata.annotations.get(ADDRESS, "")
    if not recorded or not has_secret(machine.spec.connection):
        return None
    confirmed = machine.metadata.annotations.get(CONFIRMED, "")
    return Pin(machine.key, tuple(normal(address) for address in (recorded, confirmed) if address))


def to_record(machine: Machine) -> str:
    """The address to record on a Machine: its current one if none is recorded, or if it was confirmed; else empty."""
    if not has_secret(machine.spec.connection):
        return ""
    present = address_of(machine.spec.connection)
    pin = pin_of(machine)
    if pin is None:
        return present
    return present if present in pin.addresses and present != pin.addresses[0] else ""


def problem(machine: Machine) -> str:
    """The reason why the password of a Machine is not sent to its BMC, with the remedy; empty if it is."""
    pin = pin_of(machine)
    return pin.problem(machine.spec.connection) if pin is not None else ""


def cause_and_remedy(machine: Machine) -> tuple[str, str]:
    """Cause and remedy of `problem` without full stops, for `why`."""
    pin, address = pin_of(machine), address_of(machine.spec.connection)
    if pin is None or address in pin.addresses:
        return "", ""
    remedy = confirmation(machine.key, address)
    return _cause(machine.key, pin.addresses[0], address), f"{remedy[:1].upper()}{remedy[1:]}"


def confirmation(machine: Key, address: str) -> str:
    """The command that confirms an address."""
    command = f"kubectl annotate {MACHINE.plural}.{MACHINE.group} {machine[1]} -n {machine[0]} --overwrite"
    return f"if that is its BMC, a user who may read the Secret has to confirm it: `{command} {CONFIRMED}={address}`"


def rights_to_write(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterable[tuple[str, list[list[Access]]]]:
    """Annotations about addresses that a write of a Machine changes, with lists of rights; one of each is required."""
    previous, current = _annotations(old or {}), _annotations(new)
    own_namespace = str(mapping_at(new, "metadata").get("namespace") or "")
    named = [
        may_read_secret(namespace or own_namespace, name)
        for obj in (new, old or {})
        for _, namespace, name in secret_references(mapping_at(mapping_at(obj, "spec"), "connection"))
        if name
    ]
    # A Machine without a Secret may name any of its namespace later.
    reads = list(dict.fromkeys(named)) or [may_read_secret(own_namespace, "")]
    if previous.get(ADDRESS) != current.get(ADDRESS):
        yield ADDRESS, [[replace(read, verb=USE), read] for read in reads]
    if previous.get(CONFIRMED) != current.get(CONFIRMED) and current.get(CONFIRMED):
        yield CONFIRMED, [[read] for read in reads]


def normal(text: str) -> str:
    """An address as `address_of` writes it."""
    host, colon, port = text.strip().rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return address_text(host, int(port))
    return address_text(text.strip(), None)


def _cause(machine: Key, recorded: str, address: str) -> str:
    return (
        f"the password of Machine {'/'.join(machine)} is used with the BMC at {recorded}, and the Machine now names"
        f" {address}: the password is not sent there"
    )


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_at(mapping_at(obj, "metadata"), "annotations")
