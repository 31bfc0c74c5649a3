"""Failure domains of a cluster: the values of a label of Hardware, and which can take a machine of a control plane.

A control plane names the domain of each of its Machines when it makes them, and a machine is only put where it says.
So one that can take none now is no domain for control planes (`controlPlane: false`): the next Machine goes elsewhere,
or, where no domain can, without one to whichever server is free first. Machines in a full domain go first when a
rollout removes one, and their servers are what the next one gets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ironbell.api.bmc.machine import Machine
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.capt.names import LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.capt.tinkerbellcluster import FailureDomain, TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachineSpec
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.core import Namespace
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware, HardwareState
from ironbell.base.labels import SelectorError
from ironbell.contract.clusters.external import State, look_up
from ironbell.contract.fields import text_at
from ironbell.contract.servers.claim import HELD
from ironbell.contract.servers.inventory_labels import SWITCH_PORT
from ironbell.controllers.capt.host import wish
from ironbell.kube.decision import Fields, Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.claims_from import cached_rules
from ironbell.provisioner.deferral import identity
from ironbell.provisioner.lifecycle.bmc_health import BY_BMC
from ironbell.provisioner.lifecycle.observe import silent_bmcs
from ironbell.provisioner.lifecycle.reserving import is_available_to_somebody
from ironbell.provisioner.lifecycle.selection import Wish, unusable, verdict

MAX_DOMAINS = 100
"""As many as Cluster API takes."""
_OF_ONE_SERVER = (LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE, SWITCH_PORT)

BY_FAILURE_DOMAIN_LABEL: Index[TinkerbellCluster] = Index(
    TINKERBELL_CLUSTER,
    "capt-failure-domain-label",
    lambda obj: [obj.spec.failure_domain_label] if obj.spec.failure_domain_label else [],
)
WITH_DOMAINS: Index[TinkerbellCluster] = Index(
    TINKERBELL_CLUSTER,
    "capt-with-domains",
    lambda obj: ["any"] if obj.spec.failure_domain_label else [],
)
BY_LABEL_NAME: Index[Hardware] = Index(HARDWARE, "capt-label-name", lambda hardware: list(hardware.metadata.labels))


def domains(cache: Cache, obj: TinkerbellCluster, cluster: Cluster | None) -> tuple[FailureDomain, ...] | None:
    """The domains by name, each with whether a server in it is free for the control plane; None while it is not known
    yet what the control plane asks for."""
    label = obj.spec.failure_domain_label
    if not label:
        return ()
    wanted = _control_plane_wish(cache, cluster)
    if wanted is None:
        return None
    found: dict[str, bool] = {}
    bmcs, rules = {bmc.key: bmc for bmc in silent_bmcs(cache)}, cached_rules(cache)
    wanted = dataclasses.replace(wanted, cluster=identity(cluster), namespace=obj.metadata.namespace, claims=rules)
    for server in cache.indexed(BY_LABEL_NAME, label):
        name = server.metadata.labels[label]
        if name:
            found[name] = found.get(name, False) or (_is_available(server) and verdict(wanted, server, bmcs).fits)
    listed = (FailureDomain(name=name, control_plane=free) for name, free in sorted(found.items()))
    return tuple(listed)[:MAX_DOMAINS]


def place(hardware: Hardware | None) -> dict[str, str]:
    """Labels that may say where a server is and what it is: who takes one changes only whose it is."""
    labels = hardware.metadata.labels if hardware is not None else {}
    return {name: value for name, value in labels.items() if name not in _OF_ONE_SERVER}


def has_moved(old: Hardware | None, new: Hardware | None) -> bool:
    """Whether what is known of places may be different."""
    return place(old) != place(new)


def is_taken_or_freed(old: Hardware | None, new: Hardware | None) -> bool:
    """Whether a machine can take it now that could not, or the other way round."""
    return old is not None and new is not None and _is_available(old) != _is_available(new)


def clusters_of(hardware: Hardware, cache: Cache) -> Iterable[Key]:
    """Clusters whose domains this server's labels name."""
    for label in hardware.metadata.labels:
        for obj in cache.indexed(BY_FAILURE_DOMAIN_LABEL, label):
            yield obj.key


def clusters_with_domains(_namespace: Namespace, cache: Cache) -> Iterable[Key]:
    """All Clusters that have domains: which servers they may claim has changed."""
    return [obj.key for obj in cache.indexed(WITH_DOMAINS, "any")]


def clusters_of_bmc(bmc: Machine, cache: Cache) -> Iterable[Key]:
    """Clusters whose domains the server behind this BMC is in."""
    for hardware in cache.indexed(BY_BMC, "/".join(bmc.key)):
        if _is_free(hardware):
            yield from clusters_of(hardware, cache)


def clusters_that_miss(hardware: Hardware, cache: Cache) -> Iterable[Key]:
    """The same where no other free server is as good: or a thousand claims would each look at a thousand clusters."""
    alike = place(hardware)
    for label in alike:
        concerned = [obj.key for obj in cache.indexed(BY_FAILURE_DOMAIN_LABEL, label)]
        if concerned and not any(
            other.key != hardware.key and place(other) == alike and _is_free(other)
            for other in cache.indexed(BY_LABEL_NAME, label)
        ):
            yield from concerned


def _is_free(hardware: Hardware) -> bool:
    return LABEL_OWNER_NAME not in hardware.metadata.labels and _is_available(hardware)


def _is_available(hardware: Hardware) -> bool:
    """Whether a machine may claim it, of one Cluster at least."""
    metadata = hardware.metadata
    return (
        is_available_to_somebody(hardware)
        and HELD not in metadata.annotations
        and hardware.status.state != HardwareState.ERROR
        and not is_deleting(hardware)
        and not unusable(hardware)
    )


def _control_plane_wish(cache: Cache, cluster: Cluster | None) -> Wish | None:
    """What machines of the control plane ask for: anything where that cannot be known, None where it will be soon."""
    if cluster is None or not cluster.spec.control_plane_ref.name:
        return Wish()
    plane = look_up(cache, cluster.spec.control_plane_ref, cluster.metadata.namespace)
    if plane.obj is None:
        return None if plane.state is State.UNKNOWN and not plane.problem else Wish()
    name = _template_name(plane.obj.body)
    template = cache.get(TINKERBELL_MACHINE_TEMPLATE, cluster.metadata.namespace, name) if name else None
    return _wish_of(template.spec.template.spec) if template is not None else Wish()


def _template_name(body: Fields) -> str:
    """By either contract."""
    of_spec = text_at(body, "spec", "machineTemplate", "spec", "infrastructureRef", "name")
    return of_spec or text_at(body, "spec", "machineTemplate", "infrastructureRef", "name")


def _wish_of(spec: TinkerbellMachineSpec) -> Wish:
    try:
        return wish(spec)
    except SelectorError:
        return Wish()
