"""The controller of Hardware: finds problems that keep a server from being served, and reports them. It also keeps the
server's phase and power, which tables show, and the finalizer that keeps a held server from being deleted.

No service serves two Hardware with the same MAC, IP, agent id or instance id (contract.servers.directory); two with the
same machine UUID or disk serial get no action; addresses that do not parse are never handed out. Each Hardware is
compared only with those that share a value with it, by index.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/hardware.go (states that upstream never sets).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ironbell.api.bmc.machine import MACHINE as BMC_MACHINE
from ironbell.api.bmc.machine import Machine as BmcMachine
from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware, HardwareState
from ironbell.api.tinkerbell.interface import Dhcp
from ironbell.contract.servers.claim import PHASE, POWER, claim_of
from ironbell.contract.servers.directory import (
    ERROR,
    MACHINE_UUID,
    HardwareDirectory,
    named_serials,
    normal_ip,
    normal_mac,
    normal_uuid,
)
from ironbell.controllers.tink.observed import BY_BMC, bmc_keys, sharers_of_bmc
from ironbell.controllers.tink.status import shortened
from ironbell.kube.decision import Action, Decision, Key, patch
from ironbell.kube.draft import Draft, replace
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch
from ironbell.provisioner.deletion import DELETION_WAITS_FOR, deletion_waits_for, hold_finalizers
from ironbell.provisioner.health import bmc_key, is_silent, server_phase, server_power

MESSAGE_LIMIT: Final = 1024
BMC_DELAY_S: Final = 10.0
"""Minimum interval between reconciliations of a Hardware because of its BMC: not every power cycle and not every outage
of a BMC is written."""


def claims(hardware: Hardware) -> list[str]:
    """Everything that identifies the server, as index values."""
    values: list[str] = []
    for interface in hardware.spec.interfaces:
        if interface.dhcp is not None:
            values.append(f"mac/{normal_mac(interface.dhcp.mac)}")
            values.append(f"ip/{normal_ip(interface.dhcp.ip.address) if interface.dhcp.ip else ''}")
    instance = hardware.spec.metadata.instance if hardware.spec.metadata else None
    values += [f"bmc/{value}" for value in bmc_keys(hardware)]
    annotations = hardware.metadata.annotations
    values += [f"uuid/{normal_uuid(value)}" for value in annotations.get(MACHINE_UUID, "").split(",")]
    values += [f"serial/{value}" for value in named_serials(hardware)]
    values += [f"agent/{hardware.spec.agent_id}", f"instance/{instance.id if instance else ''}"]
    return sorted({value for value in values if not value.endswith("/")})


BY_CLAIM: Final = Index(HARDWARE, "tink-claim", claims)


def neighbours(hardware: Hardware, cache: Cache) -> Iterable[Key]:
    """Other Hardware that share a value with this one."""
    return {
        other.key for claim in claims(hardware) for other in cache.indexed(BY_CLAIM, claim) if other.key != hardware.key
    }


def _behind(bmc: BmcMachine, cache: Cache) -> Iterable[Key]:
    """The Hardware of the server behind a BMC."""
    return [hardware.key for hardware in cache.indexed(BY_BMC, "/".join(bmc.key))]


def _displayed(bmc: BmcMachine | None) -> tuple[bool, str]:
    """The part of a BMC that tables show; the BMC is written with each query."""
    return bmc is not None and is_silent(bmc), server_power(bmc)


@dataclass(frozen=True, slots=True)
class HardwareObserved:
    """A Hardware, its BMC, and its conflicts with other Hardware."""

    hardware: Hardware
    conflicts: tuple[str, ...] = ()
    bmc: BmcMachine | None = None


class HardwareReconciler:
    """Sets `status.state` of Hardware; problems, phase and power are annotations, and problems are events as well."""

    name = "tink-hardware"
    declaration = Declaration(
        HARDWARE,
        watches=(
            Watch(HARDWARE, neighbours),
            Watch(
                BMC_MACHINE, _behind, changed(_displayed, absent=_displayed(None)), delay_s=BMC_DELAY_S, reporting=True
            ),
        ),
        indexes=(BY_CLAIM, BY_BMC),
    )

    def observe(self, cache: Cache, key: Key) -> HardwareObserved | None:
        hardware = cache.get(HARDWARE, *key)
        if hardware is None:
            return None
        reference = bmc_key(hardware)
        bmc = cache.get(BMC_MACHINE, *reference) if reference is not None else None
        if is_deleting(hardware):
            return HardwareObserved(hardware, bmc=bmc)
        directory = HardwareDirectory()
        directory.upsert(hardware)
        for other in neighbours(hardware, cache):
            neighbour = cache.get(HARDWARE, *other)
            if neighbour is not None:
                directory.upsert(neighbour)
        conflicts = [conflict.message for conflict in directory.conflicts_of(hardware)]
        if sharers := sharers_of_bmc(cache, hardware):
            conflicts.append(f"spec.bmcRef names a BMC that {', '.join(sharers)} names as well; no Workflow uses it")
        return HardwareObserved(hardware, tuple(conflicts), bmc)

    def decide(self, observed: HardwareObserved, now: datetime) -> Decision:
        draft = Draft(HARDWARE, observed.hardware, now)
        if draft.is_deleting:
            _delete(draft, observed)
        elif ANNOTATION_DELETE_FOR_MOVE not in draft.metadata.annotations:
            # otherwise its copy is in use, and the move is about to delete this object
            _report(draft, observed)
        return draft.decision()


def _report(draft: Draft[Hardware], observed: HardwareObserved) -> None:
    problem = shortened("; ".join([*observed.conflicts, *problems(draft.obj)]), MESSAGE_LIMIT)
    state = HardwareState.ERROR if problem else HardwareState.READY
    known = draft.metadata.annotations.get(ERROR, "")
    if problem and (draft.status.state, known) != (state, problem):
        draft.emit("HardwareConflict" if observed.conflicts else "HardwareInvalid", problem, warning=True)
    draft.first.append(_written(observed, {ERROR: problem, DELETION_WAITS_FOR: ""}))
    draft.status = replace(draft.status, state=state)


def _delete(draft: Draft[Hardware], observed: HardwareObserved) -> None:
    """Report what the deletion waits for, and remove the finalizer of a hold that was removed."""
    waits_for = deletion_waits_for(draft.obj)
    draft.first.append(_written(observed, {DELETION_WAITS_FOR: waits_for}))
    if waits_for:
        reason = "WaitingForRelease" if claim_of(draft.obj) is not None else "HardwareHeld"
        message = f"The deletion waits for {waits_for}."
        draft.wait(reason, message)
        if draft.metadata.annotations.get(DELETION_WAITS_FOR) != waits_for:
            draft.emit(reason, message)


def _written(observed: HardwareObserved, desired: Mapping[str, str]) -> Action | None:
    """The write that sets the desired annotations (empty is unset), phase, power and the finalizer of a hold; None if
    they are current."""
    hardware, bmc = observed.hardware, observed.bmc
    current = hardware.metadata.annotations
    if ANNOTATION_DELETE_FOR_MOVE not in current:
        desired = {**desired, PHASE: server_phase(hardware, bmc), POWER: server_power(bmc)}
    annotations = {name: value or None for name, value in desired.items() if current.get(name, "") != value}
    finalizers = hold_finalizers(hardware)
    metadata: dict[str, Any] = {"annotations": annotations} if annotations else {}
    if finalizers != hardware.metadata.finalizers:
        metadata["finalizers"] = finalizers or None
    return patch(HARDWARE, hardware, {"metadata": metadata}, locked=True) if metadata else None


def problems(hardware: Hardware) -> list[str]:
    """Problems of a Hardware by itself; each names its field."""
    problems: list[str] = []
    seen: dict[str, int] = {}
    for number, interface in enumerate(hardware.spec.interfaces):
        if interface.dhcp is None:
            continue
        problems += _dhcp_problems(interface.dhcp, f"spec.interfaces[{number}].dhcp")
        mac = normal_mac(interface.dhcp.mac)
        if mac and mac in seen and not _is_another(interface.dhcp, hardware.spec.interfaces[seen[mac]].dhcp):
            problems.append(f"spec.interfaces[{number}].dhcp.mac {mac} is also that of spec.interfaces[{seen[mac]}]")
        seen.setdefault(mac, number)
    reference = hardware.spec.bmc_ref
    if reference is not None and reference.kind not in ("", "Machine"):
        problems.append(f"spec.bmcRef.kind is {reference.kind!r}; it must be Machine, of bmc.tinkerbell.org")
    return problems


def _is_another(dhcp: Dhcp, first: Dhcp | None) -> bool:
    """Return whether an entry is another VLAN or address family of a card; DHCP uses the first entry only."""
    if first is None or dhcp.ip is None or first.ip is None:
        return False
    return dhcp.vlan_id != first.vlan_id or (":" in dhcp.ip.address) != (":" in first.ip.address)


def _dhcp_problems(dhcp: Dhcp, path: str) -> Iterator[str]:
    if dhcp.mac and not normal_mac(dhcp.mac):
        yield f"{path}.mac {dhcp.mac!r} is not a valid MAC address"
    for place, text in _addresses(dhcp):
        if text and not normal_ip(text):
            yield f"{path}.{place} {text!r} is not a valid IP address"
    if dhcp.ip is not None and dhcp.ip.address and not dhcp.ip.netmask and ":" not in dhcp.ip.address:
        yield f"{path}.ip.netmask is empty; DHCP cannot offer {dhcp.ip.address} without it"
    if dhcp.ip is not None and dhcp.ip.netmask and not _is_netmask(dhcp.ip.netmask):
        yield f"{path}.ip.netmask {dhcp.ip.netmask!r} is not a valid netmask"


def _addresses(dhcp: Dhcp) -> Iterator[tuple[str, str]]:
    if dhcp.ip is not None:
        yield "ip.address", dhcp.ip.address
        yield "ip.gateway", dhcp.ip.gateway
    for number, server in enumerate(dhcp.name_servers):
        yield f"name_servers[{number}]", server


def _is_netmask(text: str) -> bool:
    try:
        ipaddress.ip_network(f"0.0.0.0/{text}")
    except ValueError:
        return bool(normal_ip(text)) and ":" in text
    return True
